package store

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// SQL executes statements of a SQL database. Their parameters are $1, $2 and so on. An argument is a string, a number, bytes, or the
// Value of a Column.
type SQL interface {
	// Select executes a query. For each row, it sets the targets, each the Value of a Column, and calls next.
	Select(query string, args, targets []any, next func()) error
	// Exec executes a statement, at once or with the next query.
	Exec(query string, args ...any) error
	// Insert stores a row, at once or with the next query.
	Insert(into *Insertion, values ...any) error
	// HasQueue reports whether a queue is stored. If not, the caller stores it.
	HasQueue(key durable.Key) (bool, error)
}

// Insertion is an INSERT statement.
type Insertion struct {
	Table   string
	Columns []string
	// Lookup, unless empty, is a query for the value of the first column, without its parameter.
	Lookup string
	// Conflict, unless empty, is an ON CONFLICT clause.
	Conflict string

	once              sync.Once
	numbered, unnamed string
}

// Statement returns the statement for one row, with the parameters $1, $2 and so on.
func (i *Insertion) Statement() string {
	i.once.Do(i.compose)
	return i.numbered
}

// StatementInOrder returns the statement for one row, with the parameters ?, which SQLite binds in less time.
func (i *Insertion) StatementInOrder() string {
	i.once.Do(i.compose)
	return i.unnamed
}

func (i *Insertion) compose() {
	values := lo.Map(i.Columns, func(_ string, n int) string { return fmt.Sprintf("$%d", n+1) })
	if i.Lookup != "" {
		values[0] = `(` + i.Lookup + values[0] + `)`
	}
	i.numbered = `INSERT INTO ` + i.Table + ` (` + strings.Join(i.Columns, ", ") + `) VALUES (` + strings.Join(values, ", ") + `)` + i.Conflict
	i.unnamed = regexp.MustCompile(`\$\d+`).ReplaceAllString(i.numbered, "?")
}

// Queries are what a database must word itself, because it knows its indexes, locks and lists.
type Queries struct {
	// Keys returns the argument for a list of keys.
	Keys func(keys []durable.Key) any
	// Polled reads keys and polls of the queues with the keys $1. Served reads backlogs and the oldest ready runs, too.
	Polled, Served string
	// PutPoll records polls of the queues with the keys $1 at $2. PruneQueues deletes the queues without runs.
	PutPoll, PruneQueues string
	// Due is what DueQuery returns.
	Due string
	// List returns the query for the runs of a list below a position, and Count that for its length.
	List, Count func(f durable.Filter, below Position) (query string, args []any)
	// Prune deletes at most $2 runs that ended before $1, and reads their numbers.
	Prune string
	// Shards is how many rows share a count, so that transactions rarely wait for each other's.
	Shards int64
}

// Tables implement the methods of Rows and Tx that SQLite and PostgreSQL share.
type Tables struct {
	SQL

	Table   *RunTable
	Queries *Queries
}

// Collect returns targets for the rows of a query, and a function that appends the row in the targets to all.
func Collect[T any](all *[]T, targets func(*T) []any) (into []any, next func()) {
	row := new(T)
	return targets(row), func() {
		var empty T
		*all = append(*all, *row)
		*row = empty
	}
}

// SelectAll returns the rows of a query.
func SelectAll[T any](s SQL, targets func(*T) []any, query string, args ...any) (all []T, err error) {
	into, next := Collect(&all, targets)
	if err := s.Select(query, args, into, next); err != nil {
		return nil, err
	}
	return all, nil
}

// SelectOne returns the row of a query, and whether there is one.
func SelectOne[T any](s SQL, targets func(*T) []any, query string, args ...any) (row T, found bool, err error) {
	all, err := SelectAll(s, targets, query, args...)
	if len(all) == 0 {
		return row, false, err
	}
	return all[0], true, nil
}

// lookupRun is a query for the number of a run, without its ID, and numOf the number of the run with the ID $1.
const (
	lookupRun = `SELECT num FROM runs WHERE id = `
	numOf     = `(` + lookupRun + `$1)`
)

// insertInto returns the insertion for columns.
func insertInto(table string, columns []Column) *Insertion {
	return &Insertion{Table: table, Columns: names("", columns)}
}

// insertOf returns the insertion for the ID of a run and columns.
func insertOf(table string, columns []Column) *Insertion {
	return &Insertion{Table: table, Columns: append([]string{"run"}, names("", columns)...), Lookup: lookupRun}
}

// selectOf returns the query for the rows of the run with the ID $1, after the number $2.
func selectOf(table string, columns []Column) string {
	return `SELECT ` + nameList("", columns) + ` FROM ` + table + ` WHERE run = ` + numOf + ` AND seq > $2 ORDER BY seq`
}

// Assign returns assignments of parameters to columns, from a number on.
func Assign(columns []Column, first int) string {
	return strings.Join(lo.Map(columns, func(c Column, i int) string { return fmt.Sprintf("%s = $%d", c.Name, first+i) }), ", ")
}

// Values returns the values of columns.
func Values(columns []Column) []any {
	return lo.Map(columns, func(c Column, _ int) any { return c.Value })
}

// RunTable is the table of runs of a database.
type RunTable struct {
	// Columns are the columns of runs r that have Targets.
	Columns string

	leased bool
	insert *Insertion
}

// NewRunTable returns a table, which may have a column for Run.Leased.
func NewRunTable(leased bool) *RunTable {
	t := &RunTable{leased: leased}
	columns := append(new(Run).jobColumns(), t.StateColumns(&Run{})...)
	// A run with a phase has its own demands, because its queue has others.
	t.Columns = nameList("r.", columns) + `, CASE WHEN r.phase = '' THEN (SELECT q.demands FROM queues q WHERE q.id = r.queue) ELSE r.demands END, r.labels`
	t.insert = &Insertion{
		Table: "runs", Columns: append([]string{"queue", "demands", "labels"}, names("", columns)...), Lookup: `SELECT id FROM queues WHERE key = `,
	}
	return t
}

// StateColumns returns the columns of a run that change.
func (t *RunTable) StateColumns(r *Run) []Column {
	if t.leased {
		return append(r.mutableColumns(), Column{"leased", &r.Leased})
	}
	return r.mutableColumns()
}

// Targets returns the targets for Columns.
func (t *RunTable) Targets(r *Run) []any {
	return append(Values(append(r.jobColumns(), t.StateColumns(r)...)), newJSON(&r.Demands), newJSON(&r.Labels))
}

// Queues implements Rows.
func (t Tables) Queues() ([]durable.Needs, error) {
	return SelectAll(t, func(n *durable.Needs) []any { return []any{(*string)(&n.Kind), &n.Name, newJSON(&n.Demands)} },
		`SELECT kind, name, demands FROM queues`)
}

var insertQueue = &Insertion{
	Table: "queues", Columns: []string{"key", "kind", "name", "demands"}, Conflict: ` ON CONFLICT (key) DO NOTHING`,
}

// addQueues stores queues that are not stored, always in the same order: transactions that store queues do not deadlock.
func (t Tables) addQueues(all ...durable.Needs) error {
	byKey := lo.KeyBy(all, durable.Needs.Key)
	for _, key := range uniqueKeys(lo.Keys(byKey)) {
		stored, err := t.HasQueue(key)
		if n := byKey[key]; err == nil && !stored {
			err = t.Insert(insertQueue, key[:], string(n.Kind), n.Name, newJSON(&n.Demands))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// phaseDemands returns the demands that the row of a run has.
func phaseDemands(r *Run) any {
	if r.Phase == "" {
		return newJSON(new(map[string]string))
	}
	return newJSON(&r.Demands)
}

// AddRuns implements Tx.
func (t Tables) AddRuns(runs ...NewRun) error {
	if err := t.addQueues(lo.Map(runs, func(r NewRun, _ int) durable.Needs { return r.Needs() })...); err != nil {
		return err
	}
	for _, r := range runs {
		if err := t.addRun(r); err != nil {
			return err
		}
	}
	return nil
}

var (
	insertInput = &Insertion{Table: "payloads", Columns: []string{"run", "input"}, Lookup: lookupRun}
	insertLabel = &Insertion{Table: "labels", Columns: []string{"run", "name", "value", "status"}, Lookup: lookupRun}
)

func (t Tables) addRun(r NewRun) error {
	key := r.Needs().Key()
	columns := append(r.jobColumns(), t.Table.StateColumns(&r.Run)...)
	err := t.Insert(t.Table.insert, append([]any{key[:], phaseDemands(&r.Run), newJSON(&r.Labels)}, Values(columns)...)...)
	if err != nil {
		return fmt.Errorf("run %q: %w", r.ID, err)
	}
	if len(r.Input) > 0 {
		err = t.Insert(insertInput, string(r.ID), r.Input)
	}
	for name, value := range r.Labels {
		if err == nil {
			err = t.Insert(insertLabel, string(r.ID), name, value, string(r.Status))
		}
	}
	if err == nil {
		err = t.PutWaits(r.ID, nil, r.Waits)
	}
	return err
}

// PutPhase stores the phase of a run, if it has passed on to another queue.
func (t Tables) PutPhase(old, r Run) error {
	if old.Phase == r.Phase {
		return nil
	}
	if err := t.addQueues(r.Needs()); err != nil {
		return err
	}
	key := r.Needs().Key()
	return t.Exec(`UPDATE runs SET phase = $2, demands = $3, queue = (SELECT id FROM queues WHERE key = $4) WHERE id = $1`,
		string(r.ID), string(r.Phase), phaseDemands(&r), key[:])
}

// DeleteRun implements Tx.
func (t Tables) DeleteRun(id agent.RunID) error {
	return t.Exec(`DELETE FROM runs WHERE id = $1`, string(id))
}

// Payload implements Rows.
func (t Tables) Payload(id agent.RunID) (Payload, error) {
	type row struct {
		Payload

		replaced bool
	}
	r, _, err := SelectOne(t, func(r *row) []any { return []any{&r.Input, &r.Submitted, &r.replaced, &r.Result} },
		`SELECT input, submitted, replaced, result FROM payloads WHERE run = `+numOf, string(id))
	if !r.replaced {
		r.Submitted = r.Input
	}
	return r.Payload, err
}

var insertResult = &Insertion{
	Table: "payloads", Columns: []string{"run", "result"}, Lookup: lookupRun, Conflict: ` ON CONFLICT (run) DO UPDATE SET result = excluded.result`,
}

// putInput keeps the first input of a run.
const putInput = `INSERT INTO payloads (run, input, replaced) VALUES (` + numOf + `, $2, true) ON CONFLICT (run) DO UPDATE
	SET submitted = CASE WHEN payloads.replaced THEN payloads.submitted ELSE payloads.input END, input = excluded.input, replaced = true`

// PutResult implements Tx.
func (t Tables) PutResult(id agent.RunID, result []byte) error {
	return t.Insert(insertResult, string(id), result)
}

// PutInput implements Tx.
func (t Tables) PutInput(id agent.RunID, input []byte) error {
	return t.Exec(putInput, string(id), input)
}

func entryColumns(e *durable.Entry) []Column {
	return []Column{{"seq", &e.Seq}, {"kind", (*string)(&e.Kind)}, {"key", &e.Key}, {"at", &e.At}, {"data", &e.Data}}
}

func eventColumns(e *durable.Event) []Column {
	return []Column{{"seq", &e.Seq}, {"at", &e.At}, {"name", &e.Name}, {"data", &e.Data}}
}

func signalColumns(s *durable.Signal) []Column {
	return []Column{{"seq", &s.Seq}, {"kind", (*string)(&s.Kind)}, {"text", &s.Text}, {"who", &s.By}, {"at", &s.At}}
}

// The queries for what a run has, and for the signals of an owner, with one row for each signal.
var (
	EntriesQuery = selectOf("entries", entryColumns(&durable.Entry{}))
	EventsQuery  = selectOf("events", eventColumns(&durable.Event{})) + ` LIMIT $3`
	WaitsQuery   = `SELECT ` + WaitColumns + ` FROM waits w WHERE w.run = ` + numOf + ` ORDER BY w.place`
	SignalsQuery = `SELECT r.id, r.paused, r.cancel_reason, r.cancel_cause, coalesce(s.seq, 0), coalesce(s.kind, ''), coalesce(s.text, ''),
			coalesce(s.who, ''), s.at
		FROM runs r LEFT JOIN signals s ON s.run = r.num AND s.seq > r.handled
		WHERE r.owner = $1 AND r.owner <> '' AND (r.paused OR r.cancel_cause <> '' OR r.signals > r.handled) ORDER BY r.num, s.seq`

	insertEntry  = insertOf("entries", entryColumns(&durable.Entry{}))
	insertEvent  = insertOf("events", eventColumns(&durable.Event{}))
	insertSignal = insertOf("signals", signalColumns(&durable.Signal{}))
)

// Entries implements Rows.
func (t Tables) Entries(id agent.RunID, after int64) ([]durable.Entry, error) {
	return SelectAll(t, func(e *durable.Entry) []any { return Values(entryColumns(e)) }, EntriesQuery, string(id), after)
}

// Events implements Rows.
func (t Tables) Events(id agent.RunID, after int64, limit int) ([]durable.Event, error) {
	all, err := SelectAll(t, func(e *durable.Event) []any { return Values(eventColumns(e)) }, EventsQuery, string(id), after, limit)
	for i := range all {
		all[i].Run = id
	}
	return all, err
}

// AddEntries implements Tx.
func (t Tables) AddEntries(id agent.RunID, entries []durable.Entry) error {
	return insertAll(t, id, insertEntry, entries, entryColumns)
}

// AddEvents implements Tx.
func (t Tables) AddEvents(id agent.RunID, events []durable.Event) error {
	return insertAll(t, id, insertEvent, events, eventColumns)
}

// AddSignal implements Tx.
func (t Tables) AddSignal(s durable.Signal) error {
	return insertAll(t, s.Run, insertSignal, []durable.Signal{s}, signalColumns)
}

// insertAll stores rows of a run.
func insertAll[T any](t Tables, id agent.RunID, insert *Insertion, rows []T, columns func(*T) []Column) error {
	for i := range rows {
		if err := t.Insert(insert, append([]any{string(id)}, Values(columns(&rows[i]))...)...); err != nil {
			return err
		}
	}
	return nil
}

// Signals implements Rows.
func (t Tables) Signals(owner string) (all []Signalled, err error) {
	type row struct {
		Signalled

		s durable.Signal
	}
	rows, err := SelectAll(t, func(r *row) []any {
		return append([]any{(*string)(&r.Run), &r.Paused, &r.CancelReason, (*string)(&r.CancelCause)}, Values(signalColumns(&r.s))...)
	}, SignalsQuery, owner)
	for _, r := range rows {
		if n := len(all); n == 0 || all[n-1].Run != r.Run {
			all = append(all, r.Signalled)
		}
		if r.s.Seq > 0 {
			r.s.Run = r.Run
			last := &all[len(all)-1]
			last.Added = append(last.Added, r.s)
		}
	}
	return all, err
}

// WaitColumns are the columns of waits w that have WaitTargets.
var WaitColumns = "w.run_id, " + nameList("w.", append(new(WaitRow).columns(), new(WaitRow).claimColumns()...))

// WaitTargets returns the targets for WaitColumns.
func WaitTargets(r *WaitRow) []any {
	return append([]any{(*string)(&r.Run)}, Values(append(r.columns(), r.claimColumns()...))...)
}

// SelectWaits returns the waits of a query for WaitColumns.
func SelectWaits(s SQL, query string, args ...any) ([]Wait, error) {
	rows, err := SelectAll(s, WaitTargets, query, args...)
	return lo.Map(rows, func(r WaitRow, _ int) Wait { return r.Read() }), err
}

// Waits implements Rows.
func (t Tables) Waits(id agent.RunID) ([]Wait, error) { return SelectWaits(t, WaitsQuery, string(id)) }

// placedColumns returns the columns of a wait with its place among the waits of its run.
func placedColumns(w Wait, place int) []Column {
	return append([]Column{{"run_id", (*string)(&w.Run)}, {"place", &place}}, newWaitRow(w).columns()...)
}

var (
	insertWait = insertOf("waits", placedColumns(Wait{}, 0))
	updateWait = `UPDATE waits SET ` + Assign(placedColumns(Wait{}, 0), 2) + ` WHERE run = ` + numOf + ` AND id = $4`
)

// PutWaits implements Tx. Waits that stay keep their rows, and with them the claims that PutChecker has stored meanwhile.
func (t Tables) PutWaits(id agent.RunID, old, waits []Wait) error {
	for _, w := range old {
		if findWait(waits, w.ID) < 0 {
			if err := t.Exec(`DELETE FROM waits WHERE run = `+numOf+` AND id = $2`, string(id), w.ID); err != nil {
				return err
			}
		}
	}
	for place, w := range waits {
		if place < len(old) && reflect.DeepEqual(old[place], w) {
			continue
		}
		w.Run = id
		var err error
		values := append([]any{string(id)}, Values(placedColumns(w, place))...)
		if findWait(old, w.ID) < 0 {
			err = t.Insert(insertWait, values...)
		} else {
			err = t.Exec(updateWait, values...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// PutChecker implements Tx.
func (t Tables) PutChecker(waits ...Wait) error {
	for _, w := range waits {
		err := t.Exec(`UPDATE waits SET checker = $3, checked_until = $4 WHERE run = `+numOf+` AND id = $2`, string(w.Run), w.ID, w.Checker, &w.CheckedUntil)
		if err != nil {
			return err
		}
	}
	return nil
}

// Token implements Rows.
func (t Tables) Token(hash [32]byte) (Token, bool, error) {
	return SelectOne(t, func(k *Token) []any { return []any{(*string)(&k.Run), &k.Wait, &k.Subject} },
		`SELECT r.id, k.wait, k.subject FROM tokens k JOIN runs r ON r.num = k.run WHERE k.token = $1`, hash[:])
}

// PutToken implements Tx.
func (t Tables) PutToken(hash [32]byte, k Token) error {
	return t.Exec(`INSERT INTO tokens (run, token, wait, subject) VALUES (`+numOf+`, $2, $3, $4)
		ON CONFLICT (token) DO UPDATE SET run = excluded.run, wait = excluded.wait, subject = excluded.subject`,
		string(k.Run), hash[:], k.Wait, k.Subject)
}

var (
	// RecordColumns are the columns of audit records that SelectRecords reads.
	RecordColumns = `num, ` + nameList("", new(recordRow).columns())
	insertRecord  = insertInto("audit", new(recordRow).columns())
)

// SelectRecords returns the audit records of a query for RecordColumns.
func SelectRecords(s SQL, query string, args ...any) ([]durable.AuditRecord, error) {
	rows, err := SelectAll(s, func(r *recordRow) []any { return append([]any{&r.Seq}, Values(r.columns())...) }, query, args...)
	return lo.Map(rows, func(r recordRow, _ int) durable.AuditRecord { return r.toRecord() }), err
}

// AddAudit implements Tx.
func (t Tables) AddAudit(records ...durable.AuditRecord) error {
	for _, r := range records {
		if err := t.Insert(insertRecord, Values(newRecordRow(r).columns())...); err != nil {
			return err
		}
	}
	return nil
}

func waiverColumns(w *durable.Waiver) []Column {
	return []Column{
		{"id", &w.ID}, {"at", &w.Created}, {"who", &w.By}, {"expires", &w.Expires}, {"revoked", &w.Revoked}, {"revoked_by", &w.RevokedBy},
		{"data", &w.Data},
	}
}

var (
	selectWaivers = `SELECT ` + nameList("", waiverColumns(&durable.Waiver{})) + ` FROM waivers`
	insertWaiver  = &Insertion{
		Table: "waivers", Columns: names("", waiverColumns(&durable.Waiver{})),
		Conflict: ` ON CONFLICT (id) DO UPDATE SET revoked = excluded.revoked, revoked_by = excluded.revoked_by`,
	}
)

// Waivers implements Rows.
func (t Tables) Waivers() ([]durable.Waiver, error) {
	return SelectAll(t, func(w *durable.Waiver) []any { return Values(waiverColumns(w)) }, selectWaivers)
}

// PutWaiver implements Tx.
func (t Tables) PutWaiver(w durable.Waiver) error {
	return t.Insert(insertWaiver, Values(waiverColumns(&w))...)
}

// documentColumns are the columns that selectVersions reads.
const documentColumns = `kind, name, version, at, who, data,
	coalesce((SELECT x.version FROM documents x WHERE x.kind = d.kind AND x.name = d.name AND x.newest), 0)`

// DocumentsQuery reads the newest versions of the documents of a kind.
const DocumentsQuery = `SELECT ` + documentColumns + ` FROM documents d WHERE kind = $1 AND name > $2 AND newest ORDER BY name LIMIT $3`

// DocumentsBeforeQuery reads the newest versions of the documents of a kind, the last one first.
const DocumentsBeforeQuery = `SELECT ` + documentColumns + ` FROM documents d WHERE kind = $1 AND name < $2 AND newest ORDER BY name DESC LIMIT $3`

// lastName is behind the names of all documents.
var lastName = strings.Repeat("\xff", 257)

// selectVersions returns the versions of a query for documentColumns.
func selectVersions(s SQL, query string, args ...any) ([]Version, error) {
	type row struct {
		Version

		name []byte
	}
	rows, err := SelectAll(s, func(r *row) []any {
		d := &r.Document
		return []any{&d.Kind, &r.name, &d.Version, &d.At, &d.By, &d.Data, &r.Newest}
	}, query, args...)
	return lo.Map(rows, func(r row, _ int) Version {
		r.Name = string(r.name)
		return r.Version
	}), err
}

// Document implements Rows.
func (t Tables) Document(kind, name string, version int64) (Version, bool, error) {
	const versions = `SELECT ` + documentColumns + ` FROM documents d WHERE kind = $1 AND name = $2 AND version <= $3 ORDER BY version DESC LIMIT 1`
	all, err := selectVersions(t, versions, kind, []byte(name), cmp.Or(version, math.MaxInt64))
	if err != nil || len(all) == 0 || version != 0 && all[0].Version != version {
		return Version{}, false, err
	}
	return all[0], true, nil
}

// Documents implements Rows.
func (t Tables) Documents(kind, after string, limit int) ([]durable.Document, error) {
	all, err := selectVersions(t, DocumentsQuery, kind, []byte(after), limit)
	return lo.Map(all, func(v Version, _ int) durable.Document { return v.Document }), err
}

// DocumentsBefore implements Rows.
func (t Tables) DocumentsBefore(kind, before string, limit int) ([]durable.Document, error) {
	all, err := selectVersions(t, DocumentsBeforeQuery, kind, []byte(cmp.Or(before, lastName)), limit)
	return lo.Map(all, func(v Version, _ int) durable.Document { return v.Document }), err
}

// AddDocument implements Tx.
func (t Tables) AddDocument(d durable.Document) (version int64, err error) {
	version, _, err = SelectOne(t, func(version *int64) []any { return []any{version} },
		`INSERT INTO documents (kind, name, version, newest, at, who, data) SELECT $1, $2, coalesce(max(version), 0) + 1, true, $3, $4, $5
		FROM documents WHERE kind = $1 AND name = $2 HAVING count(CASE WHEN newest THEN 1 END) = 0 RETURNING version`,
		d.Kind, []byte(d.Name), &d.At, d.By, d.Data)
	return version, err
}

var insertDocument = &Insertion{Table: "documents", Columns: []string{"kind", "name", "version", "newest", "at", "who", "data"}}

// AddNewDocument implements Tx.
func (t Tables) AddNewDocument(d durable.Document) error {
	newest := true
	return t.Insert(insertDocument, d.Kind, []byte(d.Name), d.Version, &newest, &d.At, d.By, d.Data)
}

// DropDocument implements Tx.
func (t Tables) DropDocument(kind, name string) error {
	return t.Exec(`UPDATE documents SET newest = false WHERE kind = $1 AND name = $2 AND newest`, kind, []byte(name))
}

// Setting implements Rows.
func (t Tables) Setting(name string) ([]byte, error) {
	value, _, err := SelectOne(t, func(value *[]byte) []any { return []any{value} }, `SELECT value FROM settings WHERE name = $1`, name)
	return value, err
}

// Settings implements Rows.
func (t Tables) Settings(prefix string) ([][]byte, error) {
	return SelectAll(t, func(value *[]byte) []any { return []any{value} },
		`SELECT value FROM settings WHERE name > $1 AND name < $2 ORDER BY name`, prefix, prefix+"\U0010FFFF")
}

// PutSetting implements Tx.
func (t Tables) PutSetting(name string, value []byte) error {
	if value == nil {
		return t.Exec(`DELETE FROM settings WHERE name = $1`, name)
	}
	return t.Exec(`INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value`, name, value)
}

// Services implements Rows.
func (t Tables) Services(keys ...durable.Key) (map[durable.Key]durable.Service, error) {
	type row struct {
		key durable.Key
		durable.Service
	}
	all, err := SelectAll(t, func(r *row) []any { return []any{Fixed(r.key[:]), &r.LastPoll, &r.Backlog, &r.Oldest} }, t.Queries.Served, t.Queries.Keys(keys))
	return lo.SliceToMap(all, func(r row) (durable.Key, durable.Service) { return r.key, r.Service }), err
}

// LastPolls implements Rows.
func (t Tables) LastPolls(keys ...durable.Key) (map[durable.Key]time.Time, error) {
	type row struct {
		key durable.Key
		at  time.Time
	}
	all, err := SelectAll(t, func(r *row) []any { return []any{Fixed(r.key[:]), &r.at} }, t.Queries.Polled, t.Queries.Keys(keys))
	return lo.SliceToMap(all, func(r row) (durable.Key, time.Time) { return r.key, r.at }), err
}

// PutPoll implements Tx.
func (t Tables) PutPoll(at time.Time, keys ...durable.Key) error {
	return t.Exec(t.Queries.PutPoll, t.Queries.Keys(keys), &at)
}

// PruneQueues implements Tx.
func (t Tables) PruneQueues() error { return t.Exec(t.Queries.PruneQueues) }

// Prune implements Tx.
func (t Tables) Prune(before time.Time, limit int) (int, error) {
	all, err := SelectAll(t, func(num *int64) []any { return []any{num} }, t.Queries.Prune, &before, limit)
	return len(all), err
}

// SelectOffers returns the offers of a query for runs, numbers, keys and priorities.
func SelectOffers(s SQL, query string, args ...any) ([]durable.Offer, error) {
	return SelectAll(s, func(o *durable.Offer) []any { return []any{(*string)(&o.Run), &o.Seq, Fixed(o.Key[:]), &o.Priority} }, query, args...)
}

// DueQuery returns the query for the first $2 runs of each Cause at the time $1. Expired is the query for the first cause, and hint
// what follows a table to select an index, which is named after its column.
func DueQuery(expired string, hint func(index string) string) string {
	parts := map[Cause]struct{ column, condition string }{
		Overdue: {"answer_by", `r.answer_by IS NOT NULL AND r.status = 'waiting' AND r.expires IS NULL AND NOT r.paused`},
		Due:     {"not_before", `r.status = 'pending'`},
		Unstarted: {"start_by", `r.start_by IS NOT NULL AND r.ended IS NULL AND r.attempts = 0
			AND (r.expires IS NULL OR r.expires <= $1)`},
		Late: {"deadline", `r.deadline IS NOT NULL AND r.ended IS NULL AND r.cancel_cause = ''`},
	}
	queries := []string{fmt.Sprintf(`SELECT %d, x.id FROM (%s) x`, Expired, expired)}
	for c := Overdue; c <= Late; c++ {
		p := parts[c]
		queries = append(queries, fmt.Sprintf(`SELECT %d, x.id FROM (SELECT r.id FROM runs r %s WHERE r.%s <= $1 AND %s ORDER BY r.%s LIMIT $2) x`,
			c, hint("runs_"+p.column), p.column, p.condition, p.column))
	}
	return strings.Join(queries, " UNION ALL ")
}

// Due implements Rows.
func (t Tables) Due(now time.Time, limit int) (map[Cause][]agent.RunID, error) {
	type row struct {
		cause Cause
		id    agent.RunID
	}
	found, err := SelectAll(t, func(r *row) []any { return []any{(*int)(&r.cause), (*string)(&r.id)} }, t.Queries.Due, &now, limit)
	all := map[Cause][]agent.RunID{}
	for _, r := range found {
		all[r.cause] = append(all[r.cause], r.id)
	}
	return all, err
}
