package plog

import (
	"fmt"
	"iter"
	"sync/atomic"
)

// chunkSize is the number of elements in a chunk. A fork copies at most one chunk, and a pointer for each earlier
// chunk.
const chunkSize = 32

// Log is an immutable sequence of T. The zero Log is empty and ready to use.
// It is two words; pass it by value.
type Log[T any] struct {
	line   *line[T]
	length int
}

// line is the memory that logs share. Each slot below claimed belongs to the log that claimed it: only that log
// writes it, and only logs longer than its index read it. The log that claims a chunk's first slot allocates the
// chunk.
type line[T any] struct {
	chunks  []*[chunkSize]T
	claimed atomic.Int64
}

// Of returns a log of the given elements.
func Of[T any](items ...T) Log[T] {
	return Log[T]{}.Append(items...)
}

// Len returns the number of elements.
func (l Log[T]) Len() int { return l.length }

// At returns element i, counted from zero. Like a slice index, it panics if i is out of range.
func (l Log[T]) At(i int) T {
	if uint(i) >= uint(l.length) {
		panic(fmt.Sprintf("plog: index %d out of range with length %d", i, l.length))
	}
	return l.itemAt(i)
}

func (l Log[T]) itemAt(i int) T { return l.line.chunks[uint(i)/chunkSize][uint(i)%chunkSize] }

// Last returns the newest element, and false when the log is empty.
func (l Log[T]) Last() (T, bool) {
	if l.length == 0 {
		var none T
		return none, false
	}
	return l.itemAt(l.length - 1), true
}

// All iterates over the elements with their index, oldest first.
func (l Log[T]) All() iter.Seq2[int, T] { return l.From(0) }

// From iterates from element i on. It yields nothing if i is past the end, and panics if i is negative.
func (l Log[T]) From(i int) iter.Seq2[int, T] {
	return func(yield func(int, T) bool) {
		if i < 0 {
			panic(fmt.Sprintf("plog: index %d out of range with length %d", i, l.length))
		}
		for i := i; i < l.length; i++ {
			if !yield(i, l.itemAt(i)) {
				return
			}
		}
	}
}

// Backward iterates over the elements with their index, newest first.
func (l Log[T]) Backward() iter.Seq2[int, T] {
	return func(yield func(int, T) bool) {
		for i := l.length - 1; i >= 0; i-- {
			if !yield(i, l.itemAt(i)) {
				return
			}
		}
	}
}

// Truncate returns a log of the first n elements. It panics if n is negative or greater than Len. Appending to the
// result creates a fork.
func (l Log[T]) Truncate(n int) Log[T] {
	if n < 0 || n > l.length {
		panic(fmt.Sprintf("plog: cannot truncate to %d with length %d", n, l.length))
	}
	return Log[T]{line: l.line, length: n}
}

// Append returns a log with items after the elements of l, which stays unchanged. The items are copied.
func (l Log[T]) Append(items ...T) Log[T] {
	if len(items) == 0 {
		return l
	}
	end := l.length + len(items)
	needed := (end + chunkSize - 1) / chunkSize
	to := l.line
	switch {
	case to == nil:
		to = &line[T]{chunks: make([]*[chunkSize]T, max(needed, 4))}
		to.claimed.Store(int64(end))
	case !to.claimed.CompareAndSwap(int64(l.length), int64(end)):
		to = l.fork(needed)
		to.claimed.Store(int64(end))
	case needed > len(to.chunks):
		// The claim also covers the last chunk, so the chunk can be shared instead of copied.
		longer := &line[T]{chunks: make([]*[chunkSize]T, 2*needed)}
		copy(longer.chunks, to.chunks)
		longer.claimed.Store(int64(end))
		to = longer
	}
	for i, item := range items {
		at := uint(l.length + i)
		if at%chunkSize == 0 {
			to.chunks[at/chunkSize] = new([chunkSize]T)
		}
		to.chunks[at/chunkSize][at%chunkSize] = item
	}
	return Log[T]{line: to, length: end}
}

// fork returns a new line with room for the needed chunks. It shares full chunks and copies a partial one up to the
// end of l.
func (l Log[T]) fork(needed int) *line[T] {
	to := &line[T]{chunks: make([]*[chunkSize]T, max(needed+1, len(l.line.chunks)))}
	full, rest := l.length/chunkSize, l.length%chunkSize
	copy(to.chunks, l.line.chunks[:full])
	if rest > 0 {
		to.chunks[full] = new([chunkSize]T)
		copy(to.chunks[full][:rest], l.line.chunks[full][:rest])
	}
	return to
}
