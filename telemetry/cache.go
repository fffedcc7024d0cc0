package telemetry

import (
	"maps"
	"sync"
	"sync/atomic"
)

// maxCached is the maximum number of values in a cache, because models invent an unlimited number of tool names.
const maxCached = 256

// cache stores a value for each key. It is safe for concurrent use. Finding an existing value neither locks nor
// allocates. The zero cache is empty.
type cache[K comparable, V any] struct {
	kept   atomic.Pointer[map[K]V]
	adding sync.Mutex
}

// of returns the key's value, and creates it if it does not exist.
func (c *cache[K, V]) of(key K, build func(K) V) V {
	if kept := c.kept.Load(); kept != nil {
		if v, ok := (*kept)[key]; ok {
			return v
		}
	}
	v := build(key)
	c.adding.Lock()
	defer c.adding.Unlock()
	more := map[K]V{}
	if kept := c.kept.Load(); kept != nil {
		if len(*kept) >= maxCached {
			return v
		}
		more = maps.Clone(*kept)
	}
	more[key] = v
	c.kept.Store(&more)
	return v
}
