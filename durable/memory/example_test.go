package memory_test

import (
	"context"
	"fmt"
	"time"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/memory"
)

func Example() {
	ctx := context.Background()
	store := memory.New()
	defer store.Close()

	job := durable.Job{Name: "helper", Input: []byte("hello")}
	if _, err := store.Submit(ctx, job); err != nil {
		panic(err)
	}
	needs, err := store.Queues(ctx)
	if err != nil {
		panic(err)
	}
	claimed, err := store.Claim(ctx, "worker", time.Minute, 1, needs[0].Key())
	if err != nil {
		panic(err)
	}
	r := claimed[0]
	input, err := store.Input(ctx, r.ID)
	fmt.Println(r.Status, string(input), err)

	end := durable.Update{Status: durable.StatusCompleted, Result: []byte("done")}
	if err := store.Commit(ctx, r.Lease(), durable.Commit{Update: end}); err != nil {
		panic(err)
	}
	result, err := store.Result(ctx, r.ID)
	fmt.Println(string(result), err)
	// Output:
	// running hello <nil>
	// done <nil>
}
