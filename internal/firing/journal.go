// Package firing provides what an engine needs to fire the points around its runs through a hooks.RunScope: a journal
// of hook actions, and the place where gates wait. Packages pipeline and coordinator use it.
package firing

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
)

// Journal writes a run's journal, one commit after the other, and records hook actions. It is safe for concurrent
// use.
type Journal struct {
	x   *durable.Execution
	run agent.RunID

	writing sync.Mutex
	seq     int64 // the last entry

	mu    sync.Mutex
	names map[string]*recorded // names that are in use or may be used again
}

// recorded holds the journal's entry for a name.
type recorded struct {
	turn  sync.Mutex // held while the name is used; guards the fields above entry
	begun bool
	done  bool
	data  []byte // the result, if done
	entry int64  // the number of the last entry with the name, or zero; guarded by the journal's mutex
}

var _ hooks.Journal = (*Journal)(nil)

// NewJournal returns a run's journal that contains entries. Seq is the number of the last entry. Again, unless nil,
// reports whether to ignore an entry's result, so that the action runs again.
func NewJournal(x *durable.Execution, run agent.RunID, seq int64, entries []durable.Entry, again func(e durable.Entry) bool) *Journal {
	j := &Journal{x: x, run: run, seq: seq, names: map[string]*recorded{}}
	for _, e := range entries {
		switch {
		case e.Kind == durable.EntryOnce:
			r := j.find(e.Key)
			r.begun, r.entry = true, e.Seq
		case e.Kind == durable.EntryDone && (again == nil || !again(e)):
			r := j.find(e.Key)
			r.done, r.data, r.entry = true, e.Data, e.Seq
		}
	}
	return j
}

// find returns the record of a name, or a new one.
func (j *Journal) find(name string) *recorded {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.names[name]
	if r == nil {
		r = &recorded{}
		j.names[name] = r
	}
	return r
}

// Commit writes to the run. Prepare, unless nil, may change the commit once the number of its first entry is known.
func (j *Journal) Commit(ctx context.Context, c durable.Commit, prepare func(first int64, c *durable.Commit)) error {
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

// Once calls do at most once per run: see hooks.Journal.
func (j *Journal) Once(
	ctx context.Context, _ agent.State, name string, repeat bool, do func(ctx context.Context, key string) ([]byte, error),
) ([]byte, error) {
	r := j.find(name)
	r.turn.Lock()
	defer r.turn.Unlock()
	switch {
	case r.done:
		return r.data, nil
	case r.begun && !repeat:
		return nil, fmt.Errorf("doing %q in run %s: %w", name, j.run, durable.ErrInDoubt)
	}
	if !isQuick(name) {
		if err := j.record(ctx, r, durable.Entry{Kind: durable.EntryOnce, Key: name}); err != nil {
			return nil, err
		}
		r.begun = true
	}
	data, err := do(ctx, string(j.run)+"/once/"+name)
	if err != nil {
		return nil, err
	}
	if err := j.record(ctx, r, durable.Entry{Kind: durable.EntryDone, Key: name, Data: data}); err != nil {
		return nil, err
	}
	r.done, r.data = true, data
	return data, nil
}

// record writes an entry for a name.
func (j *Journal) record(ctx context.Context, r *recorded, e durable.Entry) error {
	var seq int64
	if err := j.Commit(ctx, durable.Commit{Entries: []durable.Entry{e}}, func(first int64, _ *durable.Commit) { seq = first }); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	r.entry = seq
	return nil
}

// firingPrefix begins the names of records that describe a firing. Making these records has no effect outside of the
// process, so only their ends are recorded.
const firingPrefix = "firing "

func isQuick(name string) bool {
	return len(name) > len(firingPrefix) && name[:len(firingPrefix)] == firingPrefix
}

// Forget drops the names with records up to an entry. They belong to firings that will not be repeated.
func (j *Journal) Forget(upTo int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	maps.DeleteFunc(j.names, func(_ string, r *recorded) bool { return r.entry != 0 && r.entry <= upTo })
}
