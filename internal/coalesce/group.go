package coalesce

import (
	"context"
	"sync"
	"time"
)

// maxKeys limits the memory of a Group.
const maxKeys = 1000

// Group limits how many calls with the same key run at once. A call that had to wait gets the value of a call that began
// after it, if that one may be shared. A Group is safe for concurrent use; NewGroup makes one.
type Group[V any] struct {
	atOnce int

	mu   sync.Mutex
	keys map[string]*calls[V]
}

// calls are those with one key.
type calls[V any] struct {
	slots chan struct{}

	// The mutex of the group guards the rest.
	users int       // calls that run or wait
	value V         // of the newest call that may be shared,
	began time.Time // which began then
}

// NewGroup returns a group that runs at most atOnce calls with one key at once.
func NewGroup[V any](atOnce int) *Group[V] {
	return &Group[V]{atOnce: atOnce, keys: map[string]*calls[V]{}}
}

// Do calls a function, unless another call with the key answers for it. The function reports whether its value may be
// shared; that of a failed call never is. Do returns the cause of ctx when ctx is done before the function is called.
func (g *Group[V]) Do(ctx context.Context, key string, call func() (value V, share bool, err error)) (V, error) {
	asked := time.Now()
	c := g.enter(key)
	defer g.leave(c)
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		var none V
		return none, context.Cause(ctx)
	}
	defer func() { <-c.slots }()
	g.mu.Lock()
	known, answers := c.value, c.began.After(asked)
	g.mu.Unlock()
	if answers {
		return known, nil
	}
	began := time.Now()
	value, share, err := call()
	if share && err == nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		if began.After(c.began) {
			c.value, c.began = value, began
		}
	}
	return value, err
}

// enter returns the calls with a key, with one user more.
func (g *Group[V]) enter(key string) *calls[V] {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.keys[key]
	if c == nil {
		if len(g.keys) >= maxKeys {
			g.forgetUnused()
		}
		c = &calls[V]{slots: make(chan struct{}, g.atOnce)}
		g.keys[key] = c
	}
	c.users++
	return c
}

func (g *Group[V]) leave(c *calls[V]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c.users--
}

// forgetUnused forgets the keys that no call uses. The caller holds g.mu.
func (g *Group[V]) forgetUnused() {
	for key, c := range g.keys {
		if c.users == 0 {
			delete(g.keys, key)
		}
	}
}
