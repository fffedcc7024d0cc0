package approval

import (
	"context"
	"crypto/subtle"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// question is a stored wait with its call, run and batch.
type question struct {
	kept  durable.Wait
	asked agent.Intervention
	about durable.Run
	batch []durable.Wait // all of the run, in call order
}

// findByToken returns the question for the token of a link. It returns ErrNotFound when there is none. To avoid timing
// differences, every token is hashed, looked up and compared.
func findByToken(ctx context.Context, store durable.Store, token string) (*question, error) {
	hash := durable.TokenHash(token)
	w, err := store.WaitByToken(ctx, hash)
	same := subtle.ConstantTimeCompare(hash[:], w.TokenHash[:]) == 1
	if err != nil {
		return nil, err
	}
	if !same {
		return nil, durable.ErrNotFound
	}
	return newQuestion(ctx, store, w)
}

// findWait returns the question for a wait of a run. It returns ErrNotFound when there is none.
func findWait(ctx context.Context, store durable.Store, run agent.RunID, wait string) (*question, error) {
	all, err := store.Waits(ctx, run)
	if err != nil {
		return nil, err
	}
	w, ok := lo.Find(all, func(w durable.Wait) bool { return w.ID == wait && slices.Contains(InboxKinds(), w.Kind) })
	if !ok {
		return nil, durable.ErrNotFound
	}
	return newQuestion(ctx, store, w)
}

func newQuestion(ctx context.Context, store durable.Store, w durable.Wait) (found *question, err error) {
	found = &question{kept: w}
	if found.asked, err = durable.InterventionOf(w); err != nil {
		return nil, err
	}
	if found.asked.Hash() != w.Hash {
		return nil, fmt.Errorf("call %s of run %s: the recorded question does not match the call", w.ID, w.Run)
	}
	if found.about, err = store.Run(ctx, w.Run); err != nil {
		return nil, err
	}
	if found.batch, err = store.Waits(ctx, w.Run); err != nil {
		return nil, err
	}
	return found, nil
}

// isOver reports whether an answer would have no effect: the run has continued, is about to be cancelled, or ends because
// of the decision about another call.
func (q *question) isOver() bool {
	waits := q.about.Status == durable.StatusWaiting || q.about.Status == durable.StatusReady // the deadline may have passed
	return q.kept.Answer == nil && (!waits || q.about.CancelReason != "" ||
		lo.SomeBy(q.batch, func(sibling durable.Wait) bool { return sibling.Answer != nil && sibling.Answer.Ends }))
}

// isExpired reports whether the deadline passed before an answer arrived.
func (q *question) isExpired(now time.Time) bool {
	return q.kept.Answer == nil && !q.kept.Deadline.IsZero() && !now.Before(q.kept.Deadline)
}

// over is the reply for a question that nothing can be decided about any more.
var over = reply{
	Status:  http.StatusConflict,
	Message: "Nothing to decide here any more: the run has gone on or ended, or is to be cancelled.",
}

// replyWith returns the reply that shows a question; status is used if the question is still open.
func (h *handler) replyWith(ctx context.Context, q *question, status int, message string) (reply, error) {
	if q.isOver() {
		return over, nil
	}
	if q.isExpired(time.Now()) {
		status = http.StatusConflict
		message = "The deadline has passed. The answer defined for that case applies: " + verdictNames[q.asked.Questions.OnTimeout()] + "."
	}
	who := author(ctx)
	detail, err := q.detail(ctx, h.store, who != nil)
	return reply{Status: status, Message: message, Question: detail, asked: q}, err
}
