package durable_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/memory"
)

// An agent fails after two steps: the error and the journal both hold the state after these steps.
func TestAFailedRun(t *testing.T) {
	for name, test := range map[string]func(t *testing.T, s durable.Store){
		"of the model": func(t *testing.T, s durable.Store) {
			failAfterTwo(t.Context(), t, s, s, func(context.Context, agent.State) error { return errors.New("out of paper") })
			assert.Equal(t, durable.StatusFailed, failedStatus(t, s))
		},
		"of a cancelled context": func(t *testing.T, s durable.Store) {
			ctx, cancel := context.WithCancel(t.Context())
			failAfterTwo(ctx, t, s, s, func(context.Context, agent.State) error {
				cancel()
				return context.Cause(ctx)
			})
			assert.Equal(t, durable.StatusCancelled, failedStatus(t, s))
		},
		"whose lease is lost": func(t *testing.T, s durable.Store) {
			failAfterTwo(t.Context(), t, s, s, func(_ context.Context, state agent.State) error {
				_, err := s.Acquire(t.Context(), state.Run().ID, "two", time.Hour, durable.TakeOver)
				return err
			})
			assert.Equal(t, durable.StatusRunning, failedStatus(t, s), "it is another's")
		},
		"whose store refuses a reply": func(t *testing.T, s durable.Store) {
			failAfterTwo(t.Context(), t, s, &refusingStore{s, durable.EntryReply, 3}, nil)
		},
		"whose store refuses a call": func(t *testing.T, s durable.Store) {
			failAfterTwo(t.Context(), t, s, &refusingStore{s, durable.EntryCall, 3}, nil)
		},
		"whose store refuses a result": func(t *testing.T, s durable.Store) { // which is committed with the step
			kept := runToFailure(t.Context(), t, &refusingStore{s, durable.EntryResult, 3}, nil)
			assert.Contains(t, []int{2, 3}, kept.RunStepCount(), "the step may have been taken by then")
			assert.Equal(t, 2, loadState(t, s).RunStepCount())
		},
		"whose store refuses a step": func(t *testing.T, s durable.Store) {
			kept := runToFailure(t.Context(), t, &refusingStore{s, durable.EntryStep, 3}, nil)
			assert.Equal(t, 3, kept.RunStepCount(), "the step was taken")
			assert.Equal(t, 2, loadState(t, s).RunStepCount())
		},
		"whose store refuses the end": func(t *testing.T, s durable.Store) {
			kept := runToFailure(t.Context(), t, &refusingStore{s, durable.EntryEnd, 1}, nil)
			assert.Equal(t, 4, kept.RunStepCount())
			assert.Equal(t, "done", kept.Answer())
		},
	} {
		t.Run(name, func(t *testing.T) { test(t, memory.New()) })
	}
}

const failingRun agent.RunID = "failing"

// failAfterTwo checks the state left by an agent that fails in its third step, because of the store in written or of
// the model function third.
func failAfterTwo(ctx context.Context, t *testing.T, s, written durable.Store, third func(context.Context, agent.State) error) {
	t.Helper()
	kept := runToFailure(ctx, t, written, third)
	good := 0
	for _, step := range kept.RunSteps() {
		if step.Failure() == nil {
			good++
		}
	}
	assert.Equal(t, 2, good, "the steps that the error has")
	assert.GreaterOrEqual(t, kept.MessageCount(), 5, "the messages that the error has")
	assert.GreaterOrEqual(t, loadState(t, s).RunStepCount(), 2, "the steps that the journal has")
}

func failedStatus(t *testing.T, s durable.Store) durable.Status {
	t.Helper()
	r, err := s.Run(t.Context(), failingRun)
	require.NoError(t, err)
	return r.Status
}

func loadState(t *testing.T, s durable.Store) agent.State {
	t.Helper()
	state, err := durable.Load(t.Context(), s, failingRun)
	require.NoError(t, err)
	return state
}

// runToFailure runs an agent that calls a tool in three steps, and returns the state in its error.
func runToFailure(ctx context.Context, t *testing.T, s durable.Store, third func(context.Context, agent.State) error) agent.State {
	t.Helper()
	driver := agent.DriverFunc(func(ctx context.Context, s agent.State) (agent.Step, error) {
		n := s.RunStepCount()
		if n == 2 && third != nil {
			if err := third(ctx, s); err != nil {
				return agent.Step{}, err
			}
		}
		if n == 3 {
			return agent.Step{Message: agent.Assistant("done")}, nil
		}
		return agent.Step{Message: agent.Assistant("", agent.ToolCall{ID: fmt.Sprint("c", n), Name: "t", Arguments: "{}"})}, nil
	})
	k := durable.Keep(s, durable.Options{Owner: "one", Lease: time.Hour, Patience: -1})
	a, err := agent.New(agent.Config{
		Name: "tester", Driver: driver, Executor: plainTool{},
		AroundRun: []agent.Processor{k.AroundRun(), k.AroundRunInside()}, AroundStep: []agent.Processor{k.AroundStep()},
		WrapDriver: []func(agent.Driver) agent.Driver{k.WrapDriver}, WrapExecutor: []func(agent.Executor) agent.Executor{k.WrapExecutor},
	}).Get()
	require.NoError(t, err)
	err = a.RunWith(ctx, agent.RunSettings{ID: failingRun}, agent.NewState(agent.UserText("go"))).Error()
	require.Error(t, err)
	kept, ok := agent.StateOf(err)
	require.True(t, ok, "the error %v holds a state", err)
	require.Equal(t, failingRun, kept.Run().ID)
	assert.True(t, kept.Status().Terminal(), "the status is %q", kept.Status())
	return kept
}

// plainTool is an executor whose tools say "ok".
type plainTool struct{}

func (plainTool) Prepare(_ context.Context, _ agent.State, c *agent.ToolCall) mo.Result[*agent.Prepared] {
	return mo.Ok(&agent.Prepared{Original: c, Call: c})
}

func (plainTool) Execute(context.Context, agent.State, *agent.Prepared) mo.Result[*agent.ToolResult] {
	return mo.Ok(&agent.ToolResult{Content: agent.TextContent("ok")})
}

// refusingStore refuses to write the left-th entry of a kind and all later entries.
type refusingStore struct {
	durable.Store

	kind durable.EntryKind
	left int
}

func (s *refusingStore) Commit(ctx context.Context, l durable.Lease, c durable.Commit) error {
	for _, e := range c.Entries {
		if e.Kind == s.kind {
			s.left--
		}
	}
	if s.left <= 0 {
		return errors.New("no space left")
	}
	return s.Store.Commit(ctx, l, c)
}
