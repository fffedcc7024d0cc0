package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// Answer records answers: see durable.Store. If the reply of the database was lost, a repeated call returns ErrAnswered or
// what form makes of the stored answers.
func (s *Store) Answer(ctx context.Context, id agent.RunID, form durable.AnswerFunc) error {
	var refused error
	err := s.call(ctx, fmt.Sprintf("answer run %s", id), func(ctx context.Context) error {
		refused = nil
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			var (
				b      pgx.Batch
				a      = answering{run: id}
				status durable.Status
			)
			b.Queue(`SELECT status FROM runs WHERE id = $1 FOR NO KEY UPDATE`, text(id)).QueryRow(scanOptional((*text)(&status)))
			b.Queue(`SELECT clock_timestamp()`).QueryRow(func(row pgx.Row) error { return row.Scan(when{&a.at}) })
			b.Queue(waitsQuery, text(id)).Query(func(rows pgx.Rows) (err error) {
				a.waits, err = pgx.CollectRows(rows, collectWait)
				return err
			})
			if err := tx.SendBatch(ctx, &b).Close(); err != nil {
				return err
			}
			if status == "" {
				return durable.ErrNotFound
			}
			answers, err := form(slices.Clone(a.waits), a.at)
			if err != nil {
				refused = err
				return err
			}
			if err := a.apply(status, answers); err != nil {
				return err
			}
			b = pgx.Batch{}
			a.store(&b)
			return tx.SendBatch(ctx, &b).Close()
		})
	})
	if refused != nil {
		return refused
	}
	return err
}

// answering is one call of Answer.
type answering struct {
	run     agent.RunID
	at      time.Time
	waits   []durable.Wait // of the run, with the answers
	records []durable.AuditRecord
}

// apply adds the answers to the waits of a run with that status.
func (a *answering) apply(status durable.Status, answers []durable.Answer) error {
	var answered, missing []error
	for _, given := range answers {
		switch place := a.find(given); {
		case place < 0:
			missing = append(missing, fmt.Errorf("%s: %w", given.Wait, durable.ErrNotFound))
		case a.waits[place].Answer != nil:
			answered = append(answered, fmt.Errorf("%s: %w", given.Wait, durable.ErrAnswered))
		}
	}
	switch {
	case len(answered) > 0:
		return errors.Join(answered...)
	case status != durable.StatusWaiting:
		return fmt.Errorf("the run is %s: %w", status, durable.ErrNotFound)
	case len(missing) > 0:
		return errors.Join(missing...)
	}
	for _, given := range answers {
		w := &a.waits[a.find(given)]
		if w.Answer != nil { // by an answer before
			return fmt.Errorf("%s: %w", given.Wait, durable.ErrAnswered)
		}
		a.add(w, given)
	}
	return nil
}

// find returns the place of the wait that an answer is about; below zero if there is none.
func (a *answering) find(given durable.Answer) int {
	return slices.IndexFunc(a.waits, func(w durable.Wait) bool { return w.ID == given.Wait })
}

// add adds an answer to a wait.
func (a *answering) add(w *durable.Wait, given durable.Answer) {
	given.At, given.Subject = a.at, w.Subject
	if given.More {
		w.Partial = append(slices.Clip(w.Partial), given)
	} else {
		w.Answer = &given
	}
	a.records = append(a.records, durable.AuditRecord{
		At: a.at, Kind: durable.AuditAnswer, Run: a.run, Subject: lo.CoalesceOrEmpty(w.Tool, w.Subject, w.ID), By: given.By, Answer: &given,
	})
}

// store stores the answers and makes the run ready if it has what it waits for.
func (a *answering) store(b *pgx.Batch) {
	changed := lo.Map(lo.Uniq(lo.Map(a.records, func(r durable.AuditRecord, _ int) int { return a.find(*r.Answer) })),
		func(place, _ int) durable.Wait { return a.waits[place] })
	decided := lo.Map(changed, func(w durable.Wait, _ int) durable.Answer { return lo.FromPtr(w.Answer) })
	b.Queue(`UPDATE waits w SET partial = a.partial, answered = a.answered, ends = a.ends, who = a.who, answer = a.data
		FROM runs r, unnest($2::text[], $3::text[], $4::timestamptz[], $5::boolean[], $6::text[], $7::bytea[])
			a (id, partial, answered, ends, who, data)
		WHERE r.id = $1 AND w.run = r.num AND w.id = a.id AND w.answered IS NULL`,
		text(a.run),
		lo.Map(changed, func(w durable.Wait, _ int) text { return text(w.ID) }),
		lo.Map(changed, func(w durable.Wait, _ int) string { return partialText(w.Partial) }),
		lo.Map(decided, func(d durable.Answer, _ int) *time.Time { return orNull(d.At) }),
		lo.Map(decided, func(d durable.Answer, _ int) bool { return d.Ends }),
		lo.Map(decided, func(d durable.Answer, _ int) text { return text(d.By) }),
		lo.Map(decided, func(d durable.Answer, _ int) []byte { return d.Data }))
	batchRecord(b, a.records...)
	b.Queue(`UPDATE runs r SET updated = clock_timestamp(), answer_by = `+firstDeadline+` WHERE r.id = $1`, text(a.run))
	batchMove(b, `r.id = $1 AND r.status = 'waiting' AND NOT r.paused AND `+notHeld+` AND `+isSatisfied, `'ready'`, text(a.run))
}

// partialAnswer is the stored form of an answer that did not decide: an element of a JSON list.
type partialAnswer struct {
	At   time.Time `json:"at"`
	More bool      `json:"more,omitempty"`
	Ends bool      `json:"ends,omitempty"`
	By   string    `json:"by,omitempty"` // as text stores it
	Data []byte    `json:"data,omitempty"`
}

// partialText returns the stored form of the answers that did not decide; empty for none.
func partialText(answers []durable.Answer) string {
	if len(answers) == 0 {
		return ""
	}
	b, err := json.Marshal(lo.Map(answers, func(a durable.Answer, _ int) partialAnswer {
		by, _ := text(a.By).TextValue()
		return partialAnswer{a.At.UTC().Truncate(time.Microsecond), a.More, a.Ends, by.String, a.Data}
	}))
	if err != nil {
		panic(err) // only a year of five digits cannot be written
	}
	return string(b)
}

// partial reads the answers that did not decide, without what they share with their wait, into To.
type partial struct{ To *[]durable.Answer }

// ScanText sets To.
func (p partial) ScanText(v pgtype.Text) error {
	*p.To = nil
	if v.String == "" {
		return nil
	}
	var stored []partialAnswer
	if err := json.Unmarshal([]byte(v.String), &stored); err != nil {
		return fmt.Errorf("read answers %q: %w", v.String, err)
	}
	for _, s := range stored {
		a := durable.Answer{At: s.At, More: s.More, Ends: s.Ends, Data: s.Data}
		if err := (*text)(&a.By).ScanText(pgtype.Text{String: s.By, Valid: true}); err != nil {
			return err
		}
		*p.To = append(*p.To, a)
	}
	return nil
}
