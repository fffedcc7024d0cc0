package durable

import (
	"context"
	"reflect"
	"sync"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// A feed reads the events of a run for all its watchers in this process. Its goroutine never waits for a watcher, and ends
// with the run, with an error, or with the last watcher.
type feed struct {
	key      feedKey
	shared   bool // it is in feeds
	watchers int  // guarded by feeds
	stop     context.CancelFunc
	over     chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when one of the following changes
	last    int64         // the number of the newest event that the run had
	events  []Event       // the newest of them, without gaps
	size    int           // of their data, in bytes
	done    bool          // nothing more is read
	err     error         // why, unless the run has ended
}

// feedKey identifies a feed.
type feedKey struct {
	store Lister
	run   agent.RunID
}

// feeds are the feeds that have watchers. They are global because the watchers of a run have only its store in common.
var feeds = struct {
	sync.Mutex

	all map[feedKey]*feed
}{all: map[feedKey]*feed{}}

const (
	// feedEvents and feedBytes limit the events that a feed keeps for watchers that are a little slower than the run.
	feedEvents = 2 * watchPage
	feedBytes  = 1 << 20
)

// joinFeed returns the feed of a run, and starts it for the first watcher. The caller must leave it.
func joinFeed(ctx context.Context, store Lister, id agent.RunID) *feed {
	key, shared := feedKey{store, id}, reflect.ValueOf(store).Comparable()
	feeds.Lock()
	defer feeds.Unlock()
	if shared {
		if f := feeds.all[key]; f != nil {
			f.watchers++
			return f
		}
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	f := &feed{key: key, shared: shared, watchers: 1, stop: stop, over: make(chan struct{}), changed: make(chan struct{})}
	if shared {
		feeds.all[key] = f
	}
	go f.read(ctx)
	return f
}

// leave removes a watcher. The last one waits until the goroutine has ended.
func (f *feed) leave() {
	feeds.Lock()
	f.watchers--
	last := f.watchers == 0
	if last {
		f.forget()
	}
	feeds.Unlock()
	if last {
		f.stop()
		<-f.over
	}
}

// forget makes the next watcher start another feed. The caller has locked feeds.
func (f *feed) forget() {
	if f.shared && feeds.all[f.key] == f {
		delete(feeds.all, f.key)
	}
}

// read reads new events until the run has ended, and its last events with it.
func (f *feed) read(ctx context.Context) {
	defer close(f.over)
	every := time.NewTicker(watchInterval)
	defer every.Stop()
	for first := true; ; first = false {
		run, err := f.key.store.Run(ctx, f.key.run) // before its events: those of a run that has ended are complete
		if err == nil && first {
			f.publish(nil, run.Events) // each watcher reads those that it has not seen
		}
		for err == nil && f.last < run.Events {
			var page []Event
			page, err = f.key.store.Events(ctx, f.key.run, f.last, watchPage)
			if err == nil && len(page) == 0 {
				break // they were deleted
			}
			f.publish(page, f.last+int64(len(page)))
		}
		if err != nil || run.Status.Ended() {
			f.finish(err)
			return
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			f.finish(context.Cause(ctx))
			return
		}
	}
}

// publish adds events, the last of which has the given number.
func (f *feed) publish(events []Event, last int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = last
	f.events = append(f.events, events...)
	for _, e := range events {
		f.size += len(e.Data)
	}
	for len(f.events) > feedEvents || f.size > feedBytes {
		f.size -= len(f.events[0].Data)
		f.events = f.events[1:]
	}
	f.wakeWatchers()
}

// finish says that nothing more is read.
func (f *feed) finish(err error) {
	feeds.Lock()
	f.forget()
	feeds.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done, f.err = true, err
	f.wakeWatchers()
}

// wakeWatchers wakes the watchers. The caller has locked the feed.
func (f *feed) wakeWatchers() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// feedView is what a watcher sees of a feed.
type feedView struct {
	events  []Event // that the watcher has not seen
	behind  bool    // the feed has dropped events that the watcher has not seen
	done    bool
	err     error
	changed <-chan struct{} // closed when there is more
}

// look returns what follows the event with the given number.
func (f *feed) look(after int64) feedView {
	f.mu.Lock()
	defer f.mu.Unlock()
	dropped := f.last - int64(len(f.events))
	v := feedView{behind: after < dropped, done: f.done, err: f.err, changed: f.changed}
	if after >= dropped && after < f.last {
		v.events = f.events[after-dropped:]
	}
	return v
}
