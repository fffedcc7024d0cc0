package durabletest

import (
	"context"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// FindWait returns the first open wait of a run about a call, or the decided one. It is for tests: programs name the wait that a
// person was shown.
func FindWait(ctx context.Context, store durable.AnswerStore, id agent.RunID, call string) (durable.Wait, error) {
	all, err := store.Waits(ctx, id)
	if err != nil {
		return durable.Wait{}, err
	}
	name := call
	for _, w := range all {
		if i, err := durable.InterventionOf(w); err != nil || w.ID != call && i.CallID() != call {
			continue
		}
		if name = w.ID; w.Answer == nil {
			break
		}
	}
	return durable.FindWait(ctx, store, id, name)
}

// Approve records an answer to what FindWait returns.
func Approve(ctx context.Context, store durable.AnswerStore, id agent.RunID, call string, a agent.Approval) error {
	w, err := FindWait(ctx, store, id, call)
	if err != nil {
		return err
	}
	_, err = durable.Decide(ctx, store, w, a)
	return err
}
