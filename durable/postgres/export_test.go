package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// Pool returns the connections of a store.
func (s *Store) Pool() *pgxpool.Pool { return s.db.pool }

// Reused is a store with the connections of another.
type Reused struct{ *Store }

// Reuse returns a new store with the connections of another, which Close leaves open.
func (s *Store) Reuse(e *durable.Encryption) (Reused, error) {
	d := &db{
		pool: s.db.pool, schema: s.db.schema, timeout: s.db.timeout, changes: newChanges(s.db.changes.config, s.db.schema),
		steps: store.NewQueue[*queuedStep](groupsAtOnce),
	}
	m, err := store.New(d, e)
	return Reused{&Store{m, d}}, err
}

// Close closes the channels of the store.
func (r Reused) Close() error {
	r.db.changes.Close()
	return nil
}

// Queries whose plans are looked at.
var (
	ClaimByQueue     = claimByQueue
	ClaimFirst       = claimFirst
	OwedQuery        = owedQuery
	SignalsQuery     = store.SignalsQuery
	ServedQuery      = servedQuery
	PutPoll          = putPoll
	EventsQuery      = store.EventsQuery
	PruneQueuesQuery = pruneQueuesQuery
	EntriesQuery     = store.EntriesQuery
	WaitsQuery       = store.WaitsQuery
	PruneQuery       = pruneQuery
	ChecksQuery      = checksQuery
	DueQuery         = dueQuery
	OpenQuery        = openQuery
	AuditQuery       = auditQuery
	ListQuery        = listQuery
	CountQuery       = countQuery
)

// GroupsAtOnce is the maximum number of statements with steps.
const GroupsAtOnce = groupsAtOnce

// Queued returns the number of steps that wait for their group.
func (s *Store) Queued() int { return s.db.steps.Len() }

// ReadNow returns the time that a read sees.
func (s *Store) ReadNow(ctx context.Context) (at time.Time, err error) {
	err = s.db.Read(ctx, "reading the time", func(rows store.Rows) error {
		at = rows.Now()
		return nil
	})
	return at, err
}

// Remembers reports whether the store knows that the database has a queue.
func (s *Store) Remembers(key durable.Key) bool { return s.db.queues.has(key) }

// Clock estimates the time of the database.
type Clock struct{ clock }

// Set records a time that the database has told.
func (c *Clock) Set(told time.Time) { c.set(told) }

// Now returns an estimate.
func (c *Clock) Now() (at time.Time, known bool) { return c.estimate() }
