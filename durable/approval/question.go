package approval

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
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

// findByToken returns the question for the token of a link. It returns ErrNotFound when there is none, and
// ErrTokenSpent when the run has gone on. To avoid timing
// differences, every token is hashed, looked up and compared.
func findByToken(ctx context.Context, store Store, token string) (*question, error) {
	hash := durable.TokenHash(token)
	w, err := store.WaitByToken(ctx, hash)
	if errors.Is(err, durable.ErrTokenSpent) {
		return nil, &spentError{waitName{string(w.Run), w.ID}, true}
	}
	same := subtle.ConstantTimeCompare(hash[:], w.TokenHash[:]) == 1
	if err != nil {
		return nil, err
	}
	if !same {
		return nil, durable.ErrNotFound
	}
	return newQuestion(ctx, store, w)
}

// spentError is returned for the token of a wait that the run does not have any more.
type spentError struct {
	of      waitName
	byToken bool
}

func (*spentError) Error() string { return durable.ErrTokenSpent.Error() }

// findWait returns the question for a wait of a run. It returns ErrNotFound when there is none.
func findWait(ctx context.Context, store durable.AnswerStore, run agent.RunID, wait string) (*question, error) {
	if run == "" {
		return nil, durable.ErrNotFound
	}
	w, err := durable.FindWait(ctx, store, run, wait)
	switch {
	case errors.Is(err, durable.ErrAnswered), errors.Is(err, durable.ErrChanged):
		return nil, &spentError{waitName{string(run), wait}, false}
	case err != nil:
		return nil, err
	case !slices.Contains(InboxKinds(), w.Kind):
		return nil, durable.ErrNotFound
	}
	return newQuestion(ctx, store, w)
}

// findDecided returns the page for a wait that the run no longer has: the decisions in the audit log, so that who has answered
// finds their own. Only people who are signed in, or have had its link, may see it.
func (h *handler) findDecided(ctx context.Context, n waitName) (Page, error) {
	if n.run == "" || n.wait == "" { // an empty filter selects all runs
		return nothing, nil
	}
	lines := []string{over.Message}
	var answers []Decision
	f := durable.AuditFilter{Kind: durable.AuditAnswer, Run: agent.RunID(n.run)}
	for {
		records, err := h.store.AuditRecords(ctx, f)
		if err != nil {
			return nothing, err
		}
		for _, d := range DecisionsOf(lo.Filter(records, func(r durable.AuditRecord, _ int) bool { return r.Answer != nil && r.Answer.Wait == n.wait })) {
			line := verdictNames[d.Verdict] + " by " + d.author() + ", " + formatTime(d.At)
			if d.Reason != "" {
				line += ": " + oneLine(d.Reason)
			}
			lines, answers = append(lines, line), append(answers, d)
		}
		if len(records) < durable.DefaultLimit {
			break
		}
		f.Before = records[len(records)-1].Seq
	}
	return Page{Status: http.StatusConflict, Message: visible(strings.Join(lines, "\n")), Answers: answers}, nil
}

func newQuestion(ctx context.Context, store durable.AnswerStore, w durable.Wait) (found *question, err error) {
	found = &question{kept: w}
	if found.asked, err = durable.InterventionOf(w); err != nil {
		return nil, &unreadableError{err}
	}
	if _, gate := durable.GateOf(w, found.asked); !gate && found.asked.ID != w.ID {
		return nil, &unreadableError{fmt.Errorf("wait %s of run %s: the recorded question has another ID", w.ID, w.Run)}
	}
	if found.about, err = store.Run(ctx, w.Run); err != nil {
		return nil, err
	}
	if found.batch, err = store.Waits(ctx, w.Run); err != nil {
		return nil, err
	}
	return found, nil
}

// unreadableError is returned for a wait without a question that people can be shown, such as a runner may have made up.
type unreadableError struct{ error }

func (e *unreadableError) Unwrap() error { return e.error }

// isOver reports whether an answer would have no effect: the run has continued, is about to be cancelled, or ends because
// of the decision about another call.
func (q *question) isOver() bool {
	waits := q.about.Status == durable.StatusWaiting || q.about.Status == durable.StatusReady // the deadline may have passed
	return q.kept.Answer == nil && (!waits || q.about.CancelCause != "" ||
		lo.SomeBy(q.batch, func(sibling durable.Wait) bool { return sibling.Answer != nil && sibling.Answer.Ends }))
}

// isExpired reports whether the deadline passed before an answer arrived.
func (q *question) isExpired(now time.Time) bool {
	return q.kept.Answer == nil && !q.kept.Deadline.IsZero() && !now.Before(q.kept.Deadline)
}

// over is the page for a question that nothing can be decided about any more.
var over = Page{
	Status:  http.StatusConflict,
	Message: "Nothing to decide here any more: the run has gone on or ended, or is to be cancelled.",
}

// replyWith returns the page that shows a question; status is used if the question is still open.
func (h *handler) replyWith(ctx context.Context, q *question, status int, message string) (Page, error) {
	if q.isOver() {
		return over, nil
	}
	if q.isExpired(time.Now()) {
		status = http.StatusConflict
		message = "The deadline has passed. The answer defined for that case applies: " + verdictNames[q.asked.Questions.OnTimeout()] + "."
	}
	who := author(ctx)
	p, err := q.page(ctx, h.store, who, who != nil)
	p.Status, p.Message = status, message
	switch {
	case !h.options.Waivers:
		p.Waiver = nil
	case err == nil && p.Waiver != nil:
		err = p.Waiver.addEffect(ctx, h.store)
	}
	return p, err
}

// checkAuthor returns why answers of the author of a request would not count; empty when they would.
func checkAuthor(ctx context.Context, store durable.AnswerStore, q *question, who *Principal) (cannotApprove, cannotReject string, err error) {
	for verdict, why := range map[agent.ApprovalVerdict]*string{agent.Approve: &cannotApprove, agent.RejectAndEnd: &cannotReject} {
		a := agent.Approval{Verdict: verdict}
		if who != nil {
			a.Identity, a.Roles = who.Name, who.Roles
		}
		err := durable.CheckAnswer(ctx, store, q.kept, a)
		denied, ok := errors.AsType[*durable.NotAdmittedError](err)
		switch {
		case ok:
			*why = denied.Why
		case err != nil:
			return "", "", err
		}
	}
	return cannotApprove, cannotReject, nil
}
