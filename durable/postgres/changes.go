package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Changes implements store.DB. The first call opens a connection of its own, beside the pool, which listens for all channels of the
// store until Close; the call returns when it listens, or has failed to. A lost connection is opened again, and every channel then
// receives a value.
func (d *db) Changes(ctx context.Context) <-chan struct{} { return d.changes.add(ctx) }

// changes passes the notifications of one schema on to channels.
type changes struct {
	config *pgx.ConnConfig
	schema string

	mu        sync.Mutex
	channels  map[chan struct{}]bool
	closed    bool
	stop      context.CancelFunc // of the listener; nil before it has started
	listening chan struct{}      // closed when the listener has connected once, or failed to
	done      chan struct{}      // closed when the listener has returned
}

func newChanges(config *pgx.ConnConfig, schema string) *changes {
	return &changes{config: config.Copy(), schema: schema, channels: map[chan struct{}]bool{}}
}

// add returns a new channel, which is closed when ctx is done or by closeAll.
func (c *changes) add(ctx context.Context) <-chan struct{} {
	channel := make(chan struct{}, 1)
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		close(channel)
		return channel
	}
	c.channels[channel] = true
	if c.stop == nil {
		listen, stop := context.WithCancel(context.Background())
		c.stop, c.listening, c.done = stop, make(chan struct{}), make(chan struct{})
		go c.keepListening(listen)
	}
	c.mu.Unlock()
	context.AfterFunc(ctx, func() { c.remove(channel) })
	select {
	case <-c.listening:
	case <-ctx.Done():
	}
	return channel
}

func (c *changes) remove(channel chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.channels[channel] {
		delete(c.channels, channel)
		close(channel)
	}
}

// send sends a value to each channel that has none.
func (c *changes) send() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for channel := range c.channels {
		select {
		case channel <- struct{}{}:
		default:
		}
	}
}

// closeAll closes all channels and waits until the listener has returned.
func (c *changes) closeAll() {
	c.mu.Lock()
	c.closed = true
	for channel := range c.channels {
		delete(c.channels, channel)
		close(channel)
	}
	stop := c.stop
	c.mu.Unlock()
	if stop != nil {
		stop()
		<-c.done
	}
}

const (
	// reconnectAfter is how long the listener waits after its first failed attempt to connect, and maxReconnect how long at most.
	reconnectAfter = 50 * time.Millisecond
	maxReconnect   = 2 * time.Second
	// pingEvery is how often a silent connection is tested.
	pingEvery = 30 * time.Second
)

// keepListening listens until ctx is done, on one connection after another.
func (c *changes) keepListening(ctx context.Context) {
	defer close(c.done)
	attempt := sync.OnceFunc(func() { close(c.listening) })
	defer attempt()
	missed, wait := false, reconnectAfter
	for ctx.Err() == nil {
		_ = c.listen(ctx, func() {
			attempt()
			wait = reconnectAfter
			if missed {
				c.send()
			}
		})
		attempt()
		missed = true
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, maxReconnect)
	}
}

// listen passes notifications on until the connection is lost. It calls connected when it listens.
func (c *changes) listen(ctx context.Context, connected func()) error {
	conn, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{c.schema}.Sanitize()); err != nil {
		return err
	}
	connected()
	for {
		waiting, cancel := context.WithTimeout(ctx, pingEvery)
		_, err := conn.WaitForNotification(waiting)
		silent := waiting.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case err == nil:
			c.send()
		case !silent || c.ping(ctx, conn) != nil:
			return err
		}
	}
}

// connect opens a connection.
func (c *changes) connect(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return pgx.ConnectConfig(ctx, c.config)
}

// ping tests a connection.
func (c *changes) ping(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return conn.Ping(ctx)
}
