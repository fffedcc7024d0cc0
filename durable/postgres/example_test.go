package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/postgres"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// Two processes want the same run. The URL is empty: PGHOST, PGUSER and the other
// variables say where the database is.
func Example() { //nolint:testableexamples // TestExample looks at what it says, where there is a server
	ctx := context.Background()
	store, err := postgres.Open(ctx, "", postgres.Options{})
	if err != nil {
		log.Fatal(err)
	}

	first, err := store.Begin(ctx, durable.Job{ID: "run_1", Name: "banker"}, "machine a", time.Minute)
	if err != nil {
		log.Fatal(err)
	}
	reply := durable.Entry{Seq: 1, Kind: "reply", At: time.Now(), Data: []byte(`"Pay Alice?"`)}
	if err := store.Commit(ctx, first, commit(durable.Update{Status: durable.StatusRunning, Steps: 1}, reply)); err != nil {
		log.Fatal(err)
	}

	_, err = store.Acquire(ctx, "run_1", "machine b", time.Minute, durable.TakeFree)
	if held, ok := errors.AsType[*durable.HeldError](err); ok {
		fmt.Println("held by", held.Owner)
	}
	second, err := store.Acquire(ctx, "run_1", "machine b", time.Minute, durable.TakeOver)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("taken over with epoch", second.Epoch)

	late := durable.Entry{Seq: 2, Kind: "reply", At: time.Now()}
	fmt.Println(store.Commit(ctx, first, commit(durable.Update{}, late)))
	if err := store.Close(); err != nil {
		log.Fatal(err)
	}
	// The output is:
	//	held by machine a
	//	taken over with epoch 2
	//	run "run_1", epoch 1: another process has claimed the run: this process must not write to it
}

// TestExample runs the example where there is a server.
func TestExample(t *testing.T) {
	u, err := url.Parse(parts.Postgres(t))
	require.NoError(t, err)
	password, _ := u.User.Password()
	for name, value := range map[string]string{
		"PGHOST": u.Query().Get("host"), "PGDATABASE": u.Path[1:], "PGUSER": u.User.Username(), "PGPASSWORD": password,
	} {
		t.Setenv(name, value)
	}
	said, err := os.Create(filepath.Join(t.TempDir(), "said"))
	require.NoError(t, err)
	defer said.Close()
	out := os.Stdout
	os.Stdout = said
	defer func() { os.Stdout = out }()
	Example()
	got, err := os.ReadFile(said.Name())
	require.NoError(t, err)
	assert.Equal(t, "held by machine a\ntaken over with epoch 2\n"+
		`run "run_1", epoch 1: another process has claimed the run: this process must not write to it`+"\n", string(got))
}
