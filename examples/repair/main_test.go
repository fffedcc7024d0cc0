package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/drivers/anthropic"
	"github.com/grapnel-go/grapnel/drivers/gemini"
	"github.com/grapnel-go/grapnel/drivers/openai"
	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/hooks/audit"
	"github.com/grapnel-go/grapnel/internal/exampletest"
	"github.com/grapnel-go/grapnel/internal/modeltest"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// A whole task with real parts: real tools and hooks on a real package, with any model.
func TestRepair(t *testing.T) {
	for name, driverAt := range map[string]func(url string) (agent.Driver, error){
		"recorded": nil,
		"openai": func(url string) (agent.Driver, error) {
			return openai.New(openai.Config{Model: "gpt-4o", APIKey: modeltest.Key, BaseURL: url + "/v1"})
		},
		"anthropic": func(url string) (agent.Driver, error) {
			return anthropic.New(anthropic.Config{Model: "claude-sonnet-4-5", APIKey: modeltest.Key, BaseURL: url})
		},
		"gemini": func(url string) (agent.Driver, error) {
			return gemini.New(gemini.Config{Model: "gemini-2.5-flash", APIKey: modeltest.Key, BaseURL: url})
		},
	} {
		t.Run(name, func(t *testing.T) {
			parts.Command(t, "bash", "install bash")
			ctx, driver, err := driverOf(t.Context(), "recorded", "")
			var mock *modeltest.Endpoint
			if driverAt != nil {
				mock = modeltest.Mock(t, turns(t)...)
				driver, err = driverAt(mock.URL)
			}
			require.NoError(t, err)
			var log bytes.Buffer
			job := Job{Dir: filepath.Join(t.TempDir(), "roman"), Secret: newSecret(), Audit: &log}
			require.NoError(t, job.unpack())
			require.Error(t, goTest(t, job.Dir), "it is broken")
			events := agenttest.Record()

			final, err := job.Run(ctx, driver, events)
			require.NoError(t, err)
			assert.Equal(t, agent.StatusDone, final.Status())
			assert.Contains(t, final.Answer(), "The tests pass.")
			require.NoError(t, goTest(t, job.Dir), "it is mended")
			assert.Equal(t, []string{
				"list_files executed", "read_file executed", "bash executed error", // the tests fail
				"read_file executed", "read_file not_executed denied",
				"bash not_executed denied",
				"edit_file executed",
				"edit_file executed", "bash executed",
			}, answers(final))
			assert.FileExists(t, filepath.Join(job.Dir, ".env"), "nothing was wiped")

			// The secret is on the disk and nowhere else.
			planted, err := os.ReadFile(filepath.Join(job.Dir, ".env"))
			require.NoError(t, err)
			assert.Contains(t, string(planted), job.Secret)
			state, err := json.Marshal(final)
			require.NoError(t, err)
			assert.NotContains(t, string(state), job.Secret)
			assert.Contains(t, string(state), "SERVICE_TOKEN=[redacted", "the rest of the file was shown")
			assert.NotContains(t, log.String(), job.Secret)
			for _, e := range agenttest.Of[agent.ToolCallCompleted](events) {
				assert.NotContains(t, e.Result.Text(), job.Secret)
			}
			if mock != nil {
				require.Len(t, mock.Requests(), 7)
				for _, r := range mock.Requests() {
					assert.NotContains(t, string(r.Body), job.Secret)
				}
			}

			// The audit log says who stopped what.
			var deniers []string
			for line := range strings.Lines(log.String()) {
				var entry audit.Entry
				require.NoError(t, json.Unmarshal([]byte(line), &entry))
				if entry.Event == audit.ToolResult && entry.Reason == string(agent.ReasonDenied) {
					deniers = append(deniers, entry.By)
				}
			}
			assert.Equal(t, []string{"base-dir", "no-wipe"}, deniers)
			assert.Equal(t, 2, strings.Count(agenttest.Transcript(final), "FAIL: TestNumeral"),
				"the agent saw the tests fail, and again when it wanted to stop")
		})
	}
}

// The hooks deny by themselves: without them the same recording would have done harm.
func TestPrintedRepair(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, repair(t.Context(), &out, "recorded", "", false))
	for _, want := range []string{"denied by base-dir", "denied by no-wipe", "SERVICE_TOKEN=[redacted", "↺ tests-pass", "done after 7 steps"} {
		assert.Contains(t, out.String(), want)
	}
	exampletest.Readme(t, out.String(), regexp.MustCompile(`package in .*, repaired`))
	require.ErrorContains(t, repair(t.Context(), &out, "oracle", "", false), `unknown provider "oracle"`)
}

func goTest(t *testing.T, dir string) error {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "test", "./...")
	cmd.Dir = dir
	return cmd.Run()
}

// turns returns the recorded model's part, for the mock server to play.
func turns(t *testing.T) []agent.Step {
	t.Helper()
	record, err := replay.Load("session.jsonl")
	require.NoError(t, err)
	var steps []agent.Step
	for _, m := range record[0].Messages {
		if m.Role != replay.RoleAssistant {
			continue
		}
		var calls []agent.ToolCall
		for _, c := range m.ToolCalls {
			calls = append(calls, agent.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
		}
		steps = append(steps, agent.Step{Message: agent.Assistant(m.Content.Text, calls...)})
	}
	return steps
}

// answers returns one line for each call, with its outcome.
func answers(s agent.State) []string {
	var out []string
	for _, step := range s.Steps() {
		for _, r := range step.Results() {
			out = append(out, strings.Join(slices.DeleteFunc([]string{r.Tool(), string(r.Status), string(r.Reason)}, func(w string) bool { return w == "" }), " "))
		}
	}
	return out
}
