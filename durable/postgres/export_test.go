package postgres

import "github.com/jackc/pgx/v5/pgxpool"

// Pool returns the connections of a store.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// Queries whose plans are looked at.
const (
	OwedQuery        = owedQuery
	SignalsQuery     = signalsQuery
	ServedQuery      = servedQuery
	PolledQuery      = polledQuery
	EventsQuery      = eventsQuery
	PruneQueuesQuery = pruneQueuesQuery
	EntriesQuery     = entriesQuery
	WaitsQuery       = waitsQuery
	TokenQuery       = tokenQuery
	PruneQuery       = pruneQuery
	ChecksQuery      = checksQuery
	WatchQuery       = watchQuery
)

// Opening is the query of a list of open waits, and Auditing that of a list of audit records.
var (
	Opening  = openQuery
	Auditing = auditQuery
)

// Listing is the query of a list.
var Listing = listQuery

// Looking is the query with which Reconcile looks for work, and Locking are those with which it finds it, by the column of the time.
func Locking() map[string]string {
	all := map[string]string{}
	for c := range causes {
		all[causeTimes[c]] = lockQuery(c)
	}
	return all
}

// Looking returns the query with which Reconcile looks for work.
func Looking() string { return lookQuery() }

// GroupsAtOnce is the maximum number of transactions with plain commits.
const GroupsAtOnce = groupsAtOnce

// Queued returns the number of plain commits that wait for their group.
func (s *Store) Queued() int {
	s.commits.mu.Lock()
	defer s.commits.mu.Unlock()
	return len(s.commits.waiting)
}

// ClaimByQueue and ClaimFirst are the queries of claims.
var (
	ClaimByQueue = claimByQueue
	ClaimFirst   = claimFirst
)
