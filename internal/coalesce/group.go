package coalesce

import (
	"context"
	"sync"
	"time"
)

// maxKeys limits the memory of a Group.
const maxKeys = 1000

// Group limits how many calls with the same key run at once. A caller that had to wait receives the value of a later
// call, if that value may be shared. A Group is safe for concurrent use; NewGroup creates one.
type Group[V any] struct {
	atOnce int

	mu   sync.Mutex
	keys map[string]*calls[V]
}

// calls holds the state of one key.
type calls[V any] struct {
	slots chan struct{}

	// The group's mutex guards the remaining fields.
	users int       // calls that run or wait
	value V         // the newest value that may be shared
	began time.Time // when the call that returned value began
}

// NewGroup returns a group that runs at most atOnce calls with the same key concurrently.
func NewGroup[V any](atOnce int) *Group[V] {
	return &Group[V]{atOnce: atOnce, keys: map[string]*calls[V]{}}
}

// Do calls a function, unless another call with the same key answers for it. The function reports whether its value
// may be shared; the value of a failed call is never shared. If ctx is done before the function is called, Do returns
// the cause of ctx.
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

// enter returns the calls with a key and adds one user.
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

// forgetUnused removes the keys without users. The caller holds g.mu.
func (g *Group[V]) forgetUnused() {
	for key, c := range g.keys {
		if c.users == 0 {
			delete(g.keys, key)
		}
	}
}
