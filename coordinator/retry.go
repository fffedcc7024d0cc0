package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
)

// Retry submits a run again that has failed or was stopped: with the version of its blueprint, its first parameters, its demands, labels and time
// limits. Nothing that it did is in the new run. The retry of a session's first run has a session of its own; the retry of the last run of
// a session follows it there, and its conversation leaves the retried run out. With PastHook, the on_run_start hook that has blocked the
// run is not asked about the new one. It returns an *InvalidError for a run that cannot be retried.
func (c *Coordinator) Retry(ctx context.Context, id agent.RunID, r wire.RetryRequest, by string) (durable.Run, error) {
	before, err := c.FindRun(ctx, id)
	if err != nil {
		return durable.Run{}, err
	}
	r.Reason = strings.TrimSpace(r.Reason)
	if err := c.checkRetry(ctx, before, &r); err != nil {
		return durable.Run{}, err
	}
	b, err := c.blueprintOf(ctx, before)
	if err != nil {
		return durable.Run{}, err
	}
	params, err := c.retryParameters(ctx, before)
	if err != nil {
		return durable.Run{}, err
	}
	traits := durable.Traits{Turn: durable.TurnFirst, ParentSession: before.Traits.ParentSession, RetryOf: id}
	if r.PastHook != "" {
		traits.PastHook, traits.Because = r.PastHook, r.Reason
	}
	own := viewOf(before)
	j := durable.Job{
		Session: newSessionID(sessionPrefix), Labels: own.Labels, Demands: own.Demands, Priority: before.Priority, By: by,
		Deadline: movedTime(before, before.Deadline), Traits: traits,
	}
	key := ""
	if r.IdempotencyKey != "" {
		key = hashKey("retry "+string(id)+" "+r.PastHook, r.IdempotencyKey)
	}
	if before.Traits.Turn == durable.TurnLater {
		return c.retryLater(ctx, before, &b, params, j, key)
	}
	j.IdempotencyKey = key
	jobs, err := c.jobsOf(ctx, &b, params, j, true)
	if err != nil {
		return durable.Run{}, err
	}
	jobs[0].StartBy = movedTime(before, before.StartBy)
	runs, err := c.submitJobs(ctx, jobs)
	if err != nil {
		return durable.Run{}, fmt.Errorf("retrying run %s: %w", id, err)
	}
	return runs[0], nil
}

// retryParameters returns the parameters with which a run was submitted, and for a later run of a session what it was told.
func (c *Coordinator) retryParameters(ctx context.Context, before durable.Run) (json.RawMessage, error) {
	if before.Traits.Turn == durable.TurnLater {
		entries, err := c.store.Entries(ctx, before.ID, 0)
		if err != nil {
			return nil, err
		}
		if told, ok := lo.Find(entries, func(e durable.Entry) bool { return e.Kind == entryResume }); ok {
			return told.Data, nil
		}
	}
	input, err := c.store.SubmittedInput(ctx, before.ID)
	if err != nil {
		return nil, err
	}
	return parametersOf(before.Kind, input)
}

// retryLater submits the retry of a session's last run behind it.
func (c *Coordinator) retryLater(
	ctx context.Context, before durable.Run, b *wire.Stored, params json.RawMessage, j durable.Job, key string,
) (durable.Run, error) {
	first, known, err := c.resumedWith(ctx, before.Session, key)
	if err != nil || known {
		return first, err
	}
	next, stored, err := c.submitAfter(ctx, before, b, params, j, key)
	if err == nil && !stored {
		err = &InvalidError{[]FieldError{{"run_id", fmt.Sprintf(
			"run %s is followed by run %s in session %s: retry the last run of the session, or resume the session", before.ID, next.ID, before.Session)}}}
	}
	return next, err
}

// movedTime returns a time limit of a run for one that begins now.
func movedTime(before durable.Run, limit time.Time) time.Time {
	if limit.IsZero() {
		return limit
	}
	return time.Now().Add(limit.Sub(before.Created))
}

// maxReason is how long the reason for passing a hook may be, in bytes.
const maxReason = 256

// checkRetry returns an *InvalidError if a run cannot be retried. It sets PastHook to the hook's own name.
func (c *Coordinator) checkRetry(ctx context.Context, before durable.Run, r *wire.RetryRequest) error {
	var m mistakes
	switch {
	case !before.Status.Ended():
		m.add("run_id", "run %s has not ended: stop it first", before.ID)
	case before.Status == durable.StatusCompleted:
		m.add("run_id", "run %s is completed: submit a new one", before.ID)
	case before.Traits.Hook != "":
		m.add("run_id", "a hook has started run %s: retry the run that the hook is about, %s", before.ID, before.Parent)
	}
	if len(r.IdempotencyKey) > maxKey {
		m.add("idempotency_key", "it has more than %d bytes", maxKey)
	}
	if _, err := c.Blueprint(ctx, before.Name, 0); errors.Is(err, durable.ErrNotFound) {
		m.add("run_id", "the blueprint %q of run %s was deleted", before.Name, before.ID)
	} else if err != nil {
		return err
	}
	if r.PastHook != "" {
		hook, err := c.blockingHook(ctx, before)
		switch {
		case err != nil:
			return err
		case hook.Hook == "":
			m.add("past_hook", "no on_run_start hook has blocked run %s: retry it without a hook to pass", before.ID)
		case r.PastHook != hook.Hook && r.PastHook != hook.TargetName:
			m.add("past_hook", "%q has not blocked run %s: %q has", r.PastHook, before.ID, hook.Hook)
		case r.Reason == "" || len(r.Reason) > maxReason:
			m.add("reason", "say in at most %d bytes why the run may pass the hook", maxReason)
		}
		m.addTexts("reason", map[string]string{"reason": r.Reason})
		r.PastHook = hook.Hook
	}
	return m.err()
}

// blockingHook returns the event of the on_run_start hook that has blocked a run, or whose failure has; the zero value if none has.
func (c *Coordinator) blockingHook(ctx context.Context, r durable.Run) (wire.HookEvent, error) {
	all, err := boundaryEvents(ctx, c.store, r)
	h, _ := lo.Find(all, wire.HookEvent.BlocksRun)
	return h, err
}

// isPassed reports whether an operator lets a run past a hook. The hook of a required policy is always asked.
func isPassed(r durable.Run, h hooks.Hook) bool {
	from := h.Origin()
	return h.Points()[0] == hooks.RunStart && h.Name() == r.Traits.PastHook && (from == nil || !from.Required)
}

// addRetries adds the runs that retry a run.
func (c *Coordinator) addRetries(ctx context.Context, d *wire.RunDetail) error {
	if !slices.Contains([]wire.Status{wire.Failed, wire.Stopped}, d.Status) {
		return nil
	}
	all, err := c.store.List(ctx, durable.Filter{RetryOf: d.RunID, Limit: durable.DefaultLimit})
	d.Retries = lo.Map(all, func(r durable.Run, _ int) wire.Run { return viewOf(r) })
	return err
}
