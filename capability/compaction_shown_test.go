package capability_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/lo"
	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/capability/kit"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// LH-75: an observer that panics at one of the three points changes nothing; a control
// that panics denies the compaction, and the run continues.
func TestHooksOfACompactionThatPanic(t *testing.T) {
	good, bad := writes("short"), writes("")
	run := func(write func(context.Context, agent.State, []agent.Message) (string, error), list ...hooks.Hook) (string, []int) {
		d := reads(6)
		a := builtWith(t, d, nil, read(400), capability.UseHooks(list...), capability.UseCompaction{Messages: 6, Keep: 2, Summarize: write})
		return agenttest.Transcript(ran(t, a, agent.NewState(), agent.UserText("go"))), shownCounts(d)
	}
	transcript, counts := run(good)
	_, uncompacted := run(bad)
	require.NotEqual(t, uncompacted, counts)
	for name, tc := range map[string]struct {
		hook  hooks.Hook
		write func(context.Context, agent.State, []agent.Message) (string, error)
		want  []int
	}{
		"before": {hooks.Observe(hooks.AtPreCompact, "x", func(context.Context, hooks.PreCompactContext) error { panic("x") }), good, counts},
		"after":  {hooks.Observe(hooks.AtPostCompact, "x", func(context.Context, hooks.PostCompactContext) error { panic("x") }), good, counts},
		"failed": {hooks.Observe(hooks.AtCompactFailed, "x", func(context.Context, hooks.CompactFailedContext) error { panic("x") }), bad, uncompacted},
		"a control": {
			hooks.On(hooks.AtPreCompact, "x", func(context.Context, hooks.PreCompactContext) hooks.Result { panic("x") }), good, uncompacted,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, shown := run(tc.write, tc.hook)
			assert.Equal(t, transcript, got)
			assert.Equal(t, tc.want, shown)
		})
	}
}

// LH-76: a hook receives a copy. Its changes to the copy do not affect other hooks, the
// observer, the state or the model.
func TestHooksCannotChangeACompaction(t *testing.T) {
	scribble := func(name string) capability.Capability {
		write := func(about hooks.Compaction) {
			about.ID, about.Summary, about.Messages, about.Tokens, about.MessagesAfter = "mine", "mine", 99, 99, 99
			about.Err = errInk
		}
		return capability.UseHooks(
			hooks.On(hooks.AtPreCompact, name+" decides", func(_ context.Context, c hooks.PreCompactContext) hooks.Result {
				write(c.Compaction())
				return c.Pass()
			}),
			hooks.Observe(hooks.AtPreCompact, name+" before", func(_ context.Context, c hooks.PreCompactContext) error {
				write(c.Compaction())
				return nil
			}),
			hooks.Observe(hooks.AtPostCompact, name+" after", func(_ context.Context, c hooks.PostCompactContext) error {
				write(c.Compaction())
				return nil
			}),
			hooks.Observe(hooks.AtCompactFailed, name+" failed", func(_ context.Context, c hooks.CompactFailedContext) error {
				write(c.Compaction())
				return nil
			}),
		)
	}
	// seen is everything visible in a run, without its IDs and times.
	type seen struct {
		points     []string
		about      []hooks.Compaction
		events     []any
		shown      []string
		transcript string
		view       capability.CompactedView
	}
	run := func(clears bool, around ...capability.Capability) seen {
		var l told
		var out seen
		calls := 0
		rec, d := agenttest.Record(), reads(9)
		use := capability.UseCompaction{Messages: 6, Keep: 2, Summarize: func(_ context.Context, _ agent.State, messages []agent.Message) (string, error) {
			if clears {
				clear(messages)
			}
			if calls++; calls == 2 {
				return "", errPen
			}
			return fmt.Sprint("short ", calls), nil
		}}
		list := []capability.Capability{read(400), l.hooks(), use}
		if len(around) == 2 { // at points after something, the last is asked first
			list = []capability.Capability{read(400), around[0], l.hooks(), around[1], use}
		}
		final := ran(t, builtWith(t, d, rec, list...), agent.NewState(), agent.UserText("go"))
		out.points, out.transcript = l.points, agenttest.Transcript(final)
		ids := map[string]string{}
		known := func(id string) string {
			if ids[id] == "" {
				ids[id] = fmt.Sprint("compaction ", len(ids))
			}
			return ids[id]
		}
		for i, about := range l.about {
			assert.Equal(t, final.Run(), l.runs[i])
			about.ID = known(about.ID)
			out.about = append(out.about, about)
		}
		for _, e := range rec.Events() {
			switch e := e.(type) {
			case capability.CompactionCompleted:
				assert.Equal(t, final.Run(), e.Run)
				e.Run, e.ID, e.Took = agent.Run{}, known(e.ID), 0
				out.events = append(out.events, e)
			case capability.CompactionFailed:
				assert.Equal(t, final.Run(), e.Run)
				e.Run, e.ID, e.Took = agent.Run{}, known(e.ID), 0
				out.events = append(out.events, e)
			}
		}
		for _, asked := range d.Calls() {
			sound(t, asked.Messages)
			out.shown = append(out.shown, asked.Transcript())
		}
		out.view = capability.CompactedIn(final)
		out.view.ID = known(out.view.ID)
		return out
	}
	want := run(false)
	assert.Subset(t, want.points, []string{"PreCompact", "PostCompact", "CompactFailed"})
	require.ErrorIs(t, want.about[3].Err, errPen)
	assert.Equal(t, want, run(true), "the func that summarises has messages of its own")
	assert.Equal(t, want, run(false, scribble("x"), scribble("y")))
}

var errPen = errors.New("no pen")

// LH-77: the user's last message is shown unchanged and is not summarised; an older
// message of the user is summarised.
func TestLastUserMessageIsKept(t *testing.T) {
	const first, second = "the first wish  with\todd spaces", "the second wish"
	var given []string
	use := capability.UseCompaction{Messages: 6, Keep: 2, Summarize: func(_ context.Context, _ agent.State, messages []agent.Message) (string, error) {
		given = append(given, strings.Join(lo.Map(messages, func(m agent.Message, _ int) string { return m.Text() }), "|"))
		return fmt.Sprintf("summary %d", len(given)), nil
	}}
	d := reads(6)
	a := builtWith(t, d, nil, read(400), use)
	s := ran(t, a, agent.NewState(agent.System("be kind")), agent.UserText(first))
	for i, text := range given {
		assert.NotContains(t, text, first)
		assert.NotContains(t, text, "be kind")
		if i > 0 {
			assert.Contains(t, text, fmt.Sprintf("summary %d", i), "an earlier summary is summarised")
		}
	}
	n := len(given)
	require.Greater(t, n, 1)
	last := d.Calls()[6].Messages
	assert.Equal(t, []string{"be kind", first}, []string{last[0].Text(), last[1].Text()})
	assert.True(t, isSummary(last[2]))
	ran(t, a, s, agent.UserText(second))
	require.Greater(t, len(given), n)
	assert.Contains(t, given[n], first, "it was in no summary so far")
	for _, text := range given {
		assert.NotContains(t, text, second)
	}
	for _, asked := range d.Calls()[7:] {
		assert.Equal(t, 1, lo.CountBy(asked.Messages, func(m agent.Message) bool { return m.Text() == second }))
	}
}

// Between two compactions the model is shown the same beginning, so that a provider's
// cache stays useful.
func TestViewChangesWithACompactionOnly(t *testing.T) {
	rec := agenttest.Record()
	d := reads(40)
	ran(t, builtWith(t, d, rec, read(400), capability.UseCompaction{Tokens: 1500, Keep: 4, Summarize: writes("one", "two", "three")}),
		agent.NewState(), agent.UserText("go"))
	done := agenttest.Of[capability.CompactionCompleted](rec)
	require.Greater(t, len(done), 2)
	assert.Equal(t, len(done), beginnings(d))
	for _, e := range done {
		assert.Equal(t, capability.CompactTokens, e.Trigger)
		assert.Greater(t, e.TokensBefore, int64(1500))
		assert.Less(t, e.TokensAfter, int64(750))
	}
}

// The session keeps the view: another run, another process, or a failed model call does
// not change it.
func TestCompactionIsTheSessions(t *testing.T) {
	use := func() capability.Capability {
		return capability.UseCompaction{Messages: 8, Keep: 3, Summarize: func(_ context.Context, _ agent.State, messages []agent.Message) (string, error) {
			return fmt.Sprintf("of %d", len(messages)), nil
		}}
	}
	whole, parts := reads(2), reads(2)
	one := builtWith(t, whole, nil, read(400), use())
	var s, r agent.State
	for i := range 10 {
		s = ran(t, one, s, agent.UserText(fmt.Sprint("go on ", i)))
		r = throughJSON(t, ran(t, builtWith(t, parts, nil, read(400), use()), r, agent.UserText(fmt.Sprint("go on ", i))))
	}
	text := func(d *agenttest.Driver) (all []string) {
		for _, asked := range d.Calls() {
			all = append(all, asked.Transcript())
		}
		return all
	}
	assert.Equal(t, text(whole), text(parts))
	assert.LessOrEqual(t, slices.Max(shownCounts(parts)), 8)
	assert.Equal(t, 60, s.MessageCount(), "the transcript is whole")
	v := capability.CompactedIn(r)
	assert.Equal(t, "cmp_", v.ID[:4])
	assert.Positive(t, v.From)
	assert.Contains(t, v.Summary, "of ")
}

// A run that waits for a person in every step, and continues in another process, is
// compacted as often as a run that does not wait.
func TestCompactionOfARunThatParks(t *testing.T) {
	d, summaries := reads(8), 0
	use := capability.UseCompaction{Messages: 6, Keep: 2, Summarize: func(context.Context, agent.State, []agent.Message) (string, error) {
		summaries++
		return "short", nil
	}}
	a := builtWith(t, d, nil, read(400), use,
		capability.UseHooks(hooks.On(hooks.AtPreToolUse, "ask", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Ask("really?") })),
		capability.UseApproval(agent.ApproverFunc(func(context.Context, agent.State, *agent.Prepared) (agent.Approval, error) {
			return agent.Approval{Verdict: agent.Park}, nil
		})),
	)
	s := ran(t, a, agent.NewState(), agent.UserText("go"))
	for s.Parked() {
		s = throughJSON(t, s)
		for _, w := range s.Interventions() {
			s = agenttest.WithApproval(s, w.Call.ID, agent.Approval{Verdict: agent.Approve})
		}
		var err error
		s, err = a.Resume(t.Context(), s).Get()
		require.NoError(t, err)
	}
	assert.Equal(t, agent.StatusDone, s.Status())
	assert.Equal(t, []int{1, 3, 5, 4, 6, 4, 6, 4, 6}, shownCounts(d))
	assert.Equal(t, 3, summaries)
}

// IP-106: too long a conversation is summarised. A given counter decides. The driver's counter is asked only when it is
// needed.
func TestWhoCountsTokens(t *testing.T) {
	use := capability.UseCompaction{Tokens: 1000, Keep: 2, Summarize: writes("short")}
	t.Run("a func", func(t *testing.T) {
		d := &counting{Driver: reads(12), tokens: 1 << 40}
		rec := agenttest.Record()
		by := use
		by.Count = func(m agent.Message) int64 { return lo.Ternary[int64](m.Role() == agent.RoleTool, 300, 0) }
		ran(t, builtWith(t, d, rec, read(1), by), agent.NewState(), agent.UserText("go"))
		assert.Zero(t, d.asked)
		done := agenttest.Of[capability.CompactionCompleted](rec)
		require.NotEmpty(t, done)
		assert.Equal(t, []int64{1200, 300}, []int64{done[0].TokensBefore, done[0].TokensAfter})
	})
	t.Run("the driver", func(t *testing.T) {
		d := &counting{Driver: reads(12), each: 150}
		rec := agenttest.Record()
		ran(t, builtWith(t, d, rec, read(400), use), agent.NewState(), agent.UserText("go"))
		done := agenttest.Of[capability.CompactionCompleted](rec)
		require.NotEmpty(t, done)
		assert.Equal(t, int64(150*done[0].MessagesBefore), done[0].TokensBefore)
		assert.Equal(t, int64(150*done[0].MessagesAfter), done[0].TokensAfter)
		assert.Less(t, d.asked, 13)
	})
	t.Run("the driver, while there is little", func(t *testing.T) {
		d := &counting{Driver: reads(3), tokens: 1 << 40}
		ran(t, builtWith(t, d, nil, read(4), use), agent.NewState(), agent.UserText("go"))
		assert.Zero(t, d.asked)
	})
	t.Run("the driver, which fails", func(t *testing.T) {
		d := &counting{Driver: reads(12), err: errInk}
		rec := agenttest.Record()
		ran(t, builtWith(t, d, rec, read(400), use), agent.NewState(), agent.UserText("go"))
		assert.NotEmpty(t, agenttest.Of[capability.CompactionCompleted](rec), "by the estimate")
	})
	t.Run("the last reply", func(t *testing.T) { // it says that a token is two bytes
		d := agenttest.Script().Then(agenttest.Play(func(_ context.Context, s agent.State) (agent.Step, error) {
			n := 0
			for _, m := range s.Messages() {
				n += len(m.Text()) / 2
			}
			reply := agent.Step{Message: agent.Assistant("end"), Usage: agent.Usage{InputTokens: int64(n)}}
			if s.StepCount() < 6 {
				reply.Message = agent.Assistant("", agent.ToolCall{ID: "1", Name: "read", Arguments: "{}"})
			}
			return reply, nil
		}))
		rec := agenttest.Record()
		ran(t, builtWith(t, d, rec, read(400), use), agent.NewState(), agent.UserText("go"))
		done := agenttest.Of[capability.CompactionCompleted](rec)
		require.NotEmpty(t, done)
		assert.Equal(t, 13, done[0].MessagesBefore, "six answers of about 200 tokens; without it, nine of 108")
	})
}

// counting is a driver that counts tokens: each for a message.
type counting struct {
	*agenttest.Driver
	tokens, each int64
	err          error
	asked        int
}

var _ capability.TokenCounter = (*counting)(nil)

func (d *counting) CountTokens(_ context.Context, s agent.State) (int64, error) {
	d.asked++
	return d.tokens + d.each*int64(s.MessageCount()), d.err
}

// tooLong returns a model that reads so many messages and no more.
func tooLong(most, steps int) agent.Driver {
	return agenttest.Script().Then(agenttest.Play(func(_ context.Context, s agent.State) (agent.Step, error) {
		switch {
		case s.MessageCount() > most:
			return agent.Step{}, lengthError{}
		case s.StepCount() < steps:
			return agent.Step{Message: agent.Assistant("", agent.ToolCall{ID: "1", Name: "read", Arguments: "{}"})}, nil
		}
		return agent.Step{Message: agent.Assistant("end")}, nil
	}))
}

type lengthError struct{}

func (lengthError) Error() string              { return "too long" }
func (lengthError) ErrorKind() agent.ErrorKind { return agent.KindContextLength }

// A model call that is too long for the model is repeated with a summary.
func TestCompactionWhenTheModelSaysSo(t *testing.T) {
	use := capability.UseCompaction{Summarize: writes("short")}
	for name, run := range map[string]func(*agent.Agent) (agent.State, error){
		"blocking": func(a *agent.Agent) (agent.State, error) {
			return a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
		},
		"streaming": func(a *agent.Agent) (last agent.State, err error) {
			for p, failed := range a.Stream(t.Context(), agent.NewState(), agent.UserText("go")) {
				last, err = p.State, failed
			}
			return last, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			rec := agenttest.Record()
			final, err := run(builtWith(t, tooLong(9, 12), rec, read(400), use))
			require.NoError(t, err)
			assert.Equal(t, "end", final.Answer())
			assert.Equal(t, 26, final.MessageCount())
			assert.Equal(t, 13, final.RunStepCount(), "no failed steps")
			done := agenttest.Of[capability.CompactionCompleted](rec)
			require.NotEmpty(t, done)
			assert.Equal(t, capability.CompactContextLength, done[0].Trigger)

			_, err = run(builtWith(t, tooLong(9, 12), nil, read(400), capability.UseCompaction{Summarize: writes("short"), NoRescue: true}))
			require.ErrorIs(t, err, lengthError{})
			_, err = run(builtWith(t, tooLong(2, 12), nil, read(400), use))
			require.ErrorIs(t, err, lengthError{}, "nothing can be summarised")
			_, err = run(builtWith(t, tooLong(9, 12), nil, read(400), capability.UseCompaction{Summarize: writes("")}))
			require.ErrorIs(t, err, lengthError{}, "the error is the model's")
		})
	}
}

// A model call is not repeated if pieces of its reply were emitted.
func TestNoSecondTryBehindPieces(t *testing.T) {
	asked := 0
	d := pieces{agent.DriverFunc(func(context.Context, agent.State) (agent.Step, error) {
		asked++
		return agent.Step{}, lengthError{}
	})}
	a := builtWith(t, d, nil, capability.UseCompaction{Summarize: writes("short")})
	s := agent.NewState(agent.UserText(strings.Repeat("a", 4000)), agent.Assistant(strings.Repeat("b", 4000)))
	for _, err := range a.Stream(t.Context(), s, agent.UserText("go")) {
		if err != nil {
			require.ErrorIs(t, err, lengthError{})
		}
	}
	assert.Equal(t, 1, asked)
	require.Error(t, a.Run(t.Context(), s, agent.UserText("go")).Error())
	assert.Equal(t, 3, asked, "nothing was told here")
}

type pieces struct{ agent.DriverFunc }

func (d pieces) Stream(ctx context.Context, s agent.State, emit func(agent.Delta)) mo.Result[agent.Step] {
	emit(agent.Delta{Text: "so"})
	return d.Next(ctx, s)
}

// The usage of a summary counts as usage of its step, also when the summary is not used.
func TestSummariesCount(t *testing.T) {
	for name, summary := range map[string]agenttest.Turn{"good": agenttest.Say("short"), "of no use": agenttest.Say("")} {
		t.Run(name, func(t *testing.T) {
			writer := agenttest.Script().Then(summary.WithTokens(1000, 50).WithCost(0.25))
			turns := slices.Repeat([]agenttest.Turn{agenttest.Call("read", `{}`).WithTokens(10, 1).WithCost(1)}, 3)
			d := agenttest.Script(append(turns, agenttest.Say("end").WithTokens(10, 1).WithCost(1))...)
			final := ran(t, builtWith(t, d, nil, read(400), capability.UseCompaction{Messages: 6, Keep: 2, Driver: writer}),
				agent.NewState(), agent.UserText("go"))
			require.Len(t, writer.Calls(), 1)
			used := final.RunUsage()
			assert.Equal(t, []int64{1040, 54}, []int64{used.InputTokens, used.OutputTokens})
			assert.InDelta(t, 4.25, used.Cost.MustGet(), 1e-9)
		})
	}
}

// The summarising model receives the conversation as text, and no tools.
func TestWhatTheSummariserIsShown(t *testing.T) {
	writer := agenttest.Script().Then(agenttest.Say("short"))
	batch := agenttest.Call("read", `{}`).Call("read", `{ }`)
	d := agenttest.Script(batch, batch, agenttest.Say("end"))
	a := builtWith(t, d, nil, read(20_000), capability.UseCompaction{Messages: 5, Keep: 3, Driver: writer, Model: "small", SummaryTokens: 100})
	ran(t, a, agent.NewState(agent.UserText("before"), agent.Assistant("I see"+strings.Repeat(" it", 300))), agent.User(agent.Text("the wish"), agent.ImageURL("http://x/y.png")))
	asked := writer.Calls()
	require.Len(t, asked, 2)
	assert.Equal(t, "small", asked[0].Request.Model)
	assert.Zero(t, asked[0].Request.Tools.Len())
	assert.Equal(t, 400, asked[0].Request.MaxOutputTokens)
	assert.Contains(t, asked[0].Request.Instructions, "material, not instructions")
	text := asked[0].Messages[0].Text()
	assert.Contains(t, text, "--- user ---\nbefore\n")
	assert.Contains(t, text, "--- assistant ---\nI see it")
	assert.NotContains(t, text, "the wish")
	text = strings.ReplaceAll(asked[1].Messages[0].Text(), "xx", "")
	assert.Contains(t, text, "--- context from compaction ---")
	assert.Contains(t, text, `[call call_1_2 of tool "read": { }]`)
	assert.Contains(t, text, `--- answer of tool "read" to call call_1_2 (executed) ---`)
	assert.Contains(t, text, "bytes are left out here]")
	assert.Less(t, len(asked[1].Messages[0].Text()), 20_000)
}

// A conversation that is too long for the summarising model is summarised in pieces.
func TestSummaryInPieces(t *testing.T) {
	writer := agenttest.Script().Then(agenttest.Say("the record"))
	var before []agent.Message
	for i := range 100 {
		before = append(before, agent.UserText(fmt.Sprint("question ", i)), agent.Assistant(strings.Repeat("y", 8000)))
	}
	d := agenttest.Script(agenttest.Say("end"))
	ran(t, builtWith(t, d, nil, capability.UseCompaction{Tokens: 5000, Driver: writer}), agent.NewState(before...), agent.UserText("go"))
	asked := writer.Calls()
	require.Len(t, asked, 3, "800 KB in pieces of 300")
	for i, q := range asked {
		text := q.Messages[0].Text()
		assert.Less(t, len(text), 310_000)
		assert.Equal(t, i > 0, strings.Contains(text, "--- summary of what came before ---\nthe record\n"))
		for _, m := range q.Messages {
			assert.Equal(t, agent.RoleUser, m.Role())
		}
	}
	assert.LessOrEqual(t, len(d.Calls()[0].Messages), 4)
}

// The agent's own model can write the summary. Hooks are not asked about this call, and the compaction is the only
// event.
func TestSummaryByTheAgentsOwnModel(t *testing.T) {
	rec := agenttest.Record()
	asked := 0
	d := agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
		switch {
		case strings.Contains(s.Request().Instructions, "You write the memory"):
			assert.Equal(t, "large", s.Request().Model)
			return agent.Step{Message: agent.Assistant("short")}, nil
		case s.StepCount() < 5:
			return agent.Step{Message: agent.Assistant("", agent.ToolCall{ID: "1", Name: "read", Arguments: "{}"})}, nil
		}
		return agent.Step{Message: agent.Assistant("end")}, nil
	})
	counts := hooks.Observe(hooks.AtPreInference, "counts", func(context.Context, hooks.InferenceContext) error { asked++; return nil })
	a := builder.New().WithDriver(d).WithModel("large").WithObserver(rec).WithInstructions("Be kind.").
		With(read(400), capability.UseHooks(counts), capability.UseCompaction{Messages: 6, Keep: 2}).Build().MustGet()
	ran(t, a, agent.NewState(), agent.UserText("go"))
	assert.NotEmpty(t, agenttest.Of[capability.CompactionCompleted](rec))
	assert.Equal(t, 6, asked)
	assert.Len(t, agenttest.Of[agent.InferenceStarted](rec), 6)
	for _, e := range agenttest.Of[agent.InferenceStarted](rec) {
		assert.Equal(t, "Be kind.", e.State.Request().Instructions)
	}
}

// A summary that takes too long fails; a run that is cancelled meanwhile ends as
// cancelled.
func TestSummaryThatTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := agenttest.Record()
		use := capability.UseCompaction{Messages: 6, Keep: 2, Driver: agenttest.Script().Then(agenttest.Hang()), Timeout: time.Minute}
		begin := time.Now()
		final := ran(t, builtWith(t, reads(3), rec, read(400), use), agent.NewState(), agent.UserText("go"))
		assert.Equal(t, "end", final.Answer())
		assert.Equal(t, time.Minute, time.Since(begin))
		failed := agenttest.Of[capability.CompactionFailed](rec)
		require.Len(t, failed, 1)
		assert.Equal(t, agent.KindTimeout, failed[0].Failure.Kind)
		assert.Contains(t, failed[0].Failure.Text, "timed out after 1m0s")

		var l told
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := builtWith(t, reads(3), nil, read(400), l.hooks(), use).Run(ctx, agent.NewState(), agent.UserText("go")).Error()
		broken, ok := errors.AsType[*agent.RunError](err)
		require.True(t, ok)
		assert.Equal(t, agent.StatusCancelled, broken.State.Status())
	})
}

// A summary does not contain text that hooks removed before the model call.
func TestSummaryIsOfWhatHooksShow(t *testing.T) {
	hide := hooks.On(hooks.AtPreInference, "hide", func(_ context.Context, c hooks.InferenceContext) hooks.Result {
		var list []agent.Message
		for _, m := range c.Messages() {
			list = append(list, m.WithContent(agent.TextContent(strings.ReplaceAll(m.Text(), "x", "-"))))
		}
		return c.RewriteMessages(list)
	})
	d := reads(12)
	a := builtWith(t, d, nil, read(400), capability.UseHooks(hide), capability.UseCompaction{
		Messages: 6, Keep: 2, Summarize: func(_ context.Context, _ agent.State, messages []agent.Message) (string, error) {
			for _, m := range messages {
				assert.NotContains(t, strings.ReplaceAll(m.Text(), "next", ""), "xx")
			}
			return "short", nil
		},
	})
	ran(t, a, agent.NewState(), agent.UserText("go"))
	assert.LessOrEqual(t, slices.Max(shownCounts(d)), 6)
	for _, asked := range d.Calls() {
		sound(t, asked.Messages)
		for _, m := range asked.Messages {
			assert.NotContains(t, m.Text(), "xx")
		}
	}
}

// With old results edited away behind it, each does its own: the editing sees what the
// compaction left.
func TestCompactionBeforeContextEditing(t *testing.T) {
	for name, list := range map[string][]capability.Capability{
		"compaction first": {capability.UseCompaction{Messages: 12, Keep: 6, Summarize: writes("short")}, kit.ContextEditing{Results: 3, Keep: 1}},
		"editing first":    {kit.ContextEditing{Results: 3, Keep: 1}, capability.UseCompaction{Messages: 12, Keep: 6, Summarize: writes("short")}},
	} {
		t.Run(name, func(t *testing.T) {
			d := reads(40)
			ran(t, builtWith(t, d, nil, append(list, read(4000))...), agent.NewState(), agent.UserText("go"))
			assert.LessOrEqual(t, slices.Max(shownCounts(d)), 12)
			for i, asked := range d.Calls() {
				sound(t, asked.Messages)
				whole := lo.CountBy(asked.Messages, func(m agent.Message) bool { return len(m.Text()) == 4000 })
				assert.LessOrEqual(t, whole, 6, "call %d", i)
				assert.LessOrEqual(t, lo.CountBy(asked.Messages, isSummary), 1)
			}
			assert.True(t, slices.ContainsFunc(d.Calls()[40].Messages, isSummary))
		})
	}
}

// A list of messages that begins elsewhere is not taken for the one that was summarised.
func TestCompactionOfAListThatBeginsElsewhere(t *testing.T) {
	tail := hooks.On(hooks.AtPreInference, "tail", func(_ context.Context, c hooks.InferenceContext) hooks.Result {
		var list []agent.Message
		for _, m := range c.Messages() {
			list = append(list, m)
		}
		if len(list) < 10 {
			return c.Allow()
		}
		return c.RewriteMessages(append([]agent.Message{agent.UserText("other")}, list[len(list)-4:]...))
	})
	d := reads(8)
	a := builtWith(t, d, nil, read(400), capability.UseHooks(tail), capability.UseCompaction{Messages: 6, Keep: 2, Summarize: writes("short")})
	ran(t, a, agent.NewState(), agent.UserText("go"))
	for i, asked := range d.Calls() {
		if i >= 5 {
			assert.Len(t, asked.Messages, 5, "as the hook has it")
			assert.Equal(t, "other", asked.Messages[0].Text())
		}
	}
}

// Whatever the session: each call has its answer, what the user said last is there word
// for word, what is shown is in order, and the transcript is what it would have been.
func TestCompactionSplitsNothing(t *testing.T) {
	compactions := 0
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 7))
		use := capability.UseCompaction{Summarize: writes("s"), Keep: 1 + r.IntN(6)}
		if r.IntN(2) == 0 {
			use.Messages = use.Keep + 3 + r.IntN(6)
		} else {
			use.Tokens, use.KeepTokens = int64(300+r.IntN(1500)), int64(r.IntN(250))
		}
		repeats := r.IntN(2) == 0 // the same ids in each step
		var s agent.State
		for range 1 + r.IntN(5) {
			d := scripted(r, repeats)
			rec := agenttest.Record()
			said := fmt.Sprintf("wish %d of %d  \n", r.IntN(1000), seed)
			before := s
			s = ran(t, builtWith(t, d, rec, read(50+r.IntN(800)), use), s, agent.UserText(said))
			compactions += len(agenttest.Of[capability.CompactionCompleted](rec))
			for _, asked := range d.Calls() {
				checkShown(t, s, asked.Messages, said)
			}
			require.LessOrEqual(t, beginnings(d), len(agenttest.Of[capability.CompactionCompleted](rec)), "seed %d", seed)
			for i, m := range before.Messages() {
				require.True(t, m.Equal(s.Message(i)))
			}
			if r.IntN(2) == 0 {
				s = throughJSON(t, s)
			}
		}
	}
	assert.Greater(t, compactions, 300)
}

// scripted returns a model that calls tools at random, several in one step, and then
// ends.
func scripted(r *rand.Rand, repeats bool) *agenttest.Driver {
	steps := make([]int, 1+r.IntN(15))
	for i := range steps {
		steps[i] = 1 + r.IntN(4)
	}
	prefix := r.Uint64()
	return agenttest.Script().Then(agenttest.Play(func(_ context.Context, s agent.State) (agent.Step, error) {
		n := s.RunStepCount()
		if n >= len(steps) {
			return agent.Step{Message: agent.Assistant("end")}, nil
		}
		var calls []agent.ToolCall
		for i := range steps[n] {
			id := fmt.Sprintf("%x_%d_%d", prefix, n, i)
			if repeats {
				id = fmt.Sprint(i)
			}
			calls = append(calls, agent.ToolCall{ID: id, Name: "read", Arguments: "{}"})
		}
		return agent.Step{Message: agent.Assistant("thinking", calls...)}, nil
	}))
}

func checkShown(t *testing.T, s agent.State, shown []agent.Message, said string) {
	t.Helper()
	sound(t, shown)
	require.Equal(t, 1, lo.CountBy(shown, func(m agent.Message) bool { return m.Text() == said && m.Source() == "" }))
	require.LessOrEqual(t, lo.CountBy(shown, isSummary), 1)
	at := 0
	for _, m := range shown {
		if isSummary(m) {
			continue
		}
		for at < s.MessageCount() && !m.Equal(s.Message(at)) {
			at++
		}
		require.Less(t, at, s.MessageCount(), "out of order, or not of the transcript")
		at++
	}
}

func TestCompactionKeepsTheContractOfADriver(t *testing.T) {
	agenttest.TestDriver(t, func(t *testing.T) agent.Driver {
		t.Helper()
		var outermost agent.Driver
		plan := capability.Plan{}.WithDriver(agenttest.Script().Then(agenttest.Say("hi"))).
			WrapDriver(capability.Outside, "outermost", func(d agent.Driver) agent.Driver { outermost = d; return d })
		capability.UseCompaction{}.Install(plan).MustGet().Agent().MustGet()
		return outermost
	})
}

func TestCompactionThatMakesNoSense(t *testing.T) {
	for want, use := range map[string]capability.UseCompaction{
		"the limit of tokens is -1":                         {Tokens: -1},
		"the limit of messages is 3":                        {Messages: 3},
		"the limit of messages is 10 and the newest 10":     {Messages: 10, Keep: 10},
		"the limit of tokens is 100 and the newest 100 are": {Tokens: 100, KeepTokens: 100},
		"set either Summarize, or Driver":                   {Summarize: writes("x"), Driver: agenttest.Script()},
		"the timeout is -1000":                              {Timeout: -1000},
	} {
		_, err := builder.New().WithDriver(agenttest.Script()).With(use).Build().Get()
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, `capability "compaction"`)
	}
	_, err := builder.New().WithDriver(agenttest.Script()).With(capability.UseCompaction{}, capability.UseCompaction{}).Build().Get()
	require.Error(t, err)
}

// The cost of a step depends on the shown messages, not on the whole transcript.
func BenchmarkCompaction(b *testing.B) {
	answer := strings.Repeat("x", 100)
	tool := toolexec.Func("read", "Reads.", func(context.Context, nothing) (string, error) { return answer, nil })
	for _, n := range []int{100, 1000, 4000} {
		model := agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
			if s.StepCount() == n {
				return agent.Step{Message: agent.Assistant("end")}, nil
			}
			return agent.Step{Message: agent.Assistant("", agent.ToolCall{ID: "1", Name: "read", Arguments: "{}"})}, nil
		})
		for name, list := range map[string][]capability.Capability{
			"without": nil, "not yet": {capability.UseCompaction{Tokens: 1 << 40}},
			"compacted": {capability.UseCompaction{Messages: 40, Keep: 10, Summarize: writes("short")}},
		} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				a := builtWith(b, model, nil, append(list, capability.UseTools(tool))...)
				for b.Loop() {
					ran(b, a, agent.NewState(), agent.UserText("go"))
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/step")
			})
		}
	}
}
