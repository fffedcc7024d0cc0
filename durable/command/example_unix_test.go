package command_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/command"
	"github.com/grapnel-go/grapnel/durable/sqlite"
)

// A job is stored, and a worker executes it: here one that executes what is ready and returns.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	check(err)
	defer os.RemoveAll(dir)
	store, err := sqlite.Open(ctx, filepath.Join(dir, "runs.db"), sqlite.Options{})
	check(err)
	defer store.Close()

	job, err := command.Job("sort", []int{3, 1, 2})
	check(err)
	runs, err := store.Submit(ctx, job)
	check(err)

	runner, err := command.Runner(durable.Keep(store, durable.Options{}), map[string]command.Command{
		"sort": {Argv: []string{"sh", "-c", `tr -d '[]' | tr , '\n' | sort`}, Env: map[string]string{"PATH": os.Getenv("PATH")}},
	})
	check(err)
	worker, err := durable.NewWorker(store, durable.WorkerOptions{
		Runners: map[durable.Kind]durable.Runner{durable.KindCommand: runner},
	})
	check(err)
	check(worker.ExecuteReady(ctx))

	run, err := store.Run(ctx, runs[0].ID)
	check(err)
	result, err := durable.ResultOf(ctx, store, run.ID)
	check(err)
	fmt.Println(run.Status)
	fmt.Print(result.Text)
	// Output:
	// completed
	// 1
	// 2
	// 3
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
