package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
)

// SessionProgress is a session's status with the state of all stages and the last hook actions.
type SessionProgress struct {
	Status

	// Began is when the session was submitted. Ended is when it ended; zero before.
	Began time.Time `json:"started_at"`
	Ended time.Time `json:"ended_at,omitzero"`
	// Idle says that no process executes the session or one of its iterations.
	Idle bool `json:"idle,omitempty"`
	// Limits are the session's limits.
	Limits agent.Limits `json:"-"`
	// Stages are the pipeline's stages in their order.
	Stages []StageProgress `json:"stages"`
	// Actions are the last hook actions in the order in which they began, at most twenty.
	Actions []ActionProgress `json:"-"`
}

// StageState is a stage's current work or its ending.
type StageState string

// The states of a stage.
const (
	StagePending  StageState = "pending"
	StageRunning  StageState = "running"
	StageComplete StageState = "complete"
	StageFailed   StageState = "failed"
)

// StageProgress is a stage's state.
type StageProgress struct {
	Name  string     `json:"name"`
	State StageState `json:"state"`
	// Iteration is the current iteration, or the last one, and MaxIterations their maximum.
	Iteration     int `json:"iteration,omitempty"`
	MaxIterations int `json:"max_iterations,omitempty"`
	// IterationBegan is when the current iteration began; zero while none runs. Steps are the steps of its agent so far.
	IterationBegan time.Time `json:"-"`
	Steps          int       `json:"-"`
	// Note says why the stage is complete or has failed. Before, it says when the stage will be complete.
	Note string `json:"why,omitempty"`
	// Iterations are the stage's newest iterations, at most 200, in the order in which they began. Earlier is how many began before these.
	Iterations []IterationProgress `json:"iterations,omitempty"`
	Earlier    int                 `json:"earlier_iterations,omitempty"`
	// Parts are the stages in a parallel block.
	Parts []StageProgress `json:"parallel,omitempty"`
}

// IterationProgress is one iteration of a stage.
type IterationProgress struct {
	// Number counts from one, and again from one when the stage was restarted. Run is the iteration's run.
	Number int         `json:"n"`
	Run    agent.RunID `json:"run"`
	// State is running, complete or failed. Ended is zero for one that runs.
	State StageState `json:"state"`
	Began time.Time  `json:"started_at"`
	Ended time.Time  `json:"ended_at,omitzero"`
	// Decision is continue or stop if the iteration has decided. Why is the reason, or why the iteration has failed.
	Decision string `json:"decision,omitempty"`
	Why      string `json:"why,omitempty"`
}

// ActionProgress is a hook's action.
type ActionProgress struct {
	// Hook is the hook's name. It was called at Point, Stage and Iteration.
	Hook      string
	Point     hooks.PointName
	Stage     string
	Iteration int
	// Began and Ended are when the action began and ended; zero if it has not ended.
	Began, Ended time.Time
	// Error is why the action has failed; empty for one that succeeded.
	Error string
}

// A Tracker reads a session's progress repeatedly, and each time only new data in the store. It must not be used concurrently.
type Tracker struct {
	store   durable.Lister
	session *session
	id      agent.RunID

	at             position
	entries        int64 // the number of the last entry that was read
	events         int64 // the number of the last event that was read
	actions        []ActionProgress
	names          []string // the names of the actions in the journal
	iterationBegan time.Time
	complete       map[string]stageEnd    // the stages that are complete
	iterations     map[string]*iterations // by stage
	runs           map[string]agent.RunID // runs for the stages in parallel blocks
	parts          map[agent.RunID]*Tracker
	last           SessionProgress
}

// stageEnd says how a stage was completed.
type stageEnd struct {
	iterations int
	why        string
}

// maxIterations is the maximum number of iterations of a stage that a tracker keeps.
const maxIterations = 200

// iterations are the newest iterations of a stage.
type iterations struct {
	newest  []IterationProgress
	earlier int
}

// begin adds an iteration.
func (i *iterations) begin(d eventData, at time.Time) {
	if len(i.newest) == maxIterations {
		i.newest = i.newest[1:]
		i.earlier++
	}
	i.newest = append(i.newest, IterationProgress{Number: d.Iteration, Run: d.Run, State: StageRunning, Began: at})
}

// end notes how an iteration has ended.
func (i *iterations) end(d eventData, state StageState, at time.Time) {
	for k := range slices.Backward(i.newest) {
		if one := &i.newest[k]; one.Run == d.Run {
			one.State, one.Ended, one.Decision, one.Why = state, at, d.Decision, cmp.Or(d.Why, d.Error)
			return
		}
	}
}

// list returns the iterations, given when the session has ended: none runs then.
func (i *iterations) list(ended time.Time) []IterationProgress {
	all := slices.Clone(i.newest)
	for k := range all {
		if all[k].State == StageRunning && !ended.IsZero() {
			all[k].State, all[k].Ended = StageFailed, ended
		}
	}
	return all
}

// NewTracker returns a tracker for a session, given its run.
func NewTracker(ctx context.Context, store durable.Lister, about durable.Run) (*Tracker, error) {
	if about.Kind != durable.KindPipeline {
		return nil, fmt.Errorf("run %s is of kind %s and no session of a pipeline", about.ID, about.Kind)
	}
	s, err := readSession(ctx, store, about.ID)
	if err != nil {
		return nil, err
	}
	return &Tracker{
		store: store, session: s, id: about.ID, at: position{cursor: cursor{Phase: phaseOpen}}, complete: map[string]stageEnd{},
		iterations: map[string]*iterations{}, runs: map[string]agent.RunID{}, parts: map[agent.RunID]*Tracker{},
	}, nil
}

// Refresh returns the session's current progress.
func (t *Tracker) Refresh(ctx context.Context) (SessionProgress, error) {
	if !t.last.Ended.IsZero() {
		return t.last, nil
	}
	about, err := t.store.Run(ctx, t.id)
	if err == nil {
		err = t.readEntries(ctx, about)
	}
	if err == nil {
		err = t.readEvents(ctx, about)
	}
	if err != nil {
		return t.last, err
	}
	waits, err := t.store.Waits(ctx, t.id)
	if err != nil {
		return t.last, err
	}
	p := SessionProgress{Status: t.session.status(about, t.at), Began: about.Created, Limits: t.session.limits, Actions: slices.Clone(t.actions)}
	p.WaitsFor = openGates(waits)
	if about.Status.Ended() {
		p.Ended = about.Updated
	}
	p.Idle = !isOwned(about)
	for i := range t.session.Stages {
		stage, err := t.stage(ctx, i, &p)
		if err != nil {
			return t.last, err
		}
		p.Stages = append(p.Stages, stage)
	}
	t.last = p
	return p, nil
}

// isOwned reports whether a process holds the run's lease.
func isOwned(about durable.Run) bool { return about.Owner != "" && about.Expires.After(time.Now()) }

// actionPattern matches the names of actions in the journal: "action pipeline.p/check IterationComplete stage "work" iteration 2 7cda…".
var actionPattern = regexp.MustCompile(`^action (\S+) (\w+)(?: stage "([^"]*)")?(?: iteration (\d+))?`)

// maxActions is the maximum number of actions that a tracker keeps.
const maxActions = 20

// readEntries reads the journal's new entries.
func (t *Tracker) readEntries(ctx context.Context, about durable.Run) error {
	if about.Entries == t.entries {
		return nil
	}
	entries, err := t.store.Entries(ctx, t.id, t.entries)
	if err != nil {
		return err
	}
	for _, e := range entries {
		t.entries = e.Seq
		if e.Kind == durable.EntryOnce || e.Kind == durable.EntryDone {
			t.readAction(e)
		}
	}
	if at, ok, err := lastPosition(entries); err != nil || ok {
		t.at = at
		return err
	}
	return nil
}

// readAction reads an action's start or end.
func (t *Tracker) readAction(e durable.Entry) {
	match := actionPattern.FindStringSubmatch(e.Key)
	if match == nil {
		return
	}
	i := slices.Index(t.names, e.Key)
	if i < 0 {
		iteration, _ := strconv.Atoi(match[4]) // zero without one
		t.actions = append(t.actions, ActionProgress{Hook: match[1], Point: hooks.PointName(match[2]), Stage: match[3], Iteration: iteration, Began: e.At})
		t.names = append(t.names, e.Key)
		if len(t.names) > maxActions {
			t.actions, t.names = t.actions[1:], t.names[1:]
		}
		i = len(t.names) - 1
	}
	if e.Kind == durable.EntryOnce {
		t.actions[i].Began, t.actions[i].Ended = e.At, time.Time{} // it may have begun again after a crash
		return
	}
	var result struct {
		Fault *struct {
			Text string `json:"text"`
		} `json:"fault"`
	}
	t.actions[i].Ended = e.At
	if json.Unmarshal(e.Data, &result) == nil && result.Fault != nil {
		t.actions[i].Error = cmp.Or(result.Fault.Text, "failed")
	}
}

// eventPage is the number of events that are read at once.
const eventPage = 500

// readEvents reads the new events.
func (t *Tracker) readEvents(ctx context.Context, about durable.Run) error {
	for t.events < about.Events {
		page, err := t.store.Events(ctx, t.id, t.events, eventPage)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, e := range page {
			t.events = e.Seq
			t.readEvent(e)
		}
	}
	return nil
}

func (t *Tracker) readEvent(e durable.Event) {
	var d eventData
	if !strings.HasPrefix(e.Name, "pipeline.") || json.Unmarshal(e.Data, &d) != nil {
		return
	}
	if t.iterations[d.Stage] == nil {
		t.iterations[d.Stage] = &iterations{}
	}
	switch e.Name {
	case eventIterationStart:
		t.iterationBegan = e.At
		t.iterations[d.Stage].begin(d, e.At)
		delete(t.complete, d.Stage)
	case eventIterationComplete:
		t.iterations[d.Stage].end(d, StageComplete, e.At)
	case eventIterationFailed:
		t.iterations[d.Stage].end(d, StageFailed, e.At)
	case eventStageRestart:
		delete(t.complete, d.Stage)
	case eventStageStart:
		t.runs[d.Stage] = d.Run
	case eventStageComplete:
		t.complete[d.Stage] = stageEnd{d.Iteration, d.Why}
	}
}

// stage returns a stage's state. It adds the status of a running block's parts to p.
func (t *Tracker) stage(ctx context.Context, i int, p *SessionProgress) (StageProgress, error) {
	s := &t.session.Stages[i]
	out := StageProgress{Name: s.Name, State: StagePending, MaxIterations: s.maximum(), Note: s.Ends()}
	end, complete := t.complete[s.Name]
	current := i == t.at.Stage && t.at.Phase != phaseOpen
	switch {
	case complete && (i < t.at.Stage || current):
		out.State, out.Iteration, out.Note = StageComplete, end.iterations, end.why
	case current && !p.Ended.IsZero():
		out.State, out.Iteration, out.Note = StageFailed, t.at.Iteration, p.Error
	case current:
		out.State, out.Iteration = StageRunning, t.at.Iteration
		if t.at.Phase == phaseRun {
			out.IterationBegan = t.iterationBegan
			child, err := t.store.Run(ctx, t.at.Child)
			if err != nil {
				return out, err
			}
			if child.Kind == durable.KindAgent {
				out.Steps = child.Steps
			}
			p.Idle = p.Idle && !isOwned(child)
		}
	}
	if all := t.iterations[s.Name]; all != nil {
		out.Iterations, out.Earlier = all.list(p.Ended), all.earlier
	}
	for k := range s.Parallel {
		part, err := t.part(ctx, &s.Parallel[k], out.State, p)
		if err != nil {
			return out, err
		}
		out.Parts = append(out.Parts, part)
	}
	return out, nil
}

// part returns the state of a stage in a parallel block, given the block's state.
func (t *Tracker) part(ctx context.Context, s *Stage, block StageState, p *SessionProgress) (StageProgress, error) {
	out := StageProgress{Name: s.Name, State: StagePending, MaxIterations: s.maximum(), Note: s.Ends()}
	id := t.runs[s.Name]
	if id == "" || block == StagePending {
		return out, nil
	}
	if t.parts[id] == nil {
		about, err := t.store.Run(ctx, id)
		if err != nil {
			return out, err
		}
		if t.parts[id], err = NewTracker(ctx, t.store, about); err != nil {
			return out, err
		}
	}
	below, err := t.parts[id].Refresh(ctx)
	if err != nil || len(below.Stages) == 0 {
		return out, err
	}
	if slices.Contains(t.at.Children, id) {
		p.Parts = append(p.Parts, below.Status)
		p.Idle = p.Idle && below.Idle
	}
	p.Actions = append(p.Actions, below.Actions...)
	slices.SortStableFunc(p.Actions, func(a, b ActionProgress) int { return a.Began.Compare(b.Began) })
	p.Actions = p.Actions[max(0, len(p.Actions)-maxActions):]
	return below.Stages[0], nil
}
