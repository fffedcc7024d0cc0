package hooks

import (
	"context"
	"errors"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks/internal/scrub"
)

// filter is the filter that a hook returned at a point: a function from text to text for every text that leaves the
// point.
type filter struct {
	hook    string
	f       func(text string) (string, error)
	changed bool  // the filter has changed a text
	failed  error // if set, the filter returns no text any more
}

// errFilterPanicked omits the panic's value, which may be part of the text.
var errFilterPanicked = errors.New("its filter panicked")

// filterText returns the filtered text. In JSON text the filter also sees each decoded string and each number, so that
// an escape cannot hide a text from it. A filter that has failed returns no text.
func (x *filter) filterText(text string) string {
	if text == "" || x.failed != nil {
		return ""
	}
	after := scrub.Walker{Text: x.once, Number: func(_, digits string) string { return x.once(digits) }}.String(text)
	if scrub.IsJSON(text) {
		after = x.once(after)
	}
	if x.failed != nil {
		return ""
	}
	x.changed = x.changed || after != text
	return after
}

// once calls the function and recovers its panic.
func (x *filter) once(text string) (after string) {
	if text == "" || x.failed != nil {
		return ""
	}
	returned := false
	defer func() {
		if !returned {
			_ = recover()
			after, x.failed = "", errFilterPanicked
		}
	}()
	after, err := x.f(text)
	if returned = true; err != nil {
		after, x.failed = "", err
	}
	return after
}

// filters are the filters that the point's controls have returned so far, in order.
type filters []*filter

// filterEach returns the text after all filters.
func (l filters) filterEach(text string) string {
	for _, x := range l {
		text = x.filterText(text)
	}
	return text
}

// firstFailure returns the first filter that has failed, or nil.
func (l filters) firstFailure() *filter {
	for _, x := range l {
		if x.failed != nil {
			return x
		}
	}
	return nil
}

// filterSignal returns the filtered signal, which may be nil.
func (l filters) filterSignal(s *agent.Signal) *agent.Signal {
	if s == nil || len(l) == 0 {
		return s
	}
	after := s.MapText(l.filterEach)
	return &after
}

// outcome returns a hook's filtered outcome.
func (l filters) outcome(o *Outcome) *Outcome {
	if o == nil || len(l) == 0 || o.plain() {
		return o
	}
	after := *o
	after.reason, after.effects = l.filterEach(o.reason), o.effects.MapText(l.filterEach)
	if o.content != nil {
		content := o.content.MapText(l.filterEach)
		after.content = &content
	}
	if o.reply != nil {
		reply := l.filterReply(*o.reply)
		after.reply = &reply
	}
	return &after
}

// filterReply returns the model's filtered turn: its text, reasoning and calls, and middleware's effects and stop.
func (l filters) filterReply(reply agent.Step) agent.Step {
	if len(l) == 0 {
		return reply
	}
	reply.Message = reply.Message.MapText(l.filterEach)
	reply.Prior, reply.Effects = reply.Prior.MapText(l.filterEach), reply.Effects.MapText(l.filterEach)
	reply.Stop = l.filterSignal(reply.Stop)
	return reply
}

// filterResult returns the filtered answer to a call.
func (l filters) filterResult(r *agent.ToolResult) *agent.ToolResult {
	if len(l) == 0 {
		return r
	}
	n := *r
	n.Content, n.Err, n.Stop, n.Effects = r.Content.MapText(l.filterEach), l.filterError(r.Err), l.filterSignal(r.Stop), r.Effects.MapText(l.filterEach)
	n.DecidedBy = l.filterEach(r.DecidedBy)
	if !r.Reason.Known() {
		n.Reason = agent.ReasonCode(l.filterEach(string(r.Reason)))
	}
	return &n
}

// filterOutcome returns the filtered outcome for observers.
func (l filters) filterOutcome(o *Outcome) *Outcome {
	if l.firstFailure() != nil { // o is the outcome for that failure
		return o
	}
	return l.outcome(o)
}

// abort returns the filtered error of a hook whose failure aborts the run. The result is still this hook's HookError.
func (l filters) abort(err error) error {
	if failed, ok := err.(*HookError); ok { //nolint:errorlint // an error that wraps it is another error
		return &HookError{Hook: failed.Hook, Point: failed.Point, Err: l.filterError(failed.Err)}
	}
	return l.filterError(err)
}

// failure returns the outcome for a filter that failed: nothing leaves the point.
func (x *filter) failure(at *pointInfo) *Outcome {
	return &Outcome{decision: Withhold, point: at.name, hook: x.hook, failed: true, reason: x.failed.Error()}
}

// heldEvents are hooks' events at a point where filters apply. Beginning with the first event that has a text, they are
// held back until all controls were asked. A nil *heldEvents holds nothing back.
type heldEvents []heldEvent

type heldEvent struct {
	ctx   context.Context //nolint:containedctx // of the hook
	state agent.State
	event Event
}

// holdOrSend sends an event to the run's observer, or holds it back.
func (h *heldEvents) holdOrSend(ctx context.Context, s agent.State, e Event) {
	switch {
	case !s.Observed():
	case h == nil, len(*h) == 0 && e.Reason == "" && e.Err == nil && (e.Outcome == nil || e.Outcome.plain()):
		s.Emit(ctx, e)
	default:
		e.At = time.Now()
		*h = append(*h, heldEvent{ctx, s, e})
	}
}

// release sends the held events, with the point's filters applied.
func (h *heldEvents) release(l filters) {
	if h == nil {
		return
	}
	for _, held := range *h {
		held.state.Emit(held.ctx, l.event(held.event))
	}
	*h = nil
}

// event returns a hook's filtered event.
func (l filters) event(e Event) Event {
	if x := l.find(e.Hook); x != nil && e.Decision == Filter {
		if x.failed != nil {
			e.Kind, e.Policy, e.Err, e.Decision, e.Reason, e.Outcome = HookFailed, failClosed.String(), x.failed, "", "", nil
			return e
		}
		e = e.withFilter(x.changed)
	}
	e.Reason, e.Err, e.Outcome = l.filterEach(e.Reason), l.filterError(e.Err), l.outcome(e.Outcome)
	return e
}

// find returns the hook's filter, or nil.
func (l filters) find(hook string) *filter {
	for _, x := range l {
		if x.hook == hook {
			return x
		}
	}
	return nil
}

// withFilter returns a filter's event. Its decision is Replace if the filter changed a text, and otherwise Pass.
func (e Event) withFilter(changed bool) Event {
	e.Outcome = e.Outcome.withFilter(changed)
	if e.Decision = e.Outcome.decision; e.Outcome.plain() {
		e.Decision, e.Outcome = Pass, nil
	}
	return e
}

// withFilter returns a filter's outcome for observers.
func (o *Outcome) withFilter(changed bool) *Outcome {
	n := *o
	n.decision, n.filter = Allow, nil
	if changed {
		n.decision = Replace
	}
	return &n
}

// wouldChange reports whether a filter in shadow would change a text. apply applies filters to all text.
func (o *Outcome) wouldChange(apply func(filters)) bool {
	x := &filter{hook: o.hook, f: o.filter}
	apply(filters{x})
	return x.changed || x.failed != nil
}

// filterOutcome returns the answer of a hook that filters.
func filterOutcome(f func(text string) string) Outcome {
	if f == nil {
		return Outcome{decision: Filter, invalid: missingFilter(true)}
	}
	return Outcome{decision: Filter, filter: func(text string) (string, error) { return f(text), nil }}
}

func missingFilter(missing bool) error {
	if missing {
		return errors.New("the filter is nil")
	}
	return nil
}
