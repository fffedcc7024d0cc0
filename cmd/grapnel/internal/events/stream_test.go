package events

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/processor"
	"github.com/grapnel-go/grapnel/toolexec"
	"github.com/grapnel-go/grapnel/toolexec/mcp"
)

var update = flag.Bool("update", false, "write the golden files again")

const golden = "testdata/events.jsonl"

// play returns a run in which everything happens that a stream has a form for.
func play(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		stream := New(&out)
		stream.Fallback("no key is set")
		bash := toolexec.CallFunc(agent.ToolSpec{Name: "bash", Description: "Runs a command."},
			func(ctx context.Context, c toolexec.Call, in struct {
				Command string `json:"command"`
			}) (string, error) {
				time.Sleep(20 * time.Millisecond) // of the bubble's clock
				c.State.Emit(ctx, mcp.ProgressReported{Run: c.State.Run(), Call: c.ToolCall, Progress: 1, Total: 2, Message: "half"})
				return "TOKEN=SECRET-1 <" + in.Command + ">", nil
			})
		guard := hooks.On(hooks.AtPreToolUse, "guard", func(_ context.Context, c hooks.ToolContext) hooks.Result {
			command, _ := c.Call().Text("command")
			switch {
			case strings.Contains(command, "rm"):
				return c.Deny("not that")
			case strings.Contains(command, "push"):
				return c.Rewrite(map[string]string{"command": "push gently"})
			case strings.Contains(command, "puzzle"):
				return c.Fail(errors.New("no rule for it"))
			}
			return c.Allow()
		})
		redact := hooks.On(hooks.AtPostToolUse, "redact", func(_ context.Context, c hooks.ToolResultContext) hooks.Result {
			return c.Replace(strings.ReplaceAll(c.Text(), "SECRET-1", "[redacted]"))
		})
		goOn := hooks.On(hooks.AtStop, "go-on", func(_ context.Context, c hooks.StopContext) hooks.Result {
			if c.Continuations() == 0 {
				return c.Continue("one more thing")
			}
			return c.Allow()
		})
		a := builder.New().WithName("mender").WithModel("test-model").WithDriver(agenttest.Script(
			agenttest.Tries(agenttest.Fail(errors.New("too busy")),
				agenttest.Say("On it.").Call("bash", `{"command":"rm -rf /"}`).Call("bash", `{"command":"push --force"}`).
					Call("bash", `{"command":"puzzle"}`).Call("none", "{").WithTokens(10, 5).WithCost(0.25)),
			agenttest.Say("Done.").WithTokens(7, 1),
			agenttest.Say("Really done."),
		)).With(
			capability.UseTools(bash), capability.UseHooks(guard, redact, goOn),
			capability.UseStepProcessor("retry", processor.Retry{}),
		).WithObserver(stream).Build().MustGet()
		for progress, err := range a.Stream(t.Context(), agent.NewState(), agent.UserText("Mend the build.")) {
			require.NoError(t, err)
			if progress.Delta != nil {
				stream.Delta(*progress.Delta)
			}
		}
		stream.Observe(t.Context(), unknown{})
		require.NoError(t, stream.Err())
	})
	ids := regexp.MustCompile(`(run|ses)_[A-Z2-7]{10,}`)
	return ids.ReplaceAll(out.Bytes(), []byte("${1}_0"))
}

type unknown struct{}

func (unknown) EventName() string { return "other.event" }

func TestGolden(t *testing.T) {
	got := play(t)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(golden, got, 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got))
	assert.NotContains(t, string(got), "SECRET-1", "what hooks took out is in no event")
}

// Every line is one object with version, number, time and type; the numbers count.
func TestLines(t *testing.T) {
	seq := 0
	for line := range bytes.Lines(play(t)) {
		seq++
		var h head
		require.NoError(t, json.Unmarshal(line, &h))
		assert.Equal(t, Version, h.V)
		assert.Equal(t, seq, h.Seq)
		assert.NotEmpty(t, h.Type)
		assert.False(t, h.Time.IsZero())
	}
	assert.Greater(t, seq, 40)
}

// docs/streams.md must have a row or a section for each written type, with each of its fields. Some code must write
// each type of the page.
func TestTheFormIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/streams.md")
	require.NoError(t, err)
	_, types, found := strings.Cut(string(page), "\n## Types\n")
	require.True(t, found)
	sections := map[string]string{}
	name := func(title, text string) {
		for _, found := range regexp.MustCompile("`([a-z_.]+)`").FindAllStringSubmatch(title, -1) {
			sections[found[1]] = text
		}
	}
	parts := strings.Split(types, "\n### ")
	for row := range strings.Lines(parts[0]) {
		if cells := strings.SplitN(row, "|", 3); len(cells) == 3 {
			name(cells[1], cells[2])
		}
	}
	for _, section := range parts[1:] {
		title, text, _ := strings.Cut(section, "\n")
		name(title, text)
	}
	forms := map[string]any{
		"fallback": fallback{}, "run.started": runStarted{}, "step.started": stepStarted{}, "inference.started": inferenceStarted{},
		"delta": delta{}, "inference.completed": inferenceCompleted{}, "inference.retrying": retrying{},
		"tool_call.started": toolCallStarted{}, "tool_call.completed": toolCallCompleted{}, "mcp.progress": progress{},
		"approval.requested": approvalRequested{}, "approval.completed": approvalCompleted{},
		"step.completed": stepCompleted{}, "judged": judged{}, "run.completed": runCompleted{},
		"run.parked": runParked{}, "run.resumed": runResumed{}, "notify.failed": notifyFailed{},
		"store.stalled": storeStalled{}, "store.recovered": storeRecovered{},
		"compaction.completed": compacted{}, "compaction.failed": compactFailed{}, "subagent.started": subagent{},
		"subagent.parked": subagent{}, "subagent.resumed": subagent{}, "subagent.completed": subagent{},
		"inference.fell_back": fellBack{}, "context.edited": contextEdited{}, "tools.selected": toolsSelected{},
	}
	for _, kind := range []hooks.EventKind{
		hooks.HookStart, hooks.HookComplete, hooks.HookBlocked, hooks.HookFailed, hooks.HookTimeout, hooks.HookSkipped, hooks.HookConflict,
	} {
		forms[string(kind)] = hook{}
	}
	assert.Equal(t, slices.Sorted(maps.Keys(forms)), slices.Sorted(maps.Keys(sections)))
	for name, form := range forms {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(form)) {
			field, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if field == "" || slices.Contains([]string{"v", "seq", "time", "type", "run", "step"}, field) {
				continue
			}
			assert.Contains(t, sections[name], "`"+field+"`", "docs/streams.md does not say what %s has in %s", name, field)
		}
	}
	for line := range bytes.Lines(play(t)) {
		var h head
		require.NoError(t, json.Unmarshal(line, &h))
		if h.Type != (unknown{}).EventName() {
			assert.Contains(t, sections, h.Type)
		}
	}
}

// A run that waits says for what, and one that goes on from where; nothing else ends or
// begins it.
func TestParked(t *testing.T) {
	var out bytes.Buffer
	stream := New(&out)
	bash := toolexec.Func("bash", "Runs a command.", func(context.Context, struct {
		Command string `json:"command"`
	}) (string, error) {
		return "ok", nil
	})
	guard := hooks.On(hooks.AtPreToolUse, "guard", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		return c.AskAbout(agent.Question{Reason: "it <pushes>", Within: time.Hour, OnTimeout: agent.RejectAndContinue})
	})
	gentle := hooks.On(hooks.AtPreToolUse, "gentle", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		return c.Rewrite(map[string]string{"command": "push gently"})
	})
	a := builder.New().WithName("mender").WithDriver(agenttest.Script(agenttest.Call("bash", `{"command":"push"}`), agenttest.Say("Done."))).
		With(capability.UseTools(bash), capability.UseHooks(gentle, guard), capability.UseApproval(agent.ParkApprover)).
		WithObserver(stream).Build().MustGet()
	s := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).MustGet()
	require.True(t, s.Waiting())
	stream.Observe(t.Context(), durable.NotifyFailed{Run: s.Run(), Err: errors.New("no paper")})
	stream.Observe(t.Context(), durable.StoreStalled{Run: s.Run(), Err: errors.New("no disk")})
	stream.Observe(t.Context(), durable.StoreRecovered{Run: s.Run(), After: 3 * time.Second})
	asked := s.Interventions()[0]
	id := asked.CallID()
	s = a.Resume(t.Context(), agenttest.WithApproval(s, id, agent.Approval{Verdict: agent.Approve, By: "ann"})).MustGet()
	require.Equal(t, agent.StatusDone, s.Status())

	lines := map[string]map[string]any{}
	for line := range bytes.Lines(out.Bytes()) {
		var fields map[string]any
		require.NoError(t, json.Unmarshal(line, &fields))
		kind, _ := fields["type"].(string)
		lines[kind] = fields
	}
	parked := lines["run.parked"]
	assert.Equal(t, string(s.Run().ID), parked["run"])
	assert.Equal(t, true, parked["waiting"])
	calls, _ := parked["calls"].([]any)
	require.Len(t, calls, 1)
	waits, _ := calls[0].(map[string]any)
	assert.Equal(t, map[string]any{"id": id, "name": "bash", "arguments": `{"command":"push gently"}`}, waits["call"])
	assert.Equal(t, `{"command":"push"}`, waits["original_arguments"])
	assert.Equal(t, asked.ID, waits["id"], "an answer names the card and its questions")
	assert.Equal(t, []any{map[string]any{"id": asked.Questions[0].ID(), "by": "guard", "reason": "it <pushes>"}}, waits["questions"])
	assert.Equal(t, "reject_and_continue", waits["on_timeout"])
	assert.NotContains(t, waits, "answer")
	assert.Equal(t, true, lines["run.resumed"]["open"])
	assert.InDelta(t, 0, lines["run.resumed"]["steps"], 0)
	assert.Equal(t, map[string]any{"kind": "unknown", "text": "no paper"}, lines["notify.failed"]["error"])
	assert.Equal(t, map[string]any{"kind": "unknown", "text": "no disk"}, lines["store.stalled"]["error"])
	assert.InDelta(t, 3000, lines["store.recovered"]["after_ms"], 0)
	assert.Equal(t, 1, strings.Count(out.String(), `"run.completed"`))
	assert.Equal(t, 1, strings.Count(out.String(), `"run.started"`))
}

// A reader that went away is noticed once, and nothing more is written.
func TestWritingEnds(t *testing.T) {
	w := &broken{}
	stream := New(w)
	stream.Fallback("a")
	stream.Fallback("b")
	require.ErrorIs(t, stream.Err(), errGone)
	assert.Equal(t, 1, w.writes)
}

var errGone = errors.New("gone")

type broken struct{ writes int }

func (b *broken) Write([]byte) (int, error) {
	b.writes++
	return 0, errGone
}
