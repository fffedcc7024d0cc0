package coordinator

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
)

// ownEvents are the types of events that only the coordinator writes, so that no runner can claim that a hook has decided or that
// a run has ended.
var ownEvents = []string{
	wire.EventHookStart, wire.EventHookComplete, wire.EventHookFailed, wire.EventHookBlocked, wire.EventHookTimeout,
	wire.EventRunStart, wire.EventRunCompleted, wire.EventRunFailed, wire.EventRunStopped,
}

// maxAlso is how many decisions an event of a runner may have.
const maxAlso = 100

// checkCommit returns an *InvalidError that lists what a runner cannot write about a run.
func checkCommit(r durable.Run, c durable.Commit) error {
	var m mistakes
	if err := c.Check(); err != nil {
		m.add("update.status", "%v", err)
	}
	for i, e := range c.Events {
		if e.Name == "" || slices.Contains(ownEvents, e.Name) {
			m.add(fmt.Sprintf("events.%d.event_type", i), "%q: only the coordinator writes such events: use another type", e.Name)
		}
		decisions := append([]durable.HookDecision{{Decision: e.Decision}}, e.Also...)
		for k, d := range decisions[:min(len(decisions), maxAlso)] {
			if (d.Decision != "" || k > 0) && !slices.Contains(durable.Decisions, d.Decision) {
				m.add(fmt.Sprintf("events.%d.decision", i), "%q: unknown decision", d.Decision)
			}
		}
		if len(decisions) > maxAlso {
			m.add(fmt.Sprintf("events.%d.also", i), "more than %d decisions", maxAlso)
		}
	}
	for i, e := range c.Entries {
		// The journal of a hook has such entries: a runner could decide in its place.
		if r.Phase != "" || slices.Contains([]durable.EntryKind{"", entryResult, entryResume, entryParked}, e.Kind) {
			m.add(fmt.Sprintf("entries.%d.kind", i), "%q: a runner cannot write it", e.Kind)
		}
	}
	for i, w := range c.Update.Waits {
		switch w.Kind {
		case durable.WaitCallback, durable.WaitFile, durable.WaitCommand:
			// The process that watches a gate runs its command and sends its webhook: that is for blueprints to say, not for runners.
			m.add(fmt.Sprintf("update.waits.%d.kind", i), "%q: a gate of a run on another machine must wait in its runner", w.Kind)
		}
	}
	if len(c.Update.Result) > 0 {
		var result durable.Result
		if err := json.Unmarshal(c.Update.Result, &result); err != nil {
			m.add("update.result", "not a result: %v", err)
		}
	}
	return m.err()
}
