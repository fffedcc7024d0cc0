package replay_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/continuation"
	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

var update = flag.Bool("update", false, "write the golden files again")

func libraryTools(t testing.TB) []toolexec.Tool {
	t.Helper()
	schemas, err := replay.LoadTools(filepath.Join("testdata", "library-tools.json"))
	require.NoError(t, err)
	return replay.Tools(schemas...)
}

// player returns an agent that plays recordings of the library, whose tools it has.
func player(t testing.TB, more ...capability.Capability) *agent.Agent {
	t.Helper()
	a, err := builder.New().WithDriver(replay.Driver{}).
		With(capability.UseTools(libraryTools(t)...), capability.UseCriteria(replay.GoOn), capability.UseLater(capability.Later{Tools: []string{"no_such_tool"}})).
		With(more...).
		Build().Get()
	require.NoError(t, err)
	return a
}

// loadSessions returns the recorded runs of testdata/sample.jsonl and testdata/shapes.jsonl, ready to be played.
func loadSessions(t testing.TB) []*replay.Session {
	t.Helper()
	var sessions []*replay.Session
	for _, name := range []string{"sample.jsonl", "shapes.jsonl"} {
		records, err := replay.Load(filepath.Join("testdata", name))
		require.NoError(t, err)
		for _, record := range records {
			sessions = append(sessions, newSession(t, record))
		}
	}
	return sessions
}

func newSession(t testing.TB, record *replay.Record) *replay.Session {
	t.Helper()
	x, err := replay.NewSession(record)
	require.NoError(t, err)
	return x
}

// session returns one of loadSessions.
func session(t testing.TB, id string) *replay.Session {
	t.Helper()
	for _, x := range loadSessions(t) {
		if x.ID() == id {
			return x
		}
	}
	require.Fail(t, "there is no recording "+id)
	return nil
}

// ends collects how runs ended.
type ends struct {
	mu   sync.Mutex
	said []string
}

func (e *ends) Observe(_ context.Context, event agent.Event) {
	if done, ok := event.(agent.RunCompleted); ok {
		signal := done.State.StopSignal()
		e.mu.Lock()
		defer e.mu.Unlock()
		e.said = append(e.said, fmt.Sprintf("%s: %s by %s", done.State.Status(), signal.Reason, signal.Source))
	}
}

// transcript returns the messages of a state, a line each.
func transcript(s agent.State) string {
	var b strings.Builder
	for _, m := range s.Messages() {
		fmt.Fprintf(&b, "%s", m.Role())
		if m.Role() == agent.RoleTool {
			fmt.Fprintf(&b, " %s to %s of %s", m.Status(), m.CallID(), m.Tool())
		}
		if m.Source() != "" {
			fmt.Fprintf(&b, " (%s)", m.Source())
		}
		fmt.Fprintf(&b, ": %s\n", m.Text())
		for _, c := range m.Calls() {
			fmt.Fprintf(&b, "  calls %s as %s: %s\n", c.Name, c.ID, c.Arguments)
		}
	}
	return b.String()
}

// Every shape that recordings come in, played without hooks: what is told, how the runs end, where the play leaves
// the recording.
func TestPlays(t *testing.T) {
	t.Parallel()
	how := &ends{}
	a := player(t, capability.UseObserver(how))
	var got strings.Builder
	for _, x := range loadSessions(t) {
		how.said = nil
		played, err := x.Play(t.Context(), a)
		require.NoError(t, err, x.ID())
		assert.Equal(t, x.Runs(), played.Runs)
		fmt.Fprintf(&got, "# %s\n%s", x.ID(), transcript(played.State))
		for i, end := range how.said {
			fmt.Fprintf(&got, "run %d is %s\n", i+1, end)
		}
		for _, d := range played.Departures {
			fmt.Fprintf(&got, "left at %s\n", d)
		}
		got.WriteString("\n")
	}

	golden := filepath.Join("testdata", "plays.txt")
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), got.String())
}

func TestOneAgentPlaysManySessionsAtOnce(t *testing.T) {
	t.Parallel()
	a := player(t, capability.UseHooks(hooks.On(hooks.AtPreToolUse, "no-lending",
		func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Deny("not today") }, hooks.ToolNamed("lend_book"))))
	sessions := loadSessions(t)
	want := make([]string, len(sessions))
	for i, x := range sessions {
		played, err := x.Play(t.Context(), a)
		require.NoError(t, err)
		want[i] = transcript(played.State) + fmt.Sprint(played.Departures)
	}
	var wg sync.WaitGroup
	for range 4 {
		for i, x := range sessions {
			wg.Go(func() {
				played, err := x.Play(t.Context(), a)
				assert.NoError(t, err)
				assert.Equal(t, want[i], transcript(played.State)+fmt.Sprint(played.Departures))
			})
		}
	}
	wg.Wait()
}

// A driver keeps no place of its own: the conversation may be held run by run, by another caller.
func TestASessionIsPlayedRunByRun(t *testing.T) {
	t.Parallel()
	x := session(t, "sample/two-turns")
	require.Equal(t, 3, x.Runs())
	assert.Equal(t, []int{2, 2, 0}, []int{x.Turns(0), x.Turns(1), x.Turns(2)})
	whole, err := x.Play(t.Context(), player(t))
	require.NoError(t, err)

	conversation := player(t).Session(x.Start())
	for i := range x.Runs() {
		_, err := conversation.Run(x.Into(t.Context()), x.Input(i)...).Get()
		require.NoError(t, err)
	}
	assert.Equal(t, transcript(whole.State), transcript(conversation.State()))

	// There is nothing more to say.
	after, err := conversation.Run(x.Into(t.Context()), agent.UserText("Anything else?")).Get()
	require.NoError(t, err)
	assert.Equal(t, replay.StopRecordingEnded, after.StopSignal().Reason)
	assert.Equal(t, `the recording "sample/two-turns" has 3 runs, and this is run 4`, after.StopSignal().Message)
}

func TestWithoutASessionTheErrorSaysWhatToDo(t *testing.T) {
	t.Parallel()
	const want = "no recording in the context: run the agent with Session.Play, or with a context from Session.Into"
	calls := agent.DriverFunc(func(context.Context, agent.State) (agent.Step, error) {
		return agent.Step{Message: agent.Assistant("", agent.ToolCall{ID: "c", Name: "opening_hours"})}, nil
	})
	for name, build := range map[string]builder.AgentBuilder{
		"driver":    builder.New().WithDriver(replay.Driver{}),
		"criterion": builder.New().WithDriver(replay.Driver{}).With(capability.UseCriteria(replay.GoOn)),
		"tools": builder.New().WithDriver(calls).
			With(capability.UseTools(libraryTools(t)...), capability.UseToolOptions(toolexec.Options{FailRun: true})),
	} {
		a, err := build.Build().Get()
		require.NoError(t, err)
		_, err = a.Run(t.Context(), agent.NewState(), agent.UserText("hello")).Get()
		assert.ErrorContains(t, err, want, name)
	}
}

func TestARoleThatNobodyKnowsIsAnError(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"function", "", "User"} {
		record := readOne(t, `{"id": "x", "messages": [{"role": "user", "content": "hello"}, {"role": "`+role+`"}]}`)
		_, err := replay.NewSession(record)
		assert.EqualError(t, err, `replay "x": message 2 has the role "`+role+`": expected system, developer, user, assistant or tool`)
	}
}

// A session does not change when its source or the values that it returned change.
func TestSessionsDoNotChange(t *testing.T) {
	t.Parallel()
	record := loadSample(t)["injected"]
	x := newSession(t, record)
	want, err := x.Play(t.Context(), player(t))
	require.NoError(t, err)

	record.Messages[2].ToolCalls[0].Function.Name = "changed"
	record.Messages[3].Content = replay.Text("changed")
	x.Input(0)[0] = agent.UserText("changed")
	got, err := x.Play(t.Context(), player(t))
	require.NoError(t, err)
	assert.Equal(t, transcript(want.State), transcript(got.State))
	assert.Empty(t, got.Departures)
}

// A failed model call is a step, and no turn: the recording goes on where it was.
func TestFailedModelCallsTakeNoTurn(t *testing.T) {
	t.Parallel()
	x := session(t, "shapes/user-in-the-middle")
	want, err := x.Play(t.Context(), player(t))
	require.NoError(t, err)

	a, err := builder.New().
		With(capability.UseTools(libraryTools(t)...), capability.UseCriteria(replay.GoOn),
			capability.UseErrorPolicy(continuation.ErrorPolicy{Model: continuation.Retry, MaxRetries: 1})).
		WithDriver(agent.DriverFunc(func(ctx context.Context, s agent.State) (agent.Step, error) {
			if s.RunStepCount()%2 == 0 {
				return agent.Step{}, flaky{}
			}
			return replay.Driver{}.Next(ctx, s).Get()
		})).
		Build().Get()
	require.NoError(t, err)
	got, err := x.Play(t.Context(), a)
	require.NoError(t, err)
	assert.Equal(t, 2*want.State.StepCount(), got.State.StepCount())
	assert.Equal(t, transcript(want.State), transcript(got.State))
	assert.Empty(t, got.Departures)
}

type flaky struct{}

func (flaky) Error() string              { return "the line is bad" }
func (flaky) ErrorKind() agent.ErrorKind { return agent.KindModel }
