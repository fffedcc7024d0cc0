package durable

import (
	"cmp"
	"context"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
)

// WrapApprover returns an approver that adds people's answers to the audit log while the run executes. Each record is
// written with the journal entry that has the answer. Answers from the store, from hooks and from passed deadlines are
// not recorded.
func (k *Keeper) WrapApprover(inner agent.Approver) agent.Approver { return &keptApprover{inner, k} }

type keptApprover struct {
	inner  agent.Approver
	keeper *Keeper
}

// Approve calls the inner approver and notes its answers.
func (x *keptApprover) Approve(ctx context.Context, s agent.State, pending []*agent.Prepared) ([]agent.Approval, error) {
	r := x.keeper.runs.Get(s)
	if r.keeper == nil {
		return x.inner.Approve(ctx, s, pending)
	}
	asked := time.Now()
	answers, err := x.inner.Approve(ctx, s, pending)
	if err != nil || len(answers) != len(pending) || ctx.Err() != nil {
		return answers, err // the loop uses none of them
	}
	took := time.Since(asked)
	for i, p := range pending {
		a := &answers[i]
		within := p.Questions().Within()
		isLate := a.Verdict == agent.Approve && within > 0 && took > within // the loop does not count it
		if p.Questions().Decision() != nil || a.Verdict > agent.Approve || a.TimedOut() || isLate || agent.Checkpoint(s).Card(p).CheckInput(*a) != nil {
			continue
		}
		if a.At.IsZero() {
			a.At = asked.Add(took).Round(0)
		}
		if err := r.recordAnswer(s, p, *a); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// recordAnswer records the answer about a call for the audit log.
func (r *recordedRun) recordAnswer(s agent.State, p *agent.Prepared, a agent.Approval) error {
	i := agent.Checkpoint(s).Card(p)
	e := Entry{Key: i.CallID()}
	top := r.journal.top(&e)
	w := Wait{Run: r.lease.Run, ID: i.ID, Subject: e.Key}
	if len(a.Covers) == 0 {
		a.Covers = lo.Map(i.Questions.Open(), questionID)
	}
	answer, err := newAnswer(w, i, a)
	if err != nil {
		return err
	}
	answer.At, answer.More = a.At, i.WithAnswer(a).Answer() == nil
	top.addAnswer(AuditRecord{At: a.At, Kind: AuditAnswer, Run: w.Run, Subject: cmp.Or(p.Call.Name, e.Key), By: answer.By, Answer: answer})
	return nil
}
