package sqlite

import (
	"context"
	"time"
)

// lookAgain is how often the store looks for commits of other processes.
const lookAgain = 200 * time.Millisecond

// Changes implements store.DB.
func (d *db) Changes(ctx context.Context) <-chan struct{} { return d.listeners.Add(ctx) }

// watch broadcasts commits of other processes. The first time it broadcasts for those since the first call of Changes.
func (d *db) watch(ctx context.Context) {
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	for last := int64(-1); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if version := d.dataVersion(); version != last {
			last = version
			d.listeners.Broadcast()
		}
	}
}

// dataVersion returns a number that changes with commits of other processes; zero if it is not known. It asks the writer, because other
// connections see commits of the writer as those of another process.
func (d *db) dataVersion() (version int64) {
	d.queue.RunAlone(func() { _ = d.conn.QueryRowContext(context.Background(), "PRAGMA data_version").Scan(&version) })
	return version
}
