package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// Changes implements store.DB. The first call opens a connection of its own, beside the pool, which listens for all channels of the
// store until Close; the call returns when it listens, or has failed to. A lost connection is opened again, and every channel then
// receives a value.
func (d *db) Changes(ctx context.Context) <-chan struct{} {
	channel := d.changes.Add(ctx)
	select {
	case <-d.changes.listening:
	case <-ctx.Done():
	}
	return channel
}

// changes passes the notifications of one schema on to listeners.
type changes struct {
	store.Listeners

	config    *pgx.ConnConfig
	schema    string
	listening chan struct{} // tried closes it, when the goroutine has connected once, failed to, or is not needed any more
	tried     func()
}

func newChanges(config *pgx.ConnConfig, schema string) *changes {
	c := &changes{config: config.Copy(), schema: schema, listening: make(chan struct{})}
	c.tried, c.Watch = sync.OnceFunc(func() { close(c.listening) }), c.keepListening
	return c
}

// Close closes all channels and waits until the goroutine has returned.
func (c *changes) Close() {
	c.Listeners.Close()
	c.tried()
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
	missed, wait := false, reconnectAfter
	for ctx.Err() == nil {
		_ = c.listen(ctx, func() {
			c.tried()
			wait = reconnectAfter
			if missed {
				c.Broadcast()
			}
		})
		c.tried()
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
			c.Broadcast()
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
