package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// Commit adds to the journal and the events of a run: see durable.Store. It is in one transaction, sent in one message; plain
// commits of other runs may be in it, too: see group.go. If the
// reply of the database is lost, the caller may repeat the call: if the last completed Commit was the same one, the repeated
// call succeeds and changes nothing. A repeated call without entries, events, an end, a pass and jobs that have an ID runs again.
func (s *Store) Commit(ctx context.Context, l durable.Lease, c durable.Commit) error {
	return s.call(ctx, fmt.Sprintf("commit to run %s", l.Run), func(ctx context.Context) error {
		if err := c.Check(); err != nil {
			return err
		}
		jobs, err := prepare(c.Jobs)
		if err != nil {
			return err
		}
		a := committing{l: l, c: c, jobs: jobs, printed: c.Fingerprint(l)}
		if misplaced := a.checkNumbers(); misplaced != nil { // nothing will be written, but another error may take precedence
			return s.refusal(ctx, &a, misplaced)
		}
		if a.isPlain() {
			changed, err := s.commitPlain(ctx, &a)
			if err != nil || changed {
				return err
			}
			return s.refusal(ctx, &a, errChanged)
		}
		queued := jobs
		if a.passes() {
			if a.needs, err = s.needsOf(ctx, l.Run, c.Update.Pass.Phase); err != nil {
				return err
			}
			queued = append(slices.Clone(jobs), durable.Job{Kind: a.needs.Kind, Name: a.needs.Name, Demands: a.needs.Demands})
		}
		var b pgx.Batch
		f := following{jobs: jobs, from: l.Run}
		lockChildren(&b, a.children(), &f.locked)
		s.queues.add(&b, queued)
		batchLock(&b, l.Run)
		a.storeJobs(&b, &f.added)
		a.replaceWaits(&b)
		a.keepPayload(&b)
		done := a.update(&b)
		if a.ends() {
			batchWakeParents(&b, l.Run)
		}
		if d := c.Document; d != nil {
			f.document = func(tx pgx.Tx) error {
				if !*done {
					return nil
				}
				_, err := addVersion(ctx, tx, *d)
				return err
			}
		}
		if err := f.send(ctx, s, &b); err != nil {
			return s.queues.explain(err)
		}
		if *done {
			s.queues.remember(queued)
			return nil
		}
		return s.refusal(ctx, &a, errChanged)
	})
}

// errChanged is returned when a Commit was refused for a reason that no longer applies.
var errChanged = errors.New("another call with the same lease has changed the run: commit again")

// refusal returns the reason why a Commit changed nothing, or nil if it is the last completed Commit again. Otherwise is the reason
// if it fits the run.
func (s *Store) refusal(ctx context.Context, a *committing, otherwise error) error {
	var b pgx.Batch
	r := batchLock(&b, a.l.Run)
	if err := s.batch(ctx, &b); err != nil {
		return err
	}
	entries := a.c.Entries
	switch {
	case !r.there:
		return durable.ErrNotFound
	case a.isRepeatable() && bytes.Equal(r.appended, a.printed):
		return nil
	case r.epoch != a.l.Epoch || r.owner != a.l.Owner || r.expires.IsZero():
		return durable.ErrStale
	case len(entries) > 0 && entries[0].Seq != r.entries+1:
		return &durable.SeqError{Run: a.l.Run, Got: entries[0].Seq, Want: r.entries + 1}
	}
	return otherwise
}

// committing is one call of Commit.
type committing struct {
	l       durable.Lease
	c       durable.Commit
	jobs    []durable.Job // c.Jobs, prepared
	needs   durable.Needs // of the phase that the run is passed on to
	printed []byte
}

// checkNumbers returns an error if the entries are not numbered consecutively.
func (a *committing) checkNumbers() error {
	for i, e := range a.c.Entries {
		if want := a.c.Entries[0].Seq + int64(i); e.Seq != want {
			return &durable.SeqError{Run: a.l.Run, Got: e.Seq, Want: want}
		}
	}
	return nil
}

// isPlain reports whether the Commit consists of entries, events and changes of the run alone: such a Commit is one statement.
func (a *committing) isPlain() bool {
	return len(a.jobs) == 0 && a.c.Update.Waits == nil && !a.c.ReleasesLease() && a.c.Document == nil
}

// isRepeatable reports whether an equal Commit right after this one is this one again, after a lost reply. Equal updates have
// the same outcome twice; a lease ends a run or passes it on once; events have times; equal jobs without an ID are different ones.
func (a *committing) isRepeatable() bool {
	return a.c.ReleasesLease() || a.c.Document != nil || len(a.c.Entries) > 0 || len(a.c.Events) > 0 ||
		lo.SomeBy(a.c.Jobs, func(j durable.Job) bool { return j.ID != "" })
}

// fits is the condition that the lease is valid, that the run has exactly the entries that precede the new ones, and that this
// Commit is not the last one again. All statements of a Commit do nothing where it is false.
const fits = `r.id = $1 AND r.epoch = $2 AND r.owner = $5 AND r.expires IS NOT NULL AND r.entries = coalesce($3, r.entries)
	AND ($4::bytea IS NULL OR r.appended IS DISTINCT FROM $4)`

// fit returns the arguments of fits.
func (a *committing) fit(more ...any) []any {
	var before *int64
	if len(a.c.Entries) > 0 {
		before = new(a.c.Entries[0].Seq - 1)
	}
	var printed []byte
	if a.isRepeatable() {
		printed = a.printed
	}
	return append([]any{text(a.l.Run), a.l.Epoch, before, printed, text(a.l.Owner)}, more...)
}

// records returns the audit records, about the run.
func (a *committing) records() []durable.AuditRecord {
	return lo.Map(a.c.Records, func(r durable.AuditRecord, _ int) durable.AuditRecord {
		r.Run, r.At = a.l.Run, r.At.Truncate(time.Microsecond)
		return r
	})
}

func (a *committing) ends() bool { return a.c.Update.Status.Ended() }

func (a *committing) passes() bool { return a.c.Update.Pass != nil }

// children returns the other runs that the run will wait for, and those after which the runs of the jobs start.
func (a *committing) children() []agent.RunID {
	waits := lo.FilterMap(a.c.Update.Waits, func(w durable.Wait, _ int) (agent.RunID, bool) { return w.Child, w.Child != "" })
	return append(waits, lo.Without(afters(a.jobs), a.l.Run)...)
}

// storeJobs stores the jobs, and sets added to the new runs by ID.
func (a *committing) storeJobs(b *pgx.Batch, added *map[agent.RunID]durable.Run) {
	if len(a.jobs) == 0 {
		return
	}
	query, args := insertQuery(a.jobs, start{commit: a})
	b.Queue(query, args...).Query(func(rows pgx.Rows) (err error) {
		*added, err = scanInserted(rows)
		return err
	})
}

// replaceWaits replaces the waits of the run. Those that stay keep their answers, token and checker.
func (a *committing) replaceWaits(b *pgx.Batch) {
	waits := a.c.Update.Waits
	if a.c.ReleasesLease() {
		waits = []durable.Wait{}
	}
	if waits == nil {
		return
	}
	given := lo.Map(waits, func(w durable.Wait, _ int) durable.Answer { return lo.FromPtr(w.Answer) })
	b.Queue(`
		WITH old AS (
			DELETE FROM waits w USING runs r WHERE w.run = r.num AND `+fits+`
			RETURNING w.run, w.id, w.subject, w.token, w.checker, w.checked_until, w.partial, w.answered, w.ends, w.who, w.answer
		), spent AS (
			INSERT INTO tokens (token, run, wait, subject) SELECT token, run, id, subject FROM old WHERE token IS NOT NULL ON CONFLICT DO NOTHING
		)
		INSERT INTO waits (run, run_id, place, id, kind, subject, tool, asked, deadline, child, host, token, data, checker, checked_until,
			partial, answered, ends, who, answer)
		SELECT r.num, r.id, n.place, n.id, n.kind, n.subject, n.tool, n.asked, n.deadline, n.child, n.host, coalesce(n.token, o.token), n.data,
			coalesce(o.checker, ''), o.checked_until,
			CASE WHEN o.partial <> '' OR o.answered IS NOT NULL THEN o.partial ELSE n.partial END,
			coalesce(o.answered, n.answered, CASE WHEN n.decided THEN clock_timestamp() END),
			CASE WHEN o.answered IS NULL THEN n.ends ELSE o.ends END,
			CASE WHEN o.answered IS NULL THEN n.who ELSE o.who END,
			CASE WHEN o.answered IS NULL THEN n.answer ELSE o.answer END
		FROM runs r,
			unnest($6::text[], $7::text[], $8::text[], $9::text[], $10::timestamptz[], $11::timestamptz[], $12::text[], $13::text[], $14::bytea[],
				$15::bytea[], $16::text[], $17::boolean[], $18::timestamptz[], $19::boolean[], $20::text[], $21::bytea[]) WITH ORDINALITY
				n (id, kind, subject, tool, asked, deadline, child, host, token, data, partial, decided, answered, ends, who, answer, place)
			LEFT JOIN LATERAL (
				SELECT token, checker, checked_until, partial, answered, ends, who, answer FROM old WHERE old.id = n.id
				ORDER BY old.answered LIMIT 1
			) o ON true
		WHERE `+fits,
		a.fit(
			lo.Map(waits, func(w durable.Wait, _ int) text { return text(w.ID) }),
			lo.Map(waits, func(w durable.Wait, _ int) text { return text(w.Kind) }),
			lo.Map(waits, func(w durable.Wait, _ int) text { return text(w.Subject) }),
			lo.Map(waits, func(w durable.Wait, _ int) text { return text(w.Tool) }),
			lo.Map(waits, func(w durable.Wait, _ int) time.Time { return w.Asked.Truncate(time.Microsecond) }),
			lo.Map(waits, func(w durable.Wait, _ int) *time.Time { return orNull(w.Deadline) }),
			lo.Map(waits, func(w durable.Wait, _ int) text { return text(w.Child) }),
			lo.Map(waits, func(w durable.Wait, _ int) text { return text(w.Host) }),
			lo.Map(waits, func(w durable.Wait, _ int) []byte { return tokenValue(w.TokenHash) }),
			lo.Map(waits, func(w durable.Wait, _ int) []byte { return w.Data }),
			lo.Map(waits, func(w durable.Wait, _ int) string { return partialText(w.Partial) }),
			lo.Map(waits, func(w durable.Wait, _ int) bool { return w.Answer != nil }),
			lo.Map(given, func(a durable.Answer, _ int) *time.Time { return orNull(a.At) }),
			lo.Map(given, func(a durable.Answer, _ int) bool { return a.Ends }),
			lo.Map(given, func(a durable.Answer, _ int) text { return text(a.By) }),
			lo.Map(given, func(a durable.Answer, _ int) []byte { return a.Data }),
		)...)
}

// keepPayload stores what the run ended with, or with what it is passed on.
func (a *committing) keepPayload(b *pgx.Batch) {
	if a.passes() && a.c.Update.Pass.Input != nil {
		b.Queue(`INSERT INTO payloads AS p (run, input, replaced) SELECT r.num, $6::bytea, true FROM runs r WHERE `+fits+`
			ON CONFLICT (run) DO UPDATE SET submitted = CASE WHEN p.replaced THEN p.submitted ELSE p.input END,
				input = excluded.input, replaced = true`, a.fit(a.c.Update.Pass.Input)...)
	}
	if a.ends() && len(a.c.Update.Result) > 0 {
		b.Queue(`INSERT INTO payloads (run, result) SELECT r.num, $6::bytea FROM runs r WHERE `+fits+`
			ON CONFLICT (run) DO UPDATE SET result = excluded.result`, a.fit(a.c.Update.Result)...)
	}
}

// firstDeadline is the first deadline of the open waits of the run r.
const firstDeadline = `(SELECT min(w.deadline) FROM waits w WHERE w.run = r.num AND w.answered IS NULL)`

// update updates the row of the run and adds the entries and the events. It reports whether the run was changed. It is the
// last statement of the Commit for which fits is true. A step changes no indexed column.
func (a *committing) update(b *pgx.Batch) (done *bool) {
	var (
		u      = a.c.Update
		events = int64(len(a.c.Events))
		args   = a.fit(len(a.c.Entries), events, a.printed, a.c.HandledSignals)
		set    string
	)
	arg := func(v any) string {
		args = append(args, v)
		return fmt.Sprintf("$%d", len(args))
	}
	if u.Status != "" {
		set += `, status = $10, reason = $11, blocked = $12, steps = $13`
		args = append(args, text(u.Status), text(u.Reason), u.Blocked, u.Steps)
	}
	switch {
	case a.ends():
		set += `, ended = clock_timestamp(), ready = NULL, answer_by = NULL, owner = '', expires = NULL, paused = false`
	case a.passes():
		key := a.needs.Key()
		set += `, phase = ` + arg(text(u.Pass.Phase)) + `, queue = (SELECT q.id FROM queues q WHERE q.key = ` + arg(key[:]) + `)` + setPassed
	case u.Waits != nil:
		set += `, answer_by = ` + firstDeadline + `, any_wait = ` + strconv.FormatBool(u.AnyWait)
	}
	query := `WITH r AS (
		UPDATE runs r SET entries = r.entries + $6, events = r.events + $7, appended = $8, handled = greatest(r.handled, $9),
			updated = clock_timestamp()` + set + ` WHERE ` + fits + ` RETURNING r.num, r.events - $7 AS events, r.status
	)`
	if len(a.c.Entries) > 0 {
		query += `, e AS (` + insertEntries(a.c.Entries, arg) + `)`
	}
	if events > 0 {
		query += `, v AS (` + insertEvents(a.c.Events, arg) + `)`
	}
	if len(a.c.Records) > 0 {
		query += `, d AS (` + insertRecords(a.records(), ` FROM r, `, arg) + `)`
	}
	done = new(bool)
	if a.passes() {
		query += ` SELECT true, CASE WHEN r.status = 'ready' THEN ` + wakeListeners + ` END FROM r`
		b.Queue(query, args...).QueryRow(scanOptional(done, new(*string)))
		return done
	}
	b.Queue(query+` SELECT true FROM r`, args...).QueryRow(scanOptional(done))
	return done
}

// staysPaused is the condition that the run r is not ready when it is passed on. A run that is to be cancelled is ready, so that
// a worker ends it.
const staysPaused = `r.paused AND r.cancel_reason = ''`

// setPassed sets the columns of the run r that is passed on, except for its phase and its queue.
const setPassed = `, demands = ` + jobDemands + `, attempts = 0, owner = '', expires = NULL, answer_by = NULL, any_wait = false,
	status = CASE WHEN ` + staysPaused + ` THEN 'waiting' ELSE 'ready' END, ready = CASE WHEN ` + staysPaused + ` THEN NULL ELSE clock_timestamp() END,
	offer_seq = r.offer_seq + CASE WHEN ` + staysPaused + ` THEN 0 ELSE 1 END, offered = NULL`

// needsOf returns the needs that a run has in a phase.
func (s *Store) needsOf(ctx context.Context, id agent.RunID, phase durable.Kind) (durable.Needs, error) {
	r, err := scanRun(s.pool.QueryRow(ctx, runQuery, text(id)))
	r.Phase = phase
	return r.Needs(), notFound(err)
}

// insertEntries returns the statement that adds the entries of a run r.
func insertEntries(entries []durable.Entry, arg func(any) string) string {
	insert := `INSERT INTO entries (run, seq, kind, key, at, data) SELECT r.num, `
	if len(entries) == 1 {
		e := entries[0]
		return insert + arg(e.Seq) + `::bigint, ` + arg(text(e.Kind)) + `::text, ` + arg(text(e.Key)) + `::text, ` +
			arg(e.At.Truncate(time.Microsecond)) + `::timestamptz, ` + arg(e.Data) + `::bytea FROM r`
	}
	return insert + `e.* FROM r, unnest(` +
		arg(lo.Map(entries, func(e durable.Entry, _ int) int64 { return e.Seq })) + `::bigint[], ` +
		arg(lo.Map(entries, func(e durable.Entry, _ int) text { return text(e.Kind) })) + `::text[], ` +
		arg(lo.Map(entries, func(e durable.Entry, _ int) text { return text(e.Key) })) + `::text[], ` +
		arg(lo.Map(entries, func(e durable.Entry, _ int) time.Time { return e.At.Truncate(time.Microsecond) })) + `::timestamptz[], ` +
		arg(lo.Map(entries, func(e durable.Entry, _ int) []byte { return e.Data })) + `::bytea[]) e`
}

// insertEvents returns the statement that adds the events of a run r, numbered after its last event.
func insertEvents(events []durable.Event, arg func(any) string) string {
	return `INSERT INTO events (run, seq, at, name, data) SELECT r.num, r.events + e.place, e.at, e.name, e.data FROM r, unnest(` +
		arg(lo.Map(events, func(e durable.Event, _ int) time.Time { return e.At.Truncate(time.Microsecond) })) + `::timestamptz[], ` +
		arg(lo.Map(events, func(e durable.Event, _ int) text { return text(e.Name) })) + `::text[], ` +
		arg(lo.Map(events, func(e durable.Event, _ int) []byte { return e.Data })) + `::bytea[]) WITH ORDINALITY e (at, name, data, place)`
}
