package coordinator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/policy"
)

// hookFailed reports whether a hook has failed and is not called again.
func hookFailed(h wire.HookEvent) bool {
	return (h.EventType == wire.EventHookFailed || h.EventType == wire.EventHookTimeout) && h.OnErrorBehavior != "retry"
}

// eventLog collects the events of the hooks of one run until they are written with its journal. It is an agent.Observer, and
// safe for concurrent use.
type eventLog struct {
	about durable.Run // the run that the hooks are about

	writing sync.Mutex // held while events are written or dropped

	mu      sync.Mutex
	started map[hookCall]time.Time
	ended   map[hookCall]bool
	asked   map[string]int // how often each hook was asked in this process
	// runs are the runs that calls have started, and known those of them that are in written events: these were submitted.
	runs, known map[hookCall]agent.RunID
	// rules are the rules of the hooks. A hook whose action is not awaited has two calls: one that begins the action, and one, without an
	// origin, that is the action. Begun are the origins of the first ones, by the hook, and their ends, which count if no action follows.
	rules   map[string]policy.Rule
	begun   map[string]*hooks.Origin
	ends    []*waitingEvent
	waiting []*waitingEvent
	// failures are the hooks that have failed, by their types and names, in the order in which they were called first.
	failures []failedHook
	// report receives each event when it is written, with what it was made of; nil for none.
	report func(context.Context, wire.HookEvent, hooks.Event)
}

// failedHook is a hook whose last call has failed.
type failedHook struct{ hook, text string }

// waitingEvent is an event that is written with the journal, and then reported.
type waitingEvent struct {
	wire.HookEvent

	call   hookCall
	report func(wire.HookEvent)
	// held is set for the beginning of a call that will start a run: it is written when the run is known, or with the outcome.
	held bool
}

// newEventLog returns the log for a run, with the events that were written for its hooks.
func newEventLog(about durable.Run, written []durable.Event) *eventLog {
	l := &eventLog{
		about: about, started: map[hookCall]time.Time{}, ended: map[hookCall]bool{}, asked: map[string]int{},
		runs: map[hookCall]agent.RunID{}, known: map[hookCall]agent.RunID{}, rules: map[string]policy.Rule{}, begun: map[string]*hooks.Origin{},
	}
	times := map[string]int{}
	for _, e := range written {
		var h wire.HookEvent
		if !isHookEvent(e.Name) || json.Unmarshal(e.Data, &h) != nil {
			continue
		}
		if h.EventType == wire.EventHookStart {
			times[h.Hook]++
		}
		call := hookCall{h.Hook, times[h.Hook]}
		if h.HookRunID != "" {
			l.runs[call], l.known[call] = h.HookRunID, h.HookRunID
		}
		if h.EventType == wire.EventHookStart {
			l.started[call] = h.Timestamp
		} else {
			l.ended[call] = true
			l.noteFailure(h)
		}
	}
	return l
}

// hookCall identifies one call of a hook. Hooks are called in the same order again when another process continues.
type hookCall struct {
	hook string
	time int // counted from one
}

func isHookEvent(name string) bool {
	return slices.Contains([]string{wire.EventHookStart, wire.EventHookComplete, wire.EventHookFailed, wire.EventHookBlocked, wire.EventHookTimeout}, name)
}

// noteFailure notes whether the last call of a hook has failed.
func (l *eventLog) noteFailure(h wire.HookEvent) {
	hook := h.HookType + " " + h.Hook
	l.failures = slices.DeleteFunc(l.failures, func(f failedHook) bool { return f.hook == hook })
	if hookFailed(h) {
		l.failures = append(l.failures, failedHook{hook, h.Failure()})
	}
}

// failureTexts returns what the hooks have failed with, as Failure does.
func (l *eventLog) failureTexts() (texts []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.failures {
		texts = append(texts, f.text)
	}
	return texts
}

// describeFailure returns the failure of a hook, or one with another text if no call of it has failed.
func (l *eventLog) describeFailure(point hooks.PointName, hook string, otherwise any) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.failures {
		if f.hook == hookTypes[point]+" "+hook {
			return f.text
		}
	}
	return fmt.Sprintf("%s hook %s failed: %v", hookTypes[point], hook, otherwise)
}

// noteRun notes the run that the current call of a hook has started. Its beginning may be written then.
func (l *eventLog) noteRun(hook string, id agent.RunID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	call := hookCall{hook, max(l.asked[hook], 1)}
	l.runs[call] = id
	for _, e := range l.waiting {
		if e.call == call && e.held {
			e.HookRunID, e.held = id, false
		}
	}
}

// knownRun returns the run that the current call of a hook has started before a crash; empty for none.
func (l *eventLog) knownRun(hook string) agent.RunID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known[hookCall{hook, l.asked[hook]}]
}

// noteWaits notes the runs that hooks wait for, or have waited for: when the result of one is in the journal, its hook is not
// called again. The last call of the hook has started it.
func (l *eventLog) noteWaits(waits []durable.Wait) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range waits {
		if w.Kind != durable.WaitChild || !strings.HasPrefix(w.Subject, hookWaitPrefix) {
			continue
		}
		call := hookCall{w.Tool, 1}
		for !l.started[hookCall{w.Tool, call.time + 1}].IsZero() {
			call.time++
		}
		l.runs[call] = w.Child
	}
}

// hookWaitPrefix begins the subjects of the waits of hooks for their runs.
const hookWaitPrefix = "hook "

// Observe adds the event of a hook, unless it was written before a crash or a wait.
func (l *eventLog) Observe(ctx context.Context, e agent.Event) {
	he, ok := e.(hooks.Event)
	if !ok || hookTypes[he.Point] == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	rule := l.rules[he.Hook]
	notAwaited := rule.Action != "" && !rule.Await
	isAction := notAwaited && he.Origin == nil
	if ctx.Err() != nil && (!notAwaited || he.Kind == hooks.HookSkipped && !isAction) { // it is called again, or its run is stopped
		return
	}
	if he.Kind == hooks.HookStart && !isAction {
		l.asked[he.Hook]++
	}
	call := hookCall{he.Hook, l.asked[he.Hook]}
	now := time.Now()
	switch {
	case isAction && he.Kind == hooks.HookStart:
		l.started[call] = now // it may have waited for others
		return
	case isAction:
		he.Origin = l.begun[he.Hook]
	case notAwaited:
		l.begun[he.Hook] = he.Origin
	}
	if he.Kind == hooks.HookSkipped && (isAction || he.Err != nil) { // it was not called, or took too long and goes on
		if he.Kind = hooks.HookFailed; he.Err == nil {
			he.Err = errors.New(he.Reason)
		}
	}
	h := wire.HookEvent{
		SessionID: l.about.Session, RunID: l.about.ID, Timestamp: now.UTC(), Hook: he.Hook, HookType: hookTypes[he.Point], HookRunID: l.runs[call],
	}
	if he.Origin != nil {
		h.TargetType, h.TargetName = he.Origin.Action, he.Origin.Target
	}
	switch he.Kind {
	case hooks.HookStart:
		if _, before := l.started[call]; before {
			return
		}
		l.started[call] = now
		h.EventType = wire.EventHookStart
	case hooks.HookComplete, hooks.HookBlocked, hooks.HookFailed, hooks.HookTimeout:
		if l.ended[call] {
			return
		}
		took := now.Sub(l.started[call]).Milliseconds()
		h.DurationMS = &took
		l.describe(&h, he)
	default:
		return
	}
	if h.DurationMS != nil {
		he.At, he.Duration = now, time.Duration(*h.DurationMS)*time.Millisecond
	}
	report := func(h wire.HookEvent) {
		if l.report != nil {
			l.report(ctx, h, he)
		}
	}
	event := &waitingEvent{h, call, report, h.EventType == wire.EventHookStart && rule.Action == (action.Agent{}).Type()}
	if h.EventType == wire.EventHookComplete && notAwaited && !isAction {
		l.ends = append(l.ends, event)
		return
	}
	l.add(event)
}

// add adds an event to those that wait. An outcome lets the beginning of its call be written.
func (l *eventLog) add(event *waitingEvent) {
	if event.EventType != wire.EventHookStart {
		l.ended[event.call] = true
		l.noteFailure(event.HookEvent)
		for _, e := range l.waiting {
			e.held = e.held && e.call != event.call
		}
	}
	l.waiting = append(l.waiting, event)
}

// endBegun adds the ends of the calls that have begun no action. Call it when all actions have ended.
func (l *eventLog) endBegun() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, end := range l.ends {
		if !l.ended[end.call] {
			l.add(end)
		}
	}
	l.ends = nil
}

// describe sets the outcome of a hook.
func (l *eventLog) describe(h *wire.HookEvent, e hooks.Event) {
	atStart := e.Point == hooks.RunStart
	switch e.Kind {
	case hooks.HookBlocked:
		h.EventType, h.Action, h.BlockReason = wire.EventHookBlocked, "block", orNoReason(e.Reason)
	case hooks.HookFailed, hooks.HookTimeout:
		h.EventType = wire.EventHookFailed
		fault, ok := errors.AsType[*action.Error](e.Err)
		if ok {
			h.ErrorBody = fault.Body
		}
		if e.Kind == hooks.HookTimeout || ok && fault.Fault == action.FaultTimeout {
			h.EventType = wire.EventHookTimeout
		}
		h.OnErrorBehavior, h.OnError = behaviours[cmp.Or(e.Policy, "open")], l.rules[e.Hook].OnFailure
		if word := l.rules[e.Hook].OnFailure; e.Policy != "retry" && word != "retry" && word != "" && !decidesRun(e.Point) {
			h.OnErrorBehavior = behaviours[word]
		}
		if e.Err != nil {
			h.Error = e.Err.Error()
		}
	default:
		h.EventType = wire.EventHookComplete
		switch {
		case atStart:
			h.Action = "continue"
		case e.Decision == hooks.Replace:
			h.Action = string(hooks.Replace)
		}
		if e.Decision == hooks.Rewrite && e.Before != e.After {
			h.ParametersTransformed, h.Before, h.After = true, json.RawMessage(e.Before), json.RawMessage(e.After)
		}
	}
}

// behaviours maps failure policies to the on_error values that events name.
var behaviours = map[string]string{
	"closed": "block", "block": "block", "abort": "block", "retry": "retry", "open": "continue", "continue": "continue", "ignore": "continue",
}

// dropEnds removes the ends of hooks that wait to be written: their firing ended because something waits in the store.
func (l *eventLog) dropEnds() {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends = nil
	l.waiting = slices.DeleteFunc(l.waiting, func(e *waitingEvent) bool { return e.EventType != wire.EventHookStart })
	l.failures = nil
}

// write calls do with the events so far, and removes them if it succeeds. Calls wait for each other, so that no event is written
// twice: an action may still run when the run of its hook ends. Without always, do is not called when there are no events, and held
// events stay.
func (l *eventLog) write(always bool, do func(events []durable.Event) error) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	writing := lo.Filter(l.waiting, func(e *waitingEvent, _ int) bool { return always || !e.held })
	events := lo.Map(writing, func(e *waitingEvent, _ int) durable.Event {
		data, _ := json.Marshal(e.HookEvent)
		out := durable.Event{At: e.Timestamp, Name: e.EventType, Data: data}
		if e.EventType != wire.EventHookStart && e.OnErrorBehavior != "retry" { // the call has ended
			out.Hook, out.Decision = e.Hook, decisionOf(e.HookEvent)
			out.Took = time.Duration(lo.FromPtr(e.DurationMS)) * time.Millisecond
		}
		return out
	})
	l.mu.Unlock()
	if len(events) == 0 && !always {
		return nil
	}
	if err := do(events); err != nil {
		return err
	}
	l.mu.Lock()
	for _, e := range writing {
		if e.HookRunID != "" {
			l.known[e.call] = e.HookRunID
		}
	}
	l.waiting = slices.DeleteFunc(l.waiting, func(e *waitingEvent) bool { return slices.Contains(writing, e) })
	l.mu.Unlock()
	for _, e := range writing {
		e.report(e.HookEvent)
	}
	return nil
}

// decisionOf returns what a hook has decided; empty if that is not counted.
func decisionOf(h wire.HookEvent) durable.Decision {
	switch {
	case hookFailed(h) && h.EventType == wire.EventHookTimeout:
		return durable.DecisionTimeout
	case hookFailed(h):
		return durable.DecisionFailed
	case h.EventType == wire.EventHookBlocked && h.HookType == hookTypeStart:
		return durable.DecisionBlocked
	case h.EventType == wire.EventHookBlocked:
		return durable.DecisionWithheld
	case h.ParametersTransformed || h.Action == string(hooks.Replace):
		return durable.DecisionRewritten
	}
	return ""
}

// noReason is the reason of a hook that blocks a run and gives none.
const noReason = "No reason provided"

func orNoReason(reason string) string {
	if strings.TrimSpace(reason) == "" {
		return noReason
	}
	return reason
}
