package telemetry

import (
	"maps"
	"sync"
	"sync/atomic"
)

// maxCached is how many values a cache keeps: models invent names of tools, and
// there is no end to them.
const maxCached = 256

// cache keeps what was made once for each key. It is safe for concurrent use;
// looking up what is there neither locks nor allocates. The zero cache is empty.
type cache[K comparable, V any] struct {
	kept   atomic.Pointer[map[K]V]
	adding sync.Mutex
}

// of returns the value of the key, made if it is not there.
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
