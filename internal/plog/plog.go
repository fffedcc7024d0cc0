package plog

import (
	"iter"
	"sync/atomic"
)

// firstCapacity is the capacity of a log's first backing array, in elements: a
// short conversation fits without a copy.
const firstCapacity = 8

// Log is an immutable sequence of T. The zero Log is empty and ready to use.
// It is two words; pass it by value.
type Log[T any] struct {
	backing *backing[T]
	length  int
}

// backing is the array that logs of one line of descent share. Slots below
// claimed belong to somebody; a slot is written by the one who claimed it and
// read only by logs that are longer than its index.
type backing[T any] struct {
	slots   []T
	claimed atomic.Int64
}

// Of returns a log of the given elements.
func Of[T any](items ...T) Log[T] {
	return Log[T]{}.Append(items...)
}

// Len is the number of elements.
func (l Log[T]) Len() int { return l.length }

// At returns element i, counted from zero. It panics when i is out of range, as
// an index into a slice does.
func (l Log[T]) At(i int) T {
	return l.view()[i]
}

// Last returns the newest element, and false when the log is empty.
func (l Log[T]) Last() (T, bool) {
	if l.length == 0 {
		var none T
		return none, false
	}
	return l.backing.slots[l.length-1], true
}

// All iterates over the elements with their index, oldest first.
func (l Log[T]) All() iter.Seq2[int, T] { return l.From(0) }

// From iterates from element i on. An i past the end gives nothing; it panics
// when i is negative.
func (l Log[T]) From(i int) iter.Seq2[int, T] {
	return func(yield func(int, T) bool) {
		for i := i; i < l.length; i++ {
			if !yield(i, l.backing.slots[i]) {
				return
			}
		}
	}
}

// Backward iterates over the elements with their index, newest first.
func (l Log[T]) Backward() iter.Seq2[int, T] {
	return func(yield func(int, T) bool) {
		for i := l.length - 1; i >= 0; i-- {
			if !yield(i, l.backing.slots[i]) {
				return
			}
		}
	}
}

// Truncate returns the log of the first n elements. It panics when n is
// negative or more than Len. What is appended to it later is a fork.
func (l Log[T]) Truncate(n int) Log[T] {
	_ = l.view()[:n:n]
	return Log[T]{backing: l.backing, length: n}
}

// Append returns a log with items after the elements of l, which stays as it
// was. The items are copied.
func (l Log[T]) Append(items ...T) Log[T] {
	if len(items) == 0 {
		return l
	}
	end := l.length + len(items)
	if b := l.backing; b != nil && end <= len(b.slots) &&
		b.claimed.CompareAndSwap(int64(l.length), int64(end)) {
		copy(b.slots[l.length:end], items)
		return Log[T]{backing: b, length: end}
	}
	b := &backing[T]{slots: make([]T, capacity(end))}
	copy(b.slots, l.view())
	copy(b.slots[l.length:], items)
	b.claimed.Store(int64(end))
	return Log[T]{backing: b, length: end}
}

// view is what l may read, clipped.
func (l Log[T]) view() []T {
	if l.backing == nil {
		return nil
	}
	return l.backing.slots[:l.length:l.length]
}

// capacity of a new backing array that must hold n elements: doubled, so that
// appending one at a time copies each element a constant number of times.
func capacity(n int) int { return max(firstCapacity, 2*n) }
