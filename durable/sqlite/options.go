package sqlite

import "time"

// Options say how a store is opened. The zero Options are good.
type Options struct {
	// Sync says what a write survives.
	Sync Sync
	// Wait is how long a call waits for other processes that write. Zero means ten
	// seconds.
	Wait time.Duration
	// Now is the clock, for tests. Nil means time.Now.
	Now func() time.Time
}

// Sync says what a write survives.
type Sync uint8

// What a write may survive.
const (
	// SyncFull waits at each write until it is on the disk: it survives a loss of power.
	SyncFull Sync = iota
	// SyncNormal leaves that to the operating system. A write survives the end of the
	// process, and is much quicker; a loss of power may undo the last ones. A run then
	// goes on from an earlier point of its journal and does again what it had done.
	SyncNormal
)

func (s Sync) pragma() string {
	if s == SyncNormal {
		return "NORMAL"
	}
	return "FULL"
}
