package postgres

import (
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Pool returns the connections of a store.
func (s *Store) Pool() *pgxpool.Pool { return s.db.pool }

// Queries whose plans are looked at.
var (
	ClaimByQueue     = claimByQueue
	ClaimFirst       = claimFirst
	OwedQuery        = owedQuery
	SignalsQuery     = signalsQuery
	ServedQuery      = servedQuery
	PutPoll          = putPoll
	EventsQuery      = eventsQuery
	PruneQueuesQuery = pruneQueuesQuery
	EntriesQuery     = entriesQuery
	WaitsQuery       = waitsQuery
	PruneQuery       = pruneQuery
	ChecksQuery      = checksQuery
	DueQuery         = dueQuery
	OpenQuery        = openQuery
	AuditQuery       = auditQuery
	ListQuery        = listQuery
)

// GroupsAtOnce is the maximum number of statements with steps.
const GroupsAtOnce = groupsAtOnce

// Queued returns the number of steps that wait for their group.
func (s *Store) Queued() int {
	s.db.steps.mu.Lock()
	defer s.db.steps.mu.Unlock()
	return len(s.db.steps.waiting)
}

// Clock estimates the time of the database.
type Clock struct{ clock }

// Set records a time that the database has told.
func (c *Clock) Set(told time.Time) { c.set(told) }

// Now returns an estimate.
func (c *Clock) Now() (at time.Time, known bool) { return c.estimate() }
