package store

import (
	"context"
	"sync"
)

// Listeners are the channels that DB.Changes has returned. The zero Listeners have none.
type Listeners struct {
	mu       sync.Mutex
	channels map[chan struct{}]bool
	closed   bool
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

// Any reports whether there is a channel.
func (l *Listeners) Any() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.channels) > 0
}

// Close closes all channels, and those that Add returns later.
func (l *Listeners) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for c := range l.channels {
		l.remove(c)
	}
}
