package pipeline

import (
	"context"
	"fmt"
	"sync"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
)

// journal writes the journal of a session, one commit after the other, and records the actions of its hooks. It is safe
// for concurrent use.
type journal struct {
	x   *durable.Execution
	run agent.RunID

	writing sync.Mutex
	seq     int64 // the last entry

	mu    sync.Mutex
	done  map[string][]byte
	begun map[string]bool
	turns map[string]*sync.Mutex // of the names in use
}

var _ hooks.Journal = (*journal)(nil)

// newJournal returns the journal of a run with the entries that were read, except for the results since the last
// transition that again selects. Seq is the number of the last entry.
func newJournal(x *durable.Execution, run agent.RunID, seq int64, entries []durable.Entry, again func(name string) bool) *journal {
	j := &journal{x: x, run: run, seq: seq, done: map[string][]byte{}, begun: map[string]bool{}, turns: map[string]*sync.Mutex{}}
	since := lastTransition(entries)
	for _, e := range entries {
		switch {
		case e.Kind == durable.EntryOnce:
			j.begun[e.Key] = true
		case e.Kind == durable.EntryDone && (e.Seq < since || !again(e.Key)):
			j.done[e.Key] = e.Data
		}
	}
	return j
}

// commit writes to the run, and returns the number of the last entry. Prepare, unless nil, may change the commit when the
// number of its first entry is known.
func (j *journal) commit(ctx context.Context, c durable.Commit, prepare func(first int64, c *durable.Commit)) error {
	j.writing.Lock()
	defer j.writing.Unlock()
	if prepare != nil {
		prepare(j.seq+1, &c)
	}
	if err := j.x.Commit(ctx, c); err != nil {
		return err
	}
	j.seq += int64(len(c.Entries))
	return nil
}

// Once calls do once in the life of the run: see hooks.Journal.
func (j *journal) Once(
	ctx context.Context, _ agent.State, name string, repeat bool, do func(ctx context.Context, key string) ([]byte, error),
) ([]byte, error) {
	defer j.takeTurn(name)()
	j.mu.Lock()
	data, done := j.done[name]
	doubt := j.begun[name]
	j.mu.Unlock()
	switch {
	case done:
		return data, nil
	case doubt && !repeat:
		return nil, fmt.Errorf("doing %q in run %s: %w", name, j.run, durable.ErrInDoubt)
	}
	return j.record(ctx, name, !isQuick(name), do)
}

// record calls do and records its result; if started is set, it records first that it starts.
func (j *journal) record(
	ctx context.Context, name string, started bool, do func(ctx context.Context, key string) ([]byte, error),
) ([]byte, error) {
	if started {
		if err := j.commit(ctx, durable.Commit{Entries: []durable.Entry{{Kind: durable.EntryOnce, Key: name}}}, nil); err != nil {
			return nil, err
		}
		j.mu.Lock()
		j.begun[name] = true
		j.mu.Unlock()
	}
	data, err := do(ctx, string(j.run)+"/once/"+name)
	if err != nil {
		return nil, err
	}
	if err := j.commit(ctx, durable.Commit{Entries: []durable.Entry{{Kind: durable.EntryDone, Key: name, Data: data}}}, nil); err != nil {
		return nil, err
	}
	j.mu.Lock()
	j.done[name] = data
	j.mu.Unlock()
	return data, nil
}

// firingPrefix begins the names of records that say what a firing is about. Making them does nothing outside of the
// process, so that only their ends are recorded.
const firingPrefix = "firing "

func isQuick(name string) bool {
	return len(name) > len(firingPrefix) && name[:len(firingPrefix)] == firingPrefix
}

// takeTurn waits until no other caller uses a name, and returns what ends the turn.
func (j *journal) takeTurn(name string) (over func()) {
	j.mu.Lock()
	turn := j.turns[name]
	if turn == nil {
		turn = &sync.Mutex{}
		j.turns[name] = turn
	}
	j.mu.Unlock()
	turn.Lock()
	return turn.Unlock
}

// forget drops the records of firings that will not be repeated.
func (j *journal) forget() {
	j.mu.Lock()
	defer j.mu.Unlock()
	clear(j.done)
	clear(j.begun)
	clear(j.turns)
}
