package registry_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/registry"
)

// SW-21, SW-22: names that are not known, or stand there twice, are told when the file is
// loaded: all at once, with their places and the nearest names.
func TestNamesAreLookedUp(t *testing.T) {
	_, err := newWorld().Parse("a.yaml", []byte(`name: a
model: scriptd/x
tools: [pay, lok, pay, disk, pay: {x: 1}, disk: {file: a, evry: 1m}]
preHooks: [frist]
hooks: [guard, log: {file: a}, log: {file: b}, guard]
postHooks: [first, guard]
capabilities: [polite, polite]
agents: [helper, absent, helper, loop]
mcp: [fs, nowhere]
`))
	require.Error(t, err)
	var got []string
	for line := range strings.Lines(err.Error()) {
		if strings.HasPrefix(line, "a.yaml") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	assert.Equal(t, []string{
		`a.yaml:2:8: expected a model, such as scripted/deep/…, scripted/…; unknown provider "scriptd" (did you mean "scripted"?); known: "scripted", "scripted/deep"`,
		`a.yaml:3:14: unknown tool "lok" (did you mean "look"?); known: "disk", "look", "pay"`,
		`a.yaml:3:19: the tool "pay" is listed twice`,
		`a.yaml:3:24: the tool "disk" needs settings: file`,
		`a.yaml:3:30: the tool "pay" is listed twice`,
		`a.yaml:3:43: the tool "disk" is listed twice`,
		`a.yaml:4:12: unknown hook "frist" (did you mean "first"?); known: "bill", "first", "guard", "log", "lost", "second", "thanks"`,
		`a.yaml:5:48: the hook "guard" is listed twice`,
		`a.yaml:6:20: the hook "guard" is listed twice`,
		`a.yaml:7:24: the capability "polite" is listed twice`,
		`a.yaml:8:18: unknown agent "absent"; known: "helper", "hoop", "loop"`,
		`a.yaml:8:26: the agent "helper" is listed twice`,
		`a.yaml:8:34: the agent "loop" would be its own sub-agent: loop, which has hoop, which has loop`,
		`a.yaml:9:11: the server "nowhere" has neither a command nor a url; unknown server "nowhere"; known: "fs"`,
	}, got)
}

// SW-21, SW-22: the same of a definition that was made in Go.
func TestNamesOfADefinitionInGo(t *testing.T) {
	_, err := newWorld().Build(t.Context(), registry.Definition{
		Name: "a", Model: "scripted/x", PreHooks: registry.Hooks{{Name: "frist"}}, Tools: registry.Tools{{Name: "pay"}, {Name: "pay"}},
		Guards: registry.Guards{Steps: -2},
	})
	for _, want := range []string{
		`the definition of agent "a":`, `unknown hook "frist" (did you mean "first"?)`, `the tool "pay" is listed twice`,
		`expected a whole number above zero or -1, such as 20, got "-2"`,
	} {
		require.ErrorContains(t, err, want)
	}
}

// SW-23, SW-24: hooks before the run are asked in list order. Hooks after the run receive its status, in list order,
// also after a failure.
func TestHooksBeforeAndAfter(t *testing.T) {
	w := newWorld()
	d := registry.Definition{
		Name: "clerk", Model: "scripted/x", Tools: registry.Tools{{Name: "pay"}},
		PreHooks: registry.Hooks{{Name: "second"}, {Name: "first"}}, Hooks: registry.Hooks{{Name: "guard"}},
		PostHooks: registry.Hooks{{Name: "thanks"}, {Name: "bill"}},
	}
	s, err := run(t, w, d)
	require.NoError(t, err)
	assert.Equal(t, "clerk with x", s.Answer())
	assert.Equal(t, []string{"second", "first", "guard", "thanks done", "bill done"}, w.lines)

	w.lines, d.Model = nil, "scripted/fails"
	_, err = run(t, w, d)
	require.Error(t, err)
	assert.Equal(t, []string{"second", "first", "thanks failed", "bill failed"}, w.lines)
}

// SW-15: metadata from a hook before the run reaches the next hook and the hooks after the run, also when the run
// failed.
func TestMetadataFromBeforeToAfter(t *testing.T) {
	key := agent.RunKey[string]("ticket")
	w := newWorld()
	w.Hooks["first"] = registry.UseHooks(hooks.On(hooks.AtInputSubmitted, "first", func(_ context.Context, c hooks.InputContext) hooks.Result {
		return c.Allow(key.Set("T-1"))
	}))
	w.Hooks["second"] = registry.UseHooks(hooks.On(hooks.AtExecutionStart, "second", func(_ context.Context, c hooks.ExecutionContext) hooks.Result {
		return c.Allow(key.Set(key.Or(c.State(), "none") + " of second"))
	}))
	w.Hooks["bill"] = registry.UseHooks(hooks.Observe(hooks.AtExecutionEnd, "bill", func(_ context.Context, c hooks.EndContext) error {
		w.add(string(c.Status()) + " " + key.Or(c.State(), "none"))
		return nil
	}))
	for _, model := range []string{"scripted/x", "scripted/fails"} {
		_, _ = run(t, w, registry.Definition{
			Model: model, Tools: registry.Tools{{Name: "pay"}}, PreHooks: registry.Hooks{{Name: "first"}, {Name: "second"}},
			PostHooks: registry.Hooks{{Name: "bill"}},
		})
	}
	assert.Equal(t, []string{"done T-1 of second", "failed T-1 of second"}, w.lines)
}

func run(t *testing.T, w *world, d registry.Definition) (agent.State, error) {
	t.Helper()
	built, err := w.Build(t.Context(), d)
	require.NoError(t, err)
	defer func() { require.NoError(t, built.Close()) }()
	a, err := built.Agent().Get()
	require.NoError(t, err)
	return a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
}

// What shows only when something is made is told with its place, all of it, and what was
// opened is closed.
func TestWhatCannotBeMade(t *testing.T) {
	w := newWorld()
	text := `model: scripted/broken
tools:
  - pay
  - disk: {file: bad}
preHooks: [guard]
postHooks: [first]
mcp: {other: {command: [x]}}
`
	file, err := w.Parse("a.yaml", []byte(text))
	require.NoError(t, err)
	_, err = w.BuildFile(t.Context(), file)
	for _, want := range []string{
		`a.yaml:1:8: the wire is cut`,
		`a.yaml:4:5: the tool "disk": no such file`,
		`a.yaml:5:12: the hook "guard": "guard" is at PreToolUse: preHooks is only for hooks at InputSubmitted or ExecutionStart`,
		`a.yaml:6:13: the hook "first": "first" is at ExecutionStart: postHooks is only for hooks at AgentFailed or ExecutionEnd`,
	} {
		require.ErrorContains(t, err, want)
	}
	assert.Equal(t, []string{"connected other by x", "left other", "closed bad"}, w.lines)

	file, err = w.Parse("a.yaml", []byte("model: scripted/x\ntools: [pay]\nhooks: [lost]\n"))
	require.NoError(t, err)
	_, err = w.BuildFile(t.Context(), file)
	require.ErrorContains(t, err, `a.yaml:3:9: the hook "lost": `)
	var idle []string
	w.Idle = func(hook string, _ error) error { idle = append(idle, hook); return nil }
	built, err := w.BuildFile(t.Context(), file)
	require.NoError(t, err)
	require.NoError(t, built.Close())
	assert.Equal(t, []string{"lost"}, idle)
}

// Everything that a definition may say, from a file to an answer.
func TestFromFileToAnswer(t *testing.T) {
	w := newWorld()
	path := filepath.Join(t.TempDir(), "clerk.yaml")
	_, err := w.Load(path)
	require.ErrorIs(t, err, os.ErrNotExist)
	text := strings.NewReplacer("output: {schema: {type: object, properties: {sum: {type: number}}}}\n", "").Replace(clerk)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	file, err := w.Load(path)
	require.NoError(t, err)
	file.Guards.Steps = 7 // as a flag does
	built, err := w.BuildFile(t.Context(), file)
	require.NoError(t, err)
	a, err := built.Agent().Get()
	require.NoError(t, err)
	assert.Equal(t, "Pay what is due.\n\n\nBe polite.", a.Request().Instructions)
	s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	require.NoError(t, built.Close())
	assert.Equal(t, "clerk with x", s.Answer())
	assert.Equal(t, []string{
		"connected fs by serve", "log to a.log every 1m0s", "log-2 to b.log every 0s",
		"first", "log", "log-2", "bill done", "left fs", "closed a.txt",
	}, w.lines)
}

// An agent may give work to those that it names; the longest beginning of a model's name
// counts.
func TestSubagentsByName(t *testing.T) {
	w := newWorld()
	w.Agents["helper"] = registry.Definition{Model: "scripted/deep/x", Description: "looks at things"}
	s, err := run(t, w, registry.Definition{Name: "boss", Model: "scripted/boss", Agents: registry.Names{"helper"}})
	require.NoError(t, err)
	assert.Equal(t, "Done.", s.Answer())
	var answers []string
	for _, step := range s.RunSteps() {
		for _, r := range step.Results() {
			answers = append(answers, r.Text())
		}
	}
	assert.Equal(t, []string{"deep"}, answers)
	w.Agents["helper"] = registry.Definition{Model: "scripted/broken"}
	_, err = w.Build(t.Context(), registry.Definition{Name: "boss", Model: "scripted/boss", Agents: registry.Names{"helper"}})
	require.ErrorContains(t, err, "the wire is cut")
	_, err = w.Build(t.Context(), registry.Definition{Name: "loop", Agents: registry.Names{"hoop"}})
	require.ErrorContains(t, err, `the agent "loop" would be its own sub-agent: hoop, which has loop`)
}

// The zero Registry knows nothing, and says so.
func TestTheZeroRegistry(t *testing.T) {
	_, err := registry.Registry{}.Parse("a.yaml", []byte("model: a/b\ntools: [x]\n"))
	require.ErrorContains(t, err, "the registry has no drivers")
	require.ErrorContains(t, err, `unknown tool "x"; known: none`)
	_, err = registry.Registry{}.Build(t.Context(), registry.Definition{MCP: registry.Servers{{Name: "x", Command: []string{"y"}}}})
	require.ErrorContains(t, err, `the MCP server "x": this program does not support MCP servers`)
	built, err := registry.Registry{}.BuildFile(t.Context(), &registry.File{})
	require.NoError(t, err)
	require.ErrorContains(t, built.Agent().Error(), "no driver")
	require.NoError(t, errors.Join(built.Close(), built.Close()))
}

// Policies are put in force by a func, and a registry without one does not pass over them.
func TestPolicies(t *testing.T) {
	var given []string
	r := registry.Registry{Policies: func(_ context.Context, m *registry.Making, files []string) (capability.Capability, error) {
		given = files
		if m.Definition.Name == "wrong" {
			return nil, errors.New("no such file")
		}
		return capability.UseHooks(hooks.AlwaysDeny("ours/none", "no", hooks.ToolNamed("*"))), nil
	}}
	d := registry.Definition{Name: "clerk", Policies: registry.Names{"ours.yaml", "library:secrets@1"}}
	built, err := r.Build(t.Context(), d)
	require.NoError(t, err)
	assert.Equal(t, []string{"ours.yaml", "library:secrets@1"}, given)
	plan, err := built.Builder.Plan().Get()
	require.NoError(t, err)
	assert.Contains(t, plan.Hooks().Controls(), "ours/none")

	d.Name = "wrong"
	_, err = r.Build(t.Context(), d)
	require.ErrorContains(t, err, "policies: no such file")
	_, err = r.Parse("clerk.yaml", []byte("policies: [a.yaml, '', a.yaml]\n"))
	require.ErrorContains(t, err, `clerk.yaml:1:20: policies: expected a file with rules`)
	require.ErrorContains(t, err, `the policy "a.yaml" is listed twice`)
	_, err = registry.Registry{}.Parse("clerk.yaml", []byte("policies: [a.yaml]\n"))
	require.ErrorContains(t, err, "clerk.yaml:1:12: policies: this program does not support policies")
}
