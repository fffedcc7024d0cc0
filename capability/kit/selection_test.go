package kit_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/capability/kit"
	"github.com/grapnel-go/grapnel/hooks"
)

// A small model selects; the large one is told of what was selected, and calls
// something else all the same.
func ExampleToolSelection() {
	small := agenttest.Script().Then(agenttest.Say(`{"tools":["weather","map"]}`))
	large := agenttest.Script(
		agenttest.Call("mail", `{}`),
		agenttest.Say("It will rain."),
	)
	a := builder.New().WithDriver(large).With(
		capability.UseTools(tool("mail", "sent"), tool("map", "a map"), tool("weather", "rain"), tool("help", "help")),
		kit.ToolSelection{Driver: small, Max: 2, Always: []string{"help"}},
	).Build().MustGet()
	final := a.Run(context.Background(), agent.NewState(), agent.UserText("will it rain in Bergen?")).MustGet()
	fmt.Print(agenttest.Transcript(final))
	fmt.Println(small.Calls()[0].Transcript())
	// Output:
	// user: will it rain in Bergen?
	// assistant calls mail {}
	// tool mail (not_executed): tool "mail": not executed: it is not available in this turn; the available tools are map, weather, help
	// assistant: It will rain.
	// user: The user wants:
	//
	// will it rain in Bergen?
	//
	// The tools:
	//
	// - mail: Says mail.
	// - map: Says map.
	// - weather: Says weather.
	// - help: Says help.
	//
	// Name 2 at most.
}

// letters is tools named a, b, c and d.
var letters = capability.UseTools(tool("a", "A"), tool("b", "B"), tool("c", "C"), tool("d", "D"))

func fixed(list ...string) func(context.Context, agent.State, []agent.ToolSpec) ([]string, error) {
	return func(context.Context, agent.State, []agent.ToolSpec) ([]string, error) { return list, nil }
}

func TestToolSelectionByFunc(t *testing.T) {
	for name, tc := range map[string]struct {
		selection kit.ToolSelection
		choice    agent.ToolChoice
		want      []string
	}{
		"in the order of the tools":  {kit.ToolSelection{Select: fixed("d", "b")}, "", []string{"b", "d"}},
		"none":                       {kit.ToolSelection{Select: fixed()}, "", nil},
		"unknown and twice":          {kit.ToolSelection{Select: fixed("x", "c", "c")}, "", []string{"c"}},
		"at most":                    {kit.ToolSelection{Select: fixed("x", "d", "d", "b", "a"), Max: 2}, "", []string{"b", "d"}},
		"always":                     {kit.ToolSelection{Select: fixed("d", "b"), Max: 1, Always: []string{"d", "a", "x"}}, "", []string{"a", "b", "d"}},
		"what must be called":        {kit.ToolSelection{Select: fixed("a"), Max: 1}, "c", []string{"a", "c"}},
		"all, when the choice fails": {kit.ToolSelection{Select: func(context.Context, agent.State, []agent.ToolSpec) ([]string, error) { return nil, errors.New("no") }, Max: 1}, "", []string{"a", "b", "c", "d"}},
		"all that there are, told in a slice": {kit.ToolSelection{Select: func(_ context.Context, _ agent.State, specs []agent.ToolSpec) ([]string, error) {
			return []string{specs[3].Name, specs[0].Name}, nil
		}}, "", []string{"a", "d"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := agenttest.Script(agenttest.Say("ok"))
			a := builder.New().WithDriver(d).WithRequest(func(r agent.Request) agent.Request { r.ToolChoice = tc.choice; return r }).
				With(letters, tc.selection).Build().MustGet()
			done(t, a, agent.NewState(), "go")
			assert.Equal(t, tc.want, names(d.Calls()[0].Request.Tools))
			assert.Equal(t, 4, a.Request().Tools.Len(), "the agent's own request stays")
		})
	}
}

// Each model call has a choice of its own; what is hidden in one may run in the next.
func TestHiddenToolsAreNotRun(t *testing.T) {
	bySteps := func(_ context.Context, s agent.State, _ []agent.ToolSpec) ([]string, error) {
		return []string{string(rune('a' + s.RunStepCount()))}, nil
	}
	d := agenttest.Script(
		agenttest.Call("a", `{}`).Call("b", `{}`).Call("none", `{}`).Call("c", `{`),
		agenttest.Call("b", `{}`).Call("a", `{}`),
		agenttest.Say("ok"),
	)
	rec := agenttest.Record()
	seen := hooks.Observe(hooks.AtPostToolUse, "seen", func(_ context.Context, c hooks.ToolResultContext) error { return nil })
	a, err := builder.New().WithDriver(d).WithObserver(rec).With(letters, kit.ToolSelection{Select: bySteps}, capability.UseHooks(seen)).Build().Get()
	require.NoError(t, err)
	s := done(t, a, agent.NewState(), "go")
	got := told(s)
	assert.Equal(t, "A", got[0])
	assert.Equal(t, `tool "b": not executed: it is not available in this turn; the available tools are a`, got[1])
	assert.Contains(t, got[2], `unknown tool "none"`)
	assert.Contains(t, got[3], "not executed")
	assert.Equal(t, []string{"B", `tool "a": not executed: it is not available in this turn; the available tools are b`}, got[4:])
	for _, step := range s.Steps() {
		for _, r := range step.Results() {
			if r.DecidedBy == "tool-selection" {
				assert.Equal(t, agent.ReasonUnknownTool, r.Reason)
				assert.Zero(t, r.Attempts)
			}
		}
	}
	events := agenttest.Of[kit.Selected](rec)
	require.Len(t, events, 3)
	assert.Equal(t, []string{"b"}, events[1].Tools)
	assert.Equal(t, 3, events[1].Hidden)
}

// A hook that rewrites a call does not get a hidden tool to run.
func TestHiddenToolsAreNotRunWhenRewritten(t *testing.T) {
	rewrite := hooks.On(hooks.AtPreToolUse, "rewrite", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		return c.Rewrite(map[string]any{})
	})
	a := built(t, agenttest.Script(agenttest.Call("b", `{ }`), agenttest.Say("ok")), letters, kit.ToolSelection{Select: fixed("a")}, capability.UseHooks(rewrite))
	s := done(t, a, agent.NewState(), "go")
	require.Len(t, told(s), 1)
	assert.Contains(t, told(s)[0], `tool "b": not executed: it is not available in this turn; the available tools are a`)
}

// The small model is asked once for each message of the user, in the one form that an
// answer may have, and what it costs counts.
func TestToolSelectionByModel(t *testing.T) {
	small := agenttest.Script().Then(agenttest.Say(`{"tools":["b"]}`).WithTokens(100, 10).WithCost(0.25))
	d := agenttest.Script(
		agenttest.Call("b", `{}`).WithTokens(1, 1).WithCost(1), agenttest.Say("one").WithTokens(1, 1).WithCost(1), agenttest.Say("two").WithTokens(1, 1).WithCost(1),
	)
	a := built(t, d, letters, kit.ToolSelection{Driver: small, Instructions: "Select."})
	s := done(t, a, agent.NewState(), "first")
	require.Len(t, small.Calls(), 1)
	asked := small.Calls()[0]
	assert.Equal(t, "Select.", asked.Request.Instructions)
	assert.Equal(t, `{"type":"object","properties":{"tools":{"type":"array","items":{"type":"string","enum":["a","b","c","d"]}}},"required":["tools"],"additionalProperties":false}`, asked.Request.Output.Schema)
	assert.Equal(t, 1, asked.Run.Depth, "it is a run below the agent's")
	assert.EqualValues(t, 110+4, s.RunUsage().Tokens())
	assert.InDelta(t, 2.25, s.RunUsage().Cost.MustGet(), 1e-9)
	assert.EqualValues(t, 110+4, s.Spending().Usage.Tokens(), "it is counted with the reply, and not as a run besides")
	for _, asked := range d.Calls() {
		assert.Equal(t, []string{"b"}, names(asked.Request.Tools))
	}
	done(t, a, s, "second")
	require.Len(t, small.Calls(), 2)
	assert.Contains(t, texts(small.Calls()[1].Messages)[0], "second")
	assert.NotContains(t, texts(small.Calls()[1].Messages)[0], "first")
}

func TestToolSelectionByModelThatFails(t *testing.T) {
	all := []string{"a", "b", "c", "d"}
	for name, tc := range map[string]struct {
		small *agenttest.Driver
		want  []string
		asked int
	}{
		"an error":              {agenttest.Script().Then(busy), all, 1},
		"no JSON":               {agenttest.Script().Then(agenttest.Say("b, I think")), all, 2},
		"a tool there is not":   {agenttest.Script().Then(agenttest.Say(`{"tools":["x"]}`)), all, 2},
		"another form":          {agenttest.Script().Then(agenttest.Say(`{"tools":["a"],"why":"so"}`)), all, 2},
		"right the second time": {agenttest.Script(agenttest.Say("b"), agenttest.Say(`{"tools":["b"]}`)), []string{"b"}, 2},
		"it calls tools":        {agenttest.Script().Then(agenttest.Call("b", `{}`)), all, 3},
	} {
		t.Run(name, func(t *testing.T) {
			rec := agenttest.Record()
			d := agenttest.Script(agenttest.Say("ok"))
			a := builder.New().WithDriver(d).WithObserver(rec).With(letters, kit.ToolSelection{Driver: tc.small}).Build().MustGet()
			done(t, a, agent.NewState(), "go")
			assert.Equal(t, tc.want, names(d.Calls()[0].Request.Tools))
			assert.Len(t, tc.small.Calls(), tc.asked)
			assert.Equal(t, len(tc.want) == 4, agenttest.Of[kit.Selected](rec)[0].Err != nil)
		})
	}
}

func TestToolSelectionEndsWithItsContext(t *testing.T) {
	d := agenttest.Script(agenttest.Say("ok"))
	ctx, cancel := context.WithCancel(t.Context())
	small := agenttest.Script(agenttest.Play(func(context.Context, agent.State) (agent.Step, error) {
		cancel()
		return agent.Step{}, context.Canceled
	}))
	a := built(t, d, letters, kit.ToolSelection{Driver: small})
	failed, ok := errors.AsType[*agent.RunError](a.Run(ctx, agent.NewState(), agent.UserText("go")).Error())
	require.True(t, ok)
	assert.Equal(t, agent.StatusCancelled, failed.State.Status())
	assert.Empty(t, d.Calls())
}

// One agent, many runs at once, each with a choice of its own.
func TestToolSelectionOfParallelRuns(t *testing.T) {
	byText := func(_ context.Context, s agent.State, _ []agent.ToolSpec) ([]string, error) {
		return []string{s.Message(0).Text()}, nil
	}
	a := built(t, agenttest.Script(agenttest.Call("a", `{}`).Call("b", `{}`), agenttest.Say("ok")), letters, kit.ToolSelection{Select: byText})
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			final, err := a.Run(t.Context(), agent.NewState(), agent.UserText([]string{"a", "b"}[i%2])).Get()
			assert.NoError(t, err)
			assert.Equal(t, []string{"A", "B"}[i%2], told(final)[i%2])
			assert.Contains(t, told(final)[1-i%2], "not available")
		})
	}
	all.Wait()
}

func TestToolSelectionStreams(t *testing.T) {
	a := built(t, agenttest.Script(agenttest.Say("word by word")), letters, kit.ToolSelection{Select: fixed("a")})
	text, final, err := streamed(t, a)
	require.NoError(t, err)
	assert.Equal(t, "word by word", text)
	assert.Equal(t, text, final.Answer())
}

func TestToolSelectionKeepsContracts(t *testing.T) {
	drivesAsDriver(t, kit.ToolSelection{Select: fixed("a")})
	keepsContract(t, kit.ToolSelection{Select: fixed("a")})
}

func TestToolSelectionThatMakesNoSense(t *testing.T) {
	for want, c := range map[string]kit.ToolSelection{
		"but not both or neither":                 {},
		"set either Select or Driver":             {Select: fixed(), Driver: agenttest.Script()},
		"Max is -1":                               {Select: fixed(), Max: -1},
		"Instructions requires Driver":            {Select: fixed(), Instructions: "x"},
		`capability "tool-selection": set either`: {Max: 3},
	} {
		assert.Contains(t, wrong(t, c), want)
	}
}
