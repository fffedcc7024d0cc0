package coordinator

import (
	"sync"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// lastCommits remembers the ID of the last commit of each run, so that a request whose response was lost may be repeated. After a restart of
// the process, the entries in the journal tell. Its zero value is ready for use.
type lastCommits struct {
	mu    sync.Mutex
	ids   map[agent.RunID]lastCommit
	order []agent.RunID
}

type lastCommit struct {
	owner string
	epoch int64
	id    string
}

// maxCommits is the number of runs whose last commits are remembered.
const maxCommits = 10_000

// is reports whether a commit is the last one of its run.
func (c *lastCommits) is(l durable.Lease, id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ids[l.Run] == lastCommit{l.Owner, l.Epoch, id}
}

// note notes the last commit of a run.
func (c *lastCommits) note(l durable.Lease, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ids == nil {
		c.ids = map[agent.RunID]lastCommit{}
	}
	if _, known := c.ids[l.Run]; !known {
		if c.order = append(c.order, l.Run); len(c.order) > maxCommits {
			delete(c.ids, c.order[0])
			c.order = c.order[1:]
		}
	}
	c.ids[l.Run] = lastCommit{l.Owner, l.Epoch, id}
}
