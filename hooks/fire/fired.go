package fire

import (
	"fmt"
	"iter"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
)

// Fired is the result of firing a moment.
type Fired struct {
	// Point is the point at which the hooks were called.
	Point hooks.PointName
	// Called names the hooks that were called, in that order. Hooks whose matchers did not
	// match are not included.
	Called []string

	// Decision is the effective decision of all controls. It is Pass if none had an opinion. Reason is the reason given
	// with it, and Hook the name of the hook that decided.
	Decision hooks.Decision
	Reason   string
	Hook     string
	// Outcome is the complete outcome. It is nil when there is none.
	Outcome *hooks.Outcome

	// Err is a failed hook's error, regardless of its policy. It is nil when no hook failed. If several hooks failed,
	// it is the first hook's error. If a hook was retried, it is the last error. Policy is the policy that was applied:
	// closed, open, abort.
	Err    error
	Policy string

	// Effects holds the controls' effects, in order.
	Effects agent.Effects
	// Events holds the hook events that an agent's observer would get.
	Events []hooks.Event

	// Input is the input as changed by the hooks. It is set only at the input points.
	Input []agent.Message
	// Request is the request to the model, and Shown the conversation that the model sees.
	// They are set only at PreInference.
	Request agent.Request
	Shown   []agent.Message
	// Reply is the model's turn as changed by the hooks. It is set only at PostInference.
	Reply agent.Step
	// Call is the effective call. Result is the result that the model received, or nil when the run failed before that.
	// They are set only at a tool call's points.
	Call   agent.ToolCall
	Result *agent.ToolResult

	// BlueprintRun is the run as changed by the hooks. It is set only at a coordinator's points.
	BlueprintRun hooks.BlueprintRun

	// State is the run's final state, with all additions. Its Status and StopSignal say how the run ended. At a
	// pipeline's points, the StopSignal comes from the hook that ended the pipeline.
	State agent.State
	// RunErr is the run's error, an *agent.RunError. A hook whose policy is Abort fails the run, and so do RunFailure
	// and some moments of End. At the points around runs it is the firing's error.
	RunErr error
}

func newFired(m Moment, seen hooks.Context, final agent.State, err error, events []hooks.Event) Fired {
	f := Fired{Point: m.at, Decision: hooks.Pass, State: final, RunErr: err}
	f.Events = lo.Filter(events, func(e hooks.Event, _ int) bool { return e.Hook != theirs })
	allowed := ""
	for _, e := range f.Events {
		if e.Call.Name != "" {
			f.Call = e.Call
		}
		switch e.Kind {
		case hooks.HookStart:
			if e.Attempt == 1 {
				f.Called = append(f.Called, e.Hook)
			}
		case hooks.HookComplete, hooks.HookBlocked:
			if e.Shadow {
				continue
			}
			f.Effects = f.Effects.Add(e.Outcome.Effects())
			if e.Decision == hooks.Allow && allowed == "" {
				allowed = e.Hook
			}
		case hooks.HookFailed, hooks.HookTimeout:
			if f.Err == nil && e.Policy != "retry" {
				f.Err, f.Policy = e.Err, e.Policy
			}
		}
	}
	if seen != nil && seen.Frozen() != nil {
		f.Outcome = seen.Frozen()
		f.Decision, f.Reason, f.Hook = f.Outcome.Decision(), f.Outcome.Reason(), f.Outcome.Hook()
	}
	if allowed != "" && (f.Decision == hooks.Pass || f.Decision == hooks.Allow) {
		f.Decision, f.Hook = hooks.Allow, allowed
	}
	f = f.leaving(seen)
	if f.Call.Name != "" {
		if results := m.results(final); len(results) > 0 {
			f.Result = &results[0]
		}
	}
	return f
}

// leaving returns f with the values after the hooks, which the point's observers see.
func (f Fired) leaving(seen hooks.Context) Fired {
	switch c := seen.(type) {
	case hooks.InputContext:
		f.Input = c.Messages()
	case hooks.ExecutionContext:
		f.Input = c.Messages()
	case hooks.InferenceContext:
		f.Request = c.Request()
		for _, m := range c.Messages() {
			f.Shown = append(f.Shown, m)
		}
	case hooks.ReplyContext:
		f.Reply = c.Reply()
	case hooks.ToolContext:
		f.Call = c.Call().ToolCall
	case hooks.ToolResultContext:
		f.Call = c.Call().ToolCall
	case hooks.ToolFailureContext:
		f.Call = c.Call().ToolCall
	case interface{ BlueprintRun() hooks.BlueprintRun }:
		f.BlueprintRun = c.BlueprintRun()
	}
	return f
}

// Ran reports whether the tool's body ran. It is false at points without a tool.
func (f Fired) Ran() bool { return f.Result != nil && f.Result.Executed() }

// Text returns the text after the hooks: the input, the reply, or a tool call's result. It is empty at other points.
func (f Fired) Text() string {
	switch {
	case f.Result != nil:
		return f.Result.Text()
	case f.Input != nil:
		return strings.Join(lo.Map(f.Input, func(m agent.Message, _ int) string { return m.Text() }), "\n")
	}
	return f.Reply.Message.Text()
}

// AddedTexts returns the messages and the context that hooks added for the model, as text, in order.
func (f Fired) AddedTexts() []string {
	var out []string
	for _, e := range f.Effects.All() {
		if text, ok := e.Context(); ok {
			out = append(out, text)
		} else if m, ok := e.Message(); ok {
			out = append(out, m.Text())
		}
	}
	return out
}

// String returns a line for a failed test: the decision, its hook and reason, and a failed hook's error.
func (f Fired) String() string {
	var b strings.Builder
	b.WriteString(string(f.Decision))
	if f.Hook != "" {
		b.WriteString(" by " + f.Hook)
	}
	if f.Reason != "" {
		b.WriteString(": " + f.Reason)
	}
	switch {
	case f.Err != nil && !f.Outcome.HookFailed():
		fmt.Fprintf(&b, " (failed %s: %v)", f.Policy, f.Err)
	case len(f.Called) == 0:
		b.WriteString(" (no hook was called)")
	}
	return b.String()
}

func toolCalls(m agent.Message) iter.Seq[agent.ToolCall] {
	return func(yield func(agent.ToolCall) bool) {
		for _, c := range m.Calls() {
			if !yield(c) {
				return
			}
		}
	}
}
