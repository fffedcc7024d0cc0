package pipeline

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// startParallel submits the current block's stages. Each is a session below this one, with its own journal and scope. The run then
// waits for all of them.
func (m *machine) startParallel(ctx context.Context) (wait bool, err error) {
	block := m.stage()
	var jobs []durable.Job
	next := m.next
	if i := m.at.Stage + 1; i < len(m.Stages) {
		next = m.Stages[i].Name
	}
	m.at.Phase, m.at.Children, m.at.Waiting = phaseParallel, nil, nil
	for i := range block.Parallel {
		s := &block.Parallel[i]
		job, err := m.Job(SessionOptions{
			Name: m.name, Dir: filepath.Join(m.stageDir(m.at.Stage), s.Name), Workspace: m.workspace, Demands: m.about.Demands,
			DetachedDemands: m.detachedDemands, Limits: m.limitsLeft(), By: m.about.By, Inputs: m.inputs,
			depth: m.depth, only: s.Name, next: next, root: m.root,
		})
		if err != nil {
			return false, err
		}
		job.ID, job.Parent, job.Root, job.Priority, job.Version = agent.NewRunID(), m.about.ID, m.about.Root, m.about.Priority, m.about.Version
		job.Labels[durable.LabelStage] = s.Name
		jobs = append(jobs, job)
		m.at.Children = append(m.at.Children, job.ID)
		d := m.eventData(eventData{Run: job.ID})
		d.Stage = s.Name
		m.events.add(eventStageStart, d)
	}
	m.at.Waiting = slices.Clone(m.at.Children)
	if err := m.commit(ctx, durable.Update{Status: durable.StatusWaiting}, jobs...); err != nil {
		return false, err
	}
	return m.awaitChildren(ctx, m.at.Children...)
}

// observeParallel goes on when all stages in the block have ended.
func (m *machine) observeParallel(ctx context.Context) (wait bool, err error) {
	var left []agent.RunID
	var ended []Status
	var spent spending
	var waited time.Duration // the stages wait at the same time
	for i, id := range m.at.Children {
		child, err := m.store.Run(ctx, id)
		if err != nil {
			return false, fmt.Errorf("stage %q: %w", m.stage().Parallel[i].Name, err)
		}
		if !child.Status.Ended() {
			left = append(left, id)
			continue
		}
		status, at, err := statusAt(ctx, m.store, child)
		if err != nil {
			return false, err
		}
		ended = append(ended, status)
		spent, waited = spent.plus(at.Spent), max(waited, at.Waited)
	}
	if m.at.Waiting = left; len(left) > 0 {
		return true, m.commit(ctx, durable.Update{Status: durable.StatusWaiting})
	}
	var broken *ending
	for i, s := range ended {
		switch s.Reason {
		case Completed:
		case MaxIterations:
			m.at.AtMaximum = true
		default:
			if broken == nil {
				broken = &ending{s.Reason, fmt.Sprintf("stage %q: %s", m.stage().Parallel[i].Name, s.Error)}
				if s.Reason == Cancelled || s.Reason == "" { // the stage was cancelled, not this session
					broken.Reason = Failed
				}
			}
		}
	}
	m.at.Children, m.at.Spent, m.at.Waited = nil, m.at.Spent.plus(spent), m.at.Waited+waited
	m.recordTimeOver()
	if broken != nil {
		return false, m.recordEnding(ctx, *broken)
	}
	m.events.add(eventStageComplete, m.eventData(eventData{Why: "all of its stages have ended"}))
	return false, m.beginNext(ctx)
}
