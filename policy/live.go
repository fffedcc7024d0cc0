package policy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
)

// Live is a policy that follows its files, so that a long-running program need not restart for a changed rule. An
// invalid version is reported and changes nothing: the last valid one stays in force. A run is judged by one version
// from its beginning to its end:
//
//	load := func() (*policy.Policy, error) { return policy.LoadFiles("workspace.yaml") }
//	live, err := policy.Follow(ctx, load, policy.LiveOptions{})
//	// …
//	final, err := a.RunWith(ctx, agent.RunSettings{Hooks: live.Hooks()}, s, input).Get()
//
// The agent itself must not have the policy as well, because the names of the hooks are the same. Live is safe for
// concurrent use. Make it with Follow.
type Live struct {
	load    func() (*Policy, error)
	o       LiveOptions
	now     atomic.Pointer[version]
	mu      sync.Mutex // held while reloading
	refused string     // the last reported error
	stop    context.CancelFunc
	done    chan struct{}
}

// version is a policy with its hooks and the state of its files.
type version struct {
	policy *Policy
	hooks  hooks.Set
	also   map[string]fileState
}

// fileState is the state of a file; the zero value means that the file does not exist.
type fileState struct {
	size int64
	time time.Time
}

// LiveOptions configure Follow. The zero value is ready for use.
type LiveOptions struct {
	// Every is the time between two checks of the files. Zero means a second; with a negative value only Reload checks
	// them.
	Every time.Duration
	// Observer receives a Reloaded for each new version, valid or not.
	Observer agent.Observer
	// Also lists more files to watch, such as files that do not exist yet.
	Also []string
}

// Reloaded is the event of a change in the files of a policy.
type Reloaded struct {
	// From and To are the hashes of the versions; equal if the new version is invalid.
	From, To string
	// Policies are the names of the policies in force, and Rules the number of their rules.
	Policies []string
	Rules    int
	// Err is the error of an invalid version, which is not in force; nil for a valid one.
	Err error
}

// EventName returns "policy.reloaded", or "policy.refused" for an invalid version.
func (r Reloaded) EventName() string {
	return lo.Ternary(r.Err == nil, "policy.reloaded", "policy.refused")
}

// Follow loads a policy and follows its files until Close, or until ctx ends. It returns an error if the first version
// is invalid.
func Follow(ctx context.Context, load func() (*Policy, error), o LiveOptions) (*Live, error) {
	if o.Every == 0 {
		o.Every = time.Second
	}
	l := &Live{load: load, o: o, done: make(chan struct{})}
	first, err := l.read()
	if err != nil {
		return nil, err
	}
	l.now.Store(first)
	ctx, l.stop = context.WithCancel(ctx)
	if o.Every < 0 {
		close(l.done)
		return l, nil
	}
	go l.watch(ctx)
	return l, nil
}

func (l *Live) watch(ctx context.Context) {
	defer close(l.done)
	tick := time.NewTicker(l.o.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if l.changed() {
				_ = l.Reload(ctx) // the observer receives the error
			}
		}
	}
}

// read loads the files. It records their state before reading them, so that a change in between is found by the next
// check.
func (l *Live) read() (*version, error) {
	also := statFiles(l.o.Also)
	p, err := l.load()
	if err != nil {
		return nil, err
	}
	list, err := p.Hooks()
	if err != nil {
		return nil, err
	}
	set := hooks.NewSet(list...)
	if _, err := set.Compile(); err != nil {
		return nil, fmt.Errorf("policy %s: %w", p, err)
	}
	return &version{policy: p, hooks: set, also: also}, nil
}

// statFiles returns the states of files.
func statFiles(files []string) map[string]fileState {
	return lo.SliceToMap(files, func(path string) (string, fileState) { return path, stateOf(path) })
}

func stateOf(path string) fileState {
	info, err := os.Stat(path)
	if err != nil {
		return fileState{}
	}
	return fileState{info.Size(), info.ModTime()}
}

// changed reports whether the state of a file has changed.
func (l *Live) changed() bool {
	v := l.now.Load()
	for _, files := range []map[string]fileState{v.policy.states, v.also} {
		for path, before := range files {
			if now := stateOf(path); now.size != before.size || !now.time.Equal(before.time) {
				return true
			}
		}
	}
	return false
}

// Reload loads the files now and puts them in force if they are valid. Otherwise it returns the error; the observer
// receives the same error only once.
func (l *Live) Reload(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.now.Load()
	after, err := l.read()
	told := Reloaded{From: before.policy.hash, To: before.policy.hash, Policies: before.policy.Names(), Rules: len(before.policy.rules), Err: err}
	switch {
	case err != nil && err.Error() == l.refused:
		return err
	case err != nil:
		l.refused = err.Error()
	default:
		l.refused = ""
		l.now.Store(after)
		if after.policy.hash == before.policy.hash {
			return nil
		}
		told.To, told.Policies, told.Rules = after.policy.hash, after.policy.Names(), len(after.policy.rules)
	}
	if l.o.Observer != nil {
		l.o.Observer.Observe(ctx, told)
	}
	return err
}

// Policy returns the version in force now.
func (l *Live) Policy() *Policy { return l.now.Load().policy }

// Hooks returns the current version's hooks, for agent.RunSettings.
func (l *Live) Hooks() hooks.Set { return l.now.Load().hooks }

// Close stops following and waits until that has ended. The version in force stays.
func (l *Live) Close() error {
	if l == nil || l.stop == nil {
		return errors.New("closing a policy: the Live was not created with Follow")
	}
	l.stop()
	<-l.done
	return nil
}
