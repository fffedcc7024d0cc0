package sqlite

import (
	"time"

	"github.com/grapnel-go/grapnel/durable"
)

// Options configure a store. The zero Options are the defaults.
type Options struct {
	// Sync selects the durability of writes.
	Sync Sync
	// Wait is the maximum time that a call waits for other writing processes. Zero means ten seconds.
	Wait time.Duration
	// Encryption, unless nil, has the keys with which the store encrypts data.
	Encryption *durable.Encryption
	// Now is the clock, for tests. Nil means time.Now.
	Now func() time.Time
}

// Sync is the durability of a write.
type Sync uint8

// The levels of durability.
const (
	// SyncFull waits until each write is on the disk: it survives a loss of power.
	SyncFull Sync = iota
	// SyncNormal lets the operating system decide when to write to the disk. A write survives the end of the process and
	// is much faster, but a loss of power may undo the latest writes. A run then continues from an earlier point of its
	// journal and repeats its work from there.
	SyncNormal
)

func (s Sync) pragma() string {
	if s == SyncNormal {
		return "NORMAL"
	}
	return "FULL"
}
