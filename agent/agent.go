package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/internal/nils"
)

// Config configures an agent. Package builder assembles one from capabilities. A Config made by hand needs at least
// Driver.
type Config struct {
	// Name names the agent in events, spans and errors.
	Name string
	// Driver asks the model. Required.
	Driver Driver
	// WrapDriver wraps the driver, first outermost.
	WrapDriver []func(Driver) Driver
	// Executor runs tool calls. Nil means that there are no tools.
	Executor Executor
	// WrapExecutor wraps the executor, first outermost. A wrapper implements AnswerHandler if it also handles calls
	// that do not run.
	WrapExecutor []func(Executor) Executor
	// AroundRun and AroundStep are middleware, first outermost.
	AroundRun, AroundStep []Processor
	// Criterion decides whether a run continues. Nil means Base.
	Criterion Criterion
	// Approver asks a person. Without one, calls that need approval are denied.
	Approver Approver
	// WrapApprover wraps the approver, first outermost. The innermost approver returns the answers that were given
	// while the run was parked.
	WrapApprover []func(Approver) Approver
	// Parallel is the maximum number of tool calls that a step runs at the same time. Zero means one: the calls run in
	// the order of the model's reply. Results are always in that order.
	Parallel int
	// Request is the request to the model, without the messages.
	Request Request
	// Observer receives all events. Nil means none.
	Observer Observer
	// Background is the work that Drain waits for and Cancel cancels.
	Background []Background
	// Extend returns a copy of the agent with more hooks; WithHooks calls it. If Extend
	// is nil, WithHooks returns an error.
	Extend func(HookSet) mo.Result[*Agent]
	// EndConversation tells the hooks that one of the agent's sessions was closed, and waits for them. S is the
	// session's final state. Nil means no hooks. hooks.Compiled.EndConversation implements it.
	EndConversation func(ctx context.Context, s State, reason CloseReason) error
}

// An Agent runs a model with tools and middleware. It is assembled once, is immutable, and can serve any number of runs
// at the same time.
type Agent struct {
	config   Config
	driver   Driver
	features Features
	executor Executor
	approver Approver
	limits   Limits   // from the criterion
	run      Next     // the chain around a run, down to steps
	step     Next     // the chain around a step, down to performStep
	controls []string // names of the control hooks that WithHooks added
}

// New returns an agent, or an error that joins all mistakes in the Config.
func New(c Config) mo.Result[*Agent] {
	var wrong []error
	if c.Driver == nil {
		wrong = append(wrong, errors.New("no driver: set one with WithDriver"))
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
	a := &Agent{config: c}
	a.limits = LimitsOf(c.Criterion)
	innermost := c.Driver
	if c.Observer != nil {
		innermost = asked{c.Driver}
	}
	var driving, executing, approving error
	a.features = FeaturesOf(c.Driver)
	a.driver, driving = wrapAll("driver", c.WrapDriver, innermost)
	a.executor, executing = wrapExecutor(c.WrapExecutor, c.Executor)
	a.approver, approving = wrapAll[Approver]("approver", c.WrapApprover, stored{c.Approver})
	if err := errors.Join(driving, executing, approving); err != nil {
		return mo.Err[*Agent](fmt.Errorf("agent %q: %w", c.Name, err))
	}
	a.run = chain(c.AroundRun, a.takeSteps)
	a.step = chain(c.AroundStep, a.performStep)
	return mo.Ok(a)
}

// wrapAll wraps the innermost value. The first wrapper is the outermost.
func wrapAll[T any](what string, wrappers []func(T) T, innermost T) (T, error) {
	for i, wrap := range slices.Backward(wrappers) {
		if wrap == nil {
			return innermost, fmt.Errorf("wrapper %d of the %s is nil", i+1, what)
		}
		if innermost = wrap(innermost); nils.Is(innermost) {
			return innermost, fmt.Errorf("wrapper %d of the %s returned nil", i+1, what)
		}
	}
	return innermost, nil
}

// chain builds the call order once: the first processor is the outermost.
func chain(processors []Processor, innermost Next) Next {
	return lo.ReduceRight(processors, func(next Next, p Processor, _ int) Next {
		return func(ctx context.Context, s State) mo.Result[State] { return p.Process(ctx, s, next) }
	}, innermost)
}

// String returns the agent's name, for logs. To see its layers, print the builder.
func (a *Agent) String() string { return fmt.Sprintf("agent %q", cmp.Or(a.config.Name, "unnamed")) }

// Name returns the agent's name.
func (a *Agent) Name() string { return a.config.Name }

// Request returns the request to the model, without the messages.
func (a *Agent) Request() Request { return a.config.Request }

// Drain waits until all the agent's background work has ended, or until ctx is done.
func (a *Agent) Drain(ctx context.Context) error {
	return errors.Join(lo.Map(a.config.Background, func(b Background, _ int) error { return b.Drain(ctx) })...)
}

// Cancel cancels the agent's background work and waits until it has ended.
func (a *Agent) Cancel() {
	for _, b := range a.config.Background {
		b.Cancel()
	}
}

// noTools answers every call with "no such tool".
type noTools struct{}

func (noTools) Prepare(_ context.Context, _ State, c *ToolCall) mo.Result[*Prepared] {
	err := fmt.Errorf("unknown tool %q", c.Name)
	return mo.Ok(&Prepared{
		Original: c, Call: c, Disposition: DisposeAnswer, Invalid: err,
		Answer: NotExecuted(c, ReasonUnknownTool, "", err.Error()),
	})
}

func (noTools) Execute(_ context.Context, _ State, p *Prepared) mo.Result[*ToolResult] {
	return mo.Ok(p.Answer)
}
