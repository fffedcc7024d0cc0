package adkguard_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/session"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/guard"
	"github.com/grapnel-go/grapnel/internal/evasion"
	"github.com/grapnel-go/grapnel/internal/snippets"
	"github.com/grapnel-go/grapnel/policy"
	"github.com/grapnel-go/grapnel/policy/recorded"
)

func TestSnippetsCompile(t *testing.T) {
	t.Parallel()
	blocks, err := snippets.Find(".")
	require.NoError(t, err)
	packages, err := snippets.List(t.Context(), ".", "./...", "github.com/grapnel-go/grapnel/policy", "google.golang.org/adk/v2/runner")
	require.NoError(t, err)
	report := packages.Check(prelude, blocks)
	require.Empty(t, report.Errors)
	require.GreaterOrEqual(t, len(report.Go), 3)
}

const prelude = `
var (
	g        *guard.Guard
	config   llmagent.Config
	sessions session.Service
	question *genai.FunctionCall
	park     = guard.Config{}.Approver
)
`

// readmePolicy returns the policy of the page.
func readmePolicy(t *testing.T) *policy.Policy {
	t.Helper()
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, text, _ := strings.Cut(string(page), "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	file := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	p, err := policy.LoadFiles(file)
	require.NoError(t, err)
	return p
}

// The page's policy does what the page says.
func TestReadme(t *testing.T) {
	t.Parallel()
	p := new(till)
	g := newGuard(t, guard.Config{Rules: readmePolicy(t)})
	out := start(t.Context(), desk(g, p.Run, pay("call-1", "Bob"), pay("call-2", "Mallory")), nil)
	require.NoError(t, out.Err)
	assert.Equal(t, []string{`{"to":"Bob"}`}, p.ran)
	assert.Contains(t, strings.Join(out.Shown, ""), `denied by desk/payee: the user did not name Mallory`)
}

func TestPublishedPolicyHolds(t *testing.T) {
	t.Parallel()
	list, err := readmePolicy(t).Hooks()
	require.NoError(t, err)
	evasion.Guard{
		Hooks: list, Tool: "pay", Argument: "to", State: agent.NewState(agent.UserText("Pay Bob.")),
		Allowed: []string{"Bob"}, Forbidden: []string{"Mallory"},
		Calls: []string{`{}`, `{"to":null}`, `{"to":["Bob"]}`, `{"to":""}`, `{"To":"Bob"}`},
	}.Hold(t)
}

// callsIn returns the calls that a backtest reads from a file.
func callsIn(t *testing.T, text string) (calls []string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "recording.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	read, err := recorded.Open(file)
	require.NoError(t, err)
	defer func() { assert.NoError(t, read.Close()) }()
	for run, err := range read.Runs() {
		require.NoError(t, err)
		for _, c := range run.Calls() {
			calls = append(calls, c.Function.Name+" "+c.Function.Arguments)
		}
	}
	return calls
}

// The events of a session are a recording.
func TestSessionIsARecording(t *testing.T) {
	t.Parallel()
	c := newChat(t, newGuard(t, guard.Config{}), configOf(desk(nil, new(till).Run), newModel([]agent.ToolCall{pay("call-1", "Bob")})))
	c.say("Pay Bob.")
	stored := must(c.service.Get(t.Context(), &session.GetRequest{AppName: app, UserID: user, SessionID: "s"})).Session
	var lines string
	for e := range stored.Events().All() {
		lines += asJSON(e)
	}
	assert.Equal(t, []string{`pay {"to":"Bob"}`}, callsIn(t, lines))
}
