package condition

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/functions"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
)

// Input is the event that a condition judges. Create it with Of. It is immutable and safe for concurrent use, and
// reads only the values that a condition names. An Input from a hook's context is valid as long as that context. The
// zero Input has no values: judging it is an error.
type Input struct{ event *event }

// Values adds values to the hook's context.
type Values struct {
	// Actions holds the results of earlier actions by ID: actions.ID.status.
	Actions map[string]Action
	// Names overrides pipeline variables (SESSION, ITERATION …) that the caller knows better than the context, as
	// strings. Other names are ignored.
	Names map[string]string
}

// Action is an action's result.
type Action struct {
	// Status is "success", "failed", or "skipped".
	Status string `json:"status"`
	// Output is the text that the action printed or answered.
	Output string `json:"output,omitempty"`
	// Response is the Output decoded from JSON, or the Output itself if it is not JSON. If nil, it is decoded from
	// the Output on first use.
	Response any `json:"response,omitempty"`
}

var actionKind = kindOf("Action",
	field[*finished]{"status", cel.StringType, func(a *finished) ref.Val { return types.String(a.Status) }},
	field[*finished]{"output", cel.StringType, func(a *finished) ref.Val { return types.String(a.Output) }},
	field[*finished]{"response", cel.DynType, func(a *finished) ref.Val { return a.value() }},
)

// finished is an Action whose response is decoded once.
type finished struct {
	Action

	value func() ref.Val
}

func (a *Action) response() ref.Val {
	if a.Response != nil {
		return valueOf(a.Response)
	}
	if v, ok := parsed(a.Output); ok {
		return v
	}
	return types.String(a.Output)
}

func actionsOf(actions map[string]Action) ref.Val {
	out := make(map[string]any, len(actions))
	for id, a := range actions {
		out[id] = actionKind.objectOf(&finished{a, sync.OnceValue(a.response)})
	}
	return types.NewStringInterfaceMap(types.DefaultTypeAdapter, out)
}

// event is the event behind an Input. It is also the activation of an evaluation: CEL asks it for the values of names
// and for the functions that read the input.
type event struct {
	source source
	point  hooks.PointName
	hook   hooks.Context // nil for JSON
	values Values
	call   *call      // nil at points without a tool call
	gates  *toolGates // nil if the agent lacks the tool

	once sync.Once
	at   time.Time
	last atomic.Pointer[activation]

	making  sync.Mutex
	results map[string]ref.Val // function results, by dialect.keyOf
	made    map[string]any     // values that were parsed from text, by variable name
}

// remember returns the result of make, which it calls once, because a loop may name the variable many times.
func (ev *event) remember(name string, make func() any) any {
	ev.making.Lock()
	defer ev.making.Unlock()
	v, ok := ev.made[name]
	if !ok {
		if ev.made == nil {
			ev.made = map[string]any{}
		}
		v = make()
		ev.made[name] = v
	}
	return v
}

// callOnce returns the result of call, which it caches under the key.
func (ev *event) callOnce(key string, call func(ev *event) ref.Val) ref.Val {
	ev.making.Lock()
	result := ev.results[key]
	ev.making.Unlock()
	if result != nil {
		return result
	}
	if result = call(ev); result == nil {
		return nil
	}
	ev.making.Lock()
	defer ev.making.Unlock()
	if ev.results == nil {
		ev.results = map[string]ref.Val{}
	}
	ev.results[key] = result
	return result
}

// Of returns the Input for a hook's context. A call's arguments are parsed when a condition first names them. All
// conditions that judge the call share the result.
func Of(c hooks.Context) Input { return Input{eventOf(c)} }

// With returns the input with v in place of its earlier Values.
func (in Input) With(v Values) Input {
	if in.event == nil {
		return in
	}
	return Input{&event{source: in.event.source, point: in.event.point, hook: in.event.hook, call: in.event.call, values: v, at: in.event.now()}}
}

// At returns the input with another value for the variable now.
func (in Input) At(now time.Time) Input {
	if in.event == nil {
		return in
	}
	return Input{&event{source: in.event.source, point: in.event.point, hook: in.event.hook, call: in.event.call, values: in.event.values, at: now}}
}

// Point returns the hook point; empty for the zero Input.
func (in Input) Point() hooks.PointName {
	if in.event == nil {
		return ""
	}
	return in.event.point
}

// Context returns the hook's context; nil for an Input from JSON.
func (in Input) Context() hooks.Context {
	if in.event == nil {
		return nil
	}
	return in.event.hook
}

// State returns the state that the hook sees; the zero State for an Input from JSON.
func (in Input) State() agent.State {
	if in.event == nil || in.event.hook == nil {
		return agent.State{}
	}
	return in.event.hook.State()
}

// Tool returns the called tool's name; empty at points without a call.
func (in Input) Tool() string {
	if in.event == nil {
		return ""
	}
	return in.event.toolCall().tool
}

// IsArguments reports whether a value is the call's complete arguments, args or original_args, and not a value within
// them. Use it in Functions that treat argument names differently from names in other maps.
func (in Input) IsArguments(v ref.Val) bool {
	if in.event == nil || in.event.call == nil {
		return false
	}
	members, ok := v.Value().(map[string]any)
	return ok && (isSame(members, in.event.arguments()) || isSame(members, in.event.originalArguments()))
}

// isSame reports whether both values are the same map, not only maps with equal members.
func isSame(members map[string]any, other any) bool {
	return reflect.ValueOf(members).Pointer() == reflect.ValueOf(other).Pointer()
}

func (ev *event) now() time.Time {
	ev.once.Do(func() {
		if ev.at.IsZero() {
			ev.at = time.Now()
		}
	})
	return ev.at
}

func (ev *event) run() agent.Run { return ev.source.run() }

func (ev *event) toolCall() *called {
	if ev.call == nil {
		return &called{}
	}
	return &ev.call.called
}

// arguments returns the call's arguments, or an error value.
func (ev *event) arguments() any {
	if ev.call == nil {
		return types.WrapErr(errNoCall)
	}
	return argumentsIn(ev.call.effective())
}

func (ev *event) originalArguments() any {
	if ev.call == nil {
		return types.WrapErr(errNoCall)
	}
	return argumentsIn(ev.call.original())
}

var errNoCall = errors.New("this event has no tool call")

// activation is an event in one dialect. Evaluations look up names in it.
type activation struct {
	*event

	d *dialect
}

// in returns the event's activation for a dialect. A dialect's conditions share it.
func (ev *event) in(d *dialect) *activation {
	if a := ev.last.Load(); a != nil && a.d == d {
		return a
	}
	a := &activation{ev, d}
	ev.last.Store(a)
	return a
}

// ResolveName returns a variable's value.
func (a *activation) ResolveName(name string) (any, bool) {
	v := a.d.names[name]
	if v == nil {
		return nil, false
	}
	return v.value(a.event), true
}

// Parent returns nil.
func (a *activation) Parent() cel.Activation { return nil }

// ResolveFunction returns a function that reads the input.
func (a *activation) ResolveFunction(name string) (functions.LateBoundOp, bool) {
	f := a.d.functions[name]
	if f == nil {
		return nil, false
	}
	return func(_ string, args ...ref.Val) ref.Val { return f.Call(Input{a.event}, args...) }, true
}

// call holds the data of one tool call for all conditions that judge it.
type call struct {
	called

	args tree // the effective arguments

	mu    sync.Mutex
	asked *tree // the original arguments, if they differ
	shell map[shellText]*analysis
}

// effective returns the arguments that will run.
func (c *call) effective() *tree { return c.args.open(c.arguments) }

// original returns the arguments that the model gave.
func (c *call) original() *tree {
	if c.called.original == c.arguments {
		return c.effective()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked == nil {
		c.asked = treeOf(c.called.original)
	}
	return c.asked
}

func argumentsIn(t *tree) any {
	members, err := t.members()
	if err != nil {
		return types.WrapErr(fmt.Errorf("reading the arguments: %w", err))
	}
	return members
}

var _ cel.FunctionActivation = (*activation)(nil)
