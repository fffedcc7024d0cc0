// Package sqlite is a durable.Store in one SQLite file, for one machine. It needs no installation and survives kill -9.
//
//	store, err := sqlite.Open(ctx, "runs.db", sqlite.Options{})
//	if err != nil {
//		return err
//	}
//	defer store.Close()
//
// # Files
//
// Open creates the file if it does not exist; its folder must exist. While the file is open, SQLite keeps two more beside
// it: one ends in -wal and holds the latest writes, the other ends in -shm. Only the owner can read and write these
// files. An existing file keeps its mode, and the other two get the same mode.
//
// # Several processes
//
// Any number of processes on one machine may have the file open; one writes at a time. Do not put it on a network file
// system. If the file is removed or replaced while a store is open, writes fail until it is restored.
//
// # Concurrent runs
//
// One write at a time runs. Writes that wait meanwhile share the next transaction and its write to
// the disk, each as atomic as if it had one of its own: 64 runs commit many times as fast as one.
// A write that does not have to wait starts at once. When a transaction cannot be committed, every
// write in it fails, and none is done.
//
// A context that ends while a call waits for its turn ends the call. A write that has begun runs to
// its end and returns its outcome.
//
// # Claims and changes
//
// Claim, ClaimChecks, Reconcile and RecordPoll look before they write, so that idle workers do not keep others from writing. Changes
// sends at once for changes that the same Store made, and within a fifth of a second after any commit of another process.
//
// # Durability
//
// A write that a method reported as done survives the end of the process, however it ends. With SyncFull, the default, it
// also survives a crash of the machine. With SyncNormal a crash may lose the latest writes, but never half of one.
//
// # Clocks
//
// Times come from the clock of the process, to the microsecond. A clock that is set back cannot make a lease eternal: a
// lease granted more than a few seconds in the future counts as expired. Runs are listed in the order of their creation,
// whatever the clock said. Only a list that is limited by time alone follows the clock.
//
// # Schema
//
// Open creates the schema in an empty file. It refuses a file with the schema of another version, and leaves it as it is: the
// program that wrote the file can export its runs.
package sqlite
