package store

import (
	"context"
	"sync"
)

// Listeners are the channels that DB.Changes has returned. The zero Listeners have none.
type Listeners struct {
	// Watch, unless nil, broadcasts what other processes change. It runs from the first Add until Close, which ends its context.
	Watch func(ctx context.Context)

	mu       sync.Mutex
	channels map[chan struct{}]bool
	closed   bool
	stop     context.CancelFunc // nil before the first Add
	watching sync.WaitGroup
}

// Add returns a channel that Broadcast sends to. It is closed when ctx is done or by Close.
func (l *Listeners) Add(ctx context.Context) <-chan struct{} {
	c := make(chan struct{}, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		close(c)
		return c
	}
	if l.channels == nil {
		l.channels = map[chan struct{}]bool{}
	}
	if l.stop == nil && l.Watch != nil {
		var watched context.Context
		watched, l.stop = context.WithCancel(context.WithoutCancel(ctx))
		l.watching.Go(func() { l.Watch(watched) })
	}
	l.channels[c] = true
	context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.remove(c)
	})
	return c
}

func (l *Listeners) remove(c chan struct{}) {
	if l.channels[c] {
		delete(l.channels, c)
		close(c)
	}
}

// Broadcast sends a value to each channel that holds none.
func (l *Listeners) Broadcast() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.channels {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// Close closes all channels, and those that Add returns later. It waits for Watch to return.
func (l *Listeners) Close() {
	l.mu.Lock()
	l.closed = true
	for c := range l.channels {
		l.remove(c)
	}
	if l.stop != nil {
		l.stop()
	}
	l.mu.Unlock()
	l.watching.Wait()
}
