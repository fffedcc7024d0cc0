package sqlite_test

import (
	"bytes"
	"testing"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/durabletest"
	"github.com/grapnel-go/grapnel/durable/sqlite"
)

func TestShared(t *testing.T) {
	durabletest.TestShared(t, func(t *testing.T) func(*testing.T) durable.Store {
		t.Helper()
		path := tempFile(t)
		return func(t *testing.T) durable.Store {
			t.Helper()
			return open(t, path, sqlite.Options{})
		}
	})
}

func TestRandom(t *testing.T) {
	durabletest.TestRandom(t, func(t *testing.T) durable.Store {
		t.Helper()
		return open(t, tempFile(t), sqlite.Options{Sync: sqlite.SyncNormal})
	})
}

var encrypted = sqlite.Options{Sync: sqlite.SyncNormal, Encryption: &durable.Encryption{Key: bytes.Repeat([]byte{1}, 32)}}

func TestEncryptedIsAStore(t *testing.T) {
	t.Parallel()
	durabletest.TestStore(t, func(t *testing.T) durable.Store {
		t.Helper()
		return open(t, tempFile(t), encrypted)
	})
}

func TestEncryptedShared(t *testing.T) {
	durabletest.TestShared(t, func(t *testing.T) func(*testing.T) durable.Store {
		t.Helper()
		path := tempFile(t)
		return func(t *testing.T) durable.Store {
			t.Helper()
			return open(t, path, encrypted)
		}
	})
}
