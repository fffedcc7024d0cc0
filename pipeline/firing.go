package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/firing"
	"github.com/grapnel-go/grapnel/internal/runctx"
)

// fire fires a point for the current stage. Ended reports that a hook has ended the session, which is then recorded.
func (m *machine) fire(ctx context.Context, point hooks.PointName, failure error) (ended bool, err error) {
	return m.fireWithReason(ctx, point, failure, "")
}

// fireWithReason works like fire, for a point with a reason. It adds the hooks' texts to the position, and records the session's
// ending if a hook stops it or fails with abort.
func (m *machine) fireWithReason(ctx context.Context, point hooks.PointName, failure error, reason string) (ended bool, err error) {
	scope, err := m.scope(ctx, m.at.Stage)
	if err != nil {
		return false, err
	}
	at := firingAt{point, m.at.Stage, m.at.Iteration, m.at.Round}
	if point == hooks.SessionStart {
		at = firingAt{Point: point}
	}
	about := m.describe()
	about.Err, about.Reason = failure, reason
	after, stop, err := m.firePoint(ctx, scope, at, about, false)
	if m.isOpen(at) && !slices.ContainsFunc(m.at.Open, func(o openFiring) bool { return o.firingAt == at }) {
		m.at.Open = append(slices.Clip(m.at.Open), openFiring{at, m.since})
	}
	if err == nil {
		m.at.Context = append(slices.Clip(m.at.Context), textsOf(after)...)
	}
	if point == hooks.SessionComplete {
		return false, err
	}
	switch {
	case stop != nil:
		return true, m.recordEnding(ctx, ending{Aborted, fmt.Sprintf("%s at %s: %s", stop.Source, point, stop.Message)})
	case err == nil:
		return false, nil
	case errors.Is(err, firing.ErrParked):
		return false, err
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	}
	if failed, ok := errors.AsType[*hooks.HookError](err); ok {
		texts := lo.Compact([]string{failed.Error(), m.limitReached(), m.stageOver()}) // a limit may be the cause
		return true, m.recordEnding(ctx, ending{Aborted, strings.Join(texts, "; ")})
	}
	return false, err
}

// firePoint fires a point through a scope. It returns firing.ErrParked when a gate waits in the store. If the point has fired
// before, its hook events are dropped.
func (m *machine) firePoint(
	ctx context.Context, scope *hooks.RunScope, at firingAt, about hooks.Pipeline, repeated bool,
) (after agent.State, stop *agent.Signal, err error) {
	ctx = context.WithValue(ctx, spawningKey{}, spawning{at.Round, m.limitsLeft(), cmp.Or(m.limitReached(), m.stageOver())})
	ctx, cancel := context.WithCancelCause(action.WithDepth(ctx, m.depth))
	defer cancel(nil)
	place := &firing.Place{Run: scope.Run(), Waits: m.waits, Now: m.now(), Cancel: cancel}
	if m.options.GateHost != nil {
		place.Host = m.options.GateHost(m.about)
	}
	mark := &firingMark{m.Stages[at.Stage].Name, at.Iteration}
	ctx = context.WithValue(ctx, firingMarkKey{}, mark)
	after, stop, err = scope.Pipeline(runctx.WithPlace(ctx, place), agent.NewState(), m.hookFiring(at), about)
	parks := errors.Is(err, firing.ErrParked)
	if parks || repeated {
		m.events.drop(mark) // they are written when the firing is repeated, or were written the first time
	}
	if parks {
		m.parked, m.parkedJobs = place.Parked, place.Jobs
		return after, nil, firing.ErrParked
	}
	return after, stop, err
}

// hookFiring converts a firing to the type that hooks see.
func (m *machine) hookFiring(at firingAt) hooks.Firing {
	f := hooks.Firing{Point: at.Point, Stage: m.Stages[at.Stage].Name, Iteration: at.Iteration}
	if at.Round > 0 {
		f.Cursor = fmt.Sprintf("round %d", at.Round)
	}
	return f
}

// textsOf returns the messages that hooks have added to an empty state.
func textsOf(s agent.State) (texts []string) {
	for _, message := range s.Messages() {
		if text := message.Text(); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// scope returns the scope in which a stage's hooks run.
func (m *machine) scope(ctx context.Context, stage int) (*hooks.RunScope, error) {
	if m.scopes == nil {
		m.scopes, m.hooked = make([]*hooks.RunScope, len(m.Stages)), make([]bool, len(m.Stages))
	}
	if m.scopes[stage] == nil {
		host := m.options.Host
		host.Dir, host.Spawner = m.workspace, spawner{m}
		list, err := m.hooksOf(&m.Stages[stage], host)
		var compiled *hooks.Compiled
		if err == nil {
			compiled, err = hooks.NewSet(list...).Compile()
		}
		if err != nil {
			return nil, &brokenError{fmt.Errorf("the hooks of stage %q: %w", m.Stages[stage].Name, err)}
		}
		m.hooked[stage] = len(list) > 0
		m.scopes[stage] = compiled.OpenScope(ctx, hooks.ScopeOptions{
			Run: agent.Run{
				ID: m.about.ID, Session: agent.SessionID(m.name), Agent: m.Name, Parent: m.about.Parent, Root: m.about.Root,
				Started: m.about.Created,
			},
			Observer: m.events, Journal: m.journal,
		})
	}
	return m.scopes[stage], nil
}

// watchesChanges reports whether the current stage's changes are recorded: only hooks use them.
func (m *machine) watchesChanges(ctx context.Context) (bool, error) {
	if _, err := m.scope(ctx, m.at.Stage); err != nil {
		return false, err
	}
	return m.hooked[m.at.Stage], nil
}

// repeatOpen fires points again whose detached actions had not ended when the position was recorded. It does not repeat recorded
// actions, and ignores decisions, because their consequences are recorded.
func (m *machine) repeatOpen(ctx context.Context) error {
	for _, open := range m.at.Open {
		at := open.firingAt
		scope, err := m.scope(ctx, at.Stage)
		if err != nil {
			return err
		}
		_, _, err = m.firePoint(ctx, scope, at, hooks.Pipeline{}, true)
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// isOpen reports whether one of a firing's detached actions has not ended.
func (m *machine) isOpen(at firingAt) bool {
	return m.scopes != nil && m.scopes[at.Stage] != nil && m.scopes[at.Stage].HasDetached(m.hookFiring(at))
}

// openFirings returns the position's firings whose detached actions have not ended.
func (m *machine) openFirings() []openFiring {
	if m.scopes == nil { // they are not repeated yet
		return m.at.Open
	}
	return lo.Filter(m.at.Open, func(o openFiring, _ int) bool { return m.isOpen(o.firingAt) })
}

// replayAfterCommit returns replayAfter for a position in the entry with the given number. Open firings still need their records.
func (m *machine) replayAfterCommit(first int64) int64 {
	from := first - 1
	for _, o := range m.at.Open {
		from = min(from, o.After)
	}
	return from
}

// drain waits until no detached action runs, but not longer than most. It reports whether all have ended.
func (m *machine) drain(ctx context.Context, most time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for _, scope := range m.scopes {
		if scope != nil && scope.Drain(ctx) != nil {
			return false
		}
	}
	return true
}

// cancelDetached ends the detached actions that still run.
func (m *machine) cancelDetached() {
	for _, scope := range m.scopes {
		if scope != nil {
			scope.Cancel()
		}
	}
}

// describe returns the data that hooks receive at the current position.
func (m *machine) describe() hooks.Pipeline {
	at := m.at
	at.Iteration = max(at.Iteration, 1)
	about := hooks.Pipeline{
		Name: m.Name, MaxIterations: m.stage().maximum(), Progress: m.progress(m.at.Stage),
		Status: m.file(at, decisionFile), Context: m.file(at, contextFile), LastDecision: m.at.Decision, ChangedFiles: m.at.Changed,
		StageOutputs: m.outputs(),
	}
	about.NextStage = m.next
	if next := m.at.Stage + 1; next < len(m.Stages) {
		about.NextStage = m.Stages[next].Name
	}
	return about
}

// maxOutputs is the maximum size of STAGE_OUTPUTS in bytes, which must fit into an environment.
const maxOutputs = 32 << 10

// outputs returns the paths of the stage's outputs so far: the last ones, if all would be too long.
func (m *machine) outputs() (paths []string) {
	last := m.at.Iteration
	if m.at.Phase == phaseStart || m.at.Phase == phaseRun || m.at.Phase == phaseOpen {
		last--
	}
	at := m.at
	for i, size := last, 0; i >= 1; i-- {
		at.Iteration = i
		path := m.file(at, outputFile)
		if size += len(path) + 1; size > maxOutputs {
			break
		}
		if !slices.Contains(m.at.Failed, i) {
			paths = append(paths, path)
		}
	}
	slices.Reverse(paths)
	return paths
}

// variables returns the variables for an agent or a command at the current position.
func (m *machine) variables(failure error) map[string]string {
	about := m.describe()
	v := action.Variables{
		Session: m.name, Stage: m.stage().Name, NextStage: about.NextStage, Iteration: m.at.Iteration, MaxIterations: about.MaxIterations,
		Progress: about.Progress, Status: about.Status, Ctx: about.Context, LastDecision: about.LastDecision,
		Timestamp: time.Now().UTC().Format(time.RFC3339),
	}
	if failure != nil {
		v.Error = failure.Error()
	}
	values := maps.Collect(v.All())
	values["STAGE_OUTPUTS"] = joinLines(about.StageOutputs)
	values["ITERATION"] = strconv.Itoa(m.at.Iteration)
	return values
}
