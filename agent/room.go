package agent

import (
	"sync/atomic"
	"unsafe"
)

// room is where a run puts what it makes for every step: several values in one
// allocation, more of them the longer the run is. A value that is still used keeps those
// that were made with it, so what is put here is what a run keeps, or little of it. The
// zero room is ready to use, by several goroutines at once.
type room[T any] struct {
	block atomic.Pointer[block[T]]
}

type block[T any] struct {
	taken  atomic.Int64
	values []T
}

// blockBytes is what a block of a long run takes: the most that the allocator gives
// without asking for more than one page of its own.
const blockBytes = 2<<10 - 8

// take is a zero value that nobody else has.
func (r *room[T]) take() *T {
	b := r.block.Load()
	if b != nil {
		if i := b.taken.Add(1) - 1; i < int64(len(b.values)) {
			return &b.values[i]
		}
	}
	return r.grow(b)
}

// grow takes a value of a new block, twice as large as the one that is full.
func (r *room[T]) grow(full *block[T]) *T {
	var value T
	size := 1
	if full != nil {
		size = max(1, min(2*len(full.values), blockBytes/int(unsafe.Sizeof(value))))
	}
	b := &block[T]{values: make([]T, size)}
	b.taken.Store(1)
	r.block.CompareAndSwap(full, b) // else somebody was quicker, and this one is for one value
	return &b.values[0]
}
