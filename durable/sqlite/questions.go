package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

const questionColumns = `r.id, q.call, q.hash, q.tool, q.asked, q.deadline, q.child, q.token, q.data, q.answered, q.ends, q.answer`

const (
	// A run without questions gives one row of NULLs, which shows that the run exists.
	selectQuestions = `SELECT ` + questionColumns + ` FROM runs r LEFT JOIN questions q ON q.run = r.n WHERE r.id = ? ORDER BY q.place`
	selectByToken   = `SELECT ` + questionColumns + ` FROM questions q JOIN runs r ON r.n = q.run WHERE q.token = ? LIMIT 1`
	selectAnswered  = `SELECT call, hash, answered, ends, answer FROM questions WHERE run = ? AND answered IS NOT NULL`
	deleteQuestions = `DELETE FROM questions WHERE run = ?`
	insertQuestion  = `INSERT INTO questions (run, place, call, hash, tool, asked, deadline, child, token, data, answered, ends, answer)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	updateAnswer    = `UPDATE questions SET answered = ?4, ends = ?5, answer = ?6 WHERE run = ?1 AND call = ?2 AND hash = ?3 AND answered IS NULL`
	isAnswered      = `SELECT EXISTS (SELECT 1 FROM questions WHERE run = ? AND call = ? AND hash = ? AND answered IS NOT NULL)`
	removeQuestions = `DELETE FROM questions WHERE run = (SELECT n FROM runs WHERE id = ?)`
	updateAnswerBy  = `UPDATE runs SET answer_by = (SELECT min(deadline) FROM questions WHERE run = runs.n AND answered IS NULL) WHERE n = ?`
	// wakeAnswered makes a run ready whose questions need no more answers.
	wakeAnswered = `UPDATE runs SET ` + becomesReady + ` WHERE n = ?3 AND status = 'waiting' AND paused = 0 AND ` + free + ` AND ` + satisfied
)

// replaceQuestions replaces the questions of a run and keeps the answers to unchanged ones.
func replaceQuestions(ctx context.Context, t tx, n int64, questions []durable.Wait) error {
	type form struct{ call, hash string }
	answers := map[form]durable.Answer{}
	rows, err := t.prepare(ctx, selectAnswered).QueryContext(ctx, n) //nolint:sqlclosecheck // closed with the transaction
	err = scanRows(rows, err, func(rows *sql.Rows) error {
		var a durable.Answer
		var said micros
		err := rows.Scan(&a.Wait, &a.Hash, &said, &a.Ends, &a.Data)
		a.At = said.Time
		answers[form{a.Wait, a.Hash}] = a
		return err
	})
	if err != nil {
		return err
	}
	if _, err := t.exec(ctx, deleteQuestions, n); err != nil {
		return err
	}
	for place, q := range questions {
		var token, answered any
		var a durable.Answer
		if q.TokenHash != [32]byte{} {
			token = q.TokenHash[:]
		}
		if q.Answer != nil {
			a, answered = *q.Answer, q.Answer.At.UnixMicro()
		}
		if kept, ok := answers[form{q.ID, q.Hash}]; ok {
			a, answered = kept, kept.At.UnixMicro()
		}
		if _, err := t.exec(ctx, insertQuestion, n, place, q.ID, q.Hash, q.Tool, micros{q.Asked}, micros{q.Deadline}, string(q.Child),
			token, q.Data, answered, a.Ends, a.Data); err != nil {
			return err
		}
	}
	_, err = t.exec(ctx, updateAnswerBy, n)
	return err
}

// Answer implements durable.Store.
func (s *Store) Answer(ctx context.Context, id agent.RunID, answers ...durable.Answer) error {
	return s.write(ctx, "answering", func(ctx context.Context, t tx) error {
		h, err := readRun(ctx, t, id)
		if err != nil {
			return err
		}
		if err := refuseAnswered(ctx, t, id, h.n, answers); err != nil {
			return err
		}
		if h.status != durable.StatusWaiting {
			return fmt.Errorf("run %q does not wait for an answer: %w", id, durable.ErrNotFound)
		}
		now := s.clock()
		for _, a := range answers {
			done, err := t.exec(ctx, updateAnswer, h.n, a.Wait, a.Hash, now, a.Ends, a.Data)
			if err != nil {
				return err
			}
			if done == 0 {
				return fmt.Errorf("run %q, call %q: %w", id, a.Wait, refuseAnswer(ctx, t, h.n, a))
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

// refuseAnswer returns why an answer cannot be recorded.
func refuseAnswer(ctx context.Context, t tx, n int64, a durable.Answer) error {
	var answered bool
	if err := t.one(ctx, isAnswered, n, a.Wait, a.Hash).Scan(&answered); err != nil {
		return err
	}
	if answered {
		return durable.ErrAnswered
	}
	return durable.ErrNotFound
}

// refuseAnswered returns durable.ErrAnswered when one of the questions is already answered.
func refuseAnswered(ctx context.Context, t tx, id agent.RunID, n int64, answers []durable.Answer) error {
	for _, a := range answers {
		if err := refuseAnswer(ctx, t, n, a); !errors.Is(err, durable.ErrNotFound) {
			return fmt.Errorf("run %q, call %q: %w", id, a.Wait, err)
		}
	}
	return nil
}

// Questions implements durable.Store.
func (s *Store) Waits(ctx context.Context, id agent.RunID) (all []durable.Wait, err error) {
	err = s.read(ctx, "reading questions", func() error {
		all = nil
		there := false
		rows, err := s.statements[selectQuestions].QueryContext(ctx, id)
		err = scanRows(rows, err, func(rows *sql.Rows) error {
			there = true
			q, asked, err := scanQuestion(rows.Scan)
			if asked {
				all = append(all, q)
			}
			return err
		})
		if err == nil && !there {
			return notFound(id)
		}
		return err
	})
	return ignoreNoRows(all, err)
}

// WaitByToken implements durable.Store.
func (s *Store) WaitByToken(ctx context.Context, tokenHash [32]byte) (q durable.Wait, err error) {
	err = s.read(ctx, "looking for a question", func() error {
		q, _, err = scanQuestion(s.statements[selectByToken].QueryRowContext(ctx, tokenHash[:]).Scan)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("by its token: %w", durable.ErrNotFound)
		}
		return err
	})
	return ignoreNoRows(q, err)
}

// scanQuestion reads a row of questionColumns; asked reports whether it contains a question.
func scanQuestion(scan func(...any) error) (q durable.Wait, asked bool, err error) {
	var run string
	var call, hash, tool, child sql.NullString
	var when, deadline micros
	var answered sql.NullInt64
	var ends sql.NullBool
	var token, answer []byte
	if err := scan(&run, &call, &hash, &tool, &when, &deadline, &child, &token, &q.Data, &answered, &ends, &answer); err != nil || !call.Valid {
		return durable.Wait{}, false, err
	}
	q.Run, q.ID, q.Hash, q.Tool, q.Child = agent.RunID(run), call.String, hash.String, tool.String, agent.RunID(child.String)
	q.Asked, q.Deadline = when.Time, deadline.Time
	copy(q.TokenHash[:], token)
	if answered.Valid {
		q.Answer = &durable.Answer{Wait: q.ID, Hash: q.Hash, Ends: ends.Bool, At: fromMicros(answered.Int64), Data: answer}
	}
	return q, true, nil
}
