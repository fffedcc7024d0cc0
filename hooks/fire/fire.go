package fire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
)

// Fire fires the moment for the set's hooks at its point, in their order. Fire returns an error if the moment could not
// be fired. A hook's failure is not an error.
func (m Moment) Fire(ctx context.Context, set hooks.Set) mo.Result[Fired] {
	fired, err := m.fireOn(ctx, set)
	if err != nil {
		return mo.Err[Fired](fmt.Errorf("firing %s: %w", lo.CoalesceOrEmpty(m.at, "a moment"), err))
	}
	return mo.Ok(fired)
}

func (m Moment) fireOn(ctx context.Context, set hooks.Set) (Fired, error) {
	seen := &witness{}
	compiled, err := m.compile(set, seen)
	if err != nil {
		return Fired{}, err
	}
	recorder := &recorder{}
	if m.at.IsAroundRuns() {
		return m.fireScope(ctx, compiled, seen, recorder)
	}
	rig := rig{m, compiled}
	a, err := agent.New(rig.config(recorder)).Get()
	if err != nil {
		return Fired{}, err
	}
	if m.conversation != nil {
		return rig.fireSession(ctx, a, seen, recorder)
	}
	state := m.state
	if state.MessageCount() == 0 && len(m.input) == 0 {
		state = state.With(agent.UserText("hello"))
	}
	final, err := a.RunWith(ctx, rig.settings(), state, m.input...).Get()
	if failed, ok := errors.AsType[*agent.RunError](err); ok {
		final = failed.State
	}
	if drained := a.Drain(context.WithoutCancel(ctx)); drained != nil {
		return Fired{}, drained
	}
	fired := newFired(m, seen.context, final, err, recorder.events())
	if seen.context == nil && len(fired.Events) == 0 {
		return Fired{}, m.missError(final, err)
	}
	return fired, nil
}

// fireSession fires a conversation point: in a session, in its first run or when it is closed.
func (r rig) fireSession(ctx context.Context, a *agent.Agent, seen *witness, recorder *recorder) (Fired, error) {
	state, input := agent.Checkpoint(r.state).WithInput(), []agent.Message(nil)
	for _, message := range agent.Checkpoint(r.state).Pending() {
		input = append(input, message)
	}
	if r.state.MessageCount() == 0 {
		input = []agent.Message{agent.UserText("hello")}
	}
	earlier, err := agent.New(agent.Config{Name: r.run.Agent, Driver: agent.DriverFunc(sayDone)}).Get()
	if err != nil {
		return Fired{}, err
	}
	for range r.conversation.Turns - lo.Ternary(r.at == hooks.ConversationEnd, 1, 0) {
		if state, err = earlier.Run(ctx, state, agent.UserText("hello")).Get(); err != nil {
			return Fired{}, err
		}
	}
	session := a.Session(state)
	_, err = session.RunWith(ctx, r.settings(), input...).Get()
	if r.at == hooks.ConversationEnd && err == nil {
		err = session.CloseWith(ctx, r.conversation.Reason)
	}
	if drained := a.Drain(context.WithoutCancel(ctx)); drained != nil {
		return Fired{}, drained
	}
	fired := newFired(r.Moment, seen.context, session.State(), err, recorder.events())
	if seen.context == nil && len(fired.Events) == 0 {
		return Fired{}, r.missError(session.State(), err)
	}
	return fired, nil
}

// sayDone answers in place of the model in the runs before a conversation point.
func sayDone(context.Context, agent.State) (agent.Step, error) {
	return agent.Step{Message: agent.Assistant("done"), Model: "script", FinishReason: agent.FinishStop}, nil
}

// fireScope fires a point around runs as an engine does, outside an agent's run.
func (m Moment) fireScope(ctx context.Context, compiled *hooks.Compiled, seen *witness, recorder *recorder) (Fired, error) {
	run := m.run
	if run.Depth > 0 {
		run.Parent = cmp.Or(run.Parent, unnamedParent)
	}
	run.Session = cmp.Or(m.state.Session(), run.Session)
	scope := compiled.OpenScope(ctx, hooks.ScopeOptions{Run: run, Observer: recorder})
	firing := hooks.Firing{Point: m.at, Stage: m.run.Stage, Iteration: m.run.Iteration}
	after := m.state.Apply(agent.EffectsOf(m.effects...).From(theirs))
	var stop *agent.Signal
	var err error
	if m.pipeline != nil {
		after, stop, err = scope.Pipeline(ctx, after, firing, *m.pipeline)
	} else {
		_, after, _, err = scope.Blueprint(ctx, after, firing, *m.blueprint)
	}
	if stop != nil {
		after = after.WithStop(*stop)
	}
	if drained := scope.Drain(context.WithoutCancel(ctx)); drained != nil {
		return Fired{}, drained
	}
	fired := newFired(m, seen.context, after, err, recorder.events())
	if seen.context == nil && len(fired.Events) == 0 {
		return Fired{}, m.missError(after, err)
	}
	return fired, nil
}

// compile compiles the hooks at the moment's point together with the witness.
func (m Moment) compile(set hooks.Set, seen *witness) (*hooks.Compiled, error) {
	_, err := set.Compile()
	if err = errors.Join(m.check(), err); err != nil {
		return nil, err
	}
	var here []hooks.Hook
	var elsewhere []error
	for _, h := range set.All() {
		switch points := h.Points(); {
		case !slices.Contains(points, m.at):
			elsewhere = append(elsewhere, fmt.Errorf("hook %q is at %v", h.Name(), points))
		case len(points) > 1:
			here = append(here, h.Matching(hooks.AtPoints(m.at)))
		default:
			here = append(here, h)
		}
	}
	if len(here) == 0 {
		return nil, errors.Join(append([]error{errors.New("no hook is at this point")}, elsewhere...)...)
	}
	tools := lo.Map(slices.Collect(toolCalls(m.reply.Message)), func(c agent.ToolCall, _ int) string { return c.Name })
	return hooks.NewSet(append(here, seen.hook(m.at))...).Compile(tools...)
}

// missError returns the error for a run that did not reach the moment.
func (m Moment) missError(final agent.State, err error) error {
	if err != nil {
		return fmt.Errorf("the run did not reach the point: %w", err)
	}
	for _, result := range m.results(final) {
		if result.Reason == agent.ReasonMalformed {
			return fmt.Errorf("no hook is asked about arguments that cannot be read: %w", result.Err)
		}
	}
	return fmt.Errorf("the run did not reach the point: it ended as %s after %d steps", final.Status(), final.RunStepCount())
}

// results returns the answers to calls in the moment's step.
func (m Moment) results(final agent.State) []agent.ToolResult {
	var out []agent.ToolResult
	for i, step := range final.RunSteps() {
		if i == len(m.before) {
			for _, result := range step.Results() {
				out = append(out, result)
			}
		}
	}
	return out
}

// witness is an observer that keeps the context with which it was called.
type witness struct{ context hooks.Context }

func (w *witness) hook(at hooks.PointName) hooks.Hook {
	return hooks.ObserveAll(theirs, func(_ context.Context, c hooks.Context) error {
		w.context = c
		return nil
	}, at)
}

// recorder is an observer that stores hook events.
type recorder struct {
	mu   sync.Mutex
	seen []hooks.Event
}

// Observe stores the event.
func (r *recorder) Observe(_ context.Context, e agent.Event) {
	if e, ok := e.(hooks.Event); ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.seen = append(r.seen, e)
	}
}

func (r *recorder) events() []hooks.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.seen)
}
