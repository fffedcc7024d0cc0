// Package history checks what the API of a coordinator says about runs: that no event is missing, and that each decision was
// recorded once. It reads nothing itself: "grapnel runs check" does.
package history

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// Problem is something that cannot be in the history of a run.
type Problem struct {
	Run   agent.RunID `json:"run_id"`
	Agent string      `json:"agent_name"`
	Text  string      `json:"problem"`
}

// Checker checks runs one after the other, and then what they say about each other. Its zero value is ready for use.
type Checker struct {
	problems []Problem
	failures []Problem
	// Runs, Events and Hooks count what was checked; Open counts the runs that have not ended.
	Runs, Events, Hooks, Open int

	started  map[agent.RunID]agent.RunID // the run whose hook has started a run, by its events
	children []wire.Run                  // those that a hook before a run has started
	decided  map[agent.RunID]bool        // the hooks before the run have decided
}

// Add checks a run. The events are all that the run has; those of a run that has ended must have been read after its end.
func (c *Checker) Add(d wire.RunDetail, events []wire.EventView) {
	if c.started == nil {
		c.started, c.decided = map[agent.RunID]agent.RunID{}, map[agent.RunID]bool{}
	}
	r := &run{d: d, events: events, over: isOver(d.Status)}
	r.checkNumbers()
	r.cutEnd()
	r.checkHooks()
	r.checkBefore()
	r.checkAfter()
	r.checkParameters()
	r.checkEnd()
	r.checkAgent()
	for _, text := range r.problems {
		c.report(d.Run, "%s", text)
	}
	c.Runs++
	c.Events += len(events)
	c.Hooks += len(d.Hooks)
	c.decided[d.RunID] = r.over && d.Status != wire.Stopped // a stop ends its hooks
	if !r.over {
		c.Open++
	}
	for _, h := range d.Hooks {
		if h.HookRunID == "" {
			continue
		}
		if other := c.started[h.HookRunID]; other != "" && other != d.RunID {
			c.report(d.Run, "hook %s: run %s is that of a hook of run %s, too", h.Hook, h.HookRunID, other)
		}
		c.started[h.HookRunID] = d.RunID
	}
	for _, text := range d.FailedHooks {
		c.failures = append(c.failures, Problem{d.RunID, d.AgentName, text})
	}
	if d.Hook == string(onRunStart) {
		c.children = append(c.children, d.Run)
	}
}

// RequireEnds reports the runs that have not ended.
func (c *Checker) RequireEnds(runs ...wire.Run) {
	for _, r := range runs {
		if !isOver(r.Status) {
			c.report(r, "the run has not ended: it is %s", r.Status)
		}
	}
}

// Problems returns what is wrong with the runs that were added.
func (c *Checker) Problems() []Problem {
	all := slices.Clone(c.problems)
	for _, child := range c.children {
		if c.decided[child.ParentRunID] && c.started[child.RunID] != child.ParentRunID {
			all = append(all, Problem{child.RunID, child.AgentName, fmt.Sprintf(
				"a hook of run %s has started the run, and no event of that run says so", child.ParentRunID)})
		}
	}
	return all
}

// Failures returns the hooks around the runs that have failed.
func (c *Checker) Failures() []Problem { return slices.Clone(c.failures) }

func (c *Checker) report(r wire.Run, format string, args ...any) {
	c.problems = append(c.problems, Problem{r.RunID, r.AgentName, fmt.Sprintf(format, args...)})
}

func isOver(s wire.Status) bool {
	return s == wire.Completed || s == wire.Failed || s == wire.Stopped
}

type hookType string

// The types of hooks, in the order in which they are called.
const (
	onRunStart  hookType = "on_run_start"
	onResult    hookType = "on_result" // before the run ends
	onError     hookType = "on_error"
	onTimeout   hookType = "on_timeout"
	onRunFinish hookType = "on_run_finish"
)

// run is one run that is checked.
type run struct {
	d        wire.RunDetail
	events   []wire.EventView
	over     bool
	problems []string
}

func (r *run) report(format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

// checkNumbers checks that the events are numbered from one without gaps.
func (r *run) checkNumbers() {
	last := int64(0)
	for _, e := range r.events {
		switch {
		case e.Seq <= last:
			r.report("event %d (%s) follows event %d: it is out of order, or there twice", e.Seq, e.Type, last)
		case e.Seq > last+1:
			r.report("event %d (%s) follows event %d: events are missing", e.Seq, e.Type, last)
		}
		last = max(last, e.Seq)
	}
}

// cutEnd checks how the events say that the run has ended, and removes that and what follows: the events of the hooks after the run.
func (r *run) cutEnd() {
	ends := map[string]wire.Status{
		wire.EventRunCompleted: wire.Completed, wire.EventRunFailed: wire.Failed, wire.EventRunStopped: wire.Stopped,
	}
	at := slices.IndexFunc(r.events, func(e wire.EventView) bool { return ends[e.Type] != "" })
	if at < 0 {
		return
	}
	end := r.events[at]
	if ends[end.Type] != r.d.Status {
		r.report("event %d says %s, and the run is %s", end.Seq, end.Type, r.d.Status)
	}
	r.events = r.events[:at]
}

// hookEvents returns the events of hooks of some types.
func (r *run) hookEvents(types ...hookType) (list []wire.HookEvent) {
	for _, h := range r.d.Hooks {
		if slices.Contains(types, hookType(h.HookType)) {
			list = append(list, h)
		}
	}
	return list
}

// checkHooks checks that each call of a hook has a beginning and then one end.
func (r *run) checkHooks() {
	open := map[string]bool{}
	for _, h := range r.d.Hooks {
		name := h.HookType + " hook " + h.Hook
		if h.RunID != r.d.RunID || h.SessionID != r.d.SessionID {
			r.report("%s: its event is about run %s of session %s", name, h.RunID, h.SessionID)
		}
		switch {
		case h.EventType == wire.EventHookStart && open[name]:
			r.report("%s begins twice", name)
		case h.EventType == wire.EventHookStart:
			open[name] = true
		case !open[name]:
			r.report("%s: %s without a beginning: its outcome is recorded twice, or its beginning is missing", name, h.EventType)
		default:
			open[name] = false
		}
	}
	for _, name := range slices.Sorted(maps.Keys(open)) {
		before := strings.HasPrefix(name, string(onRunStart))
		if open[name] && before && r.over && r.d.Status != wire.Stopped { // a stop ends its hooks
			r.report("%s has no outcome, and the run has ended", name)
		}
	}
}

// checkBefore checks the hooks before the run: nothing of the run itself comes before their decision, and a run that they have blocked
// does nothing.
func (r *run) checkBefore() {
	inRun := ""
	stored := 0
	for _, e := range r.events {
		var h wire.HookEvent
		isHook := strings.HasPrefix(e.Type, "hook_") && json.Unmarshal(e.Data, &h) == nil && hookType(h.HookType) == onRunStart
		switch {
		case isHook && inRun != "":
			r.report("event %d: a hook before the run comes after %s", e.Seq, inRun)
		case !isHook && inRun == "":
			inRun = e.Type
		}
		if isHook {
			stored++
		}
	}
	before := r.hookEvents(onRunStart)
	if stored != len(before) {
		r.report("the run has %d events of hooks before it, and its timeline %d", stored, len(before))
	}
	if len(before) == 0 {
		return
	}
	last := before[len(before)-1]
	for _, h := range before[:len(before)-1] {
		if h.EventType == wire.EventHookBlocked {
			r.report("hook %s has blocked the run, and further hooks were called", h.Hook)
		}
	}
	switch blocked := last.EventType == wire.EventHookBlocked; {
	case blocked && (r.d.Status != wire.Failed || !r.d.Blocked):
		r.report("hook %s has blocked the run, and the run is %s", last.Hook, r.d.Status)
	case blocked && inRun != "":
		r.report("hook %s has blocked the run, and the run has the event %s", last.Hook, inRun)
	case blocked && (r.d.Error == nil || !strings.HasSuffix(*r.d.Error, last.BlockReason)):
		r.report("hook %s has blocked the run, and its error has not the reason %q", last.Hook, last.BlockReason)
	case r.d.Blocked && !blocked && inRun == "":
		r.report("the run is blocked, and no hook has blocked it")
	}
}

// checkAfter checks the hooks after the run: each is called once, and only after the end.
func (r *run) checkAfter() {
	order := []hookType{onError, onTimeout, onRunFinish}
	after := r.hookEvents(order...)
	if len(after) > 0 && !r.over {
		r.report("hooks after the run were called, and the run is %s", r.d.Status)
	}
	ends := map[string]int{}
	last := 0
	for _, h := range after {
		at := slices.Index(order, hookType(h.HookType))
		if at < last {
			r.report("%s hook %s was called after those of %s", h.HookType, h.Hook, order[last])
		}
		last = max(last, at)
		if h.EventType != wire.EventHookStart && h.OnErrorBehavior != "retry" {
			ends[h.HookType+" hook "+h.Hook]++
		}
		if hookType(h.HookType) == onError && r.over && r.d.Status != wire.Failed {
			r.report("on_error hook %s was called, and the run is %s", h.Hook, r.d.Status)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ends)) {
		if ends[name] > 1 {
			r.report("%s was told %d times that the run has ended", name, ends[name])
		}
	}
}

// checkParameters checks that the parameters of the run are those that its hooks have returned, one after the other.
func (r *run) checkParameters() {
	first := r.d.OriginalParameters
	if first == nil {
		first = r.d.Parameters
	}
	now, decided := first, false
	for _, h := range r.hookEvents(onRunStart) {
		if !h.ParametersTransformed {
			continue
		}
		if !isEqual(now, h.Before) {
			r.report("hook %s has changed parameters that the run did not have: %s", h.Hook, h.Before)
		}
		now, decided = h.After, true
	}
	passed := r.d.Status != wire.Hooking && !r.d.Blocked && len(r.events) > len(r.hookEvents(onRunStart))
	if passed && !isEqual(now, r.d.Parameters) {
		r.report("the run has the parameters %s, and its hooks have returned %s", r.d.Parameters, now)
	}
	if r.d.OriginalParameters != nil && !decided && !isEqual(r.d.OriginalParameters, r.d.Parameters) {
		r.report("the parameters were changed, and no hook has changed them")
	}
}

// isEqual reports whether two parameters are equal, but for the callbacks that the coordinator adds for a session that is resumed.
func isEqual(a, b json.RawMessage) bool {
	one, err := withoutCallbacks(a)
	other, failed := withoutCallbacks(b)
	return err == nil && failed == nil && one == other
}

func withoutCallbacks(params json.RawMessage) (string, error) {
	var all map[string]json.RawMessage
	if err := strictjson.Unmarshal(params, &all); err != nil {
		return "", err
	}
	delete(all, "callbacks")
	text, err := json.Marshal(all)
	if err != nil {
		return "", err
	}
	return strictjson.Canonical(string(text))
}

// checkEnd checks the result.
func (r *run) checkEnd() {
	hasText, hasData, hasError := r.d.ResultText != nil, len(r.d.ResultData) > 0 && string(r.d.ResultData) != "null", r.d.Error != nil
	switch {
	case !r.over && (hasText || hasData || hasError):
		r.report("the run is %s, and has a result", r.d.Status)
	case r.d.Status == wire.Completed && (hasText == hasData || hasError):
		r.report("the run is completed: expected one result and no error")
	case r.over && r.d.Status != wire.Completed && (hasText || hasData || !hasError):
		r.report("the run is %s: expected an error and no result", r.d.Status)
	case r.d.Blocked && r.d.Status != wire.Failed:
		r.report("the run is blocked, and %s", r.d.Status)
	}
}

// agentEvent is what the events of agents have in common.
type agentEvent struct {
	Run  agent.RunID `json:"run"`
	Step int         `json:"step"`
	Call struct {
		ID string `json:"id"`
	} `json:"call"`
}

// checkAgent checks the events of an agent: it ends once, and so does each call of a tool.
func (r *run) checkAgent() {
	ends, calls := 0, map[string]int{}
	for _, e := range r.events {
		var a agentEvent
		if json.Unmarshal(e.Data, &a) != nil || cmp.Or(a.Run, r.d.RunID) != r.d.RunID { // that of a sub-agent
			continue
		}
		switch e.Type {
		case agent.RunCompleted{}.EventName():
			if ends++; !r.over && r.d.Status != wire.Hooking { // hooks decide about its result
				r.report("event %d: the agent has ended, and the run is %s", e.Seq, r.d.Status)
			}
		case agent.ToolCallCompleted{}.EventName():
			calls[fmt.Sprintf("step %d, call %s", a.Step, a.Call.ID)]++
		}
	}
	if ends > 1 {
		r.report("the agent has ended %d times", ends)
	}
	for _, call := range slices.Sorted(maps.Keys(calls)) {
		if calls[call] > 1 {
			r.report("%s has ended %d times", call, calls[call])
		}
	}
}
