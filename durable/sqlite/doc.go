// Package sqlite is a durable.Store in one SQLite file, for one machine: nothing to
// install, and it survives kill -9.
//
//	store, err := sqlite.Open(ctx, "runs.db", sqlite.Options{})
//	if err != nil {
//		return err
//	}
//	defer store.Close()
//
// # Files
//
// The file is made when it is not there, in a folder that is. While it is open two
// more stand beside it: one ends in -wal and holds what was written last, the other
// in -shm. All three can be read and written by their owner alone. A file that is
// there already keeps its mode, and gives it to the two.
//
// # Several processes
//
// Any number of processes of one machine may have the file open; one writes at a
// time. Do not put it on a network file system. A file that is removed or replaced
// under an open store is noticed: writes fail until it is back.
//
// # Concurrent runs
//
// One write at a time runs. Writes that wait meanwhile share the next transaction and its write to
// the disk, each as atomic as if it had one of its own: 64 runs append many times as fast as one.
// A write that does not have to wait starts at once. When a transaction cannot be committed, every
// write in it fails, and none is done.
//
// A context that ends while a call waits for its turn ends the call. A write that has begun runs to
// its end and returns its outcome.
//
// # What survives
//
// What a method reported as done survives the end of the process, whatever ends it.
// With SyncFull, the default, it survives the end of the machine, too; with
// SyncNormal the last moments before that may be lost, though never half of a write.
//
// # Clocks
//
// Times are by the clock of the process, to the microsecond. A clock that was set
// back makes no lease eternal: one that was given more than some seconds in the
// future has run out. Runs are listed in the order they were made in, whatever the
// clock said.
//
// # Schema
//
// Open brings an older file up to date. Rollback takes one step back, for going back
// to an older version of the program; a file of a newer version is refused.
package sqlite
