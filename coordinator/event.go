package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
)

// The types of the events of hooks around runs. They are the names of stored events; their data is a HookEvent.
const (
	EventHookStart    = "hook_start"
	EventHookComplete = "hook_complete"
	EventHookFailed   = "hook_failed"
	EventHookBlocked  = "hook_blocked"
	EventHookTimeout  = "hook_timeout"
)

// HookEvent is what happened to a hook around a run.
type HookEvent struct {
	EventType string          `json:"event_type"`
	SessionID agent.SessionID `json:"session_id"`
	RunID     agent.RunID     `json:"run_id"`
	Timestamp time.Time       `json:"timestamp"`
	// Hook is the name of the hook, HookType its point, such as on_run_start.
	Hook     string `json:"hook"`
	HookType string `json:"hook_type"`
	// TargetType is the type of the action, TargetName its agent, host, program or func.
	TargetType string `json:"target_type"`
	TargetName string `json:"target_name"`
	// HookRunID is the run that the hook has started.
	HookRunID agent.RunID `json:"hook_run_id,omitempty"`
	// DurationMS is how long the hook took, in milliseconds; absent in hook_start.
	DurationMS *int64 `json:"duration_ms,omitempty"`
	// Action is continue or block, at on_run_start. ParametersTransformed says that the hook has changed the parameters;
	// Before and After are the parameters then.
	Action                string          `json:"action,omitempty"`
	ParametersTransformed bool            `json:"parameters_transformed,omitempty"`
	Before                json.RawMessage `json:"before,omitzero"`
	After                 json.RawMessage `json:"after,omitzero"`
	BlockReason           string          `json:"block_reason,omitempty"`
	// Error is why the hook has failed, OnErrorBehavior what followed: block, continue or retry.
	Error           string `json:"error,omitempty"`
	OnErrorBehavior string `json:"on_error_behavior,omitempty"`
}

// failed reports whether the hook has failed and is not called again.
func (h HookEvent) failed() bool {
	return (h.EventType == EventHookFailed || h.EventType == EventHookTimeout) && h.OnErrorBehavior != "retry"
}

// defaultHook matches the names of hooks to which their blueprint gives none: their point, and their number at it.
var defaultHook = regexp.MustCompile(`/[A-Za-z]+-([0-9]+)$`)

// Title names the hook for people, as its blueprint does: "on_run_start hook 2 (agent month-check)".
func (h HookEvent) Title() string {
	text := h.HookType + " hook"
	if number := defaultHook.FindStringSubmatch(h.Hook); number == nil {
		text += " " + h.Hook[strings.LastIndexByte(h.Hook, '/')+1:]
	} else if number[1] != "1" {
		text += " " + number[1]
	}
	if h.TargetType != "" {
		text += " (" + strings.TrimSpace(h.TargetType+" "+h.TargetName) + ")"
	}
	return text
}

// Failure says that the hook has failed, and why.
func (h HookEvent) Failure() string { return h.Title() + " failed: " + h.Error }

// eventLog collects the events of the hooks of one run until they are written with its journal. It is an agent.Observer, and
// safe for concurrent use.
type eventLog struct {
	about durable.Run // the run that the hooks are about

	writing sync.Mutex // held while events are written or dropped

	mu      sync.Mutex
	started map[askID]time.Time
	ended   map[askID]bool
	asked   map[string]int         // how often each hook was asked in this process
	runs    map[string]agent.RunID // by the hook
	// notAwaited are the hooks whose actions are not awaited. Such a hook has two calls: one that begins the action, and one, without an
	// origin, that is the action. Begun are the origins of the first ones, by the hook, and their ends, which count if no action follows.
	notAwaited map[string]bool
	begun      map[string]*hooks.Origin
	ends       []heldEnd
	waiting    []heldEvent
	// failures are the hooks that have failed, by their types and names, in the order in which they were called first.
	failures []failedHook
	// report receives each event when it is written; nil for none.
	report func(heldEvent)
}

// failedHook is a hook whose last call has failed.
type failedHook struct{ hook, text string }

// heldEvent is an event that is written with the journal, and then reported.
type heldEvent struct {
	stored durable.Event
	event  HookEvent
	hook   hooks.Event
	within context.Context //nolint:containedctx // of the call of the hook, which has its span
}

// newEventLog returns the log for a run, with the events that were written for its hooks.
func newEventLog(about durable.Run, written []durable.Event) *eventLog {
	l := &eventLog{
		about: about, started: map[askID]time.Time{}, ended: map[askID]bool{}, asked: map[string]int{}, runs: map[string]agent.RunID{},
		notAwaited: map[string]bool{}, begun: map[string]*hooks.Origin{},
	}
	times := map[string]int{}
	for _, e := range written {
		var h HookEvent
		if !isHookEvent(e.Name) || json.Unmarshal(e.Data, &h) != nil {
			continue
		}
		hook := h.HookType + " " + h.Hook
		if h.EventType == EventHookStart {
			times[hook]++
			l.started[askID{hook, times[hook]}] = h.Timestamp
		} else {
			l.ended[askID{hook, times[hook]}] = true
			l.noteFailure(h)
		}
	}
	return l
}

// askID identifies one call of a hook. Hooks are called in the same order again when another process continues.
type askID struct {
	hook string // its type and name
	time int    // counted from one
}

func isHookEvent(name string) bool {
	return slices.Contains([]string{EventHookStart, EventHookComplete, EventHookFailed, EventHookBlocked, EventHookTimeout}, name)
}

// noteFailure notes whether the last call of a hook has failed.
func (l *eventLog) noteFailure(h HookEvent) {
	hook := h.HookType + " " + h.Hook
	l.failures = slices.DeleteFunc(l.failures, func(f failedHook) bool { return f.hook == hook })
	if h.failed() {
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

// noteRun notes the run that a hook has started.
func (l *eventLog) noteRun(hook string, id agent.RunID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs[hook] = id
}

// noteWaits notes the runs that hooks wait for, or have waited for: when the result of one is in the journal, its hook is not
// called again.
func (l *eventLog) noteWaits(waits []durable.Wait) {
	for _, w := range waits {
		if w.Kind == durable.WaitChild && strings.HasPrefix(w.ID, hookWaitPrefix) {
			l.noteRun(w.Tool, w.Child)
		}
	}
}

// hookWaitPrefix begins the IDs of the waits of hooks for their runs.
const hookWaitPrefix = "hook "

// Observe adds the event of a hook, unless it was written before a crash or a wait.
func (l *eventLog) Observe(ctx context.Context, e agent.Event) {
	he, ok := e.(hooks.Event)
	if !ok || hookTypes[he.Point] == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	isAction := l.notAwaited[he.Hook] && he.Origin == nil
	switch {
	case isAction && he.Kind == hooks.HookStart:
		return
	case isAction:
		he.Origin = l.begun[he.Hook]
		if he.Kind == hooks.HookSkipped {
			he.Kind, he.Err = hooks.HookFailed, errors.New(he.Reason)
		}
	case l.notAwaited[he.Hook]:
		l.begun[he.Hook] = he.Origin
	}
	now := time.Now()
	h := HookEvent{
		SessionID: l.about.Session, RunID: l.about.ID, Timestamp: now.UTC(), Hook: he.Hook, HookType: hookTypes[he.Point], HookRunID: l.runs[he.Hook],
	}
	if he.Origin != nil {
		h.TargetType, h.TargetName = he.Origin.Action, he.Origin.Target
	}
	hook := h.HookType + " " + h.Hook
	if he.Kind == hooks.HookStart {
		l.asked[hook]++
	}
	key := askID{hook, l.asked[hook]}
	switch he.Kind {
	case hooks.HookStart:
		if _, before := l.started[key]; before {
			return
		}
		l.started[key] = now
		h.EventType = EventHookStart
	case hooks.HookComplete, hooks.HookBlocked, hooks.HookFailed, hooks.HookTimeout:
		if l.ended[key] {
			return
		}
		took := now.Sub(l.started[key]).Milliseconds()
		h.DurationMS = &took
		l.describe(&h, he)
	default:
		return
	}
	data, _ := json.Marshal(h) //nolint:errchkjson // texts and numbers can always be written
	if h.DurationMS != nil {
		he.At, he.Duration = now, time.Duration(*h.DurationMS)*time.Millisecond
	}
	event := heldEvent{durable.Event{At: now, Name: h.EventType, Data: data}, h, he, ctx}
	if h.EventType == EventHookComplete && l.notAwaited[he.Hook] && !isAction {
		l.ends = append(l.ends, heldEnd{key, event})
		return
	}
	if h.EventType != EventHookStart {
		l.ended[key] = true
		l.noteFailure(h)
	}
	l.waiting = append(l.waiting, event)
}

// heldEnd is the end of a call that begins an action which is not awaited.
type heldEnd struct {
	call  askID
	event heldEvent
}

// endBegun adds the ends of the calls that have begun no action. Call it when all actions have ended.
func (l *eventLog) endBegun() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, end := range l.ends {
		if !l.ended[end.call] {
			l.ended[end.call] = true
			l.waiting = append(l.waiting, end.event)
		}
	}
	l.ends = nil
}

// describe sets the outcome of a hook.
func (*eventLog) describe(h *HookEvent, e hooks.Event) {
	atStart := e.Point == hooks.RunStart
	switch e.Kind {
	case hooks.HookBlocked:
		h.EventType, h.Action, h.BlockReason = EventHookBlocked, "block", orNoReason(e.Reason)
	case hooks.HookFailed, hooks.HookTimeout:
		h.EventType = EventHookFailed
		fault, ok := errors.AsType[*action.Error](e.Err)
		if e.Kind == hooks.HookTimeout || ok && fault.Fault == action.FaultTimeout {
			h.EventType = EventHookTimeout
		}
		switch e.Policy {
		case "closed", "abort":
			h.OnErrorBehavior = "block"
		case "retry":
			h.OnErrorBehavior = "retry"
		default:
			h.OnErrorBehavior = "continue"
		}
		if e.Err != nil {
			h.Error = e.Err.Error()
		}
	default:
		h.EventType = EventHookComplete
		if atStart {
			h.Action = "continue"
		}
		if e.Decision == hooks.Rewrite && e.Before != e.After {
			h.ParametersTransformed, h.Before, h.After = true, json.RawMessage(e.Before), json.RawMessage(e.After)
		}
	}
}

// dropEnds removes the ends of hooks that wait to be written: their firing ended because something waits in the store.
func (l *eventLog) dropEnds() {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends = nil
	l.waiting = slices.DeleteFunc(l.waiting, func(e heldEvent) bool { return e.stored.Name != EventHookStart })
	l.failures = nil
}

// write calls do with the events so far, and removes them if it succeeds. Calls wait for each other, so that no event is written
// twice: an action may still run when the run of its hook ends. Without always, do is not called when there are no events.
func (l *eventLog) write(always bool, do func(events []durable.Event) error) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	events := slices.Clone(l.waiting)
	l.mu.Unlock()
	if len(events) == 0 && !always {
		return nil
	}
	if err := do(lo.Map(events, func(e heldEvent, _ int) durable.Event { return e.stored })); err != nil {
		return err
	}
	for _, e := range events {
		if l.report != nil {
			l.report(e)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = l.waiting[len(events):]
	return nil
}

// noReason is the reason of a hook that blocks a run and gives none.
const noReason = "No reason provided"

func orNoReason(reason string) string {
	if reason == "" {
		return noReason
	}
	return reason
}
