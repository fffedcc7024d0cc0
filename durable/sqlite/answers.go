package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

const (
	// selectStored reads the waits of a run in a transaction.
	selectStored  = `SELECT ` + waitColumns + ` FROM runs r JOIN waits w ON w.run = r.n WHERE r.n = ? ORDER BY w.place`
	updateAnswer  = `UPDATE waits SET answered = ?3, ends = ?4, who = ?5, answer = ?6 WHERE run = ?1 AND place = ?2`
	updatePartial = `UPDATE waits SET partial = ?3 WHERE run = ?1 AND place = ?2`
	// wakeAnswered makes a run ready that needs no more answers.
	wakeAnswered = `UPDATE runs SET ` + becomesReady + ` WHERE n = ?3 AND status = 'waiting' AND paused = 0 AND ` + free + ` AND ` + satisfied
)

// Answer implements durable.Store.
func (s *Store) Answer(ctx context.Context, id agent.RunID, form durable.AnswerFunc) error {
	var refused error
	err := s.write(ctx, "answering", func(ctx context.Context, t tx) error {
		refused = nil
		h, err := readRun(ctx, t, id)
		if err != nil {
			return err
		}
		waits, err := scanWaits(t.rows(ctx, selectStored, h.n))
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		now := s.clock()
		answers, err := form(slices.Clone(waits), fromMicros(now))
		if err != nil {
			refused = err
			return err
		}
		if err := refuseAnswers(h, id, waits, answers); err != nil {
			return err
		}
		for _, a := range answers {
			place := placeOf(waits, a)
			a.At, a.Subject = fromMicros(now), waits[place].Subject
			if err := storeAnswer(ctx, t, h.n, place, &waits[place], a); err != nil {
				return fmt.Errorf("run %q, wait %q: %w", id, a.Wait, err)
			}
			if err := addRecord(ctx, t, durable.AuditRecord{
				At: a.At, Kind: durable.AuditAnswer, Run: id, Subject: cmp.Or(waits[place].Tool, a.Subject, a.Wait), By: a.By, Answer: &a,
			}); err != nil {
				return err
			}
		}
		if _, err := t.exec(ctx, updateAnswerBy, h.n, now); err != nil {
			return err
		}
		woken, err := t.exec(ctx, wakeAnswered, now, now+skew, h.n)
		if woken > 0 {
			t.notify()
		}
		return err
	})
	return cmp.Or(refused, err)
}

// placeOf returns the place of the wait that an answer is about; below zero if there is none.
func placeOf(waits []durable.Wait, a durable.Answer) int {
	return slices.IndexFunc(waits, func(w durable.Wait) bool { return w.ID == a.Wait })
}

// refuseAnswers returns durable.ErrAnswered when one of the waits is already decided, and otherwise durable.ErrNotFound
// when the run does not wait, or not for all of them.
func refuseAnswers(h held, id agent.RunID, waits []durable.Wait, answers []durable.Answer) error {
	isDecided := func(a durable.Answer) bool {
		place := placeOf(waits, a)
		return place >= 0 && waits[place].Answer != nil
	}
	if a, ok := lo.Find(answers, isDecided); ok {
		return fmt.Errorf("run %q, wait %q: %w", id, a.Wait, durable.ErrAnswered)
	}
	if h.status != durable.StatusWaiting {
		return fmt.Errorf("run %q does not wait for an answer: %w", id, durable.ErrNotFound)
	}
	if a, ok := lo.Find(answers, func(a durable.Answer) bool { return placeOf(waits, a) < 0 }); ok {
		return fmt.Errorf("run %q, wait %q: %w", id, a.Wait, durable.ErrNotFound)
	}
	return nil
}

// storeAnswer stores an answer, and changes its wait.
func storeAnswer(ctx context.Context, t tx, n int64, place int, w *durable.Wait, a durable.Answer) error {
	switch {
	case w.Answer != nil: // by another answer of the same call
		return durable.ErrAnswered
	case !a.More:
		w.Answer = &a
		_, err := t.exec(ctx, updateAnswer, n, place, micros{a.At}, a.Ends, a.By, a.Data)
		return err
	}
	w.Partial = append(slices.Clip(w.Partial), a)
	text, err := writePartial(w.Partial)
	if err != nil {
		return err
	}
	_, err = t.exec(ctx, updatePartial, n, place, text)
	return err
}
