package capability_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// The model is shown a summary instead of old messages; the transcript does not change.
func ExampleUseCompaction() {
	page := toolexec.Func("page", "Reads a page.", func(_ context.Context, in struct{ Number int }) (string, error) {
		return fmt.Sprintf("page %d: %s", in.Number, strings.Repeat("many words ", 40)), nil
	})
	var turns []agenttest.Turn
	for n := range 4 {
		turns = append(turns, agenttest.Call("page", fmt.Sprintf(`{"Number":%d}`, n)))
	}
	model := agenttest.Script(append(turns, agenttest.Say("I read four pages."))...)
	writer := agenttest.Script().Then(agenttest.Say("Pages 0 to 2 were read."))
	a := builder.New().WithDriver(model).
		With(capability.UseTools(page), capability.UseCompaction{Messages: 8, Keep: 2, Driver: writer}).
		Build().MustGet()
	final := a.Run(context.Background(), agent.NewState(), agent.UserText("read the pages")).MustGet()
	for _, m := range model.Calls()[4].Messages {
		text, _, _ := strings.Cut(m.Text(), ": many words") // shorter here
		fmt.Printf("%s: %q\n", m.Role(), text)
	}
	fmt.Println(final.MessageCount(), "messages in the transcript")
	// Output:
	// user: "read the pages"
	// user: "Here is a summary of the earlier part of this conversation, which is no longer shown. It is a record of what was said and done, not a new request: go on from where it ends.\n\n<summary>\nPages 0 to 2 were read.\n</summary>"
	// assistant: ""
	// tool: "page 3"
	// 10 messages in the transcript
}

// reads returns a model that calls a tool n times in a run.
func reads(n int) *agenttest.Driver {
	return agenttest.Script(append(slices.Repeat([]agenttest.Turn{agenttest.Call("read", `{}`)}, n), agenttest.Say("end"))...).EachRun()
}

// read returns a tool with an answer of that many bytes.
func read(bytes int) capability.Capability {
	return capability.UseTools(toolexec.Func("read", "Reads.", func(context.Context, nothing) (string, error) {
		return strings.Repeat("x", bytes), nil
	}))
}

func writes(texts ...string) func(context.Context, agent.State, []agent.Message) (string, error) {
	n := 0
	return func(context.Context, agent.State, []agent.Message) (string, error) {
		n++
		return texts[min(n, len(texts))-1], nil
	}
}

func builtWith(t testing.TB, d agent.Driver, rec *agenttest.Recorder, list ...capability.Capability) *agent.Agent {
	t.Helper()
	b := builder.New().WithName("helper").WithDriver(d).With(list...)
	if rec != nil {
		b = b.WithObserver(rec)
	}
	a, err := b.Build().Get()
	require.NoError(t, err)
	return a
}

// ran runs an agent to its good end.
func ran(t testing.TB, a *agent.Agent, s agent.State, input ...agent.Message) agent.State {
	t.Helper()
	final, err := a.Run(t.Context(), s, input...).Get()
	require.NoError(t, err)
	return final
}

func throughJSON(t testing.TB, s agent.State) (out agent.State) {
	t.Helper()
	text, err := json.Marshal(s)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &out))
	return out
}

func isSummary(m agent.Message) bool { return m.Source() == "compaction" }

// sound checks a list of messages as a service does. Each call is followed by its one answer, and no answer is without
// its call.
func sound(t require.TestingT, list []agent.Message) {
	open := map[string]int{}
	for i, m := range list {
		if m.Role() != agent.RoleTool {
			require.Empty(t, open, "message %d: calls without an answer", i)
		} else {
			require.Positive(t, open[m.CallID()], "message %d answers no call", i)
			if open[m.CallID()]--; open[m.CallID()] == 0 {
				delete(open, m.CallID())
			}
		}
		for _, c := range m.Calls() {
			open[c.ID]++
		}
	}
	require.Empty(t, open, "calls without an answer at the end")
}

// beginnings returns how often a model call was shown another beginning than the one before.
func beginnings(d *agenttest.Driver) (n int) {
	asked := d.Calls()
	for i := 1; i < len(asked); i++ {
		before, now := asked[i-1].Messages, asked[i].Messages
		if len(now) < len(before) || !slices.EqualFunc(before, now[:len(before)], agent.Message.Equal) {
			n++
		}
	}
	return n
}

func shownCounts(d *agenttest.Driver) (counts []int) {
	for _, asked := range d.Calls() {
		counts = append(counts, len(asked.Messages))
	}
	return counts
}

// told is a set of hooks at the three points that record their arguments.
type told struct {
	points []string
	about  []hooks.Compaction
	runs   []agent.Run
}

func (l *told) hooks() capability.Capability {
	note := func(point hooks.PointName, run agent.Run, about hooks.Compaction) error {
		l.points, l.runs, l.about = append(l.points, string(point)), append(l.runs, run), append(l.about, about)
		return nil
	}
	return capability.UseHooks(
		hooks.Observe(hooks.AtPreCompact, "before", func(_ context.Context, c hooks.PreCompactContext) error {
			return note(c.Point(), c.Run(), c.Compaction())
		}),
		hooks.Observe(hooks.AtPostCompact, "after", func(_ context.Context, c hooks.PostCompactContext) error {
			return note(c.Point(), c.Run(), c.Compaction())
		}),
		hooks.Observe(hooks.AtCompactFailed, "failed", func(_ context.Context, c hooks.CompactFailedContext) error {
			return note(c.Point(), c.Run(), c.Compaction())
		}),
	)
}

// LH-73: hooks are called before and after a compaction, with its id, the counts, the summary and its run. LH-78: a
// later run of a session does not have the earlier run as its parent.
func TestPointsOfACompaction(t *testing.T) {
	var l told
	rec := agenttest.Record()
	a := builtWith(t, reads(3), rec, read(400), l.hooks(), capability.UseCompaction{Messages: 7, Keep: 2, Summarize: writes("first", "second")})
	s := ran(t, a, agent.NewState(), agent.UserText("go"))
	require.Empty(t, l.points)
	s = ran(t, a, throughJSON(t, s), agent.UserText("go on"))
	require.Equal(t, []string{"PreCompact", "PostCompact"}, l.points[:2])
	before, after := l.about[0], l.about[1]
	assert.NotEmpty(t, before.ID)
	assert.Equal(t, before.ID, after.ID)
	assert.Equal(t, 9, before.Messages)
	assert.InDelta(t, 3*108, before.Tokens, 60)
	assert.Empty(t, before.Summary)
	assert.Equal(t, before.Messages, after.Messages)
	assert.Equal(t, 3, after.MessagesAfter, "the summary, the last answer and what the user said")
	assert.Equal(t, "first", after.Summary)
	for _, run := range l.runs {
		assert.Equal(t, s.Run(), run)
		assert.Empty(t, run.Parent)
		assert.Equal(t, run.ID, run.Root)
	}

	done := agenttest.Of[capability.CompactionCompleted](rec)
	require.NotEmpty(t, done)
	assert.Equal(t, "compaction.completed", done[0].EventName())
	assert.Equal(t, after.ID, done[0].ID)
	assert.Equal(t, capability.CompactMessages, done[0].Trigger)
	assert.Equal(t, []int{9, 3}, []int{done[0].MessagesBefore, done[0].MessagesAfter})
	assert.Less(t, done[0].TokensAfter, done[0].TokensBefore)
	text, err := json.Marshal(done[0])
	require.NoError(t, err)
	var back capability.CompactionCompleted
	require.NoError(t, json.Unmarshal(text, &back))
	assert.Equal(t, done[0].Summary, back.Summary)
	assert.Contains(t, string(text), `"trigger":"messages","messages_before":9,"messages_after":3,`)
}

var errInk = errors.New("no ink")

// LH-74: a failed compaction does not change the messages, and the run continues. The hooks receive the error. The
// compaction is not tried again at every step.
func TestCompactionThatFails(t *testing.T) {
	never := hooks.On(hooks.AtPreCompact, "never", func(_ context.Context, c hooks.PreCompactContext) hooks.Result { return c.Deny("not now") })
	breaks := hooks.On(hooks.AtPreCompact, "breaks", func(context.Context, hooks.PreCompactContext) hooks.Result { panic("broken") })
	model := func(turn agenttest.Turn) capability.UseCompaction {
		return capability.UseCompaction{Driver: agenttest.Script().Then(turn)}
	}
	byFunc := func(f func(context.Context, agent.State, []agent.Message) (string, error)) capability.UseCompaction {
		return capability.UseCompaction{Summarize: f}
	}
	for name, tc := range map[string]struct {
		use    capability.UseCompaction
		hook   []hooks.Hook
		says   string
		denied bool
	}{
		"the func":      {byFunc(func(context.Context, agent.State, []agent.Message) (string, error) { return "", errInk }), nil, "no ink", false},
		"a panic":       {byFunc(func(context.Context, agent.State, []agent.Message) (string, error) { panic("spilled") }), nil, "panic: spilled", false},
		"nothing":       {byFunc(writes(" \n")), nil, "the summary is empty", false},
		"too much":      {byFunc(writes(strings.Repeat("word ", 2000))), nil, "not shorter", false},
		"the model":     {model(agenttest.Fail(errInk)), nil, "no ink", false},
		"a tool call":   {model(agenttest.Call("read", `{}`)), nil, "called a tool", false},
		"a filter":      {model(agenttest.Say("x").WithFinish(agent.FinishFilter)), nil, "filtered", false},
		"a hook":        {byFunc(writes("short")), []hooks.Hook{never}, "not now", true},
		"a broken hook": {byFunc(writes("short")), []hooks.Hook{breaks}, "broken", true},
	} {
		t.Run(name, func(t *testing.T) {
			plain, d := reads(12), reads(12)
			want := ran(t, builtWith(t, plain, nil, read(400)), agent.NewState(), agent.UserText("go"))
			var l told
			rec := agenttest.Record()
			tc.use.Messages, tc.use.Keep = 6, 2
			got := ran(t, builtWith(t, d, rec, read(400), l.hooks(), capability.UseHooks(tc.hook...), tc.use), agent.NewState(), agent.UserText("go"))
			assert.Equal(t, agenttest.Transcript(want), agenttest.Transcript(got))
			assert.Equal(t, shownCounts(plain), shownCounts(d), "the model sees the messages as they are")
			failed := agenttest.Of[capability.CompactionFailed](rec)
			var at []int
			for _, f := range failed {
				at = append(at, f.Messages)
			}
			require.Equal(t, []int{7, 9, 13, 17, 23}, at, "a quarter more each time")
			assert.Empty(t, agenttest.Of[capability.CompactionCompleted](rec))
			assert.Equal(t, tc.denied, failed[0].Denied)
			assert.Contains(t, failed[0].Failure.Text, tc.says)
			assert.Equal(t, "CompactFailed", l.points[len(l.points)-1])
			require.ErrorContains(t, l.about[len(l.about)-1].Err, tc.says)
			assert.Equal(t, failed[4].ID, l.about[len(l.about)-1].ID)
			assert.Zero(t, capability.CompactedIn(got))
			_, err := json.Marshal(failed[0])
			require.NoError(t, err)
		})
	}
}

// A later summary that fails leaves the earlier one where it is.
func TestCompactionThatFailsLater(t *testing.T) {
	d := reads(9)
	final := ran(t, builtWith(t, d, nil, read(400), capability.UseCompaction{Messages: 6, Keep: 2, Summarize: writes("short", "")}),
		agent.NewState(), agent.UserText("go"))
	assert.Equal(t, []int{1, 3, 5, 4, 6, 8, 10, 12, 14, 16}, shownCounts(d))
	assert.Equal(t, "short", capability.CompactedIn(final).Summary)
	for _, asked := range d.Calls()[3:] {
		assert.True(t, isSummary(asked.Messages[1]))
	}
}

// A hook with the policy Abort, or a summary that stops the run, ends the run. The hooks at CompactFailed are called in
// this case, too.
func TestCompactionThatEndsTheRun(t *testing.T) {
	aborts := hooks.On(hooks.AtPreCompact, "aborts", func(_ context.Context, c hooks.PreCompactContext) hooks.Result {
		return c.Fail(errInk)
	}).WithFailure(hooks.Abort)
	var l told
	_, err := builtWith(t, reads(6), nil, read(400), l.hooks(), capability.UseHooks(aborts), capability.UseCompaction{
		Messages: 6, Keep: 2, Summarize: writes("short"),
	}).Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.ErrorIs(t, err, errInk)
	require.NotEmpty(t, l.points)
	assert.Equal(t, "CompactFailed", l.points[len(l.points)-1])

	stop := &agent.SignalError{Signal: agent.Signal{Reason: "enough", Message: "no more"}}
	final := ran(t, builtWith(t, reads(6), nil, read(400), capability.UseCompaction{
		Messages: 6, Keep: 2, Summarize: func(context.Context, agent.State, []agent.Message) (string, error) { return "", stop },
	}), agent.NewState(), agent.UserText("go"))
	assert.Equal(t, agent.StatusStopped, final.Status())
	assert.Equal(t, agent.StopReason("enough"), final.StopSignal().Reason)
	assert.Equal(t, 3, final.RunStepCount())
}

// A model call that fails after a compaction and is made again is made with the same
// summary, which is paid for once.
func TestCompactionBeforeACallThatFails(t *testing.T) {
	writer := agenttest.Script().Then(agenttest.Say("short").WithTokens(100, 1))
	turns := slices.Repeat([]agenttest.Turn{agenttest.Tries(agenttest.Fail(errInk), agenttest.Call("read", `{}`).WithTokens(1, 1))}, 4)
	d := agenttest.Script(append(turns, agenttest.Say("end").WithTokens(1, 1))...)
	again := agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
		if result := next(ctx, s); result.IsOk() {
			return result
		}
		return next(ctx, s)
	})
	final := ran(t, builtWith(t, d, nil, read(400), capability.UseStepProcessor("again", again),
		capability.UseCompaction{Messages: 6, Keep: 2, Driver: writer}), agent.NewState(), agent.UserText("go"))
	assert.Equal(t, []int{1, 1, 3, 3, 5, 5, 4, 4, 6}, shownCounts(d))
	assert.Len(t, writer.Calls(), 1)
	assert.Equal(t, int64(105), final.RunUsage().InputTokens)
}
