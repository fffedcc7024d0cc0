package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
)

func TestAKeyIsItsNameAndItsScope(t *testing.T) {
	name := agent.SessionKey[string]("name")
	s := name.In(agent.State{}, "Ada")
	got, ok := name.From(s)
	assert.True(t, ok)
	assert.Equal(t, "Ada", got)
	assert.Equal(t, "Ada", agent.SessionKey[string]("name").Or(s, "none"), "another key of the same name")
	assert.Equal(t, "none", agent.RunKey[string]("name").Or(s, "none"), "the other scope")
	assert.Equal(t, 7, agent.SessionKey[int]("name").Or(s, 7), "another type")
	assert.Equal(t, "none", name.Or(agent.State{}, "none"), "the state that it was derived from")
	assert.Equal(t, "Grace", name.Or(name.In(s, "Grace"), ""))
	assert.Equal(t, "Ada", name.Or(s, ""), "a state that another was derived from")
	assert.Equal(t, "name", name.Name())
	assert.Equal(t, agent.ScopeSession, name.Scope())
	assert.Equal(t, "session run", fmt.Sprint(agent.ScopeSession, " ", agent.RunKey[int]("x").Scope()))
}

// A run's values are gone when the next run begins. A session's values stay.
func TestAScopeIsHowLongAValueLives(t *testing.T) {
	stays, goes := agent.SessionKey[int]("stays"), agent.RunKey[int]("goes")
	var seen []string
	set := agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
		seen = append(seen, fmt.Sprint(stays.Or(s, 0), goes.Or(s, 0)))
		return next(ctx, goes.In(stays.In(s, stays.Or(s, 0)+1), goes.Or(s, 0)+1))
	})
	a := build(t, agent.Config{Driver: agenttest.Script().Then(agenttest.Say("hi")), AroundRun: []agent.Processor{set}})
	session := a.Session(agent.NewState())
	for range 3 {
		final, err := session.Run(t.Context(), agent.UserText("hello")).Get()
		require.NoError(t, err)
		assert.Equal(t, 1, goes.Or(final, 0), "it is there until the next run begins")
	}
	assert.Equal(t, []string{"0 0", "1 0", "2 0"}, seen)
}

// A value that came from JSON takes its type when a key reads it.
func TestAKeyReadsWhatCameFromJSON(t *testing.T) {
	s := agent.SessionKey[map[string]int]("m").In(agent.State{}, map[string]int{"a": 1})
	s = agent.SessionKey[*note]("n").In(s, nil)
	s = agent.SessionKey[json.RawMessage]("r").In(s, json.RawMessage(`{"b":2}`))
	back := throughJSON(t, s)

	type typed struct{ A int }
	assert.Equal(t, map[string]int{"a": 1}, agent.SessionKey[map[string]int]("m").Or(back, nil))
	assert.Equal(t, typed{1}, agent.SessionKey[typed]("m").Or(back, typed{}))
	assert.Equal(t, map[string]any{"a": 1.0}, agent.SessionKey[any]("m").Or(back, nil))
	assert.JSONEq(t, `{"b":2}`, string(agent.SessionKey[json.RawMessage]("r").Or(back, nil)))
	nobody, ok := agent.SessionKey[*note]("n").From(back)
	assert.True(t, ok)
	assert.Nil(t, nobody)
	_, ok = agent.SessionKey[string]("m").From(back)
	assert.False(t, ok, "a value of another type is none")
	assert.Equal(t, "now a string", agent.SessionKey[string]("m").Or(agent.SessionKey[string]("m").In(back, "now a string"), ""))
}

func TestScratchIsOneValueForEachRun(t *testing.T) {
	made := 0
	counter := agent.NewScratch(func() *int { made++; return new(int) })
	plain := agent.NewScratch[[]string](nil)
	count := agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
		*counter.Get(s)++
		*plain.Get(s) = append(*plain.Get(s), "step")
		return next(ctx, s)
	})
	var ends []int
	end := agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
		final := next(ctx, s)
		ends = append(ends, *counter.Get(s), len(*plain.Get(s)))
		return final
	})
	a := build(t, agent.Config{
		Driver: agenttest.Script(calls("add"), calls("add"), agenttest.Say("done")).EachRun(), Executor: tools().Executor(),
		AroundRun: []agent.Processor{end}, AroundStep: []agent.Processor{count},
	})
	var final agent.State
	for range 2 {
		var err error
		final, err = a.Run(t.Context(), final, agent.UserText("hello")).Get()
		require.NoError(t, err)
	}
	assert.Equal(t, []int{3, 3, 3, 3}, ends, "each run has its own")
	assert.Equal(t, 2, made)
	assert.Zero(t, *counter.Get(final), "it is gone when the run has ended")
	first, second := counter.Get(final), counter.Get(final)
	assert.NotSame(t, first, second)
}

func TestScratchServesParallelCalls(t *testing.T) {
	type tally struct {
		sync.Mutex
		n int
	}
	key := agent.NewScratch[tally](nil)
	var last int
	run := executor{execute: func(_ context.Context, s agent.State, _ *agent.Prepared) (*agent.ToolResult, error) {
		v := key.Get(s)
		v.Lock()
		defer v.Unlock()
		v.n++
		last = v.n
		return &agent.ToolResult{}, nil
	}}
	a := build(t, agent.Config{
		Driver: agenttest.Script(calls("a", "b", "c", "d", "e"), agenttest.Say("done")), Executor: run, Parallel: 5,
	})
	_, err := a.Run(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
	require.NoError(t, err)
	assert.Equal(t, 5, last)
}

func ExampleSessionKey() {
	type Preferences struct{ Language string }
	preferences := agent.SessionKey[Preferences]("example.preferences")

	s := preferences.In(agent.NewState(), Preferences{Language: "de"})
	fmt.Println(preferences.Or(s, Preferences{}).Language)

	data, _ := json.Marshal(s)
	var back agent.State
	fmt.Println(json.Unmarshal(data, &back), preferences.Or(back, Preferences{}).Language)
	// Output:
	// de
	// <nil> de
}

func ExampleScratch() {
	budget := agent.NewScratch(func() *int { n := 2; return &n })
	frugal := agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
		left := budget.Get(s)
		if *left == 0 {
			return mo.Ok(s.WithStop(agent.Signal{Reason: agent.StopByHook, Message: "two steps are enough", Source: "frugal"}))
		}
		*left--
		return next(ctx, s)
	})
	a := agent.New(agent.Config{
		Driver: agenttest.Script().Then(agenttest.Call("add", `{}`)), Executor: tools().Executor(),
		AroundStep: []agent.Processor{frugal},
	}).MustGet()
	printEnd(a.Run(context.Background(), agent.NewState(), agent.UserText("hello")).Get())
	// Output:
	// stopped hook by frugal: two steps are enough
}

// A Scratch that was not declared shares nothing with those that were.
func TestScratchThatWasNotDeclared(t *testing.T) {
	var undeclared agent.Scratch[[8]int]
	driver := agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
		undeclared.Get(s)[7] = 1
		assert.Zero(t, undeclared.Get(s)[7])
		return agent.Step{Message: agent.Assistant("done")}, nil
	})
	a, err := agent.New(agent.Config{Driver: driver}).Get()
	require.NoError(t, err)
	require.NoError(t, a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Error())
}

// Each of many Scratch values has its own value and type, and keeps them.
func TestManyScratches(t *testing.T) {
	type odd struct{ n int }
	numbers, texts := make([]*agent.Scratch[odd], 8), make([]*agent.Scratch[string], 8)
	for i := range numbers {
		numbers[i], texts[i] = agent.NewScratch[odd](nil), agent.NewScratch[string](nil)
	}
	driver := agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
		for i := range numbers {
			assert.Zero(t, *numbers[i].Get(s))
			numbers[i].Get(s).n, *texts[i].Get(s) = i+1, fmt.Sprint(i)
		}
		for i := range numbers {
			assert.Equal(t, odd{i + 1}, *numbers[i].Get(s))
			assert.Equal(t, fmt.Sprint(i), *texts[i].Get(s))
		}
		return agent.Step{Message: agent.Assistant("done")}, nil
	})
	a, err := agent.New(agent.Config{Driver: driver}).Get()
	require.NoError(t, err)
	require.NoError(t, a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Error())
}
