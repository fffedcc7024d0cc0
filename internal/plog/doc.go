// Package plog is a persistent append-only log: a value that grows without
// changing.
//
//	a := plog.Of(1, 2)
//	b := a.Append(3)    // a still holds 1, 2
//	c := a.Append(4)    // a fork: b holds 1, 2, 3 and c holds 1, 2, 4
//
// A log shares its elements, which are stored in chunks, with the log that it was appended to. Append claims the
// next free slots with one compare-and-swap. The first log that claims them shares the memory; any other (a
// fork) copies the last chunk and the list of earlier chunks. Appending takes amortised constant time
// regardless of length, forking costs a pointer for every 32 elements, and reading is two index
// operations.
//
// A Log is safe for concurrent use, including Append: readers only read below their own length, and a slot is
// written once, by the log that claimed it.
package plog
