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
// The URL may omit everything that the standard variables (PGHOST, PGUSER, PGPASSWORD, PGSSLMODE and the others) or a
// password file define; it may also be empty. It may contain the parameters of a pgx pool, such as pool_max_conns and
// pool_max_conn_lifetime. The password appears in no error and in no output or log.
//
// A pooler in front of the database, such as PgBouncer, must pool sessions, not transactions, because the schema and the
// timeouts are session settings.
//
// # Many processes
//
// Every change of a run locks its row. So if many processes want the same thing, exactly one gets it. Plain commits, claims and
// submissions are one message to the database each, other changes two or three. Reads wait for no lock. Claim reads the first ready runs
// of each queue and skips those that another process is claiming, so its cost depends neither on the number of ready runs nor on that of
// waiting ones.
//
// Transactions that make a run ready or send a signal notify the other processes (NOTIFY, on a channel named after the schema).
// PostgreSQL commits such transactions one after the other, so the steps of runs do not notify. Changes listens on one
// connection for all its callers, beside the pool.
//
// Plain commits of concurrent runs of a process share statements when more of them come than the database can take at once. A Commit
// whose context ends then returns with its statement.
//
// Leases, deadlines and all times that a store sets use the clock of the database, so the clocks of the processes may
// differ. The times of new runs may be earlier by the time that a reply takes. If the database clock is set back, leases last longer by
// that amount and runs become ready later; TakeOver does not wait for a lease. The store keeps times given by callers to the microsecond.
//
// # Durability
//
// A write that a method reported as done is as safe as the server makes it: with fsync and synchronous_commit on, which
// is the default, it survives a crash of the machine.
//
// # Failures and retries
//
// A call ends within Options.Timeout, or when its context ends; the database then stops working on it, and a client that
// disappeared holds no lock for longer. The store itself retries calls that met a deadlock or a serialization failure, or
// that never reached the database. Any error that is not one of package durable concerns the database: the call was done
// completely or not at all, and repeating it is safe.
//
//   - Commit: the same call with the same entries, events or end, or with jobs that have an ID, succeeds whether or not the first one was done,
//     and changes nothing twice.
//   - Submit: a job with an idempotency key is stored once. For other jobs, ErrExists means that it was done if they have an ID.
//   - Begin: ErrExists means that it was done. The same owner then acquires the run.
//   - Acquire: the same owner gets another lease, with the next epoch.
//   - Claim: the claimed runs become ready again when their leases expire.
//   - Signal: an added context is added again.
//   - Release and Delete: ErrStale and ErrNotFound mean that it was done, by this process or by another.
//   - Answer: ErrAnswered means that an answer is stored; Waits returns it.
//   - SetToken: ErrExists means that the wait has a token; WaitByToken tells whether it is this one.
//   - ClaimChecks: the same owner gets the claimed waits again.
//   - AddWaiver: ErrExists means that it was done.
//   - All other calls have the same result again.
//
// # Schema
//
// The tables are in a schema of their own, "grapnel" unless Options.Schema names another. Open creates them; processes that start
// at the same time wait for each other. A role that may only read and write rows can open a store whose tables another role
// created with the statements of SchemaSQL. Open refuses a schema with the tables of another version, and leaves it as it is: the
// program that wrote them can export its runs.
//
// Texts may contain any bytes. Texts that PostgreSQL does not accept, with zero bytes or invalid UTF-8, are stored as \x
// and hexadecimal digits.
package postgres
