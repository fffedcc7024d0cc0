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

// Input is the occasion that a condition judges. Make one with Of or FromJSON; it is immutable, and safe for concurrent
// use. What a condition does not name is never looked at. An Input of a hook's context is, like that, not to be kept.
// The zero Input has no values: judging it is an error.
type Input struct{ m *moment }

// Values are what is known besides the hook's context.
type Values struct {
	// Actions are the results of earlier actions by their ids: actions.ID.status.
	Actions map[string]Action
	// Names are the values of SESSION, ITERATION and the others of that table, where the caller knows better than the
	// context does, as texts. Others are passed over.
	Names map[string]string
}

// Action is the result of an action.
type Action struct {
	// Status is "success", "failed", or "skipped".
	Status string `json:"status"`
	// Output is what it printed or answered.
	Output string `json:"output,omitempty"`
	// Response is the Output as a value when it is JSON, and the text when it is not. It may be left out: then it is read
	// from the Output when it is needed.
	Response any `json:"response,omitempty"`
}

var actionKind = kindOf("Action",
	field[*finished]{"status", cel.StringType, func(a *finished) ref.Val { return types.String(a.Status) }},
	field[*finished]{"output", cel.StringType, func(a *finished) ref.Val { return types.String(a.Output) }},
	field[*finished]{"response", cel.DynType, func(a *finished) ref.Val { return a.value() }},
)

// finished is an Action whose response is read once.
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

// moment is what an Input is made of. It is the activation of an evaluation, too: CEL asks it for the values of names and
// for the functions that look at the input.
type moment struct {
	source source
	point  hooks.PointName
	hook   hooks.Context // nil for JSON
	values Values
	call   *call // nil where there is none

	once sync.Once
	at   time.Time
	last atomic.Pointer[activation]

	making sync.Mutex
	made   map[string]any // values that are made of text, by the names of their variables
}

// remember returns what make returns, and makes it once: a loop may name the variable any number of times.
func (m *moment) remember(name string, make func() any) any {
	m.making.Lock()
	defer m.making.Unlock()
	v, ok := m.made[name]
	if !ok {
		if m.made == nil {
			m.made = map[string]any{}
		}
		v = make()
		m.made[name] = v
	}
	return v
}

// Of returns the occasion that a hook was asked about. The arguments of a call are read when a condition first names them, and
// then shared by all conditions that are asked about it.
func Of(c hooks.Context) Input {
	return Input{momentOf(c)}
}

// OfCall works like Of for the context of a tool call, of which it makes no hooks.Context: asking many conditions about one call
// costs no allocation for each.
func OfCall(c hooks.ToolContext) Input {
	return Input{memories.Get(c.State()).momentOf(&c)}
}

// With returns the input with more values; those given before are replaced.
func (in Input) With(v Values) Input {
	if in.m == nil {
		return in
	}
	return Input{&moment{source: in.m.source, point: in.m.point, hook: in.m.hook, call: in.m.call, values: v, at: in.m.now()}}
}

// At returns the input as it would be at another time: what now is.
func (in Input) At(now time.Time) Input {
	if in.m == nil {
		return in
	}
	return Input{&moment{source: in.m.source, point: in.m.point, hook: in.m.hook, call: in.m.call, values: in.m.values, at: now}}
}

// Point returns the hook point; empty for the zero Input.
func (in Input) Point() hooks.PointName {
	if in.m == nil {
		return ""
	}
	return in.m.point
}

// Context returns the context of the hook; nil for an Input that is made from JSON.
func (in Input) Context() hooks.Context {
	if in.m == nil {
		return nil
	}
	if c, ok := in.m.hook.(*hooks.ToolContext); ok {
		return *c // as hooks know it
	}
	return in.m.hook
}

// State returns the state that the hook sees; the zero State for an Input that is made from JSON.
func (in Input) State() agent.State {
	if in.m == nil || in.m.hook == nil {
		return agent.State{}
	}
	return in.m.hook.State()
}

// IsArguments reports whether a value is all arguments of the call that is judged, as args and original_args name them, and
// not a value within them: for Functions that take the names of arguments for what they are.
func (in Input) IsArguments(v ref.Val) bool {
	if in.m == nil || in.m.call == nil {
		return false
	}
	members, ok := v.Value().(map[string]any)
	return ok && (isSame(members, in.m.arguments()) || isSame(members, in.m.originalArguments()))
}

// isSame reports whether a map is the other one, and not a map with the same members.
func isSame(members map[string]any, other any) bool {
	return reflect.ValueOf(members).Pointer() == reflect.ValueOf(other).Pointer()
}

func (m *moment) now() time.Time {
	m.once.Do(func() {
		if m.at.IsZero() {
			m.at = time.Now()
		}
	})
	return m.at
}

func (m *moment) run() agent.Run { return m.source.run() }

func (m *moment) toolCall() *called {
	if m.call == nil {
		return &called{}
	}
	return &m.call.called
}

// arguments returns the arguments of the call, or an error value.
func (m *moment) arguments() any {
	if m.call == nil {
		return types.WrapErr(errNoCall)
	}
	return argumentsIn(m.call.effective())
}

func (m *moment) originalArguments() any {
	if m.call == nil {
		return types.WrapErr(errNoCall)
	}
	return argumentsIn(m.call.original())
}

var errNoCall = errors.New("there is no tool call")

// activation is a moment in a language: what evaluations look names up in.
type activation struct {
	*moment

	d *dialect
}

// in returns the moment in a language. Conditions of one language share it.
func (m *moment) in(d *dialect) *activation {
	if a := m.last.Load(); a != nil && a.d == d {
		return a
	}
	a := &activation{m, d}
	m.last.Store(a)
	return a
}

// ResolveName returns the value of a variable.
func (a *activation) ResolveName(name string) (any, bool) {
	v := a.d.names[name]
	if v == nil {
		return nil, false
	}
	return v.value(a.moment), true
}

// Parent returns nil: there is nothing around.
func (a *activation) Parent() cel.Activation { return nil }

// ResolveFunction returns a function that looks at the input.
func (a *activation) ResolveFunction(name string) (functions.LateBoundOp, bool) {
	f := a.d.functions[name]
	if f == nil {
		return nil, false
	}
	return func(_ string, args ...ref.Val) ref.Val { return f.Call(Input{a.moment}, args...) }, true
}

// call is what is known of one tool call, kept for all conditions that look at it.
type call struct {
	called

	args tree // the effective ones

	mu    sync.Mutex
	asked *tree // the original arguments, where they are others
	shell map[shellText]*analysis
}

// effective returns the arguments as they would be run with.
func (c *call) effective() *tree { return c.args.open(c.arguments) }

// original returns the arguments as the model gave them.
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
