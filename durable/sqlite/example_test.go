package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/sqlite"
)

func Example() {
	dir, err := os.MkdirTemp("", "grapnel")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ctx, path := context.Background(), filepath.Join(dir, "runs.db")

	// One process writes, and is gone.
	store, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		panic(err)
	}
	lease, err := store.Begin(ctx, durable.Job{ID: "r1", Name: "helper"}, "process 1", time.Minute)
	if err != nil {
		panic(err)
	}
	if err := commit(ctx, store, lease, durable.Update{Status: durable.StatusRunning, Steps: 1},
		durable.Entry{Seq: 1, Kind: "reply", At: time.Now(), Data: []byte("hello")}); err != nil {
		panic(err)
	}
	fmt.Println(store.Close())

	// Another goes on where it was.
	store, err = sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		panic(err)
	}
	defer store.Close()
	newer, err := store.Acquire(ctx, "r1", "process 2", time.Minute, durable.TakeOver)
	if err != nil {
		panic(err)
	}
	entries, err := store.Entries(ctx, "r1", 0)
	fmt.Println(newer.Epoch, string(entries[0].Data), err)
	fmt.Println(commit(ctx, store, lease, durable.Update{}, durable.Entry{Seq: 2, Kind: "late"}))

	// Output:
	// <nil>
	// 2 hello <nil>
	// run "r1", epoch 1: another process has claimed the run: this process must not write to it
}
