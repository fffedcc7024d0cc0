package durable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// EventForm is the stored form of an event.
type EventForm struct {
	// Name is the name of the event, and Data its content.
	Name string
	Data []byte
	// Counter, unless empty, says that the event is only counted, under this name: with each step, the
	// events of the run get one EventCounts.
	Counter string
}

// EventCounts is the name of the events with the numbers of events that are only counted. Their Data is a
// JSON object from the counters to the numbers since the previous such event.
const EventCounts = "counts"

// recordedRunKey is the context key of the run that this process executes.
type recordedRunKey struct{}

// ObservesEvents reports whether agents must have the keeper as an observer: see Options.Events.
func (k *Keeper) ObservesEvents() bool { return k.options.Events != nil }

// Observe stores an event of a run of this keeper with the next journal entry of the run. It makes the
// keeper an agent.Observer.
func (k *Keeper) Observe(ctx context.Context, e agent.Event) {
	h, ok := ctx.Value(recordedRunKey{}).(*recordedRun)
	if !ok || h.keeper != k || k.options.Events == nil {
		return
	}
	form, ok := k.options.Events(e)
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if form.Counter == "" {
		h.events = append(h.events, Event{At: time.Now(), Name: form.Name, Data: form.Data})
		return
	}
	if h.counts == nil {
		h.counts = map[string]int64{}
	}
	h.counts[form.Counter]++
}

// takeEvents returns the events for a commit. The caller holds h.mu.
func (h *recordedRun) takeEvents() []Event {
	events := h.events
	endsStep := func(e Entry) bool { return e.Kind == EntryStep || e.Kind == EntryEnd || e.Kind == EntryPark }
	if len(h.counts) > 0 && (len(h.waiting) == 0 || slices.ContainsFunc(h.waiting, endsStep)) {
		data, err := json.Marshal(h.counts)
		if err == nil {
			events = append(events, Event{At: time.Now(), Name: EventCounts, Data: data})
		}
		h.counts = nil
	}
	h.events = nil
	return events
}

// commitEvents writes events that no entry follows.
func (h *recordedRun) commitEvents(ctx context.Context) error {
	h.writing.Lock()
	defer h.writing.Unlock()
	h.mu.Lock()
	c := Commit{Events: h.takeEvents()}
	lost := h.lost
	h.mu.Unlock()
	if lost != nil || len(c.Events) == 0 {
		return lost
	}
	return h.keeper.patiently(context.WithoutCancel(ctx), func(ctx context.Context) error { return h.keeper.store.Commit(ctx, h.lease, c) })
}

// signalInterval is how often a keeper looks for signals when the store reports no change.
const signalInterval = 500 * time.Millisecond

// follow begins to receive the signals of a run, until the returned func is called.
func (k *Keeper) follow(h *recordedRun) (release func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.recorded[h.lease.Run] = h
	if k.quiet == nil {
		ctx, cancel := context.WithCancel(context.Background())
		var receiving sync.WaitGroup
		receiving.Go(func() { k.receiveSignals(ctx) })
		k.quiet = func() {
			cancel()
			receiving.Wait()
		}
	}
	return func() {
		k.mu.Lock()
		if k.recorded[h.lease.Run] == h { // not the run's next execution in this process, which may have begun
			delete(k.recorded, h.lease.Run)
		}
		quiet := k.quiet
		if len(k.recorded) > 0 {
			quiet = nil
		} else {
			k.quiet = nil
		}
		k.mu.Unlock()
		if quiet != nil {
			quiet()
		}
	}
}

// receiveSignals gives the signals of all runs that this process holds to them, until ctx is done.
func (k *Keeper) receiveSignals(ctx context.Context) {
	changes := k.store.Changes(ctx)
	every := time.NewTicker(signalInterval)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-changes:
			if !open {
				changes = nil
			}
		case <-every.C:
		}
		k.lookForSignals(ctx)
	}
}

func (k *Keeper) lookForSignals(ctx context.Context) {
	if signals, err := k.store.Signals(ctx, k.options.Owner); err == nil {
		k.deliver(signals)
	} // else the next look may succeed; a commit of the run reports a failing store
}

func (k *Keeper) deliver(signals []Signal) {
	k.mu.Lock()
	holds := maps.Clone(k.recorded)
	k.mu.Unlock()
	paused := map[agent.RunID]bool{}
	for _, s := range signals {
		h := holds[s.Run]
		switch {
		case h == nil:
		case s.Kind == SignalCancel:
			h.lose(&CancelledError{Reason: s.Text})
		case s.Kind == SignalPause:
			paused[s.Run] = true
		default:
			h.hear(s)
		}
	}
	for id, h := range holds {
		h.pause(paused[id])
	}
}

// pause sets whether the run is paused after its current step.
func (h *recordedRun) pause(paused bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.paused = paused
}

func (h *recordedRun) isPaused() bool {
	if h.up != nil {
		return h.up.isPaused()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.paused
}

// hear receives added context once.
func (h *recordedRun) hear(s Signal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.Seq > h.heard {
		h.heard = s.Seq
		h.added = append(h.added, s)
	}
}

// addContext returns the state with the context that was added since the previous step, as messages whose source is the
// sender. A run in the journal of another run gets none.
func (h *recordedRun) addContext(s agent.State) agent.State {
	if h.up != nil {
		return s
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, signal := range h.added {
		source := signal.By
		if source == "" {
			source = "signal"
		}
		s = s.With(agent.UserText(signal.Text).WithSource(source))
		h.adding = signal.Seq
	}
	h.added = nil
	return s
}

// Result is what a run ended with, as it is stored in JSON: see Update.Result and ResultOf.
type Result struct {
	// Text is the final answer of an agent, or the output of a command.
	Text string `json:"text,omitempty"`
	// Data is the output of a command when it is a JSON value; then Text is empty.
	Data json.RawMessage `json:"data,omitempty"`
	// Error is why the run failed, was stopped or was cancelled.
	Error string `json:"error,omitempty"`
	// ExitCode is that of a command that has exited.
	ExitCode *int `json:"exit_code,omitempty"`
	// Cut is set when a command has written more than is stored.
	Cut bool `json:"cut,omitempty"`
}

// ResultOf returns what a run ended with. It returns the zero Result for a run that has not ended.
func ResultOf(ctx context.Context, store Catalogue, id agent.RunID) (result Result, err error) {
	data, err := store.Result(ctx, id)
	if err == nil && len(data) > 0 {
		err = json.Unmarshal(data, &result)
	}
	if err != nil {
		return Result{}, fmt.Errorf("reading the result of run %s: %w", id, err)
	}
	return result, nil
}

// agentResult returns the result of a run of an agent.
func agentResult(final agent.State, err error) []byte {
	result := Result{}
	if final.Status() == agent.StatusDone {
		result.Text = final.Answer()
	}
	if run, ok := errors.AsType[*agent.RunError](err); ok {
		err = run.Err
	}
	signal := final.StopSignal().OrEmpty()
	switch {
	case err != nil:
		result.Error = err.Error()
	case final.Status() != agent.StatusDone && signal.Message != "":
		result.Error = signal.Message
		if signal.Source != "" {
			result.Error += ", by " + signal.Source
		}
	}
	return result.encode()
}

func (r Result) encode() []byte {
	data, err := json.Marshal(r)
	if err != nil { // Data is not JSON
		r.Data = nil
		data, _ = json.Marshal(r) //nolint:errchkjson // it has no Data any more
	}
	return data
}
