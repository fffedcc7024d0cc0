package kit_test

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/grapnel-go/grapnel/drivers"
)

var busy = agenttest.Fail(kinded(agent.KindOverloaded))

// Another model answers while the first is overloaded.
func ExampleModelFallback() {
	first := model("large", agenttest.Fail(&drivers.Error{Provider: "acme", Model: "large", Kind: agent.KindOverloaded}), agenttest.Say("Good bye."))
	second := model("other", agenttest.Say("Hello!"))
	tell := agent.ObserverFunc(func(_ context.Context, e agent.Event) {
		if f, ok := e.(kit.FellBack); ok {
			fmt.Printf("%s, not %s: %v\n", f.ToModel, f.FromModel, f.Err)
		}
	})
	a := builder.New().WithDriver(first).WithObserver(tell).With(kit.ModelFallback{Drivers: []agent.Driver{second}}).Build().MustGet()
	s := a.Run(context.Background(), agent.NewState(), agent.UserText("hello?")).MustGet()
	s = a.Run(context.Background(), s, agent.UserText("good bye")).MustGet()
	for _, step := range s.Steps() {
		fmt.Printf("%s says: %s\n", step.Reply().Model, step.Message().Text())
	}
	// Output:
	// other, not large: asking acme model "large": the service is overloaded
	// other says: Hello!
	// large says: Good bye.
}

func TestFallbackByKind(t *testing.T) {
	all := []agent.ErrorKind{
		agent.KindOverloaded, agent.KindRateLimit, agent.KindTimeout, agent.KindBrokenStream, agent.KindModel, agent.KindAuth,
		agent.KindUnknown, agent.KindBadRequest, agent.KindContextLength, agent.KindInvalid,
	}
	for i, kind := range all {
		first, second := model("a", agenttest.Fail(kinded(kind))), model("b", agenttest.Say("b"))
		_, err := run(t, built(t, first, kit.ModelFallback{Drivers: []agent.Driver{second}}), agent.NewState(), "go")
		assert.Equal(t, i < 7, err == nil, "%s by default", kind)
		for _, own := range all[:6] {
			_, err := run(t, built(t, first, kit.ModelFallback{Drivers: []agent.Driver{second}, Kinds: []agent.ErrorKind{own}}), agent.NewState(), "go")
			assert.Equal(t, own == kind || own == agent.KindModel && kind == agent.KindUnknown, err == nil, "%s where only %s counts", kind, own)
		}
	}
}

func TestFallbackWhenNobodyAnswers(t *testing.T) {
	a := built(t, model("a", agenttest.Fail(kinded("rate_limit"))), kit.ModelFallback{Drivers: []agent.Driver{
		model("b", busy), model("c", agenttest.Fail(errors.New("no route"))),
	}})
	s, err := run(t, a, agent.NewState(), "go")
	failed, ok := errors.AsType[*kit.FallbackError](err)
	require.True(t, ok, "%v", err)
	assert.Len(t, failed.Errs, 3)
	assert.ErrorContains(t, err, "all 3 models failed: it is rate_limit; then it is overloaded; then no route")
	assert.Equal(t, agent.KindRateLimit, agent.KindOf(err), "what the agent's own model said counts")
	assert.Equal(t, agent.StatusFailed, s.Status())
}

// One that the request itself is wrong for says so, and no other model is asked.
func TestFallbackEndsAtAnErrorThatIsNoReason(t *testing.T) {
	third := model("c", agenttest.Say("c"))
	_, err := run(t, built(t, model("a", busy), kit.ModelFallback{Drivers: []agent.Driver{
		model("b", agenttest.Fail(kinded("bad_request"))), third,
	}}), agent.NewState(), "go")
	assert.Equal(t, agent.KindBadRequest, agent.KindOf(err))
	assert.Empty(t, third.Calls())
}

func TestFallbackIsNotForStopsAndCancels(t *testing.T) {
	asked := 0
	second := agent.DriverFunc(func(context.Context, agent.State) (agent.Step, error) {
		asked++
		return agent.Step{Message: agent.Assistant("b")}, nil
	})
	stop := agenttest.Fail(&agent.SignalError{Signal: agent.Signal{Reason: agent.StopRequested, Message: "enough", Source: "me"}})
	s := done(t, built(t, model("a", stop), kit.ModelFallback{Drivers: []agent.Driver{second}}), agent.NewState(), "go")
	assert.Equal(t, agent.StopRequested, s.StopSignal().Reason)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		a := built(t, model("a", agenttest.Hang()), kit.ModelFallback{Drivers: []agent.Driver{second}})
		require.Error(t, a.Run(ctx, agent.NewState(), agent.UserText("go")).Error())
	})
	assert.Zero(t, asked)
}

// calls is a turn that calls a tool, so that the run goes on.
var calls = agenttest.Call("look", `{}`)

func TestStickyFallback(t *testing.T) {
	who := func(s agent.State) (names []string) {
		for _, step := range s.RunSteps() {
			names = append(names, step.Reply().Model)
		}
		return names
	}
	for sticky, want := range map[bool][]string{false: {"b", "a", "a"}, true: {"b", "b", "a"}} {
		// The turns belong to the session: in a step that b takes, a's turn is not played.
		a := model("a", busy, calls, agenttest.Say("a"))
		b := model("b", calls, calls, busy)
		helper := built(t, a, capability.UseTools(tool("look", "seen")), kit.ModelFallback{Drivers: []agent.Driver{b}, Sticky: sticky})
		rec := agenttest.Record()
		watched := lo.Must(builder.New().WithDriver(a).WithObserver(rec).With(capability.UseTools(tool("look", "seen")),
			kit.ModelFallback{Drivers: []agent.Driver{b}, Sticky: sticky}).Build().Get())
		assert.Equal(t, want, who(done(t, helper, agent.NewState(), "go")), "sticky: %t", sticky)
		assert.Equal(t, want, who(done(t, watched, agent.NewState(), "go")), "sticky: %t", sticky)
		assert.Len(t, agenttest.Of[agent.InferenceStarted](rec), 3, "each model call is told, in whatever order models are asked")
		assert.Len(t, agenttest.Of[agent.InferenceCompleted](rec), 3)
	}
	// The next run begins with the agent's own.
	a := model("a", busy, agenttest.Say("a"))
	helper := built(t, a, kit.ModelFallback{Drivers: []agent.Driver{model("b", agenttest.Say("b"))}, Sticky: true})
	s := done(t, helper, agent.NewState(), "go")
	assert.Equal(t, "a", done(t, helper, s, "go").Answer())
}

// breaksOff says some words and then fails.
type breaksOff struct {
	words []string
	err   error
}

func (d breaksOff) Next(context.Context, agent.State) mo.Result[agent.Step] {
	return mo.Err[agent.Step](d.err)
}

func (d breaksOff) Stream(_ context.Context, _ agent.State, emit func(agent.Delta)) mo.Result[agent.Step] {
	for _, w := range d.words {
		emit(agent.Delta{Text: w})
	}
	return mo.Err[agent.Step](d.err)
}

// streamed returns a run's text as it was streamed.
func streamed(t testing.TB, a *agent.Agent) (text string, final agent.State, err error) {
	t.Helper()
	for p, failed := range a.Stream(t.Context(), agent.NewState(), agent.UserText("go")) {
		if p.Delta != nil {
			text += p.Delta.Text
		}
		final, err = p.State, failed
	}
	return text, final, err
}

// No observer gets a reply made of two.
func TestFallbackWhileStreaming(t *testing.T) {
	other := model("b", agenttest.Say("all of it"))
	broke := kinded(agent.KindBrokenStream)
	for name, tc := range map[string]struct {
		first breaksOff
		whole bool
		text  string
		err   string
	}{
		"before the first word":             {breaksOff{nil, broke}, false, "all of it", ""},
		"after it":                          {breaksOff{[]string{"some ", "of "}, broke}, false, "some of ", "it is broken_stream"},
		"after it, held back":               {breaksOff{[]string{"some ", "of "}, broke}, true, "all of it", ""},
		"held back, and no reason to go on": {breaksOff{[]string{"some "}, kinded("bad_request")}, true, "", "it is bad_request"},
	} {
		t.Run(name, func(t *testing.T) {
			text, final, err := streamed(t, built(t, tc.first, kit.ModelFallback{Drivers: []agent.Driver{other}, Whole: tc.whole}))
			assert.Equal(t, tc.text, text)
			if tc.err != "" {
				assert.ErrorContains(t, err, tc.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, text, final.Answer(), "what was told is what is kept")
		})
	}
}

// Around all models stands the retry: each attempt asks all of them.
func TestRetryAroundFallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := model("a", busy)
		b := model("b", agenttest.Tries(busy, agenttest.Say("b")))
		s := done(t, built(t, a, kit.ModelFallback{Drivers: []agent.Driver{b}}, kit.ModelRetry{}), agent.NewState(), "go")
		assert.Equal(t, "b", s.Answer())
		assert.Len(t, a.Calls(), 2)
		assert.Equal(t, 1, s.RunStepCount())
	})
}

// unsigned is a driver that says which model it asks, and not who answered.
type unsigned struct{ agent.Driver }

func (unsigned) Features() agent.Features { return agent.Features{Model: "quiet"} }

// What belongs to one service is not asked of another.
func TestFallbackAsksForTheOthersModel(t *testing.T) {
	a, b, c := model("a", busy), model("b", busy), model("b", agenttest.Say("c"))
	cheap := kit.Asking(c, func(r agent.Request) agent.Request { r.Model = "cheap"; return r })
	helper := builder.New().WithDriver(a).WithModel("large").WithInstructions("Be kind.").
		WithRequest(func(r agent.Request) agent.Request { r.Options = r.Options.With("seed", 1); return r }).
		With(kit.ModelFallback{Drivers: []agent.Driver{b, cheap}}).Build().MustGet()
	s := done(t, helper, agent.NewState(), "go")
	for d, want := range map[describes]string{a: "large", b: "", c: "cheap"} {
		asked := d.Calls()[0].Request
		_, seed := asked.Options.Option("seed")
		assert.Equal(t, want, asked.Model)
		assert.Equal(t, "Be kind.", asked.Instructions)
		assert.Equal(t, d == a, seed)
	}
	last := s.LastStep()
	assert.Equal(t, "cheap", last.Reply().Model)

	silent := agenttest.Reply(agent.Step{Message: agent.Assistant("hi")}) // does not say who it is
	s = done(t, built(t, model("a", busy), kit.ModelFallback{Drivers: []agent.Driver{unsigned{agenttest.Script(silent)}}}), agent.NewState(), "go")
	last = s.LastStep()
	assert.Equal(t, "quiet", last.Reply().Model)
}

func TestFallbackFeatures(t *testing.T) {
	a, b := model("a"), model("b")
	a.features.Priced, a.features.ContextTokens, a.features.Images = true, 1000, true
	b.features.ContextTokens, b.features.MaxOutputTokens = 500, 50
	got := built(t, a, kit.ModelFallback{Drivers: []agent.Driver{b}}).Features()
	assert.Equal(t, agent.Features{Provider: "test", Model: "a", ContextTokens: 500, MaxOutputTokens: 50, Images: true}, got)
	assert.Zero(t, built(t, agenttest.Script(), kit.ModelFallback{Drivers: []agent.Driver{b}}).Features())
}

func TestFallbackKeepsTheContractOfADriver(t *testing.T) {
	for _, whole := range []bool{false, true} {
		agenttest.TestDriver(t, func(*testing.T) agent.Driver {
			fallback := kit.ModelFallback{Drivers: []agent.Driver{agenttest.Script().Then(agenttest.Say("b"))}, Whole: whole}
			return fallback.Install(capability.Plan{}.WithDriver(agenttest.Script().Then(busy))).MustGet().Driver()
		})
	}
}

func TestFallbackThatMakesNoSense(t *testing.T) {
	assert.Contains(t, wrong(t, kit.ModelFallback{}), `capability "model-fallback": no other model`)
	assert.Contains(t, wrong(t, kit.ModelFallback{Drivers: []agent.Driver{agenttest.Script(), nil}}), "driver 2 of 2 is nil")
	_, err := builder.New().With(kit.ModelFallback{Drivers: []agent.Driver{agenttest.Script()}}).Build().Get()
	assert.ErrorContains(t, err, "no driver: set one with WithDriver")
	text := builder.New().WithDriver(model("a")).With(kit.ModelFallback{Drivers: []agent.Driver{agenttest.Script()}}).Plan().MustGet().String()
	assert.Contains(t, text, "fallback(a, model 2)")
}
