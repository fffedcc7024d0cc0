package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/internal/startedrun"
)

// Config is what an agent is made of. Package builder puts it together from
// capabilities; by hand it is enough to set Driver.
type Config struct {
	// Name names the agent in events, spans and errors.
	Name string
	// Driver asks the model. Required.
	Driver Driver
	// WrapDriver wraps the driver, first outermost. A wrapper that only looks on may
	// have a method Unobserved() Driver: in runs that nobody observes, what that
	// returns is asked in its place, if no other wrapper stands outside of it.
	WrapDriver []func(Driver) Driver
	// Executor runs tool calls. Nil means that there are no tools.
	Executor Executor
	// WrapExecutor wraps the executor, first outermost; Unobserved() Executor is for
	// it what Unobserved() Driver is for a driver. A wrapper that takes part in calls
	// that do not run is an AnswerHandler.
	WrapExecutor []func(Executor) Executor
	// AroundRun and AroundStep are middleware, first outermost.
	AroundRun, AroundStep []Processor
	// Criterion judges whether to go on. Nil means Base.
	Criterion Criterion
	// Approver asks a person. Nil means that nobody is there: a call that needs a
	// yes is denied.
	Approver Approver
	// WrapApprover wraps the approver, first outermost. What was answered while a run
	// was parked comes from further in.
	WrapApprover []func(Approver) Approver
	// Parallel is how many tool calls of one step run at once. Zero means one: in
	// the order the model asked. Results come back in that order whatever it is.
	Parallel int
	// Request is what the model is asked with.
	Request Request
	// Observer is told of everything that happens. Nil means nobody is.
	Observer Observer
	// Background is work that Drain and Cancel are for.
	Background []Background
	// Extend makes, for WithHooks, a new agent that is this one with more hooks. Nil
	// means that it has no place for them.
	Extend func(HookSet) mo.Result[*Agent]
}

// Agent is a driver, tools and middleware, put together once. It is immutable
// and serves any number of runs at once.
type Agent struct {
	config   Config
	driver   Driver
	features mo.Option[Features]
	executor Executor
	approver Approver
	quiet    quiet
	base     bool     // nobody but Base judges
	run      Next     // the chain around a run, down to steps
	step     Next     // the chain around a step, down to performStep
	controls []string // names of the hooks of WithHooks that decide
}

// New returns an agent, or an error that joins everything that is missing.
func New(c Config) mo.Result[*Agent] {
	var wrong []error
	if c.Driver == nil {
		wrong = append(wrong, errors.New("no driver: give one with WithDriver"))
	}
	if c.Parallel < 0 {
		wrong = append(wrong, fmt.Errorf("parallel is %d: it must not be negative", c.Parallel))
	}
	if slices.Contains(c.AroundRun, nil) || slices.Contains(c.AroundStep, nil) {
		wrong = append(wrong, errors.New("a processor is nil"))
	}
	if len(wrong) > 0 {
		return mo.Err[*Agent](fmt.Errorf("agent %q: %w", c.Name, errors.Join(wrong...)))
	}
	if c.Criterion == nil {
		c.Criterion = Base
	}
	if c.Executor == nil {
		c.Executor = noTools{}
	}
	a := &Agent{config: c, base: c.Criterion == Base}
	innermost := c.Driver
	if c.Observer != nil {
		innermost = asked{c.Driver}
	}
	var driving, executing, approving error
	a.features = FeaturesOf(c.Driver)
	a.driver, driving = wrapped("driver", c.WrapDriver, innermost)
	a.executor, executing = wrapExecutor(c.WrapExecutor, c.Executor)
	a.approver, approving = wrapped[Approver]("approver", c.WrapApprover, stored{c.Approver})
	if err := errors.Join(driving, executing, approving); err != nil {
		return mo.Err[*Agent](fmt.Errorf("agent %q: %w", c.Name, err))
	}
	a.quiet = quiet{unobserved(a.driver), unobservedExecutor(a.executor)}
	a.run = chain(c.AroundRun, a.steps)
	a.step = chain(c.AroundStep, a.performStep)
	return mo.Ok(a)
}

// wrapped puts the wrappers around the innermost, the first outermost.
func wrapped[T any](what string, wrappers []func(T) T, innermost T) (T, error) {
	for i, wrap := range slices.Backward(wrappers) {
		if wrap == nil {
			return innermost, fmt.Errorf("wrapper %d of the %s is nil", i+1, what)
		}
		if innermost = wrap(innermost); any(innermost) == nil {
			return innermost, fmt.Errorf("wrapper %d of the %s returned nil", i+1, what)
		}
	}
	return innermost, nil
}

// quiet is who is asked in runs that nobody observes.
type quiet struct {
	driver   Driver
	executor Executor
}

// unobserved is v without the wrappers that only look on, as far as they are
// outermost.
func unobserved[T any](v T) T {
	for {
		onlooker, ok := any(v).(interface{ Unobserved() T })
		if !ok {
			return v
		}
		v = onlooker.Unobserved()
	}
}

// driverFor and executorFor are who is asked in the run that s belongs to.
func (a *Agent) driverFor(s State) Driver {
	if s.Observed() {
		return a.driver
	}
	return a.quiet.driver
}

func (a *Agent) executorFor(s State) Executor {
	if s.Observed() {
		return a.executor
	}
	return a.quiet.executor
}

// chain builds the call order once: the first processor is the outermost.
func chain(processors []Processor, innermost Next) Next {
	return lo.ReduceRight(processors, func(next Next, p Processor, _ int) Next {
		return func(ctx context.Context, s State) mo.Result[State] { return p.Process(ctx, s, next) }
	}, innermost)
}

// Name is the agent's name.
func (a *Agent) Name() string { return a.config.Name }

// Request is what the agent asks the model with.
func (a *Agent) Request() Request { return a.config.Request }

// Run runs the agent on s with input appended, until it is done or stopped, and
// returns the state it ended in: see its Status and StopSignal. A run that waits for a
// person whose answer comes later is returned as parked: see Resume. A run that failed
// or was cancelled is an Err that holds the last good state, a *RunError.
func (a *Agent) Run(ctx context.Context, s State, input ...Message) mo.Result[State] {
	return a.RunWith(ctx, RunSettings{}, s, input...)
}

// RunSettings is what may be said about one run.
type RunSettings struct {
	// ID is the run's id; empty means a new one.
	ID RunID
	// Parent is the run that starts this one, as a sub-agent or from a hook.
	Parent Run
	// Stage and Iteration place the run in a pipeline.
	Stage     string
	Iteration int
	// Resume goes on with the run of the state, as Agent.Resume does. What is said of ID
	// to Iteration does not count then, and there must be no input.
	Resume bool
	// Output, when set, is the form that the final answer of this run must have.
	Output *Output
	// Hooks, when set, are hooks that this run has besides those of the agent: see
	// WithHooks.
	Hooks HookSet

	onStep  func(State) bool // after each step; false gives the run up
	onDelta func(Delta)
	onEnd   func(State)
}

// RunWith is Run with settings.
func (a *Agent) RunWith(ctx context.Context, settings RunSettings, s State, input ...Message) mo.Result[State] {
	startedrun.Note(ctx)
	if settings.Hooks != nil {
		extended, err := a.WithHooks(settings.Hooks).Get()
		if err != nil {
			return mo.Err[State](err)
		}
		a = extended
	}
	switch {
	case settings.Resume && len(input) > 0:
		return mo.Err[State](errors.New("resuming a run: there is input: give it to the next run"))
	case settings.Resume:
		return a.resume(ctx, settings, s)
	case s.StepOpen():
		return mo.Err[State](fmt.Errorf("running agent %q: %w", a.config.Name, ErrParked))
	}
	s = a.begin(ctx, &settings, s.With(input...))
	return a.finish(ctx, &settings, s, a.run(ctx, s))
}

// What a run does before its steps and after them stands in funcs of its own: a run
// that waits for its model holds the stack of all that is under way.

//go:noinline
func (a *Agent) begin(ctx context.Context, settings *RunSettings, s State) State {
	l := &live{observer: a.config.Observer, onDelta: settings.onDelta, onStep: settings.onStep}
	run := a.identity(settings, s)
	l.clock.begin(run.Started)
	s = a.withControls(s.begun(run, a.requestOf(settings), l))
	l.tell(ctx, RunStarted{s.Run()})
	return s
}

//go:noinline
func (a *Agent) finish(ctx context.Context, settings *RunSettings, s State, result mo.Result[State]) mo.Result[State] {
	final, err := Conclude(ctx, s, result).Get()
	if broken, ok := runErrorOf(s, err); ok {
		broken.State = broken.State.released() // nobody else has this error yet
		final = broken.State
	}
	final = final.released()
	if final.Parked() {
		s.read().live.tell(ctx, RunParked{final})
	} else {
		s.read().live.tell(ctx, RunCompleted{State: final, Err: err})
	}
	if settings.onEnd != nil {
		settings.onEnd(final)
	}
	if err != nil {
		return mo.Err[State](err)
	}
	return mo.Ok(final)
}

// requestOf is what the model is asked with in this run.
func (a *Agent) requestOf(settings *RunSettings) *Request {
	if settings.Output == nil {
		return &a.config.Request
	}
	request := a.config.Request
	request.Output = settings.Output
	return &request
}

// identity is the run's place among others.
func (a *Agent) identity(settings *RunSettings, s State) Run {
	last := s.Run()
	run := Run{
		ID: settings.ID, Session: s.Session(), Agent: a.config.Name,
		Parent: settings.Parent.ID, Root: settings.Parent.Root, Number: last.Number + 1,
		Stage: settings.Stage, Iteration: settings.Iteration, Started: time.Now(),
	}
	if run.ID == "" {
		run.ID = NewRunID()
	}
	if run.Session == "" {
		run.Session = NewSessionID()
	}
	if run.Parent == "" {
		run.Root = run.ID
	} else {
		run.Root = lo.CoalesceOrEmpty(run.Root, run.Parent)
		run.Depth = settings.Parent.Depth + 1
	}
	return run
}

// Conclude is what Run makes of the result that came up through processors around
// a run that began with s: a state that has ended, or a *RunError with the state
// that a failed or cancelled run left. Processors around a run use it to know how
// the run ends; ctx is the one they were called with.
func Conclude(ctx context.Context, s State, result mo.Result[State]) mo.Result[State] {
	final, err := result.Get()
	if err == nil && !final.Status().Terminal() && !final.Parked() {
		err = errors.New("a processor around the run returned a state that has not ended")
	}
	if _, ok := runErrorOf(s, err); err != nil && !ok {
		final, err = broken(ctx, s, err).Get()
	}
	if failed, ok := runErrorOf(s, err); ok {
		final = failed.State
		if err == error(failed) { //nolint:errorlint // this very value: nobody wrapped it
			err = cmp.Or(failed.Err, err)
		}
	}
	if err != nil && ctx.Err() != nil && !final.Status().Terminal() { // saved by a processor, at the end of the context
		if final = cancelled(ctx, final); final.Status() == StatusStopped || final.Parked() {
			return mo.Ok(final)
		}
		err = context.Cause(ctx)
	}
	switch status := final.Status(); {
	case status == StatusCancelled, status == StatusFailed:
		signal := final.StopSignal().OrElse(Signal{Message: "no reason given"})
		err = cmp.Or(err, context.Cause(ctx), errors.New(signal.Message))
	case err == nil:
		return mo.Ok(final)
	default: // saved by a processor
		final = final.ended(StatusFailed, Signal{Reason: StopError, Message: err.Error(), Source: baseSource})
	}
	return mo.Err[State](&RunError{State: final, Err: err})
}

// runErrorOf finds in err the error of the run that s belongs to. That of another
// run, a sub-agent's, is an error like any other.
func runErrorOf(s State, err error) (*RunError, bool) {
	broken, ok := errors.AsType[*RunError](err)
	return broken, ok && broken.State.Run().ID == s.Run().ID
}

// stepErrorOf finds in err the failed step of the run that s belongs to, unless a
// processor made it the end of the run.
func stepErrorOf(s State, err error) (*StepError, bool) {
	if _, over := runErrorOf(s, err); over {
		return nil, false
	}
	failed, ok := errors.AsType[*StepError](err)
	return failed, ok && failed.State.read().live == s.read().live
}

// steps is the run itself: judge, take a step, judge again.
func (a *Agent) steps(ctx context.Context, s State) mo.Result[State] {
	l := s.read().live
	if l == nil {
		return mo.Err[State](errForeign)
	}
	s = s.settled().letIn()
	for {
		var end mo.Result[State]
		next, over := s, false
		if !s.StepOpen() { // a step that had begun was judged before
			next, end, over = a.judge(ctx, s)
		}
		if !over {
			next, end, over = a.took(ctx, next, a.step(ctx, next))
		}
		if over {
			return end
		}
		s = next
	}
}

// judge asks the criteria, before the first step and after each, and returns what
// they make of s. Over says that the run ends so.
//
//go:noinline
func (a *Agent) judge(ctx context.Context, s State) (next State, result mo.Result[State], over bool) {
	if ctx.Err() != nil {
		return s, mo.Ok(cancelled(ctx, s)), true
	}
	l := s.read().live
	if a.base && l.observer == nil && s.goesOn() { // most steps of most agents
		return s, result, false
	}
	verdict, err := a.config.Criterion.Evaluate(ctx, s).Get()
	if err != nil {
		return s, broken(ctx, s, fmt.Errorf("judging after step %d: %w", s.RunStepCount(), err)), true
	}
	if l.observer != nil {
		l.tell(ctx, Judged{s.Run(), s.RunStepCount(), verdict})
	}
	if s = s.Apply(verdict.Effects).letIn(); verdict.Stops() {
		return s, end(s, verdict), true
	}
	if signal := s.read().signal; signal != nil { // a criterion without Base forgot it
		return s, end(s, Evaluation{Verdict: Forbid, Signal: *signal}), true
	}
	if l.observer != nil {
		l.tell(ctx, StepStarted{s.Run(), s.RunStepCount()})
	}
	return s, result, false
}

// took returns what a step made of s.
//
//go:noinline
func (a *Agent) took(ctx context.Context, s State, step mo.Result[State]) (_ State, result mo.Result[State], over bool) {
	before, l := s.RunStepCount(), s.read().live
	next, err := step.Get()
	switch {
	case err != nil:
		failed, begun := stepErrorOf(s, err)
		if !begun {
			return s, interrupted(ctx, s, err), true
		}
		next = failed.State
	case next.read().live != l:
		return s, failed(s, fmt.Errorf("step %d: %w", before, errForeign)), true
	case next.Parked():
		return s, mo.Ok(next), true
	case next.RunStepCount() <= before && !next.Stopped():
		return s, failed(s, fmt.Errorf("step %d: a processor returned without taking the step and without stopping the run", before)), true
	}
	if s = next.letIn(); s.RunStepCount() <= before {
		return s, result, false
	}
	if l.observer != nil {
		last, _ := s.LastStep().Get()
		l.tell(ctx, StepCompleted{s.Run(), last})
	}
	if l.onStep != nil && !l.onStep(s) {
		return s, mo.Ok(s.ended(StatusCancelled, Signal{Reason: StopUser, Message: "the caller gave the run up", Source: baseSource})), true
	}
	return s, result, false
}

// interrupted ends the run for an error that is not the step's own. A processor
// that fails after the step was taken saves it in a RunError.
func interrupted(ctx context.Context, s State, err error) mo.Result[State] {
	if saved, ok := runErrorOf(s, err); ok && saved.Err != nil {
		taken := saved.State.RunStepCount() > s.RunStepCount()
		if s, err = saved.State, saved.Err; taken {
			last, _ := s.LastStep().Get()
			s.read().live.tell(ctx, StepCompleted{s.Run(), last})
		}
	}
	return broken(ctx, s, err)
}

// broken ends the run for an error: as its context was, if that ended; as a
// SignalError says; else as failed.
func broken(ctx context.Context, s State, err error) mo.Result[State] {
	if ctx.Err() != nil {
		return mo.Ok(cancelled(ctx, s))
	}
	if errors.Is(err, ErrSuspended) {
		return mo.Ok(s.suspended())
	}
	if stop, ok := errors.AsType[*SignalError](err); ok {
		return end(s, Evaluation{Verdict: Forbid, Signal: stop.Signal})
	}
	return failed(s, err)
}

// errForeign is the error of a processor that does not hand on what it was given.
var errForeign = errors.New("a processor handed on a state that is not of this run: derive it from the one it was given")

// end returns the state that the verdict ends the run in.
func end(s State, verdict Evaluation) mo.Result[State] {
	signal := verdict.Signal
	switch signal.Reason {
	case StopCompleted, StopFinishReason:
		return mo.Ok(s.ended(StatusDone, signal))
	case StopRejected:
		return mo.Ok(s.ended(StatusInterrupted, signal))
	case StopError:
		err := errors.New(signal.Message)
		if last, ok := s.LastStep().Get(); ok && last.Failure() != nil {
			err = last.Failure()
		}
		return mo.Err[State](&RunError{State: s.ended(StatusFailed, signal), Err: err})
	}
	return mo.Ok(s.ended(StatusStopped, signal))
}

func failed(s State, err error) mo.Result[State] {
	signal := Signal{Reason: StopError, Message: err.Error(), Source: baseSource}
	return mo.Err[State](&RunError{State: s.ended(StatusFailed, signal), Err: err})
}

// cancelled ends the run as its context was. A context that ended because of a
// Signal, such as a time limit, ends the run as the signal says.
func cancelled(ctx context.Context, s State) State {
	cause := context.Cause(ctx)
	if errors.Is(cause, ErrSuspended) {
		return s.suspended()
	}
	if limit, ok := errors.AsType[*SignalError](cause); ok {
		return s.ended(StatusStopped, limit.Signal)
	}
	return s.ended(StatusCancelled, Signal{Reason: StopUser, Message: cause.Error(), Source: "context"})
}

// SignalError is a stop in the form of an error. As the cause that a context is
// cancelled with, it ends the run as stopped by its signal, not as cancelled. As
// the error of a driver, an executor, a processor or a criterion, it does the
// same, and is no failure.
type SignalError struct{ Signal Signal }

func (e *SignalError) Error() string {
	return fmt.Sprintf("%s: %s (by %s)", e.Signal.Reason, e.Signal.Message, e.Signal.Source)
}

// Drain waits until all background work of the agent is done, or until ctx is.
func (a *Agent) Drain(ctx context.Context) error {
	return errors.Join(lo.Map(a.config.Background, func(b Background, _ int) error { return b.Drain(ctx) })...)
}

// Cancel cancels the background work that still runs, and waits for it.
func (a *Agent) Cancel() {
	for _, b := range a.config.Background {
		b.Cancel()
	}
}

// noTools answers every call with "no such tool".
type noTools struct{}

func (noTools) Prepare(_ context.Context, _ State, c *ToolCall) mo.Result[*Prepared] {
	err := fmt.Errorf("there is no tool %q", c.Name)
	return mo.Ok(&Prepared{
		Original: c, Call: c, Disposition: DisposeAnswer, Invalid: err,
		Answer: NotExecuted(c, ReasonUnknownTool, "", err.Error()),
	})
}

func (noTools) Execute(_ context.Context, _ State, p *Prepared) mo.Result[*ToolResult] {
	return mo.Ok(p.Answer)
}
