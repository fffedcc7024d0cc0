package pipeline

import (
	"context"
	"encoding/json"
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
	waiting []durable.Event
}

// add adds an event of the session.
func (l *eventLog) add(name string, d eventData) {
	d.Session = l.session
	data, _ := json.Marshal(d) //nolint:errchkjson // texts and numbers can always be written
	l.append(durable.Event{At: time.Now(), Name: name, Data: data})
}

// Observe adds an event of a hook. Events that are only counted are dropped.
func (l *eventLog) Observe(_ context.Context, e agent.Event) {
	if l.form == nil {
		return
	}
	if form, ok := l.form(e); ok && form.Counter == "" {
		l.append(durable.Event{At: time.Now(), Name: form.Name, Data: form.Data})
	}
}

func (l *eventLog) append(e durable.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, e)
}

// mark returns the number of events so far, and drop removes those that were added after a mark.
func (l *eventLog) mark() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}

func (l *eventLog) drop(after int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = l.waiting[:min(after, len(l.waiting))]
}

// take returns the events so far, and a func that removes them when they have been written.
func (l *eventLog) take() (events []durable.Event, taken func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	events = append(events, l.waiting...)
	return events, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.waiting = l.waiting[len(events):]
	}
}
