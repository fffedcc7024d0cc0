package postgres

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// waitColumns are the columns that scanWait reads, of w.
const waitColumns = `w.run_id, w.id, w.kind, w.subject, w.tool, w.asked, w.deadline, w.child, w.host, w.token, w.data, w.partial,
	w.answered, w.ends, w.who, w.answer, w.checker, w.checked_until`

const waitsQuery = `SELECT ` + waitColumns + ` FROM waits w WHERE w.run = (SELECT num FROM runs WHERE id = $1) ORDER BY w.place`

func scanWait(row pgx.CollectableRow) (w store.Wait, err error) {
	var (
		token []byte
		a     durable.Answer
	)
	err = row.Scan((*text)(&w.Run), (*text)(&w.ID), (*text)(&w.Kind), (*text)(&w.Subject), (*text)(&w.Tool), when{&w.Asked}, when{&w.Deadline},
		(*text)(&w.Child), (*text)(&w.Host), &token, &w.Data, partial{&w.Partial}, when{&a.At}, &a.Ends, (*text)(&a.By), &a.Data,
		(*text)(&w.Checker), when{&w.CheckedUntil})
	copy(w.TokenHash[:], token)
	for i := range w.Partial {
		w.Partial[i].Wait, w.Partial[i].Subject = w.ID, w.Subject
	}
	if !a.At.IsZero() {
		a.Wait, a.Subject = w.ID, w.Subject
		w.Answer = &a
	}
	return w, err
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
	b, err := json.Marshal(column(answers, func(a durable.Answer) partialAnswer {
		return partialAnswer{a.At.UTC().Truncate(time.Microsecond), a.More, a.Ends, storedText(a.By), a.Data}
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

// placedWait is a wait with its place among the waits of its run.
type placedWait struct {
	store.Wait

	place int64
}

func placeWaits(waits []store.Wait) []placedWait {
	places := map[agent.RunID]int64{}
	return column(waits, func(w store.Wait) placedWait {
		places[w.Run]++
		return placedWait{w, places[w.Run]}
	})
}

// newWaits are rows for waits, from the arguments of waitArguments.
const newWaits = `unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[], $8::timestamptz[], $9::text[],
		$10::text[], $11::bytea[], $12::bytea[], $13::text[], $14::timestamptz[], $15::boolean[], $16::text[], $17::bytea[])
		n (run, place, id, kind, subject, tool, asked, deadline, child, host, token, data, partial, answered, ends, who, answer)
	JOIN runs r ON r.id = n.run`

func waitArguments(waits []placedWait) []any {
	answer := func(w placedWait) durable.Answer { return lo.FromPtr(w.Answer) }
	return []any{
		textsOf(waits, func(w placedWait) agent.RunID { return w.Run }),
		column(waits, func(w placedWait) int64 { return w.place }),
		textsOf(waits, func(w placedWait) string { return w.ID }),
		textsOf(waits, func(w placedWait) durable.WaitKind { return w.Kind }),
		textsOf(waits, func(w placedWait) string { return w.Subject }),
		textsOf(waits, func(w placedWait) string { return w.Tool }),
		column(waits, func(w placedWait) time.Time { return w.Asked.Truncate(time.Microsecond) }),
		timesOf(waits, func(w placedWait) time.Time { return w.Deadline }),
		textsOf(waits, func(w placedWait) agent.RunID { return w.Child }),
		textsOf(waits, func(w placedWait) string { return w.Host }),
		column(waits, func(w placedWait) []byte {
			if w.TokenHash == [32]byte{} {
				return nil
			}
			return w.TokenHash[:]
		}),
		column(waits, func(w placedWait) []byte { return w.Data }),
		column(waits, func(w placedWait) string { return partialText(w.Partial) }),
		timesOf(waits, func(w placedWait) time.Time { return answer(w).At }),
		column(waits, func(w placedWait) bool { return answer(w).Ends }),
		textsOf(waits, func(w placedWait) string { return answer(w).By }),
		column(waits, func(w placedWait) []byte { return answer(w).Data }),
	}
}

const insertWaits = `INSERT INTO waits (run, run_id, place, id, kind, subject, tool, asked, deadline, child, host, token, data, partial,
		answered, ends, who, answer)
	SELECT r.num, r.id, n.place, n.id, n.kind, n.subject, n.tool, n.asked, n.deadline, n.child, n.host, n.token, n.data, n.partial, n.answered, n.ends,
		n.who, n.answer FROM ` + newWaits

// PutWaits implements store.Tx. Waits that stay keep their rows, and with them the claims that PutChecker has stored meanwhile.
func (t *tx) PutWaits(id agent.RunID, old, waits []store.Wait) error {
	var changed, added []placedWait
	for _, w := range placeWaits(waits) {
		w.Run = id
		if slices.ContainsFunc(old, func(o store.Wait) bool { return o.ID == w.ID }) {
			changed = append(changed, w)
		} else {
			added = append(added, w)
		}
	}
	if len(changed) < len(old) {
		_ = t.enqueue(`DELETE FROM waits WHERE run = (SELECT num FROM runs WHERE id = $1) AND id <> ALL ($2)`, text(id),
			textsOf(changed, func(w placedWait) string { return w.ID }))
	}
	if len(changed) > 0 {
		_ = t.enqueue(`UPDATE waits w SET place = n.place, kind = n.kind, subject = n.subject, tool = n.tool, asked = n.asked, deadline = n.deadline,
				child = n.child, host = n.host, token = n.token, data = n.data, partial = n.partial, answered = n.answered, ends = n.ends, who = n.who,
				answer = n.answer
			FROM `+newWaits+` WHERE w.run = r.num AND w.id = n.id`, waitArguments(changed)...)
	}
	if len(added) > 0 {
		_ = t.enqueue(insertWaits, waitArguments(added)...)
	}
	return t.err
}

// PutChecker implements store.Tx.
func (t *tx) PutChecker(waits ...store.Wait) error {
	return t.enqueue(`UPDATE waits w SET checker = n.checker, checked_until = n.until
		FROM unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[]) n (run, id, checker, until) JOIN runs r ON r.id = n.run
		WHERE w.run = r.num AND w.id = n.id`,
		textsOf(waits, func(w store.Wait) agent.RunID { return w.Run }), textsOf(waits, func(w store.Wait) string { return w.ID }),
		textsOf(waits, func(w store.Wait) string { return w.Checker }), timesOf(waits, func(w store.Wait) time.Time { return w.CheckedUntil }))
}

// Token implements store.Rows.
func (t *tx) Token(hash [32]byte) (store.Token, bool, error) {
	return readOne(t, func(row pgx.CollectableRow) (k store.Token, err error) {
		return k, row.Scan((*text)(&k.Run), (*text)(&k.Wait), (*text)(&k.Subject))
	}, `SELECT r.id, s.wait, s.subject FROM tokens s JOIN runs r ON r.num = s.run WHERE s.token = $1`, hash[:])
}

// PutToken implements store.Tx.
func (t *tx) PutToken(hash [32]byte, k store.Token) error {
	return t.enqueue(`INSERT INTO tokens (token, run, wait, subject) SELECT $1, num, $3, $4 FROM runs WHERE id = $2
		ON CONFLICT (token) DO UPDATE SET run = excluded.run, wait = excluded.wait, subject = excluded.subject`,
		hash[:], text(k.Run), text(k.Wait), text(k.Subject))
}

// checksQuery reads the waits that an owner $1 may watch: those that it or no owner watches, and those of owners whose claims have run
// out; if there are too many, those that it watches already come first. Row comparisons in place of equals signs rule out other
// indexes: see listQuery. The planner would rather read all waits than look up each one.
const checksQuery = `WITH places AS (SELECT kind, host FROM unnest($3::text[]) kind, unnest($4::text[]) host),
	mine AS (
		SELECT w.num, w.asked, w.run_id, w.id, watcher <> '' AS own FROM places p CROSS JOIN unnest(ARRAY['', $1::text]) watcher CROSS JOIN LATERAL (
			SELECT w.num, w.asked, w.run_id, w.id FROM waits w
			WHERE w.answered IS NULL AND (w.checker, w.kind, w.host) >= (watcher, p.kind, p.host)
				AND (w.checker, w.kind, w.host) <= (watcher, p.kind, p.host) AND ` + isChecked + `
			ORDER BY w.checker, w.kind, w.host, w.asked, w.run_id, w.id LIMIT $2
		) w
	),
	lapsed AS (
		SELECT w.num, w.asked, w.run_id, w.id, false FROM places p CROSS JOIN LATERAL (
			SELECT w.num, w.asked, w.run_id, w.id FROM waits w
			WHERE w.answered IS NULL AND w.kind = p.kind AND w.host = p.host AND w.checked_until <= now() AND w.checked_until IS NOT NULL
				AND w.checker <> $1 AND ` + isChecked + ` ORDER BY w.asked, w.run_id, w.id LIMIT $2
		) w
	),
	picked AS (SELECT w.num FROM (TABLE mine UNION ALL TABLE lapsed) w ORDER BY w.own DESC, w.asked, w.run_id, w.id LIMIT $2)
	SELECT ` + waitColumns + ` FROM picked p CROSS JOIN LATERAL (SELECT ` + waitColumns + ` FROM waits w WHERE w.num = p.num LIMIT 1) w`

// isChecked is the condition that the run of the wait w waits for it. It looks up the run: the planner might join all runs to
// an EXISTS.
const isChecked = `(SELECT r.status = 'waiting' AND NOT r.paused FROM runs r WHERE r.num = w.run)`

// Checks implements store.Rows.
func (t *tx) Checks(owner string, kinds []durable.WaitKind, hosts []string, limit int) ([]store.Wait, error) {
	if err := t.lockName("checks"); err != nil {
		return nil, err
	}
	return readAll(t, scanWait, checksQuery, text(owner), limit, texts(kinds), texts(hosts))
}

// isOpen is the condition that the wait w has no decision and its run waits, or waited until a deadline passed. It looks up the
// run: the planner might join all runs to an EXISTS.
const isOpen = `w.answered IS NULL
	AND (SELECT r.status = 'waiting' OR r.status = 'ready' AND r.answer_by <= now() FROM runs r WHERE r.num = w.run)`

// OpenWaits implements store.Rows. Waits that began in the same microsecond are in the order of their runs.
func (t *tx) OpenWaits(f durable.WaitFilter) ([]durable.Wait, error) {
	sql, args := openQuery(f)
	return readAll(t, func(row pgx.CollectableRow) (durable.Wait, error) {
		w, err := scanWait(row)
		return w.Wait, err
	}, sql, args...)
}

// openQuery returns the query of a list of open waits. The filter decides which index it reads: that of a run, that of the
// deadlines, as few have passed, or those that have the order of the list. It merges one list per kind. Row comparisons in place of
// an equals sign rule out other indexes: see listQuery.
func openQuery(f durable.WaitFilter) (query string, args []any) {
	l := &listing{where: []string{isOpen}}
	l.limit = l.arg(cmp.Or(max(f.Limit, 0), durable.DefaultLimit))
	after := "'-infinity', '', ''"
	if f.After != nil {
		after = fmt.Sprintf("%s::timestamptz, %s, %s",
			l.arg(f.After.Asked.Truncate(time.Microsecond)), l.arg(text(f.After.Run)), l.arg(text(f.After.ID)))
	}
	kinds := ""
	if len(f.Kinds) > 0 {
		kinds = l.arg(texts(lo.Uniq(f.Kinds))) + "::text[]"
	}
	var few []string // conditions that select few waits
	if f.Expired {
		few = append(few, "w.deadline <= now() AND w.deadline IS NOT NULL")
	}
	if f.Run != "" {
		few = append(few, "w.run = (SELECT num FROM runs WHERE id = "+l.arg(text(f.Run))+")")
	}
	all := "SELECT " + waitColumns + " FROM "
	end := " ORDER BY w.asked, w.run_id, w.id LIMIT " + l.limit
	switch {
	case len(few) > 0:
		l.and("(w.asked, w.run_id, w.id) > (" + after + ")")
		if kinds != "" {
			l.and("w.kind = ANY (" + kinds + ")")
		}
		//nolint:unqueryvet // the outer query selects columns
		return "WITH w AS MATERIALIZED (SELECT w.* FROM waits w WHERE w.answered IS NULL AND " + strings.Join(few, " AND ") + ") " +
			all + "w WHERE " + strings.Join(l.where, " AND ") + end, l.args
	case kinds != "":
		l.and("(w.kind, w.asked, w.run_id, w.id) > (wanted, " + after + ") AND (w.kind, w.asked) <= (wanted, 'infinity')")
		//nolint:unqueryvet // the outer query selects columns
		return all + "unnest(" + kinds + ") wanted CROSS JOIN LATERAL (SELECT w.* FROM waits w WHERE " + strings.Join(l.where, " AND ") +
			" ORDER BY w.kind, w.asked, w.run_id, w.id LIMIT " + l.limit + ") w" + end, l.args
	}
	l.and("(w.asked, w.run_id, w.id) > (" + after + ")")
	return all + "waits w WHERE " + strings.Join(l.where, " AND ") + end, l.args
}
