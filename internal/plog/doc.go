// Package plog is a persistent append-only log: a value that grows without
// changing.
//
//	a := plog.Of(1, 2)
//	b := a.Append(3)    // a still holds 1, 2
//	c := a.Append(4)    // a fork: b holds 1, 2, 3 and c holds 1, 2, 4
//
// A log and the log it was appended to share their backing array. Append claims
// the next free slot with one compare-and-swap; the first to claim it shares,
// any other (a fork) copies the elements once and owns the copy. Appending is
// amortised constant time however long the log is, and reading is an index into
// an array.
//
// A Log is safe for concurrent use, appending included: readers only look below
// their own length, and a slot is written once, by the one who claimed it.
package plog
