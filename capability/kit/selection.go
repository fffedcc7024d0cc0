package kit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/internal/reserved"
)

// ToolSelection shows the model only the tools that it needs for a call. Either a func selects the tools for each model
// call, or another, usually smaller, model selects them once for each user message.
//
// Only the model call's request changes, and the tools keep their order. A call to a hidden tool is answered with the
// names of the available ones. A tool that the request names in its ToolChoice is always available.
//
// A failed choice does not fail the run, whether it was an error or an answer that is not a list of tools. The model is
// then shown all tools. Selected reports it.
//
// The selecting model's usage counts as usage of the step for which it was asked, so that token and cost limits apply.
// A change of tools changes the prompt's beginning, which providers have cached. Select rarely, or only if there are
// many tools.
type ToolSelection struct {
	// Select returns the names of the needed tools. It receives the state that the model is about to receive, and must
	// be safe for concurrent use. Unknown names are ignored. Set either this or Driver.
	Select func(ctx context.Context, s agent.State, tools []agent.ToolSpec) ([]string, error)
	// Driver asks the model that selects. It is shown the user's newest message, and the names and descriptions of all
	// tools.
	Driver agent.Driver
	// Instructions are the selecting model's instructions. Empty means this package's instructions.
	Instructions string
	// Always are the names of tools that are always available.
	Always []string
	// Max is the maximum number of selected tools, without Always. The first selected tools are kept. Zero sets no
	// limit.
	Max int
}

// Selected: the model is shown some of its tools.
type Selected struct {
	Run  agent.Run
	Step int
	// Tools are the names of the available tools. Hidden is the number of the other tools.
	Tools  []string
	Hidden int
	// Err is the error of a failed choice, after which all tools are available. It is nil otherwise.
	Err error
}

// EventName returns "tools.selected".
func (Selected) EventName() string { return "tools.selected" }

// Name returns "tool-selection".
func (ToolSelection) Name() string { return "tool-selection" }

// Install puts the selection around the driver, and an answer to calls of hidden tools around the executor.
func (t ToolSelection) Install(p capability.Plan) mo.Result[capability.Plan] {
	var wrong []error
	say := func(text string) { wrong = append(wrong, errors.New(text)) }
	if (t.Select == nil) == (t.Driver == nil) {
		say("set either Select or Driver, but not both or neither")
	}
	if t.Instructions != "" && t.Driver == nil {
		say("Instructions requires Driver")
	}
	if t.Max < 0 {
		say(fmt.Sprintf("Max is %d: it must not be negative, and zero means no limit", t.Max))
	}
	x := &selection{chosen: agent.NewScratch[choice](nil), always: slices.Clone(t.Always), most: t.Max, choose: t.chosenByFunc}
	if t.Driver != nil {
		small, err := newChooser(t.Driver, t.Instructions, t.Max)
		if err != nil {
			wrong = append(wrong, err)
		}
		x.choose = small.choose
	}
	if err := errors.Join(wrong...); err != nil {
		return mo.Err[capability.Plan](err)
	}
	name := t.Name()
	return mo.Ok(p.
		WrapDriver(capability.Inside, name, func(inner agent.Driver) agent.Driver { return selecting{x, inner} }).
		WrapExecutor(capability.Inside, name, func(inner agent.Executor) agent.Executor { return offering{inner} }))
}

func (t ToolSelection) chosenByFunc(ctx context.Context, s agent.State, _ *choice) ([]string, *agent.Usage, error) {
	names, err := t.Select(ctx, s, specsOf(s))
	return names, nil, err
}

// specsOf returns the specs of all tools, in their order.
func specsOf(s agent.State) (specs []agent.ToolSpec) {
	for _, spec := range s.Request().Tools.All() {
		specs = append(specs, spec)
	}
	return specs
}

// selection is the selection of one agent.
type selection struct {
	chosen *agent.Scratch[choice]
	always []string
	most   int
	// choose returns the names of the selected tools, and the model's usage, if it asks one.
	choose func(ctx context.Context, s agent.State, c *choice) ([]string, *agent.Usage, error)
}

// choice is a model's earlier choice in a run, and the message that it was for.
type choice struct {
	mu    sync.Mutex
	asked string
	names []string
}

// offer records the tools that the model was shown for a step. It is stored with the run, because the run can be parked
// before the step's calls are answered.
type offer struct {
	Step  int      `json:"step"`
	Tools []string `json:"tools"`
}

var offered = agent.ReservedKey[offer](reserved.InternalToken(), "kit.tool_selection", agent.ScopeRun)

// request returns the request with the tools that are needed.
func (x *selection) request(ctx context.Context, s agent.State) (r agent.Request, used *agent.Usage, err error) {
	r = s.Request()
	c := x.chosen.Get(s)
	c.mu.Lock()
	defer c.mu.Unlock()
	all := r.Tools
	names, used, failed := x.choose(ctx, s, c)
	if ctx.Err() != nil {
		return r, used, context.Cause(ctx)
	}
	if _, decided := errors.AsType[*agent.SignalError](failed); decided {
		return r, used, failed
	}
	if failed == nil {
		known := lo.Filter(lo.Uniq(names), func(n string, _ int) bool {
			_, isTool := all.ByName(n)
			return isTool && !slices.Contains(x.always, n)
		})
		if x.most > 0 {
			known = lo.Slice(known, 0, x.most)
		}
		known = append(slices.Concat(known, x.always), string(r.ToolChoice))
		r.Tools = all.Keep(func(spec agent.ToolSpec) bool { return slices.Contains(known, spec.Name) })
	}
	if s.Observed() {
		shown := namesOf(r.Tools)
		s.Emit(ctx, Selected{Run: s.Run(), Step: s.RunStepCount(), Tools: shown, Hidden: all.Len() - len(shown), Err: failed})
	}
	return r, used, nil
}

func namesOf(tools agent.Tools) (names []string) {
	for _, spec := range tools.All() {
		names = append(names, spec.Name)
	}
	return names
}

// selecting wraps a driver, which receives only the selected tools.
type selecting struct {
	*selection
	inner agent.Driver
}

var (
	_ agent.Streamer  = selecting{}
	_ agent.Describer = selecting{}
)

// Features returns the wrapped driver's Features.
func (d selecting) Features() agent.Features { return agent.FeaturesOf(d.inner) }

func (d selecting) Next(ctx context.Context, s agent.State) mo.Result[agent.Step] {
	return d.turn(ctx, s, func(s agent.State) mo.Result[agent.Step] { return d.inner.Next(ctx, s) })
}

func (d selecting) Stream(ctx context.Context, s agent.State, emit func(agent.Delta)) mo.Result[agent.Step] {
	return d.turn(ctx, s, func(s agent.State) mo.Result[agent.Step] { return agent.Stream(ctx, d.inner, s, emit) })
}

func (d selecting) turn(ctx context.Context, s agent.State, ask func(agent.State) mo.Result[agent.Step]) mo.Result[agent.Step] {
	if s.Request().Tools.Len() == 0 {
		return ask(s)
	}
	r, used, err := d.request(ctx, s)
	if err != nil {
		return mo.Err[agent.Step](fmt.Errorf("selecting tools: %w", err))
	}
	result := ask(s.WithRequest(r))
	step, err := result.Get()
	if err != nil {
		return result
	}
	if used != nil {
		step.Usage = step.Usage.Add(*used)
	}
	step.Prior = agent.EffectsOf(offered.Set(offer{s.RunStepCount(), namesOf(r.Tools)})).Add(step.Prior)
	return mo.Ok(step)
}

// offering answers calls of hidden tools.
type offering struct{ agent.Executor }

func (x offering) Prepare(ctx context.Context, s agent.State, call *agent.ToolCall) mo.Result[*agent.Prepared] {
	result := x.Executor.Prepare(ctx, s, call)
	if p, err := result.Get(); err != nil || p == nil || p.Disposition != agent.DisposeRun {
		return result
	}
	now, ok := offered.From(s)
	if !ok || now.Step != s.RunStepCount() || slices.Contains(now.Tools, call.Name) {
		return result
	}
	others := "no tool is"
	if len(now.Tools) > 0 {
		others = "the available tools are " + strings.Join(now.Tools, ", ")
	}
	err := fmt.Errorf("tool %q: not executed: it is not available in this turn; %s", call.Name, others)
	answer := agent.NotExecuted(call, agent.ReasonUnknownTool, ToolSelection{}.Name(), err.Error())
	answer.Err = err
	return mo.Ok(&agent.Prepared{Original: call, Call: call, Disposition: agent.DisposeAnswer, Answer: answer, Invalid: err})
}
