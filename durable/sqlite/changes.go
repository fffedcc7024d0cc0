package sqlite

import (
	"context"
	"sync"
	"time"

	"github.com/grapnel-go/grapnel/durable/internal/store"
)

const (
	// lookAgain is how often the store looks for commits of other processes while a caller listens.
	lookAgain = 200 * time.Millisecond
	// linger is how long the store still looks after the last caller, so that the next one finds it doing so.
	linger = 10 * time.Second
)

// watcher looks for commits of other processes while there are listeners.
type watcher struct {
	store.Listeners

	mu      sync.Mutex
	stop    context.CancelFunc // nil while no goroutine looks
	watches sync.WaitGroup
}

// Changes implements store.DB. Commits of other processes count from now on.
func (d *db) Changes(ctx context.Context) <-chan struct{} {
	d.open.RLock()
	defer d.open.RUnlock()
	c := d.watcher.Add(ctx)
	w := &d.watcher
	w.mu.Lock()
	defer w.mu.Unlock()
	if !d.closed && w.stop == nil {
		var watched context.Context
		watched, w.stop = context.WithCancel(context.WithoutCancel(ctx))
		last, known := d.dataVersion()
		w.watches.Go(func() { d.watch(watched, last, known) })
	}
	return c
}

// watch broadcasts commits of other processes until the store is closed or has had no listeners for a while.
func (d *db) watch(ctx context.Context, last int64, known bool) {
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	for used := time.Now(); d.watcher.mayWatch(ctx, &used); {
		select {
		case <-ctx.Done():
			continue
		case <-ticker.C:
		}
		version, ok := d.dataVersion()
		if ok && (!known || version != last) {
			d.watcher.Broadcast()
		}
		if known = ok; ok {
			last = version
		}
	}
}

// mayWatch reports whether the goroutine must go on; used is when it last had a listener.
func (w *watcher) mayWatch(ctx context.Context, used *time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Any() {
		*used = time.Now()
	}
	if ctx.Err() != nil || time.Since(*used) >= linger {
		w.stop()
		w.stop = nil
		return false
	}
	return true
}

// end closes all channels and waits for the goroutine.
func (w *watcher) end() {
	w.Close()
	w.mu.Lock()
	if w.stop != nil {
		w.stop()
	}
	w.mu.Unlock()
	w.watches.Wait()
}

// dataVersion returns a number that changes with commits of other processes. It asks the writer, because other
// connections see commits of the writer as those of another process.
func (d *db) dataVersion() (version int64, ok bool) {
	d.writing.Lock()
	defer d.writing.Unlock()
	err := d.conn.QueryRowContext(context.Background(), "PRAGMA data_version").Scan(&version)
	return version, err == nil
}
