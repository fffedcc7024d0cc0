package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/durable"
)

// resuming are the flags for resuming and showing runs.
type resuming struct {
	look   options // only the flags for the appearance
	asJSON bool
	noWait bool
	take   durable.Take
	// policies are files whose current texts apply in place of the policies with which the run began.
	policies []string
}

func (o *resuming) register(c *cobra.Command) {
	o.look.registerLook(c)
	c.Flags().BoolVar(&o.asJSON, "json", false, "write every event to standard output, as JSON Lines (docs/streams.md)")
	c.Flags().BoolVar(&o.noWait, "no-wait", false, "park the run when a person is asked, even at a terminal")
}

func (r *runs) newResume() *cobra.Command {
	var o resuming
	var all, over, redo bool
	c := &cobra.Command{
		Use:   "resume ID | --all",
		Short: "Resume a run, or all that can be resumed",
		Long: `Resume a run at the end of its journal: one that was suspended, or interrupted with its
process, or whose questions have answers. Completed calls are not repeated, and the
model is not called again for recorded replies. The run keeps its own rules with which
it began, and uses the current version of your own policy. With --policy, the files replace
those of --policy with which the run began, and all its policies apply as they are now, until
it waits or ends.

--all resumes every run that can continue, one after the other, as a service does when it
starts.

At a terminal, you are asked the questions of the run.

` + exitHelp + `

With --all, the code is 0, or 1 if a run could not be resumed; the list shows how they
ended.`,
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case all && len(args) > 0:
				return &usageError{errors.New("expected either --all or the ID of one run")}
			case !all && len(args) != 1:
				return oneRun(c, args)
			}
			if over {
				o.take = durable.TakeOver
			}
			var err error
			if o.policies, err = currentPolicies(o.policies); err != nil {
				return err
			}
			return r.resuming(c.Context(), &o, func(ctx context.Context, k *openedStore, v *view) error {
				if redo {
					redoing := keeperOptions()
					redoing.Again = action.Kept
					k.keeper = durable.Keep(k.direct, redoing)
				}
				if all {
					return k.resumeAll(ctx, &o, v)
				}
				about, err := k.find(ctx, args[0])
				if err != nil {
					return err
				}
				paused := about.Paused
				if about, err = k.unpause(ctx, v, about); err != nil {
					return err
				}
				err = k.resume(ctx, &o, v, about)
				if paused && errors.Is(err, errForeign) {
					v.note(fmt.Sprintf("A worker that serves %s continues it.", about.Needs()))
					return nil
				}
				return err
			})
		},
	}
	o.register(c)
	c.Flags().BoolVar(&all, "all", false, "every run that can continue")
	c.Flags().StringArrayVarP(&o.policies, "policy", "p", nil,
		"`file` with rules that replaces the policies with which the run began (docs/policies.md; may be repeated)")
	c.Flags().BoolVar(&redo, "redo-actions", false, "repeat the actions of rules that were already executed in the current step, and let them decide again")
	c.Flags().BoolVar(&over, "take-over", false, "resume the run although another process holds it: that process is gone, but its lease has not expired yet")
	return c
}

// resuming opens the store and the view for resuming runs.
func (r *runs) resuming(ctx context.Context, o *resuming, do func(ctx context.Context, k *openedStore, v *view) error) error {
	if err := o.look.checkLook(); err != nil {
		return err
	}
	return withTelemetry(ctx, "", r.std.err, func(ctx context.Context) error {
		return r.with(ctx, false, func(k *openedStore) error {
			k.waits = o.noWait
			return do(ctx, k, newView(r.std, &o.look, o.asJSON, true))
		})
	})
}

// resumeAll resumes every run that can continue. If one cannot be resumed, resumeAll reports it and continues
// with the others.
func (k *openedStore) resumeAll(ctx context.Context, o *resuming, v *view) error {
	tried := map[agent.RunID]bool{}
	failed, foreign, unreadable := 0, 0, 0
	for {
		ready, err := k.ready(ctx)
		if err != nil {
			return err
		}
		due := lo.Filter(ready, func(r durable.Run, _ int) bool { return !tried[r.ID] })
		if len(due) == 0 {
			break
		}
		for _, about := range due {
			tried[about.ID] = true
			err := k.resume(ctx, o, v, about)
			ended, isEnd := errors.AsType[*exitError](err)
			switch {
			case isEnd && (ended.code == exitSuspended || ended.code > 128): // a signal ended the run, so no other run is resumed
				return err
			case errors.Is(err, errForeign):
				foreign++
			case err != nil && !isEnd:
				failed++
				if _, ok := errors.AsType[*durable.DecryptError](err); ok {
					unreadable++
				}
				v.note(fmt.Sprintf("%s could not be resumed: %s", short(about.ID), explainError(err)))
			}
		}
	}
	if len(tried) == foreign {
		v.note("There is nothing to resume.")
	}
	switch {
	case failed > 0 && failed == unreadable:
		return &exitError{exitUsage}
	case failed > 0:
		return &exitError{exitFailed}
	}
	return nil
}

// ready returns the ready runs that the command line has begun, the oldest first.
func (k *openedStore) ready(ctx context.Context) (found []durable.Run, err error) {
	for done := false; !done; {
		r, err := k.direct.Reconcile(ctx)
		if err != nil {
			return nil, err
		}
		done = r.Done
	}
	for f := (durable.Filter{Status: []durable.Status{durable.StatusReady}, Kind: durable.KindAgent, Limit: page}); ; {
		list, err := k.store.List(ctx, f)
		if err != nil {
			return nil, err
		}
		found = append(found, lo.Filter(list, func(r durable.Run, _ int) bool { return byCommandLine(r) })...)
		if len(list) < page {
			slices.Reverse(found)
			return found, nil
		}
		f.Before = list[len(list)-1].ID
	}
}

// unpause ends the pause of a run, if it is paused.
func (k *openedStore) unpause(ctx context.Context, v *view, about durable.Run) (durable.Run, error) {
	if !about.Paused {
		return about, nil
	}
	if err := k.direct.Signal(ctx, about.ID, durable.Signal{Kind: durable.SignalResume, By: userName()}); err != nil {
		return about, err
	}
	v.note(short(about.ID) + " is no longer paused.")
	return k.store.Run(ctx, about.ID)
}

// errForeign is wrapped by the errors for runs that the command line has not begun.
var errForeign = errors.New("the command line did not begin it")

// isSubmitted reports whether a run that has not begun is a submitted job.
func (k *openedStore) isSubmitted(ctx context.Context, about durable.Run) (bool, error) {
	input, err := k.store.Input(ctx, about.ID)
	return err == nil && len(input) > 0, err
}

// newSubmittedError returns the error for a run that only workers execute.
func newSubmittedError(about durable.Run) error {
	return &usageError{fmt.Errorf("run %s was submitted (%w): a worker that serves %s executes it, see \"grapnel runs work\"",
		about.ID, errForeign, about.Needs())}
}

// resume resumes a run in this process.
func (k *openedStore) resume(ctx context.Context, o *resuming, v *view, about durable.Run) error {
	if about.Kind != durable.KindAgent {
		return newSubmittedError(about)
	}
	s, err := durable.Load(ctx, k.store, about.ID)
	if errors.Is(err, durable.ErrNotBegun) { // the keeper records that the run cannot continue
		if submitted, err := k.isSubmitted(ctx, about); err != nil || submitted && about.CancelCause == "" {
			return cmp.Or(err, newSubmittedError(about))
		}
		_, err = k.keeper.Resume(ctx, nil, about.ID, o.take).Get()
		if stored, reading := k.store.Run(ctx, about.ID); reading == nil && stored.Status == durable.StatusCancelled {
			v.note(fmt.Sprintf("%s has ended: cancelled: %s", short(about.ID), stored.CancelReason))
			return exitOf(exitCodeOf(stored))
		}
	}
	if err != nil {
		return err
	}
	if about.Status.Ended() {
		v.note(fmt.Sprintf("%s has ended: %s", short(about.ID), timeline.Verdict(s, nil)))
		return exitOf(exitCode(s, nil, nil))
	}
	d, known := definitionKey.From(s)
	if !known {
		return &usageError{fmt.Errorf("run %s has an agent that is unknown here (%w): "+
			"resume it with the program that began it, or with a worker (\"grapnel runs work\")", about.ID, errForeign)}
	}
	if len(o.policies) > 0 {
		d = d.withPolicies(o.policies)
	}
	in := newInput(v.std)
	ctx, release := k.suspendable(ctx, v, in.restore)
	defer release()
	if about.CancelCause == "" && agent.Checkpoint(s).WithExpired(time.Now()).Waiting() {
		if s, err = k.answerHere(ctx, in, v, s); err != nil {
			return interruptedOr(ctx, err)
		}
		if s.Waiting() {
			v.note(timeline.Verdict(s, nil) + "\n" + k.howToGoOn(s))
			return &exitError{exitParked}
		}
	}
	m, err := k.rebuild(ctx, in, v, d)
	if err != nil {
		return interruptedOr(ctx, err)
	}
	for _, note := range m.notes {
		v.note(note)
	}
	running := ctx
	if m.recording != nil {
		running = m.recording.Into(ctx)
	}
	k.running.Store(true)
	final, err := k.keeper.Resume(running, m.agent, about.ID, o.take).Get()
	if broken, ok := errors.AsType[*agent.RunError](err); ok {
		final = broken.State
	} else if err != nil { // another process holds it, or the store is gone
		return errors.Join(err, m.close())
	}
	return k.finish(ctx, m, v, final, err)
}

// answerHere asks the person at the terminal, if there is one, the questions of the run.
func (k *openedStore) answerHere(ctx context.Context, in *input, v *view, s agent.State) (agent.State, error) {
	if in.terminal == nil || k.waits {
		return s, nil
	}
	for _, i := range waitingCalls(s) {
		if !i.Questions.Admit(agent.Approval{Verdict: agent.Approve, By: person, Identity: identityName()}) {
			continue // it waits for others, or for an event
		}
		answer, err := in.ask(ctx, v, i.Call, i.Questions)
		if err != nil {
			return s, err
		}
		answer.By = userName()
		switch err := durable.Approve(ctx, k.direct, s.Run().ID, i.ID, answer); {
		case errors.As(err, new(*durable.NotOpenError)):
			v.note("Another person has already answered about " + i.CallID() + " meanwhile.")
		case err != nil:
			return s, err
		}
		if s = s.WithApprovalAt(i.ID, answer, time.Now()); !s.Waiting() {
			break
		}
	}
	return durable.Load(ctx, k.store, s.Run().ID) // with the answers of others, too
}

// rebuild builds the agent with which a run began, in the folder where it began.
func (k *openedStore) rebuild(ctx context.Context, in *input, v *view, d definition) (*made, error) {
	o, err := d.options()
	if err != nil {
		return nil, &usageError{err}
	}
	note, err := d.enter()
	if err != nil {
		return nil, &usageError{err}
	}
	file, err := o.resolve()
	if err != nil {
		return nil, err
	}
	m, err := build(ctx, file, watchers{v.observer(), k.approver(in, v), k.keeper, tracesRuns(ctx), o.rules, k.parks(in), k.direct, nil, nil, "", false})
	if err != nil {
		return nil, err
	}
	m.notes = append(m.notes, d.changedFiles(file.Model, o.rules.policy)...)
	if note != "" {
		m.notes = append(m.notes, note)
	}
	return m, nil
}

// exitOf returns the error that ends a command with a code; nil for 0.
func exitOf(code int) error {
	if code == exitDone {
		return nil
	}
	return &exitError{code}
}
