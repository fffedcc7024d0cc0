package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/firing"
	"github.com/grapnel-go/grapnel/internal/rooted"
)

// machine executes a session from one position to the next, until the session waits or has ended. It depends only on the
// position, the results of iterations and the journal, so that another process can repeat its work.
type machine struct {
	*session

	store   durable.Store
	options Options
	about   durable.Run
	x       *durable.Execution
	journal *firing.Journal
	scopes  []*hooks.RunScope // by stage; nil until it is needed
	events  *eventLog
	files   *sessionFiles
	// suspended reports whether the machine must stop at the next position.
	suspended func() bool

	at position
	// last is the last committed position, and waits are the run's waits when it was claimed. counted is the usage at the last
	// position, including these waits.
	last    position
	waits   []durable.Wait
	counted usage
	// parked are the waits from the firing that ended with firing.ErrParked.
	parked     []durable.Wait
	parkedJobs []durable.Job
	// handled is the number of the last signal with added context that the next commit handles.
	handled int64
	// replayAfter is the number of the last entry that a replay skips. since is the number of the entry with which the session came to
	// its position.
	replayAfter, since int64
	// stored is the run's last committed status.
	stored durable.Status
	// trace is the first span of the session: see labelTrace.
	trace string
	// hooked says for each stage whether it has hooks; nil until it is needed.
	hooked []bool
}

// run executes the session until it waits or has ended. It returns an error if the session cannot be executed now.
func (m *machine) run(ctx context.Context) error {
	defer m.cancelDetached()
	err := m.repeatOpen(ctx)
	for err == nil && !m.suspended() && ctx.Err() == nil {
		var wait bool
		if wait, err = m.step(ctx); wait || m.at.Phase == "" {
			return err
		}
	}
	if errors.Is(err, firing.ErrParked) && ctx.Err() == nil {
		return m.waitForGate(ctx)
	}
	if ctx.Err() != nil {
		return nil // the run is suspended or cancelled, or another process has it
	}
	if _, broken := errors.AsType[*brokenError](err); broken || errors.Is(err, rooted.ErrLink) {
		return m.breakOff(ctx, err)
	}
	return err
}

// breakOff ends a session that cannot be executed. It calls the hooks at the end if it can.
func (m *machine) breakOff(ctx context.Context, broken error) error {
	e := ending{Failed, broken.Error()}
	if _, err := m.scope(ctx, m.at.Stage); err != nil || m.at.Phase == phaseOpen || m.at.Phase == phaseEnd {
		return m.end(ctx, e)
	}
	if err := m.recordEnding(ctx, e); err != nil {
		return err
	}
	return m.finish(ctx)
}

// step executes one phase. Wait is set when the run waits and must be released.
func (m *machine) step(ctx context.Context) (wait bool, err error) {
	switch m.at.Phase {
	case phaseOpen:
		return false, m.open(ctx)
	case phaseStart:
		return m.startIteration(ctx)
	case phaseRun:
		return m.recordOutcome(ctx)
	case phaseParallel:
		return m.observeParallel(ctx)
	case phaseAfter:
		return false, m.afterIteration(ctx)
	case phaseEnd:
		return false, m.finish(ctx)
	}
	return false, &brokenError{fmt.Errorf("unknown phase %q: a newer version of Grapnel has written it", m.at.Phase)}
}

// open begins the session.
func (m *machine) open(ctx context.Context) error {
	m.at.Began = m.about.Created
	if m.about.Entries == 0 {
		if err := m.files.begin(m.session, m.status()); err != nil {
			return fmt.Errorf("beginning the session: %w", err)
		}
	}
	if m.part {
		return m.enter(ctx, 0)
	}
	m.events.add(eventSessionStart, eventData{})
	if len(m.inputs) > 0 {
		if err := m.files.writeInputs(m.session); err != nil {
			return err
		}
	}
	if ended, err := m.fire(ctx, hooks.SessionStart, nil); err != nil || ended {
		return err
	}
	return m.enter(ctx, 0)
}

// enter begins a stage.
func (m *machine) enter(ctx context.Context, stage int) error {
	m.setStage(stage, 0)
	if m.stage().Termination.Type != Queue {
		return nil
	}
	left, err := m.workLeft(ctx, 0)
	if err != nil || left {
		return err
	}
	m.at.Iteration = 0
	return m.completeStage(ctx, "the queue is empty")
}

// setStage sets the position to the beginning of a stage.
func (m *machine) setStage(stage, restarts int) {
	m.at.cursor = cursor{Phase: phaseStart, Stage: stage, Iteration: 1, Round: m.at.Round}
	m.at.stageHistory = stageHistory{Restarts: restarts, Before: m.usedBefore()}
	m.at.children = children{}
	if len(m.stage().Parallel) > 0 {
		m.at.Iteration = 0
	}
}

// stage returns the current stage.
func (m *machine) stage() *Stage { return &m.Stages[m.at.Stage] }

// startIteration starts the current iteration's run. The session's run then waits for it.
func (m *machine) startIteration(ctx context.Context) (wait bool, err error) {
	if over := m.limitReached(); over != "" {
		return false, m.recordEnding(ctx, ending{LimitReached, over})
	}
	if len(m.stage().Parallel) > 0 {
		return m.startParallel(ctx)
	}
	watches, err := m.watchesChanges(ctx)
	if err == nil {
		err = m.files.prepare(m.session, m.at, watches)
	}
	if err == nil {
		err = m.writeContext()
	}
	if err != nil {
		return false, err
	}
	if ended, err := m.fire(ctx, hooks.IterationStart, nil); err != nil || ended {
		return false, err
	}
	signals, err := m.x.AddedContext(ctx)
	if err != nil {
		return false, err
	}
	for _, s := range signals {
		if s.Text != "" {
			m.at.Context = append(slices.Clip(m.at.Context), s.Text)
		}
		m.handled = s.Seq
	}
	if err := m.writeContext(); err != nil {
		return false, err
	}
	job, err := m.iterationJob()
	if err != nil {
		return false, err
	}
	m.events.add(eventIterationStart, m.eventData(eventData{Run: job.ID}))
	m.at.Phase, m.at.Child, m.at.Context = phaseRun, job.ID, nil
	if err := m.commit(ctx, durable.Update{Status: durable.StatusWaiting}, job); err != nil {
		return false, err
	}
	return m.awaitChildren(ctx, m.at.Child)
}

// awaitChildren waits for detached actions as long as a child runs. Wait is false if all children ended first, so that the session
// can go on at once.
func (m *machine) awaitChildren(ctx context.Context, children ...agent.RunID) (wait bool, err error) {
	const every = 100 * time.Millisecond
	for !m.suspended() && !m.drain(ctx, every) && ctx.Err() == nil {
		running := false
		for _, id := range children {
			child, err := m.store.Run(ctx, id)
			if err != nil {
				return true, err
			}
			running = running || !child.Status.Ended()
		}
		if !running {
			return false, nil
		}
	}
	return true, nil
}

// recordOutcome reads and records the iteration's outcome. If the iteration has not ended, the run waits again.
func (m *machine) recordOutcome(ctx context.Context) (wait bool, err error) {
	child, err := m.store.Run(ctx, m.at.Child)
	if errors.Is(err, durable.ErrNotFound) {
		return false, &brokenError{fmt.Errorf("the run %s of iteration %d of stage %q was deleted", m.at.Child, m.at.Iteration, m.stage().Name)}
	}
	if err != nil {
		return false, err
	}
	if !child.Status.Ended() {
		return true, m.commit(ctx, durable.Update{Status: durable.StatusWaiting})
	}
	o, err := m.outcomeOf(ctx, child)
	if err != nil {
		return false, err
	}
	if err := m.files.writeOutput(m.session, m.at, o.output); err != nil {
		return false, err
	}
	m.at.Phase, m.at.Error, m.at.Decision, m.at.Why = phaseAfter, o.failure, o.decision, o.why
	m.at.Spent = m.at.Spent.plus(o.spent)
	m.recordTimeOver()
	m.at.Cut = o.failure != nil && m.stageOver() != "" && slices.Contains([]agent.StopReason{agent.StopTimeLimit, agent.StopCostLimit}, child.Reason)
	if m.at.Changed, err = m.files.changedFiles(m.session, m.at); err != nil {
		return false, err
	}
	switch {
	case o.failure != nil:
		m.at.Failed, m.at.Confirmed = append(slices.Clip(m.at.Failed), m.at.Iteration), 0
		m.events.add(eventIterationFailed, m.eventData(eventData{Run: child.ID, Error: *o.failure}))
	case o.decision == decisionStop:
		m.at.Confirmed++
	default:
		m.at.Confirmed = 0
	}
	if o.failure == nil {
		m.events.add(eventIterationComplete, m.eventData(eventData{Run: child.ID, Decision: o.decision, Why: o.why, Changed: len(m.at.Changed)}))
	}
	return false, m.commit(ctx, durable.Update{Status: durable.StatusRunning})
}

// afterIteration fires the end of the iteration, and begins the next iteration, the next stage or the end. It does not commit the
// next iteration: startIteration does.
func (m *machine) afterIteration(ctx context.Context) error {
	point := hooks.IterationComplete
	var failure error
	if m.at.Error != nil {
		point, failure = hooks.IterationFailed, errors.New(*m.at.Error)
	}
	if ended, err := m.fire(ctx, point, failure); err != nil || ended {
		return err
	}
	if over := m.limitReached(); failure != nil && over != "" {
		return m.recordEnding(ctx, ending{LimitReached, over})
	}
	if failure != nil && !m.at.Cut && cmp.Or(m.stage().OnFailure, "abort") == "abort" {
		return m.recordEnding(ctx, ending{Failed, fmt.Sprintf("iteration %d of stage %q failed: %v", m.at.Iteration, m.stage().Name, failure)})
	}
	done, why, err := m.stageDone(ctx)
	if err != nil {
		return err
	}
	if done {
		return m.completeStage(ctx, why)
	}
	m.at.Phase, m.at.Iteration = phaseStart, m.at.Iteration+1
	m.at.children, m.at.Error, m.at.Changed = children{}, nil, nil
	return nil
}

// stageDone reports whether the current iteration was the stage's last one, and why.
func (m *machine) stageDone(ctx context.Context) (done bool, why string, err error) {
	s := m.stage()
	switch s.Termination.Type {
	case Fixed:
		done, why = m.at.Iteration >= s.Termination.Iterations && !m.at.Cut, quantity(s.Termination.Iterations, "iteration")
	case Judgment:
		done, why = m.at.Confirmed >= cmp.Or(s.Termination.Confirmations, defaultConfirmations), "decided: "+m.at.Why
	case Queue:
		var left bool
		left, err = m.workLeft(ctx, m.at.Iteration)
		done, why = !left, "the queue is empty"
	}
	if err == nil && !done && m.at.Iteration >= s.maximum() {
		m.at.AtMaximum = true
		return true, "the maximum of " + quantity(s.maximum(), "iteration"), nil
	}
	if over := m.stageOver(); err == nil && !done && over != "" {
		m.at.AtMaximum = true
		return true, over, nil
	}
	return done, why, err
}

// completeStage fires the end of the stage, and begins the next one or the end.
func (m *machine) completeStage(ctx context.Context, why string) error {
	if ended, err := m.fireWithReason(ctx, hooks.StageComplete, nil, why); err != nil || ended {
		return err
	}
	m.events.add(eventStageComplete, m.eventData(eventData{Why: why}))
	return m.beginNext(ctx)
}

// beginNext begins the next stage or the end.
func (m *machine) beginNext(ctx context.Context) error {
	if m.at.Stage+1 < len(m.Stages) {
		return m.enter(ctx, m.at.Stage+1)
	}
	e := ending{Reason: Completed}
	if m.at.AtMaximum {
		e.Reason = MaxIterations
	}
	return m.recordEnding(ctx, e)
}

// recordEnding records how the session ends. The end phase follows.
func (m *machine) recordEnding(ctx context.Context, e ending) error {
	m.at.Phase, m.at.End = phaseEnd, &e
	return m.commit(ctx, durable.Update{Status: durable.StatusRunning})
}

// finish fires the end of the session and ends its run.
func (m *machine) finish(ctx context.Context) error {
	var err error
	if !m.part {
		_, err = m.fireWithReason(ctx, hooks.SessionComplete, nil, string(m.at.End.Reason))
	}
	if _, failed := errors.AsType[*hooks.HookError](err); err != nil && !failed {
		return err
	}
	if !m.awaitDetached(ctx) {
		return nil // another process ends the session
	}
	return m.end(ctx, *m.at.End)
}

// end ends the session's run.
func (m *machine) end(ctx context.Context, e ending) error {
	result := durable.Result{}
	if status, _ := e.status(); status == durable.StatusCompleted {
		var err error
		if result.Text, err = m.output(); err != nil {
			e = ending{Failed, err.Error()}
			result = durable.Result{Error: e.Text}
		}
	} else {
		result.Error = cmp.Or(e.Text, string(e.Reason))
	}
	data, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("ending the session: %w", err)
	}
	m.events.add(eventSessionComplete, m.eventData(eventData{Reason: e.Reason, Error: e.Text}))
	status, reason := e.status()
	m.at.End = &e
	if m.at.Phase == phaseEnd {
		m.at.Open = nil
	}
	m.at.Phase = phaseEnd
	if err := m.commit(ctx, durable.Update{Status: status, Reason: reason, Steps: m.at.Spent.Steps, Result: data}); err != nil {
		return err
	}
	m.at.Phase = "" // nothing follows
	return nil
}

// commit records the position, the events and new jobs. A waiting run waits for the child.
func (m *machine) commit(ctx context.Context, u durable.Update, jobs ...durable.Job) error {
	if u.Steps == 0 {
		u.Steps = m.at.Spent.Steps
	}
	parks := len(u.Waits) > 0 // then the firings' records since the last position are still needed
	m.at.Open, m.at.Trace = m.openFirings(), m.trace
	entry, err := m.at.entry()
	if err != nil {
		return err
	}
	for i := range jobs {
		m.addTrace(&jobs[i])
	}
	events, taken := m.events.pending()
	c := durable.Commit{Entries: []durable.Entry{entry}, Events: events, Update: u, Jobs: jobs, HandledSignals: m.handled}
	err = m.journal.Commit(ctx, c, func(first int64, c *durable.Commit) {
		if !parks {
			m.replayAfter, m.since = m.replayAfterCommit(first), first
		}
		if u.Status == durable.StatusWaiting && !parks {
			c.Update.Waits = m.childWaits()
		}
	})
	if err != nil {
		return err
	}
	taken()
	m.last, m.counted = m.at, m.at.usage
	if u.Status != "" {
		m.stored = u.Status
	}
	if !parks {
		m.journal.Forget(m.replayAfter)
	}
	m.files.project(ctx, m)
	return nil
}

// waitData is the data in the wait for an iteration.
type waitData struct {
	// After is machine.replayAfter.
	After int64 `json:"after"`
}

// iterationWait is the subject of the wait for an iteration.
const iterationWait = "iteration"

// childWaits returns the waits for the current iteration, or for a parallel block's stages.
func (m *machine) childWaits() (waits []durable.Wait) {
	data, _ := json.Marshal(waitData{m.replayAfter}) //nolint:errchkjson // a number can always be written
	add := func(name string, child agent.RunID) {
		waits = append(waits, durable.Wait{
			Run: m.about.ID, ID: string(child), Kind: durable.WaitChild, Subject: name, Child: child, Asked: time.Now(), Data: data,
		})
	}
	if m.at.Phase != phaseParallel {
		add(iterationWait, m.at.Child)
	}
	for i, child := range m.at.Waiting {
		add(fmt.Sprintf("%s %d", iterationWait, i+1), child)
	}
	return waits
}

// limitReached names the session limit that is used up; empty for none.
func (m *machine) limitReached() string {
	left, used := m.limits, m.at.Spent
	switch {
	case left.Steps > 0 && used.Steps >= left.Steps:
		return fmt.Sprintf("the limit of %s is reached", quantity(left.Steps, "step"))
	case left.Tokens > 0 && used.Tokens >= left.Tokens:
		return fmt.Sprintf("the limit of %d tokens is reached", left.Tokens)
	case left.Cost > 0 && used.Cost >= left.Cost:
		return fmt.Sprintf("the cost limit of $%.2f is reached", left.Cost)
	case m.at.TimeOver:
		return fmt.Sprintf("the time limit of %s is reached", left.Time)
	}
	return ""
}

// recordTimeOver records whether the session's and the stage's time limits have passed, so that a repetition decides the same.
func (m *machine) recordTimeOver() {
	_, t := m.stageUsed()
	m.at.TimeOver = m.limits.Time > 0 && time.Since(m.at.Began)-m.at.Waited >= m.limits.Time
	m.at.StageTimeOver = m.stage().MaxTime > 0 && t >= m.stage().MaxTime
}

// usedBefore returns the session's usage so far.
func (m *machine) usedBefore() usedBefore {
	return usedBefore{Cost: m.at.Spent.Cost, Waited: m.at.Waited, At: time.Now()}
}

// stageUsed returns the stage's usage so far.
func (m *machine) stageUsed() (cost float64, t time.Duration) {
	before := m.at.Before
	return m.at.Spent.Cost - before.Cost, time.Since(before.At) - (m.at.Waited - before.Waited)
}

// stageOver names the stage's maximum that is used up, apart from its iterations; empty for none.
func (m *machine) stageOver() string {
	s := m.stage()
	switch cost, _ := m.stageUsed(); {
	case s.MaxCost > 0 && cost >= s.MaxCost:
		return fmt.Sprintf("the stage has used its maximum cost of $%.2f", s.MaxCost)
	case m.at.StageTimeOver:
		return fmt.Sprintf("the stage has used its maximum time of %s", s.MaxTime)
	}
	return ""
}

// limitsLeft returns the limits for work that begins now. A used-up limit leaves the least amount, because zero means no limit.
func (m *machine) limitsLeft() agent.Limits {
	s, used := m.limits, m.at.Spent
	cost, t := m.stageUsed()
	return agent.Limits{
		Steps:  lowest(remaining(s.Steps, used.Steps, 1)),
		Tokens: lowest(remaining(s.Tokens, used.Tokens, 1)),
		Cost:   lowest(remaining(s.Cost, used.Cost, leastCost), remaining(m.stage().MaxCost, cost, leastCost)),
		Time: lowest(remaining(s.Time, time.Since(m.at.Began)-m.at.Waited, time.Millisecond),
			remaining(m.stage().MaxTime, t, time.Millisecond)),
	}
}

// leastCost is the cost, in US dollars, that a used-up limit leaves.
const leastCost = 1e-9

// remaining returns the rest of a limit, and at least the least; zero for no limit.
func remaining[T int | int64 | float64 | time.Duration](limit, used, least T) T {
	if limit <= 0 {
		return 0
	}
	return max(limit-used, least)
}

// lowest returns the lowest limit; zero is none.
func lowest[T int | int64 | float64 | time.Duration](limits ...T) (low T) {
	for _, l := range limits {
		if l > 0 && (low == 0 || l < low) {
			low = l
		}
	}
	return low
}

// plus returns the sum of both.
func (s spending) plus(t spending) spending {
	return spending{s.Steps + t.Steps, s.Tokens + t.Tokens, s.Cost + t.Cost}
}
