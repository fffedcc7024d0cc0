package store

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// Commit implements durable.Store.
func (s *Store) Commit(ctx context.Context, l durable.Lease, c durable.Commit) (err error) {
	const doing = "writing to a journal"
	if err := c.Check(); err != nil {
		return fmt.Errorf("run %q: %w", l.Run, err)
	}
	if err := s.CheckKey(ctx); err != nil {
		return err
	}
	printed, repeatable := s.keys.maskPrint(c.Fingerprint(l)), isRepeatable(c)
	c.Entries, c.Events = sealAll(s.keys, c.Entries, entryOf(l.Run)), sealAll(s.keys, c.Events, eventOf(l.Run))
	if c.Jobs, err = prepareJobs(c.Jobs); err != nil {
		return err
	}
	if isPlain(c) && !durable.HasCompanion(ctx) {
		if done, err := s.db.Step(ctx, Step{l, c, printed}); err != nil || done {
			return err
		}
	}
	return s.write(ctx, doing, func(t tx) error {
		// The end of a child locks the child before the runs that wait for it.
		if _, err := t.lockAll(children(l.Run, c)...); err != nil {
			return err
		}
		r, err := t.lock(l.Run)
		switch {
		case err != nil:
			return err
		case repeatable && bytes.Equal(r.Appended, printed): // again
			return nil
		case !r.isLeased(l):
			return fmt.Errorf("run %q, epoch %d: %w", l.Run, l.Epoch, durable.ErrStale)
		}
		for i, e := range c.Entries {
			if want := r.Entries + int64(i) + 1; e.Seq != want {
				return &durable.SeqError{Run: r.ID, Got: e.Seq, Want: want}
			}
		}
		r.Appended = printed
		return t.applyCommit(r, c)
	})
}

// isRepeatable reports whether an equal Commit right after this one is this one again.
func isRepeatable(c durable.Commit) bool {
	return len(c.Entries)+len(c.Events)+len(c.Records) > 0 || c.ReleasesLease() || c.Document != nil ||
		slices.ContainsFunc(c.Jobs, func(j durable.Job) bool { return j.ID != "" })
}

// children returns the other runs for whose end a Commit makes its run or its jobs wait: either it sees that they have ended, or their
// end sees what waits for them.
func children(id agent.RunID, c durable.Commit) (all []agent.RunID) {
	for _, w := range c.Update.Waits {
		all = append(all, w.Child)
	}
	for _, j := range c.Jobs {
		all = append(all, j.After)
	}
	return slices.DeleteFunc(all, func(other agent.RunID) bool { return other == "" || other == id })
}

// isPlain reports whether a Commit may be a Step.
func isPlain(c durable.Commit) bool {
	for i, e := range c.Entries {
		if e.Seq != c.Entries[0].Seq+int64(i) {
			return false
		}
	}
	if slices.ContainsFunc(c.Events, func(e durable.Event) bool { return e.Hook != "" || e.Decision != "" || len(e.Also) > 0 }) {
		return false
	}
	return len(c.Jobs)+len(c.Records) == 0 && c.Update.Waits == nil && !c.ReleasesLease() && c.Document == nil
}

// applyCommit changes the run of a valid lease.
func (t tx) applyCommit(r Run, c durable.Commit) error {
	ending := agent.RunID("")
	if c.Update.Status.Ended() {
		ending = r.ID
	}
	_, jobs, err := t.runsOf(c.Jobs, ending)
	if err != nil {
		return err
	}
	if c.Document != nil {
		if _, err := t.addVersion(*c.Document); err != nil {
			return err
		}
	}
	if err := t.append(&r, c); err != nil {
		return err
	}
	r.Updated = t.Now()
	if err := t.update(&r, c.Update); err != nil {
		return err
	}
	if err := t.put(r); err != nil {
		return err
	}
	return t.storeRuns(jobs)
}

// append stores what a Commit adds to a run.
func (t tx) append(r *Run, c durable.Commit) error {
	events := slices.Clone(c.Events)
	for i := range events {
		events[i].Run, events[i].Seq = r.ID, r.Events+int64(i)+1
	}
	r.Entries += int64(len(c.Entries))
	r.Events += int64(len(c.Events))
	r.Decisions = durable.CountDecisions(r.Decisions, c.Events)
	t.rules.AddEvents(r.Name, c.Events, t.Now())
	r.Handled = max(r.Handled, c.HandledSignals)
	if err := t.AddEntries(r.ID, c.Entries); err != nil {
		return err
	}
	if err := t.AddEvents(r.ID, events); err != nil {
		return err
	}
	for _, record := range c.Records {
		record.Run, record.Answer = r.ID, cloneAnswer(record.Answer)
		record.Answer.Data = t.keys.seal(record.Answer.Data, answerPlace(r.ID, *record.Answer))
		if err := t.record(record); err != nil {
			return err
		}
	}
	return nil
}

// update changes the summary of a run.
func (t tx) update(r *Run, u durable.Update) error {
	if u.Waits != nil {
		if err := t.ask(r, u); err != nil {
			return err
		}
	}
	if u.Status != "" {
		r.Reason, r.Blocked, r.Steps = u.Reason, u.Blocked, u.Steps
	}
	if u.Usage != (durable.Usage{}) {
		r.Usage = u.Usage
	}
	switch {
	case u.Pass != nil:
		return t.passOn(r, *u.Pass)
	case u.Status.Ended():
		if len(u.Result) > 0 {
			r.Outcome = t.keys.sealLine(durable.OutcomeOf(u.Result), outcomePlace(r.ID))
			if err := t.PutResult(r.ID, t.keys.seal(u.Result, resultPlace(r.ID))); err != nil {
				return err
			}
		}
		return t.end(r, u.Status)
	case u.Status != "":
		t.setStatus(r, u.Status)
	}
	return nil
}

// ask replaces the waits of a run. What was recorded for the same wait is kept: answers, the token and the claim.
func (t tx) ask(r *Run, u durable.Update) error {
	old, err := t.waitsOf(r.ID)
	if err != nil {
		return err
	}
	r.AnyWait = u.AnyWait
	waits := make([]Wait, len(u.Waits))
	for i, given := range u.Waits {
		w := Wait{Wait: cloneWait(given)}
		w.Run = r.ID
		for k := range w.Partial {
			w.Partial[k].Wait, w.Partial[k].Subject = w.ID, w.Subject
		}
		if w.Answer != nil {
			w.Answer.Wait, w.Answer.Subject = w.ID, w.Subject
			if w.Answer.At.IsZero() {
				w.Answer.At = t.Now()
			}
		}
		t.keys.sealWait(&w.Wait)
		if k := findWait(old, w.ID); k >= 0 {
			w.keep(old[k])
		}
		if w.TokenHash != [32]byte{} {
			if err := t.PutToken(w.TokenHash, Token{r.ID, w.ID, w.Subject}); err != nil {
				return err
			}
		}
		waits[i] = w
	}
	r.setAnswerBy(waits)
	return t.replaceWaits(r.ID, waits)
}

// keep sets what was recorded for the same wait.
func (w *Wait) keep(old Wait) {
	w.Checker, w.CheckedUntil = old.Checker, old.CheckedUntil
	if w.TokenHash == [32]byte{} {
		w.TokenHash = old.TokenHash
	}
	if len(old.Answers()) > 0 {
		w.Partial = old.Partial
	}
	if old.Answer != nil {
		w.Answer = old.Answer
	}
}

// passOn passes a run on to the workers of another phase.
func (t tx) passOn(r *Run, p durable.Pass) error {
	r.Phase, r.Attempts, r.AnyWait = p.Phase, 0, false
	if p.Input != nil {
		if err := t.PutInput(r.ID, t.keys.seal(p.Input, inputPlace(r.ID))); err != nil {
			return err
		}
	}
	r.setAnswerBy(nil)
	if err := t.replaceWaits(r.ID, nil); err != nil {
		return err
	}
	next := durable.StatusReady
	if r.Paused && r.CancelCause == "" {
		next = durable.StatusWaiting
	}
	t.free(r, next)
	return nil
}
