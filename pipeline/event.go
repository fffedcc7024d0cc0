package pipeline

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// The names of the events of a session. Their data is JSON: see docs/pipelines.md.
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

// eventData is the data of the events of a session.
type eventData struct {
	Session   string `json:"session"`
	Stage     string `json:"stage,omitempty"`
	Iteration int    `json:"iteration,omitempty"`
	// Run is the run of the iteration.
	Run      agent.RunID `json:"run,omitempty"`
	Decision string      `json:"decision,omitempty"`
	// Why is the reason of the decision, or why the stage is complete.
	Why string `json:"why,omitempty"`
	// Changed is the number of files that the iteration changed.
	Changed int    `json:"changed_files,omitempty"`
	Reason  Reason `json:"reason,omitempty"`
	Error   string `json:"error,omitempty"`
	// Wait and For are the wait of a gate and its kind.
	Wait string           `json:"wait,omitempty"`
	For  durable.WaitKind `json:"for,omitempty"`
}

// eventData returns d with the current position.
func (m *machine) eventData(d eventData) eventData {
	d.Stage, d.Iteration = m.stage().Name, m.at.Iteration
	return d
}

// eventLog collects the events of a session until they are written with its journal. It is an agent.Observer, and safe for
// concurrent use.
type eventLog struct {
	session string
	form    func(e agent.Event) (durable.EventForm, bool) // nil stores no events of hooks

	mu      sync.Mutex
	waiting []waitingEvent
}

// waitingEvent is an event that has not been written.
type waitingEvent struct {
	durable.Event

	of *firingMark // the firing whose hook it is about; nil for an event of the session
}

// firingMark identifies one firing among the events, and is in the contexts of its hooks, also of those that are not awaited.
type firingMark struct{ _ byte }

type firingMarkKey struct{}

// add adds an event of the session.
func (l *eventLog) add(name string, d eventData) {
	d.Session = l.session
	data, _ := json.Marshal(d) //nolint:errchkjson // texts and numbers can always be written
	l.append(waitingEvent{Event: durable.Event{At: time.Now(), Name: name, Data: data}})
}

// Observe adds an event of a hook. Events that are only counted are dropped.
func (l *eventLog) Observe(ctx context.Context, e agent.Event) {
	if l.form == nil {
		return
	}
	if form, ok := l.form(e); ok && form.Counter == "" {
		of, _ := ctx.Value(firingMarkKey{}).(*firingMark)
		l.append(waitingEvent{durable.Event{At: time.Now(), Name: form.Name, Data: form.Data}, of})
	}
}

func (l *eventLog) append(e waitingEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, e)
}

// drop removes the events of a firing that wait.
func (l *eventLog) drop(of *firingMark) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = slices.DeleteFunc(l.waiting, func(e waitingEvent) bool { return e.of == of })
}

// take returns the events so far, and a func that removes them when they have been written.
func (l *eventLog) take() (events []durable.Event, taken func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.waiting {
		events = append(events, e.Event)
	}
	return events, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.waiting = l.waiting[len(events):]
	}
}
