package durable

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// commitDelay is how long an entry may wait for the next entry, so that both share a commit. An agent that needs no
// process, request or person for its next entry takes less. Slower work finds the entry in the journal.
const commitDelay = 2 * time.Millisecond

// eventDelay is how long an event may wait for an entry, so that people see that a model is asked or a tool runs. Most steps
// of fast models need no commit for their events alone.
const eventDelay = 100 * time.Millisecond

// journalBuffer collects a run's entries, events and audit records, and commits them together under the run's lease. An
// entry is staged first: it gets its number, and the next commit writes it.
type journalBuffer struct {
	lease *heldLease
	delay time.Duration // commitDelay, except in tests

	// above is the journal of the run whose call has started this run, and which gets this run's entries; nil for a run with
	// its own journal. A run without its own journal uses only state.
	above *journalBuffer
	call  string

	committing sync.Mutex // held during a commit

	mu            sync.Mutex
	state         agent.State // after the last staged entry
	staged        []Entry
	update        Update        // for the next commit
	answers       []AuditRecord // answers without a staged entry about their call
	stagedAnswers []AuditRecord
	events        []Event
	counts        map[string]int64 // of counted events, by counter
	lastStaged    int64            // number of the last staged entry
	lastCommitted int64            // number of the last committed entry
	contextUsed   int64            // number of the last context signal in the conversation
	contextStaged int64            // number of the last context signal in a staged entry: the next commit marks it as handled
	timer         *time.Timer      // commits what is staged at due; nil unless an entry or event waits for the next entry
	due           time.Time
	closed        bool // Once records nothing more: the run has ended or waits
	left          bool // the process executes the run no more: no commit is planned
}

// mayWait reports whether an entry may share the commit of the next entry. After these kinds, nothing has begun that
// the journal does not have, so a crash costs at most the work done in commitDelay.
func (k EntryKind) mayWait() bool {
	switch EntryKind(strings.TrimPrefix(string(k), childPrefix)) {
	case EntryReply, EntryResult:
		return true
	}
	return false
}

// top returns the journal that gets the entry, and sets the kind and key that the entry has there.
func (j *journalBuffer) top(e *Entry) *journalBuffer {
	for ; j.above != nil; j = j.above {
		e.Kind, e.Key = childEntry(e.Kind, j.call, e.Key)
	}
	return j
}

// record stages an entry with a change of the state, and commits it now or soon.
func (j *journalBuffer) record(ctx context.Context, e Entry, u Update, change func(agent.State) agent.State) error {
	top, err := j.stageChange(&e, u, change)
	if err != nil {
		return err
	}
	return top.commitStaged(ctx, e)
}

// stageChange stages an entry with the state's changes since the last entry. It returns the journal that gets the entry, and
// sets the number, kind and key that the entry has there.
func (j *journalBuffer) stageChange(e *Entry, u Update, change func(agent.State) agent.State) (top *journalBuffer, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := change(j.state)
	if j.above != nil {
		top, err = j.stageAbove(e, s)
		if err == nil {
			j.state = s
		}
		return top, err
	}
	if e.Data, err = agent.Checkpoint(s).Changes(j.state); err != nil {
		return j, j.lease.fail(fmt.Errorf("recording a %s: %w", e.Kind, err))
	}
	if err := j.stage(e, u); err != nil {
		return j, err
	}
	j.state, j.contextStaged = s, j.contextUsed
	return j, nil
}

// stageAbove stages the state of a call's run in the journal above. The caller holds j.mu.
func (j *journalBuffer) stageAbove(e *Entry, s agent.State) (top *journalBuffer, err error) {
	e.Kind, e.Key = childEntry(e.Kind, j.call, e.Key)
	hasCall := false
	top, err = j.above.stageChange(e, Update{}, func(above agent.State) agent.State {
		above = agent.Checkpoint(above).WithCallChild(j.call, s)
		_, _, hasCall = agent.Checkpoint(above).Child(j.call)
		return above
	})
	if err == nil && !hasCall {
		err = j.lease.fail(fmt.Errorf("recording a %s: the journal has no call %s in progress", e.Kind, j.call))
	}
	return top, err
}

// stageEntry stages an entry that does not change the state. Once the journal is closed, it returns errClosed.
func (j *journalBuffer) stageEntry(e *Entry) error {
	j = j.top(e)
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return errClosed
	}
	return j.stage(e, Update{})
}

// stage numbers and stages an entry. The caller holds j.mu.
func (j *journalBuffer) stage(e *Entry, u Update) error {
	if err := j.lease.err(); err != nil {
		return err
	}
	j.lastStaged++
	e.Seq, e.At = j.lastStaged, time.Now()
	j.staged = append(j.staged, *e)
	j.stageAnswers(e)
	if u.Status != "" || u.Waits != nil {
		j.update = u
	}
	return nil
}

// stageAnswers stages the answers about an entry's call, or all answers if the entry is about no call. The caller holds j.mu.
func (j *journalBuffer) stageAnswers(e *Entry) {
	if len(j.answers) == 0 || !e.Kind.changesState() {
		return
	}
	var rest []AuditRecord
	for _, r := range j.answers {
		if e.Key == "" || r.Answer.Subject == e.Key || strings.HasPrefix(r.Answer.Subject, e.Key+"/") {
			j.stagedAnswers = append(j.stagedAnswers, r)
		} else {
			rest = append(rest, r)
		}
	}
	j.answers = rest
}

// addAnswer adds an answer for the audit log. It is committed with the next entry about its call.
func (j *journalBuffer) addAnswer(r AuditRecord) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.answers = append(j.answers, r)
}

// addEvent adds an event to the next commit.
func (j *journalBuffer) addEvent(ctx context.Context, form EventForm) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if form.Counter == "" {
		j.events = append(j.events, NewEvent(form, time.Now()))
		if !j.left {
			j.commitWithin(ctx, eventDelay)
		}
		return
	}
	if j.counts == nil {
		j.counts = map[string]int64{}
	}
	form.count(j.counts)
}

// setContextUsed says which signal was the last whose context the conversation has.
func (j *journalBuffer) setContextUsed(seq int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.contextUsed = seq
}

// setClosed closes the journal for entries that do not change the state.
func (j *journalBuffer) setClosed() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
}

// leave commits everything staged, and the counts, when the process stops to execute the run. A run that goes on elsewhere is not
// closed: Once must do nothing here that the journal does not have.
func (j *journalBuffer) leave(ctx context.Context) error {
	j.mu.Lock()
	j.left = true
	j.mu.Unlock()
	return j.commitAll(ctx)
}

// childState returns the state of a call's run.
func (j *journalBuffer) childState(call string) agent.State {
	j.mu.Lock()
	defer j.mu.Unlock()
	child, _, _ := agent.Checkpoint(j.state).Child(call)
	return child
}

// commitStaged commits a staged entry, or plans its commit if it may wait.
func (j *journalBuffer) commitStaged(ctx context.Context, e Entry) error {
	if !e.Kind.mayWait() {
		return j.commitThrough(ctx, e.Seq)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.staged) > 0 {
		j.commitWithin(ctx, j.delay)
	}
	return j.lease.err()
}

// commitWithin plans a commit of everything staged, unless one is planned before that. Its error cancels the run. The caller
// holds j.mu.
func (j *journalBuffer) commitWithin(ctx context.Context, delay time.Duration) {
	due := time.Now().Add(delay)
	if j.timer != nil && !due.Before(j.due) {
		return
	}
	j.stopTimer()
	ctx, j.due = context.WithoutCancel(ctx), due
	j.timer = time.AfterFunc(delay, func() { _ = j.commitAll(ctx) })
}

// stopTimer cancels the planned commit. The caller holds j.mu.
func (j *journalBuffer) stopTimer() {
	if j.timer != nil {
		j.timer.Stop()
		j.timer = nil
	}
}

// commitAll commits everything staged, and waits for a commit in progress.
func (j *journalBuffer) commitAll(ctx context.Context) error {
	return j.commitThrough(ctx, math.MaxInt64)
}

// commitThrough commits everything staged, unless the entry with this number is already committed.
func (j *journalBuffer) commitThrough(ctx context.Context, seq int64) error {
	j.committing.Lock()
	defer j.committing.Unlock()
	j.mu.Lock()
	c, state := j.takeStaged(seq), j.state
	j.mu.Unlock()
	if err := j.lease.err(); err != nil || len(c.Entries)+len(c.Events) == 0 {
		return err
	}
	watch := watchCommit(context.WithoutCancel(ctx), state)
	err := j.lease.write(ctx, c, watch.note)
	watch.stop(context.WithoutCancel(ctx), err)
	if err != nil {
		return j.lease.fail(fmt.Errorf("writing to the journal of run %s: %w", j.lease.Run, err))
	}
	if n := len(c.Entries); n > 0 {
		j.setCommitted(c.Entries[n-1].Seq)
	}
	return nil
}

// takeStaged returns a commit of everything staged, which is empty if the entry with this number is already committed. The
// caller holds j.mu.
func (j *journalBuffer) takeStaged(seq int64) (c Commit) {
	if j.lastCommitted >= seq {
		return c
	}
	c = Commit{Entries: j.staged, Events: j.takeEvents(), Update: j.update, Records: j.stagedAnswers, HandledSignals: j.contextStaged}
	j.staged, j.update, j.stagedAnswers = nil, Update{}, nil
	j.stopTimer()
	return c
}

// takeEvents returns the events of the next commit, with the counts if the commit ends a step or the run. The caller holds j.mu.
func (j *journalBuffer) takeEvents() []Event {
	events := j.events
	endsStep := func(e Entry) bool { return e.Kind == EntryStep || e.Kind == EntryEnd || e.Kind == EntryPark }
	if len(j.counts) > 0 && (j.left || slices.ContainsFunc(j.staged, endsStep)) {
		if data, err := json.Marshal(j.counts); err == nil {
			events = append(events, Event{At: time.Now(), Name: EventCounts, Data: data})
		}
		j.counts = nil
	}
	j.events = nil
	return events
}

// setCommitted sets the number of the last committed entry.
func (j *journalBuffer) setCommitted(seq int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lastCommitted = seq
}
