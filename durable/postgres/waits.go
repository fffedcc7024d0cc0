package postgres

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// waitColumns are the columns that scanWait reads, of w.
var waitColumns = "w.run_id, " + store.Names("w.", new(store.WaitRow).Columns()) + ", " + store.Names("w.", new(store.WaitRow).ClaimColumns())

var waitsQuery = `SELECT ` + waitColumns + ` FROM waits w WHERE w.run = (SELECT num FROM runs WHERE id = $1) ORDER BY w.place`

func scanWait(row pgx.CollectableRow) (store.Wait, error) {
	w := &store.WaitRow{}
	err := row.Scan(append([]any{(*text)(&w.Run)}, targets(append(w.Columns(), w.ClaimColumns()...))...)...)
	return w.Read(), err
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

// columns returns the columns of the wait. Run is the run's ID.
func (w placedWait) columns() []store.Column {
	return append([]store.Column{{Name: "run", Value: (*string)(&w.Run)}, {Name: "place", Value: &w.place}}, store.NewWaitRow(w.Wait).Columns()...)
}

var (
	newWaits    = unnestOf(placedWait{}.columns()) + ` JOIN runs r ON r.id = n.run`
	insertWaits = `INSERT INTO waits (run_id, ` + store.Names("", placedWait{}.columns()) + `) SELECT r.id, r.num, ` +
		store.Names("n.", placedWait{}.columns()[1:]) + ` FROM ` + newWaits
	updateWaits = `UPDATE waits w SET ` + assignmentsOf(placedWait{}.columns()[1:]) + ` FROM ` + newWaits + ` WHERE w.run = r.num AND w.id = n.id`
)

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
		_ = t.enqueue(updateWaits, arrays(changed, placedWait.columns)...)
	}
	if len(added) > 0 {
		_ = t.enqueue(insertWaits, arrays(added, placedWait.columns)...)
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
var checksQuery = `WITH places AS (SELECT kind, host FROM unnest($3::text[]) kind, unnest($4::text[]) host),
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
	l.limit = l.arg(f.Limit)
	after := "'-infinity', '', ''"
	if f.After != nil {
		after = fmt.Sprintf("%s::timestamptz, %s, %s",
			l.arg(f.After.Asked.Truncate(time.Microsecond)), l.arg(text(f.After.Run)), l.arg(text(f.After.ID)))
	}
	kinds := ""
	if len(f.Kinds) > 0 {
		kinds = l.arg(texts(f.Kinds)) + "::text[]"
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
