package postgres

import "github.com/jackc/pgx/v5/pgxpool"

// Pool returns the connections of a store.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// Queries whose plans are looked at.
const (
	DueQuery       = dueQuery
	EntriesQuery   = entriesQuery
	QuestionsQuery = questionsQuery
	TokenQuery     = tokenQuery
	PruneQuery     = pruneQuery
)

// Listing is the query of a list.
var Listing = listQuery
