package capability

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/continuation"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// Plan is an agent in the making: what capabilities have added so far. It is an
// immutable value; methods that add something return a new Plan. The zero Plan is
// of an agent without a driver. What is added first is outermost, everywhere.
type Plan struct {
	name          string
	driver        agent.Driver
	request       agent.Request
	tools         []toolexec.Tool
	toolOptions   toolexec.Options
	executor      agent.Executor
	hooks         hooks.Set
	aroundRun     layers[agent.Processor]
	aroundStep    layers[agent.Processor]
	wrapDriver    layers[func(agent.Driver) agent.Driver]
	wrapExecutor  layers[func(agent.Executor) agent.Executor]
	criteria      []agent.Criterion
	approver      agent.Approver
	observers     []agent.Observer
	background    []agent.Background
	parallel      int
	continuations int
}

// Place says on which side of the hooks a layer stands.
type Place uint8

// The places.
const (
	// Inside of the hooks: the hooks decide first, and see what the layer made of
	// it. The place for retries, time limits and all that does the work.
	Inside Place = iota
	// Outside of the hooks: the layer only ever sees what the hooks let through and
	// let out. The place for spans, journals and all that stores or shows.
	Outside
)

// layer is a named wrapper in its place.
type layer[T any] struct {
	name  string
	place Place
	value T
}

type layers[T any] []layer[T]

func (l layers[T]) with(place Place, name string, value T) layers[T] {
	return append(slices.Clip(l), layer[T]{name, place, value})
}

func (l layers[T]) at(place Place) layers[T] {
	return lo.Filter(l, func(x layer[T], _ int) bool { return x.place == place })
}

func (l layers[T]) values() []T {
	return lo.Map(l, func(x layer[T], _ int) T { return x.value })
}

func (l layers[T]) names() []string {
	return lo.Map(l, func(x layer[T], _ int) string { return x.name })
}

// WithName names the agent.
func (p Plan) WithName(name string) Plan { p.name = name; return p }

// WithDriver sets what asks the model.
func (p Plan) WithDriver(d agent.Driver) Plan { p.driver = d; return p }

// WithRequest changes what the model is asked with. The tools in it are replaced
// by those of the plan when the agent is built.
func (p Plan) WithRequest(change func(agent.Request) agent.Request) Plan {
	p.request = change(p.request)
	return p
}

// WithTools adds tools, behind those that are there.
func (p Plan) WithTools(tools ...toolexec.Tool) Plan {
	p.tools = append(slices.Clip(p.tools), tools...)
	return p
}

// WithToolOptions sets how tools are run.
func (p Plan) WithToolOptions(o toolexec.Options) Plan { p.toolOptions = o; return p }

// WithExecutor sets an executor that answers tool calls in the place of one made
// of the plan's tools, which are then only what the model is told of.
func (p Plan) WithExecutor(x agent.Executor) Plan { p.executor = x; return p }

// WithHooks adds hooks, behind those that are there.
func (p Plan) WithHooks(list ...hooks.Hook) Plan { p.hooks = p.hooks.With(list...); return p }

// Hooks is the hooks so far.
func (p Plan) Hooks() hooks.Set { return p.hooks }

// Tools iterates over the tools so far.
func (p Plan) Tools() iter.Seq2[int, toolexec.Tool] { return slices.All(p.tools) }

// Request is what the model is to be asked with so far.
func (p Plan) Request() agent.Request { return p.request }

// AroundRun adds middleware around the run, inside of what is there already in
// that place.
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

// WithCriteria adds criteria. The strongest verdict wins, in whatever order.
func (p Plan) WithCriteria(criteria ...agent.Criterion) Plan {
	p.criteria = append(slices.Clip(p.criteria), criteria...)
	return p
}

// WithApprover sets who is asked when a hook wants a person's yes.
func (p Plan) WithApprover(a agent.Approver) Plan { p.approver = a; return p }

// WithObserver adds somebody who is told of everything that happens.
func (p Plan) WithObserver(o agent.Observer) Plan {
	p.observers = append(slices.Clip(p.observers), o)
	return p
}

// WithBackground adds work that the agent's Drain and Cancel are for.
func (p Plan) WithBackground(b agent.Background) Plan {
	p.background = append(slices.Clip(p.background), b)
	return p
}

// WithParallel sets how many tool calls of one step run at once; zero means one.
func (p Plan) WithParallel(n int) Plan { p.parallel = n; return p }

// Agent builds what was planned. The error joins everything that is wrong.
func (p Plan) Agent() mo.Result[*agent.Agent] {
	var wrong []error
	box, err := toolexec.NewToolbox(p.tools...)
	wrong = append(wrong, err)
	names := lo.Map(slices.Collect(values(box.Specs().All())), func(s agent.ToolSpec, _ int) string { return s.Name })
	compiled, err := p.hooks.Compile(names...).Get()
	wrong = append(wrong, err, p.missing())
	if p.driver == nil {
		wrong = append(wrong, errors.New("no driver: give one with WithDriver"))
	}
	if p.parallel < 0 {
		wrong = append(wrong, fmt.Errorf("parallel is %d: it must not be negative", p.parallel))
	}
	if err := errors.Join(wrong...); err != nil {
		return mo.Err[*agent.Agent](err)
	}
	executor := p.executor
	if executor == nil {
		executor = toolexec.NewExecutor(box, p.toolOptions)
	}
	request := p.request
	request.Tools = box.Specs()
	config := agent.Config{
		Name: p.name, Driver: p.driver, Request: request, Executor: executor,
		Criterion: compiled.WrapCriterion(continuation.All(append([]agent.Criterion{agent.Base}, p.criteria...)...), p.continuations),
		Approver:  p.approver, Parallel: p.parallel, Observer: together(p.observers),
		Background:   p.background,
		AroundRun:    around(p.aroundRun, compiled.AroundRun(), !p.hooks.IsEmpty()),
		AroundStep:   around(p.aroundStep, compiled.AroundStep(), !p.hooks.IsEmpty()),
		WrapDriver:   around(p.wrapDriver, compiled.WrapDriver, true),
		WrapExecutor: around(p.wrapExecutor, compiled.WrapExecutor, true),
	}
	if !p.hooks.IsEmpty() {
		config.Background = append(slices.Clip(p.background), compiled.Background())
	}
	return agent.New(config)
}

// around puts the hooks between the layers outside and inside of them.
func around[T any, H any](l layers[T], h H, there bool) []T {
	out := l.at(Outside).values()
	if there {
		out = append(out, any(h).(T))
	}
	return append(out, l.at(Inside).values()...)
}

// missing finds layers and criteria that are nil: guards that went missing.
func (p Plan) missing() error {
	var wrong []error
	for _, l := range slices.Concat(p.aroundRun, p.aroundStep) {
		if l.value == nil {
			wrong = append(wrong, fmt.Errorf("the processor %q is nil", l.name))
		}
	}
	for _, l := range p.wrapDriver {
		if l.value == nil {
			wrong = append(wrong, fmt.Errorf("the driver wrapper %q is nil", l.name))
		}
	}
	for _, l := range p.wrapExecutor {
		if l.value == nil {
			wrong = append(wrong, fmt.Errorf("the executor wrapper %q is nil", l.name))
		}
	}
	for i, c := range p.criteria {
		if c == nil {
			wrong = append(wrong, fmt.Errorf("criterion %d is nil", i+1))
		}
	}
	for i, o := range p.observers {
		if o == nil {
			wrong = append(wrong, fmt.Errorf("observer %d is nil", i+1))
		}
	}
	return errors.Join(wrong...)
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
