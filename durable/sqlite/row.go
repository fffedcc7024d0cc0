package sqlite

import (
	"database/sql/driver"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// The types below store what a pointer points to, and scan into it.

// micros is a time as microseconds since 1970; NULL is the zero time.
type micros struct{ *time.Time }

// Value implements driver.Valuer.
func (m micros) Value() (driver.Value, error) {
	if m.IsZero() {
		return nil, nil
	}
	return m.UnixMicro(), nil
}

// Scan implements sql.Scanner.
func (m micros) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*m.Time = time.Time{}
	case int64:
		*m.Time = time.UnixMicro(v).UTC()
	default:
		return fmt.Errorf("a time is stored as %T", v)
	}
	return nil
}

// asked is a time that is never NULL, so that its order is simple.
type asked struct{ micros }

// Value implements driver.Valuer.
func (a asked) Value() (driver.Value, error) { return a.UnixMicro(), nil }

// asJSON is a map, a slice or a pointer as JSON; NULL if it is empty.
type asJSON struct{ to any }

// Value implements driver.Valuer.
func (j asJSON) Value() (driver.Value, error) {
	if v := reflect.ValueOf(j.to).Elem(); v.IsZero() || v.Kind() != reflect.Pointer && v.Len() == 0 {
		return nil, nil
	}
	text, err := json.Marshal(j.to)
	return string(text), err
}

// Scan implements sql.Scanner.
func (j asJSON) Scan(v any) error {
	text, _ := v.(string)
	if text == "" || text == "{}" {
		reflect.ValueOf(j.to).Elem().SetZero()
		return nil
	}
	return json.Unmarshal([]byte(text), j.to)
}

// hash is 32 bytes; NULL if all are zero.
type hash struct{ to *[32]byte }

// Value implements driver.Valuer.
func (h hash) Value() (driver.Value, error) {
	if *h.to == [32]byte{} {
		return nil, nil
	}
	return h.to[:], nil
}

// Scan implements sql.Scanner.
func (h hash) Scan(v any) error {
	data, _ := v.([]byte)
	*h.to = [32]byte{}
	copy(h.to[:], data)
	return nil
}

// key is the key of a queue.
type key struct{ to *durable.Key }

// Scan implements sql.Scanner.
func (k key) Scan(v any) error {
	data, _ := v.([]byte)
	copy(k.to[:], data)
	return nil
}

// listKeys returns keys as a JSON list, in hexadecimal.
func listKeys(keys []durable.Key) string {
	texts := make([]string, len(keys))
	for i, k := range keys {
		texts[i] = `"` + hex.EncodeToString(k[:]) + `"`
	}
	return "[" + strings.Join(texts, ",") + "]"
}

// fields returns what stores the values of columns, and scans into them.
func fields(columns []store.Column) []any {
	all := make([]any, len(columns))
	for i, c := range columns {
		switch v := c.Value.(type) {
		case *time.Time:
			all[i] = micros{v}
		case *store.Moment:
			all[i] = asked{micros{(*time.Time)(v)}}
		case *[32]byte:
			all[i] = hash{v}
		case *map[string]string, *[]durable.Answer:
			all[i] = asJSON{v}
		default:
			all[i] = v
		}
	}
	return all
}

// stateOf returns the columns of a run that change.
func stateOf(r *store.Run) []store.Column {
	return append(r.StateColumns(), store.Column{Name: "leased", Value: &r.Leased})
}

func columnsOf(r *store.Run) []store.Column { return append(r.JobColumns(), stateOf(r)...) }

// runColumns are the columns that scanRun reads. A run with a phase has its own demands, because its queue has others.
var runColumns = store.Names("", columnsOf(&store.Run{})) + `,
	iif(phase = '', (SELECT queues.demands FROM queues WHERE queues.id = runs.queue), runs.demands),
	(SELECT json_group_object(name, value) FROM labels WHERE run = runs.n)`

func scanRun(r *store.Run) []any {
	return fields(slices.Concat(r.JobColumns(), stateOf(r), []store.Column{{Value: &r.Demands}, {Value: &r.Labels}}))
}

var insertRun = insertInto("runs", append(columnsOf(&store.Run{}), store.Column{Name: "queue"}, store.Column{Name: "demands"})) +
	` ON CONFLICT (id) DO NOTHING`

// insertInto returns the statement that stores a row with columns.
func insertInto(table string, columns []store.Column) string {
	return `INSERT INTO ` + table + ` (` + store.Names("", columns) + `) VALUES (` + parameterList(len(columns)) + `)`
}

// parameterList returns parameters for a list of values.
func parameterList(n int) string { return "?" + strings.Repeat(", ?", n-1) }

// changedColumns returns the columns in which a run differs from the old one, and their new values.
func changedColumns(old, r store.Run) (columns []string, values []any, err error) {
	state := stateOf(&r)
	before, after := fields(stateOf(&old)), fields(state)
	for i, c := range state {
		was, err := driver.DefaultParameterConverter.ConvertValue(before[i])
		if err != nil {
			return nil, nil, err
		}
		is, err := driver.DefaultParameterConverter.ConvertValue(after[i])
		if err != nil {
			return nil, nil, err
		}
		if !reflect.DeepEqual(was, is) {
			columns, values = append(columns, c.Name), append(values, is)
		}
	}
	return columns, values, nil
}

// phaseDemands returns the demands that the row of a run stores.
func phaseDemands(r *store.Run) asJSON {
	if r.Phase == "" {
		return asJSON{new(map[string]string)}
	}
	return asJSON{&r.Demands}
}

// waitColumns are the columns of a wait w and its run r.
var waitColumns = "r.id, " + store.Names("w.", waitColumnsOf(&store.WaitRow{}))

func waitColumnsOf(r *store.WaitRow) []store.Column { return append(r.Columns(), r.ClaimColumns()...) }

// readWaits returns the waits of a query for waitColumns.
func (v *view) readWaits(s selection) ([]store.Wait, error) {
	rows, err := scanAll(v, s, func(r *store.WaitRow) []any { return append([]any{&r.Run}, fields(waitColumnsOf(r))...) })
	return lo.Map(rows, func(r store.WaitRow, _ int) store.Wait { return r.Read() }), err
}

func documentFields(d *store.Version) []any {
	return []any{&d.Kind, &d.Name, &d.Version, micros{&d.At}, &d.By, &d.Data, &d.Newest}
}
