package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

const (
	questionsQuery = `SELECT ` + questionColumns + ` FROM questions q JOIN runs r ON r.num = q.run WHERE r.id = $1 ORDER BY q.place`
	tokenQuery     = `SELECT ` + questionColumns + ` FROM questions q JOIN runs r ON r.num = q.run WHERE q.token = $1`
)

// Questions returns the questions of a run: see durable.Store.
func (s *Store) Waits(ctx context.Context, id agent.RunID) (all []durable.Wait, err error) {
	err = s.call(ctx, fmt.Sprintf("read the questions of run %s", id), func(ctx context.Context) error {
		all, err = ofRun(ctx, s, id, collectQuestion, questionsQuery)
		return err
	})
	return all, err
}

// WaitByToken returns the question for a token: see durable.Store.
func (s *Store) WaitByToken(ctx context.Context, tokenHash [32]byte) (q durable.Wait, err error) {
	err = s.call(ctx, "find a question by its token", func(ctx context.Context) error {
		hash := tokenValue(tokenHash)
		if hash == nil {
			return durable.ErrNotFound
		}
		q, err = scanQuestion(s.pool.QueryRow(ctx, tokenQuery, hash))
		return notFound(err)
	})
	if err != nil {
		return durable.Wait{}, err
	}
	return q, nil
}

// tokenValue returns the stored form of a hash: null for the zero hash.
func tokenValue(hash [32]byte) []byte {
	if hash == [32]byte{} {
		return nil
	}
	return hash[:]
}

// Answer records answers: see durable.Store. If the reply of the database was lost, a repeated call returns ErrAnswered
// once an answer is stored, and Questions returns that answer.
func (s *Store) Answer(ctx context.Context, id agent.RunID, answers ...durable.Answer) error {
	return s.call(ctx, fmt.Sprintf("answer run %s", id), func(ctx context.Context) error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			var (
				b      pgx.Batch
				asked  []durable.Wait
				status durable.Status
			)
			b.Queue(`SELECT status FROM runs WHERE id = $1 FOR NO KEY UPDATE`, text(id)).QueryRow(scanOptional((*text)(&status)))
			b.Queue(questionsQuery, text(id)).Query(func(rows pgx.Rows) (err error) {
				asked, err = pgx.CollectRows(rows, collectQuestion)
				return err
			})
			if err := tx.SendBatch(ctx, &b).Close(); err != nil {
				return err
			}
			if status == "" {
				return durable.ErrNotFound
			}
			if err := checkAnswers(status, asked, answers); err != nil {
				return err
			}
			b = pgx.Batch{}
			b.Queue(`UPDATE questions q SET answered = clock_timestamp(), ends = a.ends, answer = a.data
				FROM runs r, unnest($2::text[], $3::text[], $4::boolean[], $5::bytea[]) a (call, hash, ends, data)
				WHERE r.id = $1 AND q.run = r.num AND q.call = a.call AND q.hash = a.hash`,
				text(id),
				lo.Map(answers, func(a durable.Answer, _ int) text { return text(a.Wait) }),
				lo.Map(answers, func(a durable.Answer, _ int) text { return text(a.Hash) }),
				lo.Map(answers, func(a durable.Answer, _ int) bool { return a.Ends }),
				lo.Map(answers, func(a durable.Answer, _ int) []byte { return a.Data }))
			b.Queue(`UPDATE runs r SET answer_by = `+firstDeadline+` WHERE r.id = $1`, text(id))
			batchMove(&b, `r.id = $1 AND r.status = 'waiting' AND NOT r.paused AND `+notHeld+` AND `+isSatisfied, `'ready'`, text(id))
			return tx.SendBatch(ctx, &b).Close()
		})
	})
}

// checkAnswers returns an error for each invalid answer to the questions of a run with that status.
func checkAnswers(status durable.Status, asked []durable.Wait, answers []durable.Answer) error {
	type form struct{ call, hash string }
	open := map[form]bool{}
	for _, q := range asked {
		open[form{q.ID, q.Hash}] = q.Answer == nil
	}
	var wrong []error
	for _, a := range answers {
		is, there := open[form{a.Wait, a.Hash}]
		switch {
		case !there:
			wrong = append(wrong, fmt.Errorf("call %s: %w", a.Wait, durable.ErrNotFound))
		case !is:
			wrong = append(wrong, fmt.Errorf("call %s: %w", a.Wait, durable.ErrAnswered))
		case status != durable.StatusWaiting:
			wrong = append(wrong, fmt.Errorf("call %s: the run is %s: %w", a.Wait, status, durable.ErrNotFound))
		default:
			open[form{a.Wait, a.Hash}] = false // a question takes one answer
		}
	}
	return errors.Join(wrong...)
}
