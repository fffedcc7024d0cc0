// Package answertest answers runs like a client that sends every answer twice and late.
package answertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// ErrCounted is wrapped by errors about repeated answers that counted.
var ErrCounted = errors.New("a repeated answer counted")

// Decide sends an answer to a wait twice at the same time. It returns a *durable.NotOpenError if both are refused, and ErrCounted
// if both count.
func Decide(ctx context.Context, store durable.AnswerStore, w durable.Wait, a agent.Approval) error {
	var errs [2]error
	var sending sync.WaitGroup
	for i := range errs {
		sending.Go(func() { _, errs[i] = durable.Decide(ctx, store, w, a) })
	}
	sending.Wait()
	if i := slices.Index(errs[:], nil); i >= 0 {
		return checkRefusal(errs[1-i], w)
	}
	for _, err := range errs {
		if !errors.As(err, new(*durable.NotOpenError)) {
			return err
		}
	}
	return errs[0]
}

// Repeat resends the run's recorded answers: twice, with the opposite verdict, and to open waits that ask other questions. It
// returns ErrCounted unless all of them are refused and every wait was decided once.
func Repeat(ctx context.Context, store durable.AnswerStore, run agent.RunID) error {
	open, err := store.OpenWaits(ctx, durable.WaitFilter{Run: run, Kinds: []durable.WaitKind{durable.WaitApproval, durable.WaitDoubt}})
	if err != nil {
		return err
	}
	records, err := store.AuditRecords(ctx, durable.AuditFilter{Kind: durable.AuditAnswer, Run: run, Limit: 1000})
	if err != nil {
		return err
	}
	decided := map[string]bool{}
	for _, r := range records {
		told, err := durable.AnsweredOf(r)
		if err != nil {
			return err
		}
		w := durable.Wait{Run: run, ID: r.Answer.Wait}
		if !r.Answer.More && decided[w.ID] {
			return fmt.Errorf("%s of run %s was decided twice: %w", w.ID, run, ErrCounted)
		}
		decided[w.ID] = true
		opposite := told.Approval
		if opposite.Verdict = agent.Approve; told.Verdict == agent.Approve {
			opposite.Verdict = agent.RejectAndEnd
		}
		for _, a := range []agent.Approval{told.Approval, told.Approval, opposite} {
			if err := resend(ctx, store, w, a); err != nil {
				return err
			}
		}
		for _, other := range open {
			i, err := durable.InterventionOf(other)
			if err != nil {
				return err
			}
			if slices.ContainsFunc(i.Questions, func(q agent.Question) bool { return slices.Contains(told.Covers, q.ID()) }) {
				continue
			}
			if err := resend(ctx, store, other, told.Approval); err != nil {
				return err
			}
		}
	}
	return nil
}

// resend sends an answer that was sent before.
func resend(ctx context.Context, store durable.AnswerStore, w durable.Wait, a agent.Approval) error {
	_, err := durable.Decide(ctx, store, w, a)
	return checkRefusal(err, w)
}

// checkRefusal returns an error unless err is the refusal of a repeated answer to a wait.
func checkRefusal(err error, w durable.Wait) error {
	switch {
	case err == nil:
		return fmt.Errorf("%s of run %s: %w", w.ID, w.Run, ErrCounted)
	case errors.As(err, new(*durable.NotOpenError)):
		return nil
	}
	return fmt.Errorf("a repeated answer to %s of run %s: %w", w.ID, w.Run, err)
}
