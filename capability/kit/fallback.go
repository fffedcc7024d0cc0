package kit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
)

// ModelFallback asks other models when the agent's own model cannot answer. It asks them in order, until one answers.
// The next model call begins with the agent's own model again, unless Sticky is set.
//
// The other models get the same request, but without Request.Model and Request.Options, which belong to one service.
// Each driver uses its default model. To change a driver's request, wrap the driver with Asking.
//
// A streamed reply is emitted as it arrives, and pieces cannot be taken back. A model that fails before its first piece
// is replaced, but if a model breaks off after its first piece, the call fails. So a listener never receives a reply
// that mixes two models. With Whole set, the pieces are held back until the reply is complete, and a reply that breaks
// off is replaced, too.
//
// The step records the model that answered: agent.Step.Model. Each change of model is a FellBack event. When no model
// answers, the call fails with a *FallbackError.
type ModelFallback struct {
	// Drivers are asked in this order after the agent's own. There must be at least one.
	Drivers []agent.Driver
	// Kinds are the errors after which the next model is asked. An error without a kind counts as agent.KindModel.
	// Empty means the kinds that concern the service and not the request: KindOverloaded, KindRateLimit, KindTimeout,
	// KindBrokenStream, KindModel and KindAuth. KindAuth is one of them because a key that expired at one service may
	// be valid at another. Add KindContextLength if the other models have larger context windows. There is never a
	// fallback after the context has ended or a signal has stopped the run.
	Kinds []agent.ErrorKind
	// Sticky begins each model call in a run with the model that answered the last one. The models before it are asked
	// only if it and all models after it fail.
	Sticky bool
	// Whole holds a streamed reply back until it is complete.
	Whole bool
}

// FellBack: a model did not answer, and the next model is asked.
type FellBack struct {
	Run  agent.Run
	Step int
	// From and To are the drivers' indices: zero is the agent's own driver, one the first in ModelFallback.Drivers.
	// FromModel and ToModel are the names of their models. A name is empty if its driver does not report it.
	From, To           int
	FromModel, ToModel string
	// Err is From's error. If controls at PostInference have not seen it yet, Err has only its kind.
	Err error
}

// EventName returns "inference.fell_back".
func (FellBack) EventName() string { return "inference.fell_back" }

// FallbackError is returned when no model answered.
type FallbackError struct {
	// Errs are the models' errors, in the order in which the models were asked. The first error determines the kind of
	// the FallbackError, and whether and when the call should be retried.
	Errs []error
}

func (e *FallbackError) Error() string {
	texts := lo.Map(e.Errs, func(err error, _ int) string { return err.Error() })
	return fmt.Sprintf("all %d models failed: %s", len(texts), strings.Join(texts, "; then "))
}

// Unwrap returns the models' errors.
func (e *FallbackError) Unwrap() []error { return e.Errs }

// Name returns "model-fallback".
func (ModelFallback) Name() string { return "model-fallback" }

// Install adds the drivers to the agent's own.
func (f ModelFallback) Install(p capability.Plan) mo.Result[capability.Plan] {
	if len(f.Drivers) == 0 {
		return mo.Err[capability.Plan](errors.New("no other model: set at least one in Drivers"))
	}
	if i := slices.Index(f.Drivers, nil); i >= 0 {
		return mo.Err[capability.Plan](fmt.Errorf("driver %d of %d is nil", i+1, len(f.Drivers)))
	}
	if p.Driver() == nil {
		return mo.Ok(p) // building the plan reports the missing driver
	}
	kinds := f.Kinds
	if len(kinds) == 0 {
		kinds = []agent.ErrorKind{
			agent.KindOverloaded, agent.KindRateLimit, agent.KindTimeout, agent.KindBrokenStream, agent.KindModel, agent.KindAuth,
		}
	}
	others := lo.Map(f.Drivers, func(d agent.Driver, _ int) agent.Driver { return Asking(d, ownModel) })
	return mo.Ok(p.WithDriver(&fallback{
		drivers: append([]agent.Driver{p.Driver()}, others...), kinds: slices.Clone(kinds),
		sticky: f.Sticky, whole: f.Whole, last: agent.NewScratch[atomic.Int64](nil),
	}))
}

// ownModel removes the settings that belong to another service.
func ownModel(r agent.Request) agent.Request {
	r.Model, r.Options = "", agent.Options{}
	return r
}

// fallback asks one driver after the other. It is safe for concurrent use.
type fallback struct {
	drivers       []agent.Driver
	kinds         []agent.ErrorKind
	sticky, whole bool
	last          *agent.Scratch[atomic.Int64] // index of the driver that answered last in a run
}

var (
	_ agent.Streamer  = (*fallback)(nil)
	_ agent.Describer = (*fallback)(nil)
)

// String returns the driver's description in a printed plan.
func (f *fallback) String() string {
	return "fallback(" + strings.Join(lo.Map(f.drivers, func(d agent.Driver, i int) string {
		return lo.CoalesceOrEmpty(modelOf(d), fmt.Sprintf("model %d", i+1))
	}), ", ") + ")"
}

// Features returns the Features of the agent's own driver, restricted to the features that all drivers have.
func (f *fallback) Features() agent.Features {
	own := agent.FeaturesOf(f.drivers[0])
	if own == (agent.Features{}) {
		return own
	}
	for _, d := range f.drivers[1:] {
		other := agent.FeaturesOf(d)
		own.Priced = own.Priced && other.Priced
		own.ContextTokens = least(own.ContextTokens, other.ContextTokens)
		own.MaxOutputTokens = least(own.MaxOutputTokens, other.MaxOutputTokens)
	}
	return own
}

// least returns the smaller of two limits, where zero means unknown.
func least(a, b int64) int64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

func (f *fallback) Next(ctx context.Context, s agent.State) mo.Result[agent.Step] {
	return f.turn(ctx, s, func(d agent.Driver) (mo.Result[agent.Step], bool) { return d.Next(ctx, s), false })
}

func (f *fallback) Stream(ctx context.Context, s agent.State, emit func(agent.Delta)) mo.Result[agent.Step] {
	return f.turn(ctx, s, func(d agent.Driver) (mo.Result[agent.Step], bool) {
		var held []agent.Delta
		told := false
		out := agent.Stream(ctx, d, s, func(piece agent.Delta) {
			if f.whole {
				held = append(held, piece)
				return
			}
			told = true
			emit(piece)
		})
		if out.IsOk() {
			for _, piece := range held {
				emit(piece)
			}
		}
		return out, told
	})
}

// turn makes one model call. Ask also reports whether any piece of the reply was emitted.
func (f *fallback) turn(ctx context.Context, s agent.State, ask func(agent.Driver) (mo.Result[agent.Step], bool)) mo.Result[agent.Step] {
	first := 0
	if f.sticky {
		first = int(f.last.Get(s).Load())
	}
	var errs []error
	for n := range f.drivers {
		i := (first + n) % len(f.drivers)
		result, told := ask(f.drivers[i])
		step, err := result.Get()
		if err == nil {
			if f.sticky {
				f.last.Get(s).Store(int64(i))
			}
			step.Model = lo.CoalesceOrEmpty(step.Model, modelOf(f.drivers[i]))
			return mo.Ok(step)
		}
		errs = append(errs, err)
		if told || ctx.Err() != nil || !f.worth(err) {
			break
		}
		if n+1 < len(f.drivers) {
			next := (i + 1) % len(f.drivers)
			s.Emit(ctx, FellBack{
				Run: s.Run(), Step: s.RunStepCount(), From: i, To: next,
				FromModel: modelOf(f.drivers[i]), ToModel: modelOf(f.drivers[next]), Err: withoutText(s, err),
			})
		}
	}
	if last := errs[len(errs)-1]; len(errs) == 1 || ctx.Err() != nil || !f.worth(last) {
		return mo.Err[agent.Step](last)
	}
	return mo.Err[agent.Step](&FallbackError{errs})
}

// withoutText returns the part of an error that can be reported before the controls at PostInference have seen it. That
// is its kind or, if there are no such controls, the whole error.
func withoutText(s agent.State, err error) error {
	if !hooks.Of(s).HasControls(hooks.PostInference) {
		return err
	}
	kind := agent.KindOf(err)
	return &agent.Failure{Kind: kind, Text: fmt.Sprintf("asking the model: it failed (%s)", kind)}
}

// worth reports whether to ask another model after an error.
func (f *fallback) worth(err error) bool {
	if _, decided := errors.AsType[*agent.SignalError](err); decided {
		return false
	}
	kind := agent.KindOf(err)
	if kind == agent.KindUnknown || kind == agent.KindCancelled { // as in the loop, because the run itself is not cancelled
		kind = agent.KindModel
	}
	return slices.Contains(f.kinds, kind)
}

func modelOf(d agent.Driver) string { return agent.FeaturesOf(d).Model }

// Asking returns a driver that asks d with a changed request, for example with another model at the same service or a
// lower temperature. Change must be safe for concurrent use and deterministic.
func Asking(d agent.Driver, change func(agent.Request) agent.Request) agent.Driver {
	return changedDriver{d, change}
}

type changedDriver struct {
	inner  agent.Driver
	change func(agent.Request) agent.Request
}

var (
	_ agent.Streamer  = changedDriver{}
	_ agent.Describer = changedDriver{}
)

func (d changedDriver) applyAnswer(s agent.State) agent.State {
	return s.WithRequest(d.change(s.Request()))
}

func (d changedDriver) Next(ctx context.Context, s agent.State) mo.Result[agent.Step] {
	return d.inner.Next(ctx, d.applyAnswer(s))
}

func (d changedDriver) Stream(ctx context.Context, s agent.State, emit func(agent.Delta)) mo.Result[agent.Step] {
	return agent.Stream(ctx, d.inner, d.applyAnswer(s), emit)
}

// Features returns the driver's Features, with the changed model.
func (d changedDriver) Features() agent.Features {
	features := agent.FeaturesOf(d.inner)
	if model := d.change(agent.Request{}).Model; model != "" && features != (agent.Features{}) {
		features.Model = model
	}
	return features
}
