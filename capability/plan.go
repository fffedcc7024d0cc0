package capability

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/continuation"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/nils"
	"github.com/grapnel-go/grapnel/toolexec"
)

// A Plan describes an agent before it is built: everything that capabilities have added so far. It is an immutable
// value, and methods that add something return a new Plan. The zero Plan describes an agent without a driver. An
// earlier wrapper is outside a later one.
type Plan struct {
	name          string
	driver        agent.Driver
	request       agent.Request
	tools         []toolexec.Tool
	toolsFor      []func(Plan) ([]toolexec.Tool, error)
	toolOptions   toolexec.Options
	executor      agent.Executor
	hooks         hooks.Set
	aroundRun     layers[agent.Processor]
	aroundStep    layers[agent.Processor]
	wrapDriver    layers[func(agent.Driver) agent.Driver]
	wrapExecutor  layers[func(agent.Executor) agent.Executor]
	wrapApprover  layers[func(agent.Approver) agent.Approver]
	criteria      []agent.Criterion
	unlimited     bool // do not add the default step limit
	continuations int
	approver      agent.Approver
	observers     []agent.Observer
	endObservers  []agent.Observer // only for hooks at ConversationEnd
	background    []agent.Background
	detached      *hooks.Pool // where detached hooks run, nil for a new pool
	started       bool        // another agent starts this one and owns the pool
	parallel      int
	keeper        *durable.Keeper // set by UseDurability
	telemetry     *instruments    // set by UseTelemetry
	wrong         []error         // errors found so far, reported when the agent is built

	later     hooks.Scope // declared by UseLater, and points that not every agent has
	below     hooks.Scope // the scope of the sub-agents, once they are built
	inherited []string    // names of hooks that another agent has checked

	own  *hooks.Compiled // hooks of the agent that WithHooks extends, or nil
	more hooks.Set       // hooks that WithHooks adds
}

// WithName names the agent.
func (p Plan) WithName(name string) Plan { p.name = name; return p }

// Name returns the agent's name so far.
func (p Plan) Name() string { return p.name }

// WithDriver sets the driver.
func (p Plan) WithDriver(d agent.Driver) Plan { p.driver = d; return p }

// Driver returns the driver so far, or nil when none was set.
func (p Plan) Driver() agent.Driver { return p.driver }

// WithRequest changes the request to the model. When the agent is built, the plan's tools replace the request's tools.
func (p Plan) WithRequest(change func(agent.Request) agent.Request) Plan {
	if change == nil {
		return p.blaming(errors.New("the func that changes the request is nil"))
	}
	p.request = change(p.request)
	return p
}

// blaming returns the plan with one more error.
func (p Plan) blaming(err error) Plan {
	p.wrong = append(slices.Clip(p.wrong), err)
	return p
}

// WithTools adds tools, after the existing ones.
func (p Plan) WithTools(tools ...toolexec.Tool) Plan {
	p.tools = append(slices.Clip(p.tools), tools...)
	return p
}

// withToolsFor adds tools that are created when the plan is complete. Capabilities that are installed later do not see
// them.
func (p Plan) withToolsFor(tools func(Plan) ([]toolexec.Tool, error)) Plan {
	p.toolsFor = append(slices.Clip(p.toolsFor), tools)
	return p
}

// withMadeTools returns the plan with the tools from withToolsFor added. The plan must be complete.
func (p Plan) withMadeTools() (Plan, error) {
	var wrong []error
	whole := p
	p.toolsFor = nil
	for _, tools := range whole.toolsFor {
		more, err := tools(whole)
		wrong = append(wrong, err)
		p = p.WithTools(more...)
		for _, t := range more {
			if b, ok := t.(agent.Background); ok {
				p = p.WithBackground(b)
			}
			if sub, ok := t.(*taskTool); ok {
				p.below = p.below.Union(sub.scope)
			}
		}
	}
	return p, errors.Join(wrong...)
}

// WithToolOptions sets the options for running tools.
func (p Plan) WithToolOptions(o toolexec.Options) Plan { p.toolOptions = o; return p }

// WithExecutor sets the executor that answers tool calls. The plan's tools then only supply the specs for the model.
// Nil means an executor built from the plan's tools.
func (p Plan) WithExecutor(x agent.Executor) Plan { p.executor = x; return p }

// WithHooks adds hooks, after the existing ones.
func (p Plan) WithHooks(list ...hooks.Hook) Plan { p.hooks = p.hooks.With(list...); return p }

// Hooks returns the hooks so far.
func (p Plan) Hooks() hooks.Set { return p.hooks }

// Tools iterates over the tools so far.
func (p Plan) Tools() iter.Seq2[int, toolexec.Tool] { return slices.All(p.tools) }

// Request returns the request to the model so far.
func (p Plan) Request() agent.Request { return p.request }

// AroundRun adds middleware around the run, inside the existing middleware in the same place.
func (p Plan) AroundRun(place Place, name string, processor agent.Processor) Plan {
	p.aroundRun = p.aroundRun.with(place, name, processor)
	return p
}

// AroundStep adds middleware around each step.
func (p Plan) AroundStep(place Place, name string, processor agent.Processor) Plan {
	p.aroundStep = p.aroundStep.with(place, name, processor)
	return p
}

// WrapDriver adds a wrapper around the driver.
func (p Plan) WrapDriver(place Place, name string, wrap func(agent.Driver) agent.Driver) Plan {
	p.wrapDriver = p.wrapDriver.with(place, name, wrap)
	return p
}

// WrapExecutor adds a wrapper around the executor.
func (p Plan) WrapExecutor(place Place, name string, wrap func(agent.Executor) agent.Executor) Plan {
	p.wrapExecutor = p.wrapExecutor.with(place, name, wrap)
	return p
}

// WrapApprover adds a wrapper around the approver. The wrapper also sees answers that were given while a run was
// parked.
func (p Plan) WrapApprover(place Place, name string, wrap func(agent.Approver) agent.Approver) Plan {
	p.wrapApprover = p.wrapApprover.with(place, name, wrap)
	return p
}

// WithCriteria adds criteria to agent.Base, which every agent has. The strongest verdict wins, regardless of order.
func (p Plan) WithCriteria(criteria ...agent.Criterion) Plan {
	p.criteria = append(slices.Clip(p.criteria), criteria...)
	return p
}

// allCriteria returns the criteria, Base first, with a step limit unless there is one.
func (p Plan) allCriteria() []agent.Criterion {
	all := append([]agent.Criterion{agent.Base}, p.criteria...)
	if limits := agent.LimitsOf(continuation.All(all...)); limits.Steps == 0 && !p.unlimited {
		all = append(all, continuation.Steps(defaultSteps))
	}
	return all
}

// WithContinuations sets how often the hooks at Stop can make one run continue. Zero means hooks.DefaultContinuations.
func (p Plan) WithContinuations(n int) Plan { p.continuations = n; return p }

// WithApprover sets the approver. Without one, calls that need approval are denied.
func (p Plan) WithApprover(a agent.Approver) Plan {
	if nils.Is(a) {
		return p.blaming(errors.New("the approver is nil: omit it if no person can be asked"))
	}
	p.approver = a
	return p
}

// WithObserver adds an observer, which receives all events.
func (p Plan) WithObserver(o agent.Observer) Plan {
	p.observers = append(slices.Clip(p.observers), o)
	return p
}

// WithBackground adds work that the agent's Drain waits for and Cancel cancels.
func (p Plan) WithBackground(b agent.Background) Plan {
	p.background = append(slices.Clip(p.background), b)
	return p
}

// WithParallel sets how many of a step's tool calls run at the same time. Zero means one.
func (p Plan) WithParallel(n int) Plan { p.parallel = n; return p }

// Agent builds the agent. The error joins all mistakes. Each call builds a separate agent.
func (p Plan) Agent() mo.Result[*agent.Agent] {
	a, _, err := p.build()
	if err != nil {
		return mo.Err[*agent.Agent](err)
	}
	return mo.Ok(a)
}

// build builds the agent, and returns it with everything that its hooks can match.
func (p Plan) build() (*agent.Agent, hooks.Reach, error) {
	if p.detached == nil {
		p.detached = &hooks.Pool{}
	}
	planned := p
	p, making := p.withMadeTools()
	box, boxing := toolexec.NewToolbox(p.tools...)
	reach := p.reach(box)
	compiled, wrong := p.compileHooks(reach)
	if errors.Join(making, boxing, wrong) == nil {
		wrong = p.checkReach(compiled)
	}
	if err := errors.Join(making, boxing, wrong, p.check()); err != nil {
		return nil, reach, err
	}
	executor := p.executor
	if executor == nil {
		executor = toolexec.NewExecutor(box, p.toolOptions)
	}
	request := p.request
	request.Tools = box.Specs()
	background := slices.Clip(p.background)
	if !p.started {
		background = append(background, compiled.Background())
	}
	config := agent.Config{
		Name: p.name, Driver: p.driver, Request: request, Executor: executor,
		Criterion: compiled.WrapCriterion(continuation.All(p.allCriteria()...), p.continuations),
		Approver:  p.approver, Parallel: p.parallel, Observer: joinObservers(p.observers),
		Background: background, Extend: planned.extending(compiled),
		AroundRun: p.aroundRun.values(), AroundStep: p.aroundStep.values(),
		WrapDriver: p.wrapDriver.values(), WrapExecutor: p.wrapExecutor.values(),
		WrapApprover: p.wrapApprover.values(),
	}
	if !p.hooks.IsEmpty() {
		config.AroundRun = p.aroundRun.around(compiled.AroundRun())
		config.AroundStep = p.aroundStep.around(compiled.AroundStep())
		config.WrapDriver = p.wrapDriver.around(compiled.WrapDriver)
		config.WrapExecutor = p.wrapExecutor.around(compiled.WrapExecutor)
		config.WrapApprover = p.wrapApprover.around(compiled.WrapApprover)
		config.EndConversation = p.endingConversation(compiled)
	}
	a, err := agent.New(config).Get()
	return a, reach, err
}

// endingConversation returns the func that tells the hooks that a conversation ends. Telemetry observes runs through
// its processor, but this point as an observer.
func (p Plan) endingConversation(compiled *hooks.Compiled) func(context.Context, agent.State, agent.CloseReason) error {
	observer := joinObservers(slices.Concat(p.endObservers, p.observers))
	return func(ctx context.Context, s agent.State, reason agent.CloseReason) error {
		return compiled.EndConversation(ctx, s, reason, observer)
	}
}

// compileHooks returns the compiled hooks.
func (p Plan) compileHooks(reach hooks.Reach) (*hooks.Compiled, error) {
	if p.own != nil {
		return p.own.With(p.more)
	}
	return p.hooks.CompileIn(p.detached, reach)
}

// extending returns the func that builds an agent with more hooks for single runs.
func (p Plan) extending(own *hooks.Compiled) func(agent.HookSet) mo.Result[*agent.Agent] {
	return func(more agent.HookSet) mo.Result[*agent.Agent] {
		set, ok := more.(hooks.Set)
		if !ok {
			return mo.Err[*agent.Agent](fmt.Errorf("unexpected type %T: create the hooks with hooks.NewSet", more))
		}
		extended := p.WithHooks(slices.Collect(values(set.All()))...)
		extended.own, extended.more = own, set
		return extended.Agent()
	}
}

// check returns all errors except those in tools and hooks. A nil part is an error, because it may be a missing guard.
func (p Plan) check() error {
	wrong := slices.Clone(p.wrong)
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	switch {
	case p.driver == nil:
		say("no driver: set one with WithDriver")
	case nils.Is(p.driver):
		say("the driver is a nil %T", p.driver)
	}
	if p.executor != nil && nils.Is(p.executor) {
		say("the executor is a nil %T: omit it to use none", p.executor)
	}
	if p.parallel < 0 {
		say("parallel is %d: it must not be negative", p.parallel)
	}
	if p.continuations < 0 {
		say("continuations are %d: they must not be negative", p.continuations)
	}
	for _, l := range slices.Concat(p.aroundRun, p.aroundStep) {
		if nils.Is(l.value) {
			say("the processor %q is nil", l.name)
		}
	}
	for _, l := range p.wrapDriver {
		if l.value == nil {
			say("the driver wrapper %q is nil", l.name)
		}
	}
	for _, l := range p.wrapExecutor {
		if l.value == nil {
			say("the executor wrapper %q is nil", l.name)
		}
	}
	for _, l := range p.wrapApprover {
		if l.value == nil {
			say("the approver wrapper %q is nil", l.name)
		}
	}
	sayMissing("criterion", p.criteria, say)
	sayMissing("observer", p.observers, say)
	sayMissing("background", p.background, say)
	return errors.Join(wrong...)
}

func sayMissing[T any](what string, list []T, say func(format string, args ...any)) {
	for i, v := range list {
		if nils.Is(v) {
			say("%s %d of %d is nil", what, i+1, len(list))
		}
	}
}

func values[K, V any](pairs iter.Seq2[K, V]) iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, v := range pairs {
			if !yield(v) {
				return
			}
		}
	}
}
