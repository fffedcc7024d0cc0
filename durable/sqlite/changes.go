package sqlite

import (
	"context"
	"sync"
	"time"
)

const (
	// lookAgain is how often the store looks for commits of other processes while a caller listens.
	lookAgain = 200 * time.Millisecond
	// linger is how long the store still looks after the last caller, so that the next one finds it doing so.
	linger = 10 * time.Second
)

// listeners are the channels that Changes has returned.
type listeners struct {
	mu       sync.Mutex
	channels map[chan struct{}]bool
	watching bool          // a goroutine watches for commits of other processes
	closed   chan struct{} // made with the first channel
	watches  sync.WaitGroup
}

// Changes implements durable.Store.
func (s *Store) Changes(ctx context.Context) <-chan struct{} {
	c := make(chan struct{}, 1)
	s.open.RLock()
	defer s.open.RUnlock()
	if s.closed {
		close(c)
		return c
	}
	s.listeners.add(c, s.watchOthers)
	context.AfterFunc(ctx, func() { s.listeners.remove(c) })
	return c
}

// watchOthers returns a function that sends to all listeners after commits of other processes, until the store is
// closed or has no listeners any more. Commits from now on count.
func (s *Store) watchOthers() (watch func()) {
	last, known := s.dataVersion()
	return func() {
		ticker := time.NewTicker(lookAgain)
		defer ticker.Stop()
		for used := time.Now(); s.listeners.keepWatching(&used); {
			select {
			case <-s.listeners.closed:
				continue
			case <-ticker.C:
			}
			version, ok := s.dataVersion()
			if ok && (!known || version != last) {
				s.listeners.broadcast()
			}
			if known = ok; ok {
				last = version
			}
		}
	}
}

// dataVersion returns a number that changes with commits of other processes. It asks the writer, because other
// connections see commits of the writer as those of another process.
func (s *Store) dataVersion() (version int64, ok bool) {
	err := s.writer.QueryRowContext(context.Background(), "PRAGMA data_version").Scan(&version)
	return version, err == nil
}

// add adds a channel, and starts the goroutine that watches unless it runs.
func (l *listeners) add(c chan struct{}, start func() (watch func())) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.channels == nil {
		l.channels, l.closed = map[chan struct{}]bool{}, make(chan struct{})
	}
	l.channels[c] = true
	if !l.watching {
		l.watching = true
		l.watches.Go(start())
	}
}

// remove closes a channel.
func (l *listeners) remove(c chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.channels[c] {
		delete(l.channels, c)
		close(c)
	}
}

// keepWatching reports whether the goroutine that watches must go on; used is when it last had a listener.
func (l *listeners) keepWatching(used *time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.channels) > 0 {
		*used = time.Now()
	}
	select {
	case <-l.closed:
		l.watching = false
	default:
		l.watching = time.Since(*used) < linger
	}
	return l.watching
}

// broadcast sends a value to each channel that holds none.
func (l *listeners) broadcast() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.channels {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// closeAll closes all channels and waits for the goroutine.
func (l *listeners) closeAll() {
	l.mu.Lock()
	for c := range l.channels {
		delete(l.channels, c)
		close(c)
	}
	if l.closed != nil {
		close(l.closed)
	}
	l.mu.Unlock()
	l.watches.Wait()
}
