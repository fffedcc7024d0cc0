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

// Live is a policy that follows its files: who runs agents for long need not restart for
// a rule. A version that is wrong is told of and changes nothing: the last good one stays
// in force. A run is judged by one version from its begin to its end:
//
//	load := func() (*policy.Policy, error) { return policy.LoadFiles("workspace.yaml") }
//	live, err := policy.Follow(ctx, load, policy.LiveOptions{})
//	// …
//	final, err := a.RunWith(ctx, agent.RunSettings{Hooks: live.Hooks()}, s, input).Get()
//
// The agent itself must not have the policy, too: the names of the hooks are the same. It
// is safe for concurrent use. Make it with Follow.
type Live struct {
	load    func() (*Policy, error)
	o       LiveOptions
	now     atomic.Pointer[version]
	mu      sync.Mutex // held while it is loaded again
	refused string     // what the last version that was wrong was told with
	stop    context.CancelFunc
	done    chan struct{}
}

// version is a policy with its hooks and what its files looked like.
type version struct {
	policy *Policy
	hooks  hooks.Set
	also   map[string]seen
}

// seen is what a file looked like; the zero seen is of one that is not there.
type seen struct {
	size int64
	time time.Time
}

// LiveOptions says how a policy is followed. The zero value is the default.
type LiveOptions struct {
	// Every is how long to wait between two looks at the files; zero means a second,
	// negative never: Reload looks.
	Every time.Duration
	// Observer is told of each new version, and of each that was wrong: a Reloaded.
	Observer agent.Observer
	// Also are files to look at besides those in force: such as ones that are not there
	// yet.
	Also []string
}

// Reloaded tells an observer that the files of a policy have changed.
type Reloaded struct {
	// From and To are the hashes of the versions; equal where the new one is wrong.
	From, To string
	// Policies are the names of those in force, and Rules how many rules they have.
	Policies []string
	Rules    int
	// Err says what is wrong with the new version, which is not in force; nil when it is.
	Err error
}

// EventName returns "policy.reloaded", or "policy.refused" for a version that is wrong.
func (r Reloaded) EventName() string {
	return lo.Ternary(r.Err == nil, "policy.reloaded", "policy.refused")
}

// Follow loads a policy and follows its files until Close, or until ctx is done. The
// error is that of the first load: there must be a good version to begin with.
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
				_ = l.Reload(ctx) // the observer is told
			}
		}
	}
}

// read loads the files. They are looked at before they are read, so that a change on the
// way is found the next time.
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
	if err := set.Compile().Error(); err != nil {
		return nil, fmt.Errorf("policy %s: %w", p, err)
	}
	return &version{policy: p, hooks: set, also: also}, nil
}

// statFiles returns what files look like.
func statFiles(files []string) map[string]seen {
	return lo.SliceToMap(files, func(path string) (string, seen) { return path, lookAt(path) })
}

func lookAt(path string) seen {
	info, err := os.Stat(path)
	if err != nil {
		return seen{}
	}
	return seen{info.Size(), info.ModTime()}
}

// changed reports whether a file does not look as it did.
func (l *Live) changed() bool {
	v := l.now.Load()
	for _, files := range []map[string]seen{v.policy.seen, v.also} {
		for path, before := range files {
			if now := lookAt(path); now.size != before.size || !now.time.Equal(before.time) {
				return true
			}
		}
	}
	return false
}

// Reload loads the files now, and puts them in force where nothing is wrong with them.
// The error says what is; it is told once for the same mistakes.
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

// Hooks returns the hooks of the version in force now, for agent.RunSettings.
func (l *Live) Hooks() hooks.Set { return l.now.Load().hooks }

// Close stops following, and returns when that has ended. What is in force stays so.
func (l *Live) Close() error {
	if l == nil || l.stop == nil {
		return errors.New("closing a policy: it was not made with Follow")
	}
	l.stop()
	<-l.done
	return nil
}
