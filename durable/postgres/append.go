package postgres

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// Append adds to the journal of a run: see durable.Store. It is one transaction, sent in one message. If the reply of the
// database is lost, the caller may repeat the call: if the last completed Append was the same one, with the same entries,
// the repeated call succeeds and changes nothing. A repeated call without entries runs again, or returns ErrStale if it
// has ended the run.
func (s *Store) Append(ctx context.Context, l durable.Lease, u durable.Update, entries ...durable.Entry) error {
	return s.call(ctx, fmt.Sprintf("append to run %s", l.Run), func(ctx context.Context) error {
		a := appending{l, u, entries, fingerprint(l, u, entries)}
		misplaced := a.checkNumbers()
		var b pgx.Batch
		if misplaced != nil { // nothing will be written, but another error may take precedence
			r := batchLock(&b, l.Run)
			if err := s.batch(ctx, &b); err != nil {
				return err
			}
			if err := a.refusal(r); err != nil {
				return err
			}
			return misplaced
		}
		a.lockChildren(&b)
		r := batchLock(&b, l.Run)
		a.write(&b)
		a.ask(&b)
		done := a.update(&b)
		a.wake(&b)
		switch err := s.batch(ctx, &b); {
		case err != nil || *done:
			return err
		case len(entries) > 0 && bytes.Equal(r.appended, a.print):
			return nil
		}
		return a.refusal(r)
	})
}

// appending is one call of Append.
type appending struct {
	l       durable.Lease
	u       durable.Update
	entries []durable.Entry
	print   []byte
}

// checkNumbers returns an error if the entries are not numbered consecutively.
func (a appending) checkNumbers() error {
	for i, e := range a.entries {
		if want := a.entries[0].Seq + int64(i); e.Seq != want {
			return &durable.SeqError{Run: a.l.Run, Got: e.Seq, Want: want}
		}
	}
	return nil
}

// refusal returns the reason why a run in this state was not changed.
func (a appending) refusal(r *found) error {
	switch {
	case !r.there:
		return durable.ErrNotFound
	case r.Epoch != a.l.Epoch || r.Expires.IsZero():
		return durable.ErrStale
	case len(a.entries) > 0 && a.entries[0].Seq != r.Entries+1:
		return &durable.SeqError{Run: r.ID, Got: a.entries[0].Seq, Want: r.Entries + 1}
	}
	return nil
}

// fits is the condition that the lease is valid and that the run has exactly the entries that precede the new ones. All
// statements of an Append do nothing where it is false.
const fits = `r.id = $1 AND r.epoch = $2 AND r.expires IS NOT NULL AND r.entries = coalesce($3, r.entries)`

// fit returns the arguments of fits.
func (a appending) fit(more ...any) []any {
	var before *int64
	if len(a.entries) > 0 {
		before = new(a.entries[0].Seq - 1)
	}
	return append([]any{text(a.l.Run), a.l.Epoch, before}, more...)
}

func (a appending) ends() bool { return a.u.Status.Terminal() }

// write adds the entries.
func (a appending) write(b *pgx.Batch) {
	if len(a.entries) == 0 {
		return
	}
	b.Queue(`INSERT INTO entries (run, seq, kind, key, at, data)
		SELECT r.num, e.* FROM runs r, unnest($4::bigint[], $5::text[], $6::text[], $7::timestamptz[], $8::bytea[]) e WHERE `+fits,
		a.fit(
			lo.Map(a.entries, func(e durable.Entry, _ int) int64 { return e.Seq }),
			lo.Map(a.entries, func(e durable.Entry, _ int) text { return text(e.Kind) }),
			lo.Map(a.entries, func(e durable.Entry, _ int) text { return text(e.Key) }),
			lo.Map(a.entries, func(e durable.Entry, _ int) time.Time { return e.At.Truncate(time.Microsecond) }),
			lo.Map(a.entries, func(e durable.Entry, _ int) []byte { return e.Data }),
		)...)
}

// ask replaces the questions of the run and keeps the answers to unchanged ones.
func (a appending) ask(b *pgx.Batch) {
	questions := a.u.Questions
	if a.ends() {
		questions = []durable.Question{}
	}
	if questions == nil {
		return
	}
	given := lo.Map(questions, func(q durable.Question, _ int) durable.Answer { return lo.FromPtr(q.Answer) })
	b.Queue(`
		WITH old AS (DELETE FROM questions q USING runs r WHERE q.run = r.num AND `+fits+` RETURNING q.call, q.hash, q.answered, q.ends, q.answer)
		INSERT INTO questions (run, place, call, hash, tool, asked, deadline, child, token, data, answered, ends, answer)
		SELECT r.num, n.place, n.call, n.hash, n.tool, n.asked, n.deadline, n.child, n.token, n.data,
			coalesce(o.answered, n.answered, CASE WHEN n.told THEN clock_timestamp() END), coalesce(o.ends, n.ends),
			CASE WHEN o.answered IS NULL THEN n.answer ELSE o.answer END
		FROM runs r,
			unnest($4::text[], $5::text[], $6::text[], $7::timestamptz[], $8::timestamptz[], $9::text[], $10::bytea[], $11::bytea[],
				$12::boolean[], $13::timestamptz[], $14::boolean[], $15::bytea[]) WITH ORDINALITY
				n (call, hash, tool, asked, deadline, child, token, data, told, answered, ends, answer, place)
			LEFT JOIN LATERAL (
				SELECT answered, ends, answer FROM old WHERE old.call = n.call AND old.hash = n.hash AND old.answered IS NOT NULL LIMIT 1
			) o ON true
		WHERE `+fits,
		a.fit(
			lo.Map(questions, func(q durable.Question, _ int) text { return text(q.Call) }),
			lo.Map(questions, func(q durable.Question, _ int) text { return text(q.Hash) }),
			lo.Map(questions, func(q durable.Question, _ int) text { return text(q.Tool) }),
			lo.Map(questions, func(q durable.Question, _ int) time.Time { return q.Asked.Truncate(time.Microsecond) }),
			lo.Map(questions, func(q durable.Question, _ int) *time.Time { return orNull(q.Deadline) }),
			lo.Map(questions, func(q durable.Question, _ int) text { return text(q.Child) }),
			lo.Map(questions, func(q durable.Question, _ int) []byte { return tokenValue(q.TokenHash) }),
			lo.Map(questions, func(q durable.Question, _ int) []byte { return q.Data }),
			lo.Map(questions, func(q durable.Question, _ int) bool { return q.Answer != nil }),
			lo.Map(given, func(a durable.Answer, _ int) *time.Time { return orNull(a.At) }),
			lo.Map(given, func(a durable.Answer, _ int) bool { return a.Ends }),
			lo.Map(given, func(a durable.Answer, _ int) []byte { return a.Data }),
		)...)
}

// update updates the row of the run and reports whether the run was changed.
func (a appending) update(b *pgx.Batch) (done *bool) {
	done = new(bool)
	u := a.u
	b.Queue(`UPDATE runs r SET entries = r.entries + $4, updated = clock_timestamp(), appended = $5,
			status = CASE WHEN $6 = '' THEN r.status ELSE $6 END,
			reason = CASE WHEN $6 = '' THEN r.reason ELSE $7 END,
			steps = CASE WHEN $6 = '' THEN r.steps ELSE $8 END,
			ended = CASE WHEN $9 THEN clock_timestamp() END,
			ready = CASE WHEN $9 THEN NULL WHEN $6 = 'running' THEN least(r.ready, clock_timestamp()) ELSE r.ready END,
			deadline = CASE WHEN $9 THEN NULL ELSE r.deadline END,
			owner = CASE WHEN $9 THEN '' ELSE r.owner END,
			expires = CASE WHEN $9 THEN NULL ELSE r.expires END
		WHERE `+fits,
		a.fit(len(a.entries), a.print, text(u.Status), text(u.Reason), u.Steps, a.ends())...).
		Exec(func(tag pgconn.CommandTag) error {
			*done = tag.RowsAffected() > 0
			return nil
		})
	if !a.ends() && (u.Status == agent.StatusParked || u.Questions != nil) {
		updateDue(b, a.l.Run)
	}
	return done
}
