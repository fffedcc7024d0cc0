package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

const (
	selectStates  = `SELECT place, id, hash, tool, partial, answered IS NOT NULL FROM waits WHERE run = ? ORDER BY place`
	updateAnswer  = `UPDATE waits SET answered = ?3, ends = ?4, who = ?5, answer = ?6 WHERE run = ?1 AND place = ?2`
	updatePartial = `UPDATE waits SET partial = ?3 WHERE run = ?1 AND place = ?2`
	// wakeAnswered makes a run ready that needs no more answers.
	wakeAnswered = `UPDATE runs SET ` + becomesReady + ` WHERE n = ?3 AND status = 'waiting' AND paused = 0 AND ` + free + ` AND ` + satisfied
)

// waitState is what an answer to a wait depends on.
type waitState struct {
	place   int64
	tool    string
	partial []durable.Answer
	decided bool
}

// Answer implements durable.Store.
func (s *Store) Answer(ctx context.Context, id agent.RunID, answers ...durable.Answer) error {
	return s.write(ctx, "answering", func(ctx context.Context, t tx) error {
		h, err := readRun(ctx, t, id)
		if err != nil {
			return err
		}
		states, err := readStates(ctx, t, h.n)
		if err != nil {
			return err
		}
		if err := refuseAnswers(h, id, states, answers); err != nil {
			return err
		}
		now := s.clock()
		for _, a := range answers {
			a.At = fromMicros(now)
			w := states[form{a.Wait, a.Hash}]
			if err := storeAnswer(ctx, t, h.n, w, a); err != nil {
				return fmt.Errorf("run %q, wait %q: %w", id, a.Wait, err)
			}
			if err := addRecord(ctx, t, durable.AuditRecord{
				At: a.At, Kind: durable.AuditAnswer, Run: id, Subject: cmp.Or(w.tool, a.Wait), By: a.By, Answer: &a,
			}); err != nil {
				return err
			}
		}
		if _, err := t.exec(ctx, updateAnswerBy, h.n); err != nil {
			return err
		}
		woken, err := t.exec(ctx, wakeAnswered, now, now+skew, h.n)
		if woken > 0 {
			t.notify()
		}
		return err
	})
}

// readStates returns the waits of a run; of several with the same form the first.
func readStates(ctx context.Context, t tx, n int64) (map[form]*waitState, error) {
	states := map[form]*waitState{}
	rows, err := t.prepare(ctx, selectStates).QueryContext(ctx, n) //nolint:sqlclosecheck // closed with the transaction
	err = scanRows(rows, err, func(rows *sql.Rows) error {
		var f form
		var w waitState
		var partial string
		if err := rows.Scan(&w.place, &f.id, &f.hash, &w.tool, &partial, &w.decided); err != nil || states[f] != nil {
			return err
		}
		states[f] = &w
		var err error
		w.partial, err = readPartial(f, partial)
		return err
	})
	return states, err
}

// refuseAnswers returns durable.ErrAnswered when one of the waits is already decided, and otherwise durable.ErrNotFound
// when the run does not wait, or not for all of them.
func refuseAnswers(h held, id agent.RunID, states map[form]*waitState, answers []durable.Answer) error {
	for _, a := range answers {
		if w := states[form{a.Wait, a.Hash}]; w != nil && w.decided {
			return fmt.Errorf("run %q, wait %q: %w", id, a.Wait, durable.ErrAnswered)
		}
	}
	if h.status != durable.StatusWaiting {
		return fmt.Errorf("run %q does not wait for an answer: %w", id, durable.ErrNotFound)
	}
	for _, a := range answers {
		if states[form{a.Wait, a.Hash}] == nil {
			return fmt.Errorf("run %q, wait %q: %w", id, a.Wait, durable.ErrNotFound)
		}
	}
	return nil
}

// storeAnswer stores an answer, and changes the state of its wait.
func storeAnswer(ctx context.Context, t tx, n int64, w *waitState, a durable.Answer) error {
	switch {
	case w.decided: // by another answer of the same call
		return durable.ErrAnswered
	case len(w.partial) != a.Seen:
		return durable.ErrMoreAnswers
	case !a.More:
		w.decided = true
		_, err := t.exec(ctx, updateAnswer, n, w.place, micros{a.At}, a.Ends, a.By, a.Data)
		return err
	}
	w.partial = append(w.partial, a)
	text, err := writePartial(w.partial)
	if err != nil {
		return err
	}
	_, err = t.exec(ctx, updatePartial, n, w.place, text)
	return err
}
