// Package postgres is a durable.Store in a PostgreSQL database, for any number of
// processes on any number of machines. It is tested with version 15 and uses nothing
// that is newer than version 12.
//
//	store, err := postgres.Open(ctx, os.Getenv("DATABASE_URL"), postgres.Options{})
//	if err != nil {
//		return err
//	}
//	defer store.Close()
//
// # Connecting
//
// The URL may leave out whatever the standard variables say: PGHOST, PGUSER, PGPASSWORD,
// PGSSLMODE and the others, or a password file. All of it may come from there. The
// parameters of a pgx pool may stand in it: pool_max_conns, pool_max_conn_lifetime. The
// password is in no error, and in nothing that is printed or logged.
//
// A pooler in front of the database, such as PgBouncer, must hand out sessions, not
// transactions: the schema and the timeouts are settings of a session.
//
// # Many processes
//
// Whatever changes a run does so behind the lock of its row, in one transaction that
// is sent as one message; an Answer takes three. So of many processes that want the
// same thing exactly one gets it. Reading waits for no lock. Due is one index in the
// order of waiting: a million parked runs are rows that are not looked at.
//
// Leases, deadlines and all times that a store sets are by the clock of the database,
// so processes need not agree about the time. If that clock is set back, leases last
// longer by as much, and what is due comes later; TakeOver does not wait for it. Times
// that are given are kept to the microsecond.
//
// # What survives
//
// What a method reported as done is as safe as the server makes it: with fsync and
// synchronous_commit on, which they are by default, it survives the end of the machine.
//
// # Failing, and trying again
//
// A call ends within Options.Timeout, or when its context does; the database stops
// working at it then, and a client that vanished holds no lock for longer. Calls that
// met a deadlock or a serialization failure, or never reached the database, are made
// again by the store itself. Any error that is not one of package durable is about the
// database: the call was done whole or not at all, and making it again is safe.
//
//   - Append: the same call again, entries and all, succeeds whether or not it was
//     done the first time, and does nothing twice. One without entries that ended the
//     run is ErrStale then.
//   - Create: ErrExists says that it was done. The same owner claims the run then.
//   - Claim: the same owner gets another lease, with the next epoch.
//   - Release and Delete: ErrStale and ErrNotFound say that it was done, by this
//     process or by another.
//   - Answer: ErrAnswered says that there is an answer; Questions says which.
//   - All others have the same outcome.
//
// # Schema
//
// Everything is in one schema of its own, "grapnel" unless Options.Schema says
// otherwise. Open makes it and brings it up to date; processes that start at once wait
// for one another. A role that may only read and write rows can open a store that
// Migrate, with a mightier role, has brought up to date. Rollback takes one step back,
// for going back to an older version of the program; a schema of a newer version is
// refused.
//
// Texts may be any bytes. Those that PostgreSQL does not take as text, with zero bytes or
// not UTF-8, stand in the tables as \x and hexadecimal digits.
package postgres
