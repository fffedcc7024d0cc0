package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/grapnel-go/grapnel/durable"
)

// RestartStage lets a session begin its current stage again with the first iteration. The stage's earlier iterations do not count,
// but their files stay. Its running iteration is cancelled. The caller makes sure that no other process runs the session. The
// session is ready afterwards, unless it is paused.
func RestartStage(ctx context.Context, store durable.Store, k *durable.Keeper, about durable.Run) (err error) {
	fail := func(err error) error { return fmt.Errorf("restarting a stage of session %s: %w", about.ID, err) }
	if about.Kind != durable.KindPipeline {
		return fail(fmt.Errorf("it is of kind %s", about.Kind))
	}
	lease, err := store.Acquire(ctx, about.ID, k.Owner(), time.Minute, durable.TakeOver)
	if err != nil {
		return fail(err)
	}
	defer func() {
		if released := store.Release(context.WithoutCancel(ctx), lease, 0); released != nil && !errors.Is(released, durable.ErrStale) {
			err = errors.Join(err, fail(released))
		}
	}()
	if about, err = store.Run(ctx, about.ID); err != nil {
		return fail(err)
	}
	ctx, x := k.Open(ctx, about)
	defer x.Close()
	m, err := (&sessionRunner{&runners{store: store, keeper: k}}).newMachine(ctx, x, about)
	if err != nil {
		return fail(err)
	}
	if m.at.Phase == phaseOpen || m.at.Phase == phaseEnd {
		return fail(errors.New("no stage of it runs"))
	}
	if err := m.cancelChildren(ctx, "its stage begins again"); err != nil {
		return fail(err)
	}
	m.at.Round++
	m.setStage(m.at.Stage, m.at.Restarts+1)
	m.events.add(eventStageRestart, m.eventData(eventData{}))
	if err := m.commit(ctx, durable.Update{Status: durable.StatusRunning, Waits: []durable.Wait{}}); err != nil {
		return fail(err)
	}
	return nil
}
