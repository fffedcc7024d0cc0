package pipeline

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
)

// The names of session events. Their data is JSON: see docs/pipelines.md.
const (
	eventSessionStart      = "pipeline.session_start"
	eventIterationStart    = "pipeline.iteration_start"
	eventIterationComplete = "pipeline.iteration_complete"
	eventIterationFailed   = "pipeline.iteration_failed"
	eventStageComplete     = "pipeline.stage_complete"
	eventSessionComplete   = "pipeline.session_complete"
	eventWaiting           = "pipeline.waiting"
	eventSpawned           = "pipeline.spawned"
	eventStageStart        = "pipeline.stage_start"
	eventStageRestart      = "pipeline.stage_restart"
)

// eventData is the data in session events.
type eventData struct {
	Session   string `json:"session"`
	Stage     string `json:"stage,omitempty"`
	Iteration int    `json:"iteration,omitempty"`
	// Run is the iteration's run.
	Run      agent.RunID `json:"run,omitempty"`
	Decision string      `json:"decision,omitempty"`
	// Why is the reason for the decision, or why the stage is complete.
	Why string `json:"why,omitempty"`
	// Changed is the number of files that the iteration changed.
	Changed int    `json:"changed_files,omitempty"`
	Reason  Reason `json:"reason,omitempty"`
	Error   string `json:"error,omitempty"`
	// Wait and For are a gate's wait and its kind.
	Wait string           `json:"wait,omitempty"`
	For  durable.WaitKind `json:"for,omitempty"`
}

// eventData returns d with the current position.
func (m *machine) eventData(d eventData) eventData {
	d.Stage, d.Iteration = m.stage().Name, m.at.Iteration
	return d
}

// eventLog collects session events until they are written with the journal. It is an agent.Observer, and safe for concurrent use.
type eventLog struct {
	session string
	form    func(e agent.Event) (durable.EventForm, bool) // nil stores no hook events
	// observer receives hook events once they are written, so that it counts no firing twice.
	observer agent.Observer

	mu      sync.Mutex
	waiting []waitingEvent
}

// waitingEvent is an event that has not been written.
type waitingEvent struct {
	durable.Event // without a name, it is not stored

	of   *firingMark // the hook's firing; nil for a session event
	tell func()      // nil for a session event
}

// firingMark identifies one firing among the events, and says where it is in the session. It is in the contexts of all its hooks,
// detached ones included.
type firingMark struct {
	stage     string
	iteration int // zero for none
}

// addTo adds the place of the firing to the data of a hook event, a JSON object.
func (f *firingMark) addTo(data []byte) []byte {
	if f == nil || f.stage == "" || !bytes.HasSuffix(data, []byte("}")) {
		return data
	}
	place, _ := json.Marshal(struct { //nolint:errchkjson // a text and a number can always be written
		Stage     string `json:"stage"`
		Iteration int    `json:"iteration,omitempty"`
	}{f.stage, f.iteration})
	if bytes.Equal(data, []byte("{}")) {
		return place
	}
	return append(append(data[:len(data)-1:len(data)-1], ','), place[1:]...)
}

type firingMarkKey struct{}

// add adds a session event.
func (l *eventLog) add(name string, d eventData) {
	d.Session = l.session
	data, _ := json.Marshal(d) //nolint:errchkjson // texts and numbers can always be written
	l.append(waitingEvent{Event: durable.Event{At: time.Now(), Name: name, Data: data}})
}

// Observe adds a hook event. One that is only counted becomes an event with its count.
func (l *eventLog) Observe(ctx context.Context, e agent.Event) {
	of, _ := ctx.Value(firingMarkKey{}).(*firingMark)
	h, isHook := e.(hooks.Event)
	if isHook && h.At.IsZero() {
		h.At = time.Now()
	}
	waiting := waitingEvent{Event: durable.Event{At: cmp.Or(h.At, time.Now())}, of: of}
	if l.form != nil {
		if form, ok := l.form(e); ok {
			form.Data = of.addTo(form.Data)
			waiting.Event = durable.NewEvent(form, waiting.At)
		}
	}
	if isHook && l.observer != nil {
		waiting.tell = func() { l.observer.Observe(ctx, h) }
	}
	l.append(waiting)
}

func (l *eventLog) append(e waitingEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, e)
}

// drop removes a firing's events that are not written yet.
func (l *eventLog) drop(of *firingMark) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = slices.DeleteFunc(l.waiting, func(e waitingEvent) bool { return e.of == of })
}

// pending returns the events so far, and a func that removes them after they were written.
func (l *eventLog) pending() (events []durable.Event, taken func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := slices.Clone(l.waiting)
	for _, e := range all {
		if e.Name != "" {
			events = append(events, e.Event)
		}
	}
	return events, func() {
		l.mu.Lock()
		l.waiting = l.waiting[len(all):]
		l.mu.Unlock()
		for _, e := range all {
			if e.tell != nil {
				e.tell()
			}
		}
	}
}
