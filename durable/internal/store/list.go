package store

import (
	"fmt"
	"math"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// Listing is a query for a list while a database composes it. It has only the conditions of a filter, so that the database can use an
// index in the order of the list.
type Listing struct {
	Args  []any
	Where []string
}

// Arg adds an argument, and returns its parameter.
func (l *Listing) Arg(v any) string {
	l.Args = append(l.Args, v)
	return fmt.Sprintf("$%d", len(l.Args))
}

// And adds a condition.
func (l *Listing) And(condition string) { l.Where = append(l.Where, condition) }

// ListRuns returns a listing with the conditions on runs r that both databases word alike. A partial index needs its condition, too.
// Hint is what follows the runs of a session to select their index.
func ListRuns(f durable.Filter, hint string) *Listing {
	l := &Listing{}
	for _, c := range []struct {
		column, value string
		partial       bool // its index covers only rows with a value
	}{
		{"parent", string(f.Parent), true},
		{"session", string(f.Session), true},
		{"after", string(f.After), false},
		{"retry_of", string(f.RetryOf), true},
		{"parent_session", string(f.ParentSession), true},
		{"turn", string(f.Turn), true},
		{"request_key", f.RequestKey, false},
		{"phase", string(f.Phase), true},
		{"name", f.Name, false},
		{"kind", string(f.Kind), false},
		{"submitted_by", f.By, true},
	} {
		if c.value != "" {
			l.And("r." + c.column + " = " + l.Arg(c.value))
		}
		if c.value != "" && c.partial {
			l.And("r." + c.column + " <> ''")
		}
	}
	if f.Top {
		l.And("r.parent = ''")
	}
	if f.HasTurn || f.LastTurn {
		l.And("r.turn <> ''")
	}
	if f.LastTurn { // a subquery in place of NOT EXISTS, which a planner might make a join of all runs
		l.And("(SELECT later.num FROM runs later " + hint + " WHERE later.session = r.session AND later.session <> ''" +
			" AND later.num > r.num AND later.turn <> '' LIMIT 1) IS NULL")
	}
	if !f.Since.IsZero() {
		l.And("r.created >= " + l.Arg(&f.Since))
	}
	if !f.Until.IsZero() {
		l.And("r.created < " + l.Arg(&f.Until))
	}
	return l
}

// AndLabel adds the condition that runs r have the label of a filter, if it has one.
func (l *Listing) AndLabel(f durable.Label) {
	if f.Name != "" {
		l.And("EXISTS (SELECT 1 FROM labels l WHERE l.run = r.num AND l.name = " + l.Arg(f.Name) + " AND l.value = " + l.Arg(f.Value) + ")")
	}
}

// Position is the place of a run in lists: those below it follow.
type Position struct {
	Num     int64
	Created time.Time // zero before the first page
}

// positionOf returns the position of the last run of the page before.
func (t Tables) positionOf(id agent.RunID) (Position, error) {
	if id == "" {
		return Position{Num: math.MaxInt64}, nil
	}
	p, found, err := SelectOne(t, func(p *Position) []any { return []any{&p.Num, &p.Created} }, `SELECT num, created FROM runs WHERE id = $1`, string(id))
	if err == nil && !found {
		err = fmt.Errorf("run %q: %w", id, durable.ErrNotFound)
	}
	return p, err
}

// List implements Rows.
func (t Tables) List(f durable.Filter) ([]Run, error) {
	before, err := t.positionOf(f.Before)
	if err != nil {
		return nil, err
	}
	query, args := t.Queries.List(f, before)
	return SelectAll(t, t.Table.Targets, query, args...)
}

// Count implements Rows.
func (t Tables) Count(f durable.Filter) (n int, err error) {
	before, err := t.positionOf(f.Before)
	if err != nil {
		return 0, err
	}
	query, args := t.Queries.Count(f, before)
	n, _, err = SelectOne(t, func(n *int) []any { return []any{n} }, query, args...)
	return n, err
}
