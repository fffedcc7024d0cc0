package condition

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
)

// ofHook reads values from a hook's context, through the methods that all contexts share.
type ofHook struct{ hooks.Context }

func (h ofHook) run() agent.Run     { return h.Run() }
func (h ofHook) step() int          { return h.StepIndex() }
func (h ofHook) usage() agent.Usage { return h.State().Spending().Usage }

func (h ofHook) elapsedTime() time.Duration {
	if c, ok := h.Context.(interface{ Elapsed() time.Duration }); ok {
		return c.Elapsed()
	}
	return time.Since(h.Run().Started)
}

func (h ofHook) stepKind() string {
	if c, ok := h.Context.(interface{ Kind() agent.StepKind }); ok {
		return string(c.Kind())
	}
	return ""
}

// calledAt returns the tool call at a context; false at points without one.
func calledAt(c hooks.Context) (now called, ok bool) {
	at, ok := c.(interface {
		Call() hooks.Call
		Original() hooks.Call
	})
	if !ok {
		return called{}, false
	}
	effective, original := at.Call(), at.Original()
	return called{effective.Name, original.ID, original.Index, effective.Arguments, original.Arguments}, true
}

func (h ofHook) result() result {
	switch c := h.Context.(type) {
	case interface{ Result() agent.ToolResult }:
		r := c.Result()
		return result{text: r.Text(), isError: r.IsError(), status: string(r.Status), reason: string(r.Reason), attempts: r.Attempts}
	case blueprintContext:
		run := c.BlueprintRun()
		return result{text: run.ResultText, isError: run.Err != nil, status: string(run.Status), data: string(run.ResultData)}
	}
	return result{}
}

// blueprintContext is the context at the points of a coordinator's run.
type blueprintContext interface{ BlueprintRun() hooks.BlueprintRun }

func (h ofHook) parameters() string {
	if c, ok := h.Context.(blueprintContext); ok {
		return string(c.BlueprintRun().Parameters)
	}
	return ""
}

func (h ofHook) invalid() string {
	if c, ok := h.Context.(interface{ Invalid() error }); ok && c.Invalid() != nil {
		return c.Invalid().Error()
	}
	return ""
}

func (h ofHook) question() string {
	if c, ok := h.Context.(interface{ Questions() agent.Questions }); ok {
		return c.Questions().Reason()
	}
	return ""
}

func (h ofHook) conversation() hooks.Conversation {
	if c, ok := h.Context.(interface{ Conversation() hooks.Conversation }); ok {
		return c.Conversation()
	}
	return hooks.Conversation{}
}

func (h ofHook) pipeline() hooks.Pipeline {
	if c, ok := h.Context.(interface{ Pipeline() hooks.Pipeline }); ok {
		return c.Pipeline()
	}
	return hooks.Pipeline{}
}

func (h ofHook) failure() string {
	err := h.pipeline().Err
	if c, ok := h.Context.(interface{ Err() error }); ok {
		err = c.Err()
	}
	if err == nil {
		return ""
	}
	return err.Error()
}

// input returns the submitted input at InputSubmitted, and elsewhere the user's last text.
func (h ofHook) input() string {
	switch h.Point() {
	case hooks.PostInference, hooks.PostToolUse, hooks.ToolFailed:
		// The text in these contexts is not the user's.
	default:
		if c, ok := h.Context.(interface{ Text() string }); ok {
			return c.Text()
		}
	}
	return memories.Get(h.State()).lastInput(h.State())
}

func (h ofHook) reply() reply {
	var r reply
	switch c := h.Context.(type) {
	case hooks.ReplyContext:
		r.text, r.tools = c.Text(), c.Tools()
		r.finish, r.model = string(c.Reply().FinishReason), c.Reply().Model
	case hooks.StepEndContext:
		r.text, r.tools = c.Content(), slices.Collect(c.Record().Tools())
		step := c.Record().Reply()
		r.finish, r.model = string(step.FinishReason), step.Model
	case interface{ Answer() string }:
		r.text = c.Answer()
	}
	return r
}

func (h ofHook) subagent() hooks.Subagent {
	if c, ok := h.Context.(interface{ Subagent() hooks.Subagent }); ok {
		return c.Subagent()
	}
	return hooks.Subagent{}
}

func (h ofHook) approvals() []approval {
	c, ok := h.Context.(interface{ Interventions() []agent.Intervention })
	if !ok {
		return nil
	}
	batch := c.Interventions()
	list := make([]approval, len(batch))
	for n, i := range batch {
		list[n] = approval{CallID: i.CallID(), Tool: i.Call.Name, Question: i.Questions.Reason()}
		if answer := i.Answer(); answer != nil {
			list[n].Action, list[n].By, list[n].Reason = answer.Verdict.String(), answer.By, answer.Reason
		}
	}
	return list
}

func (h ofHook) duration() time.Duration {
	switch c := h.Context.(type) {
	case interface{ Result() agent.ToolResult }:
		return c.Result().Duration
	case hooks.StepEndContext:
		return c.Duration()
	}
	return h.subagent().Took
}

func (h ofHook) compaction() hooks.Compaction {
	if c, ok := h.Context.(interface{ Compaction() hooks.Compaction }); ok {
		return c.Compaction()
	}
	return hooks.Compaction{}
}

func (h ofHook) continuations() int {
	if c, ok := h.Context.(interface{ Continuations() int }); ok {
		return c.Continuations()
	}
	return 0
}

func (h ofHook) end() (agent.Status, agent.Signal) {
	switch c := h.Context.(type) {
	case hooks.StopContext:
		return h.State().Status(), c.Signal()
	case hooks.EndContext:
		return c.Status(), c.Reason()
	case blueprintContext:
		return c.BlueprintRun().Status, agent.Signal{}
	}
	return h.State().Status(), agent.Signal{}
}

func (h ofHook) metadata(name string) (any, bool) {
	if v, ok := agent.RunKey[any](name).From(h.State()); ok {
		return v, true
	}
	return agent.SessionKey[any](name).From(h.State())
}

func (h ofHook) tally(tool string) tally {
	s, before := h.State(), 0
	if c, ok := h.Context.(interface{ Index() int }); ok {
		before = c.Index()
	}
	return memories.Get(s).tally(s, h.StepIndex(), before, tool)
}

// memory caches the values that conditions read in one run.
type memory struct {
	// last is the last event at PreToolUse.
	last atomic.Pointer[event]

	mu sync.Mutex

	steps   int // the number of steps counted so far
	tallies map[string]tally

	// pending holds the calls in step pendingStep that conditions have seen, by index.
	pendingStep int
	pending     []pendingCall

	gates map[string]*toolGates // by the tool's name

	messages int // the number of messages searched so far
	input    string
}

// memories holds one memory per run. A state outside a run has none.
var memories = agent.NewScratch[memory](nil)

// eventOf returns the event behind a context. All conditions that judge one call share it.
func eventOf(c hooks.Context) *event {
	now, isCall := calledAt(c)
	if _, isPre := c.(hooks.ToolContext); isPre {
		return memories.Get(c.State()).callEvent(c, now)
	}
	ev := &event{source: ofHook{c}, point: c.Point(), hook: c}
	if isCall {
		ev.call = &call{called: now}
	}
	return ev
}

// callEvent returns a call's event at PreToolUse. It creates a new one only if the call differs from the last one.
func (r *memory) callEvent(c hooks.Context, now called) *event {
	if last := r.last.Load(); last != nil && last.call.called == now && last.point == c.Point() && last.hook.State() == c.State() {
		return last
	}
	ev := &event{source: ofHook{c}, point: c.Point(), hook: c, call: &call{called: now}}
	r.mu.Lock()
	defer r.mu.Unlock()
	ev.gates = r.gatesOf(c.State(), now.tool)
	r.note(c.StepIndex(), now.index, now.id, now.tool)
	r.last.Store(ev)
	return ev
}
