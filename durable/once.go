package durable

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
)

// ErrInDoubt is returned when it is unknown whether a func of Keeper.Once has run.
var ErrInDoubt = errors.New("it started before the run was interrupted, and it is unknown whether it finished")

// errClosed is returned when the journal of a run is closed: the run has ended or waits.
var errClosed = errors.New("the run has ended")

// Once runs do once per run, even across processes: it records the result of do, and returns that
// result when the resumed run calls it again. Name is unique within the run; do gets an
// idempotency key. If the process ended during do, so that the outcome is unknown, Once runs do
// again with the same key, or returns ErrInDoubt if repeat is false. Errors of do are not
// recorded. A concurrent caller with the same name waits for the first.
//
// In a run that is not recorded, Once only calls do; likewise in a run that has ended or waits by
// the time do returns.
func (k *Keeper) Once(ctx context.Context, s agent.State, name string, repeat bool, do func(ctx context.Context, key string) ([]byte, error)) ([]byte, error) {
	key := string(s.Run().ID) + "/once/" + name
	r := k.runs.Get(s)
	if r.keeper == nil {
		return do(ctx, key)
	}
	if r.isNested() {
		name = string(s.Run().ID) + "/" + name
	}
	defer r.once.lock(name)()
	data, done, err := r.once.start(ctx, name, repeat)
	switch {
	case errors.Is(err, errClosed):
		return do(ctx, key)
	case err == nil && !done:
		if data, err = do(ctx, key); err == nil {
			return data, r.once.finish(ctx, name, data)
		}
	case errors.Is(err, ErrInDoubt):
		err = fmt.Errorf("doing %q in run %s: %w", name, s.Run().ID, err)
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}

// onceResults has the funcs of Keeper.Once that a run's journal knows, by name.
type onceResults struct {
	journal *journalBuffer
	begun   map[string]bool // by an earlier execution of the run, without a result

	mu      sync.Mutex
	results map[string][]byte
	locks   map[string]*sync.Mutex // held while a func of that name runs
}

// lock waits until no func of this name runs, and keeps others waiting until the caller calls unlock.
func (o *onceResults) lock(name string) (unlock func()) {
	o.mu.Lock()
	if o.locks == nil {
		o.locks = map[string]*sync.Mutex{}
	}
	named := o.locks[name]
	if named == nil {
		named = new(sync.Mutex)
		o.locks[name] = named
	}
	o.mu.Unlock()
	named.Lock()
	return named.Unlock
}

// start returns the result of an earlier call, or records that a func begins. It returns ErrInDoubt for a func that has begun before
// and must not be repeated.
func (o *onceResults) start(ctx context.Context, name string, repeat bool) (data []byte, done bool, err error) {
	o.mu.Lock()
	data, done = o.results[name]
	o.mu.Unlock()
	switch {
	case done:
		return data, true, nil
	case o.begun[name] && !repeat:
		return nil, false, ErrInDoubt
	}
	e := Entry{Kind: EntryOnce, Key: name}
	if err = o.journal.stageEntry(&e); err == nil {
		err = o.journal.commitThrough(ctx, e.Seq)
	}
	return nil, false, err
}

// finish records a func's result. After the end of the run it records nothing: a process that resumes the run repeats the func.
func (o *onceResults) finish(ctx context.Context, name string, data []byte) error {
	e := Entry{Kind: EntryDone, Key: name, Data: data}
	if err := o.journal.stageEntry(&e); err != nil {
		return lo.Ternary(errors.Is(err, errClosed), nil, err)
	}
	o.mu.Lock()
	if o.results == nil {
		o.results = map[string][]byte{}
	}
	o.results[name] = data
	o.mu.Unlock()
	return o.journal.commitThrough(ctx, e.Seq)
}
