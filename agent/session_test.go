package agent_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
)

func TestASessionKeepsWhatARunLeft(t *testing.T) {
	a := build(t, agent.Config{Driver: agenttest.Script(
		agenttest.Say("one"), agenttest.Fail(errOutOfPaper), agenttest.Say("three"), agenttest.Say("four"),
	)})
	session := a.Session(agent.NewState(agent.System("be brief")))
	id := session.ID()
	require.NotEmpty(t, id)

	_, err := session.Run(t.Context(), agent.UserText("1")).Get()
	require.NoError(t, err)
	_, err = session.Run(t.Context(), agent.UserText("2")).Get()
	require.ErrorIs(t, err, errOutOfPaper)
	assert.Equal(t, agent.StatusFailed, session.State().Status(), "a failed run leaves a state as well")
	assert.Equal(t, []string{"be brief", "1", "one", "2"}, texts(session.State()))

	for _, err := range session.Steps(t.Context(), agent.UserText("3")) {
		require.NoError(t, err)
	}
	for _, err := range session.Stream(t.Context(), agent.UserText("4")) {
		require.NoError(t, err)
	}
	assert.Equal(t, []string{"be brief", "1", "one", "2", "3", "three", "4", "four"}, texts(session.State()))
	assert.Equal(t, id, session.ID())
	assert.Equal(t, 4, session.State().Run().Number)
}

func TestASessionKeepsWhatACancelledRunLeft(t *testing.T) {
	a := build(t, agent.Config{Driver: agenttest.Script(agenttest.Hang())})
	session := a.Session(agent.NewState())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := session.Run(ctx, agent.UserText("hello")).Get()
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, agent.StatusCancelled, session.State().Status())
	assert.Equal(t, []string{"hello"}, texts(session.State()))
}

func TestASessionKeepsWhatWasSeenBeforeTheCallerLeft(t *testing.T) {
	a := build(t, agent.Config{Driver: agenttest.Script(calls("add"), agenttest.Say("done")), Executor: tools().Executor()})
	session := a.Session(agent.NewState())
	for _, err := range session.Steps(t.Context(), agent.UserText("hello")) {
		require.NoError(t, err)
		break
	}
	assert.Equal(t, agent.StatusCancelled, session.State().Status())
	assert.Equal(t, 1, session.State().StepCount())
	for progress, err := range session.Stream(t.Context(), agent.UserText("go on")) {
		require.NoError(t, err)
		if progress.Delta != nil {
			break
		}
	}
	assert.Equal(t, agent.StatusCancelled, session.State().Status())
	assert.Equal(t, []string{"hello", "", "0", "go on", "done"}, texts(session.State()), "the reply was whole when the caller left")
}

// A session has one run at a time: every attempt to start another is refused and does
// not change the session.
func TestASessionHasOneRunAtATime(t *testing.T) {
	begun, finish := make(chan struct{}), make(chan struct{})
	a := build(t, agent.Config{Driver: agenttest.Script(agenttest.Play(func(context.Context, agent.State) (agent.Step, error) {
		close(begun)
		<-finish
		return agent.Step{Message: agent.Assistant("done")}, nil
	}))})
	session := a.Session(agent.NewState())
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := session.Run(t.Context(), agent.UserText("first")).Get()
		assert.NoError(t, err)
	})
	<-begun
	_, err := session.Run(t.Context(), agent.UserText("second")).Get()
	require.ErrorIs(t, err, agent.ErrSessionBusy)
	for s, err := range session.Steps(t.Context(), agent.UserText("second")) {
		require.ErrorIs(t, err, agent.ErrSessionBusy)
		assert.Equal(t, session.ID(), s.Session())
	}
	for _, err := range session.Stream(t.Context(), agent.UserText("second")) {
		require.ErrorIs(t, err, agent.ErrSessionBusy)
	}
	assert.Zero(t, session.State().MessageCount(), "the state of a run under way is not yet the session's")
	close(finish)
	wg.Wait()
	assert.Equal(t, []string{"first", "done"}, texts(session.State()))
}

func TestASessionGoesOnFromAState(t *testing.T) {
	a := build(t, agent.Config{Driver: agenttest.Script(agenttest.Say("one"), agenttest.Say("two"))})
	first := a.Session(agent.NewState())
	first.Run(t.Context(), agent.UserText("1"))
	second := a.Session(throughJSON(t, first.State()))
	assert.Equal(t, first.ID(), second.ID())
	final, err := second.Run(t.Context(), agent.UserText("2")).Get()
	require.NoError(t, err)
	assert.Equal(t, []string{"1", "one", "2", "two"}, texts(final))
	assert.Equal(t, []string{"1", "one"}, texts(first.State()), "the first session stays where it is")
}

func ExampleSession() {
	ctx := context.Background()
	a := agent.New(agent.Config{Driver: agenttest.Script(agenttest.Say("Nice to meet you, Ada."), agenttest.Say("Ada."))}).MustGet()
	session := a.Session(agent.NewState(agent.System("You are polite.")))
	session.Run(ctx, agent.UserText("I am Ada."))
	final := session.Run(ctx, agent.UserText("Who am I?")).MustGet()
	fmt.Print(agenttest.Transcript(final))
	fmt.Println("run", final.Run().Number, "with", final.RunStepCount(), "step of", final.StepCount())
	// Output:
	// system: You are polite.
	// user: I am Ada.
	// assistant: Nice to meet you, Ada.
	// user: Who am I?
	// assistant: Ada.
	// run 2 with 1 step of 2
}
