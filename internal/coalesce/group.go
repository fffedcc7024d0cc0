package coalesce

import (
	"context"
	"sync"
	"time"
)

// maxKeys limits the memory of a Group.
const maxKeys = 1000

// Group limits how many calls run at once. A call that had to wait gets the value of a call with the same key that began
// after it, if that one may be shared. A Group is safe for concurrent use; NewGroup makes one.
type Group[V any] struct {
	slots chan struct{}

	mu   sync.Mutex
	last map[string]shared[V]
}

// shared is the value of a call that began at a time.
type shared[V any] struct {
	value V
	began time.Time
}

// NewGroup returns a group that runs at most atOnce calls at once.
func NewGroup[V any](atOnce int) *Group[V] {
	return &Group[V]{slots: make(chan struct{}, atOnce), last: map[string]shared[V]{}}
}

// Do calls a function, unless another call with the key answers for it. The function reports whether its value may be
// shared; that of a failed call never is. Do returns the cause of ctx when ctx is done before the call can run.
func (g *Group[V]) Do(ctx context.Context, key string, call func() (value V, share bool, err error)) (V, error) {
	asked := time.Now()
	select {
	case g.slots <- struct{}{}:
	case <-ctx.Done():
		var none V
		return none, context.Cause(ctx)
	}
	defer func() { <-g.slots }()
	g.mu.Lock()
	last := g.last[key]
	g.mu.Unlock()
	if last.began.After(asked) {
		return last.value, nil
	}
	began := time.Now()
	value, share, err := call()
	if !share || err != nil {
		return value, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, known := g.last[key]; !known && len(g.last) >= maxKeys {
		clear(g.last)
	}
	if began.After(g.last[key].began) {
		g.last[key] = shared[V]{value, began}
	}
	return value, nil
}
