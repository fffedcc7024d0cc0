package runs

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
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/agents"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/durable"
)

// resuming are the flags for resuming and showing runs.
type resuming struct {
	look   agents.Options // only the flags for the appearance
	asJSON bool
	noWait bool
	take   durable.Take
	// policies are files whose current texts apply in place of the policies with which the run began.
	policies []string
}

func (o *resuming) register(c *cobra.Command) {
	o.look.RegisterLook(c)
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

` + console.ExitHelp + `

With --all, the code is 0, or 1 if a run could not be resumed; the list shows how they
ended.`,
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case all && len(args) > 0:
				return console.Usagef("expected either --all or the ID of one run")
			case !all && len(args) != 1:
				return oneRun(c, args)
			}
			if over {
				o.take = durable.TakeOver
			}
			var err error
			if o.policies, err = agents.CurrentPolicies(o.policies); err != nil {
				return err
			}
			return r.resuming(c.Context(), &o, func(ctx context.Context, k *storage.Store, v *agents.View) error {
				if all || redo {
					if err := k.RequireDirect(); err != nil {
						return err
					}
				}
				if redo {
					redoing := storage.KeeperOptions()
					redoing.Again = action.Kept
					k.Keeper = durable.Keep(k.Direct, redoing)
				}
				if all {
					return resumeAll(ctx, k, &o, v)
				}
				return resumeOne(ctx, k, &o, v, args[0])
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
func (r *runs) resuming(ctx context.Context, o *resuming, do func(ctx context.Context, k *storage.Store, v *agents.View) error) error {
	if err := o.look.CheckLook(); err != nil {
		return err
	}
	return console.WithTelemetry(ctx, "", r.Std.Err, func(ctx context.Context) error {
		return r.With(ctx, false, func(k *storage.Store) error {
			k.Waits = o.noWait
			return do(ctx, k, agents.NewView(r.Std, &o.look, o.asJSON, true))
		})
	})
}

// resumeOne resumes a run, which continues if it is paused.
func resumeOne(ctx context.Context, k *storage.Store, o *resuming, v *agents.View, id string) error {
	about, err := k.Find(ctx, id)
	if err != nil {
		return err
	}
	paused := about.Paused
	if about, err = unpause(ctx, k, v, about); err != nil {
		return err
	}
	err = resume(ctx, k, o, v, about)
	if paused && errors.Is(err, errForeign) {
		v.Note(fmt.Sprintf("A worker that serves %s continues it.", about.Needs()))
		return nil
	}
	return err
}

// resumeAll resumes every run that can continue. If one cannot be resumed, resumeAll reports it and continues
// with the others.
func resumeAll(ctx context.Context, k *storage.Store, o *resuming, v *agents.View) error {
	tried := map[agent.RunID]bool{}
	failed, foreign, unreadable := 0, 0, 0
	for {
		ready, err := ready(ctx, k)
		if err != nil {
			return err
		}
		due := lo.Filter(ready, func(r durable.Run, _ int) bool { return !tried[r.ID] })
		if len(due) == 0 {
			break
		}
		for _, about := range due {
			tried[about.ID] = true
			err := resume(ctx, k, o, v, about)
			ended, isEnd := errors.AsType[*console.ExitError](err)
			switch {
			case isEnd && (ended.Code == console.ExitSuspended || ended.Code > 128): // a signal ended the run, so no other run is resumed
				return err
			case errors.Is(err, errForeign):
				foreign++
			case err != nil && !isEnd:
				failed++
				if _, ok := errors.AsType[*durable.DecryptError](err); ok {
					unreadable++
				}
				v.Note(fmt.Sprintf("%s could not be resumed: %s", storage.Short(about.ID), storage.ExplainError(err)))
			}
		}
	}
	if len(tried) == foreign {
		v.Note("There is nothing to resume.")
	}
	switch {
	case failed > 0 && failed == unreadable:
		return console.Exit(console.ExitUsage)
	case failed > 0:
		return console.Exit(console.ExitFailed)
	}
	return nil
}

// ready returns the ready runs that the command line has begun, the oldest first.
func ready(ctx context.Context, k *storage.Store) (found []durable.Run, err error) {
	for done := false; !done; {
		r, err := k.Direct.Reconcile(ctx)
		if err != nil {
			return nil, err
		}
		done = r.Done
	}
	for about, err := range k.Runs(ctx, durable.Filter{Status: []durable.Status{durable.StatusReady}, Kind: durable.KindAgent}) {
		if err != nil {
			return nil, err
		}
		if byCommandLine(about) {
			found = append(found, about)
		}
	}
	slices.Reverse(found)
	return found, nil
}

// unpause ends the pause of a run, if it is paused.
func unpause(ctx context.Context, k *storage.Store, v *agents.View, about durable.Run) (durable.Run, error) {
	if !about.Paused {
		return about, nil
	}
	if err := k.Control.Signal(ctx, about.ID, durable.Signal{Kind: durable.SignalResume, By: console.UserName()}); err != nil {
		return about, err
	}
	v.Note(storage.Short(about.ID) + " is no longer paused.")
	return k.Store.Run(ctx, about.ID)
}

// errForeign is wrapped by the errors for runs that the command line has not begun.
var errForeign = errors.New("the command line did not begin it")

// isSubmitted reports whether a run that has not begun is a submitted job.
func isSubmitted(ctx context.Context, k *storage.Store, about durable.Run) (bool, error) {
	input, err := k.Store.Input(ctx, about.ID)
	return err == nil && len(input) > 0, err
}

// newSubmittedError returns the error for a run that only workers execute.
func newSubmittedError(about durable.Run) error {
	return console.Usagef("run %s was submitted (%w): a worker that serves %s executes it, see \"grapnel runs work\"",
		about.ID, errForeign, about.Needs())
}

// resume resumes a run in this process.
func resume(ctx context.Context, k *storage.Store, o *resuming, v *agents.View, about durable.Run) error {
	if about.Kind != durable.KindAgent {
		return newSubmittedError(about)
	}
	s, err := durable.Load(ctx, k.Store, about.ID)
	if errors.Is(err, durable.ErrNotBegun) { // the keeper records that the run cannot continue
		if submitted, err := isSubmitted(ctx, k, about); err != nil || submitted && about.CancelCause == "" {
			return cmp.Or(err, newSubmittedError(about))
		}
		if err := k.RequireDirect(); err != nil {
			return err
		}
		_, err = k.Keeper.Resume(ctx, nil, about.ID, o.take).Get()
		if stored, reading := k.Store.Run(ctx, about.ID); reading == nil && stored.Status == durable.StatusCancelled {
			v.Note(fmt.Sprintf("%s has ended: cancelled: %s", storage.Short(about.ID), stored.CancelReason))
			return console.Exit(exitCodeOf(stored))
		}
	}
	if err != nil {
		return err
	}
	if about.Status.Ended() {
		v.Note(fmt.Sprintf("%s has ended: %s", storage.Short(about.ID), timeline.Verdict(s, nil)))
		return console.Exit(console.ExitCode(s, nil, nil))
	}
	d, known := agents.DefinitionKey.From(s)
	if !known {
		return console.Usagef("run %s has an agent that is unknown here (%w): "+
			"resume it with the program that began it, or with a worker (\"grapnel runs work\")", about.ID, errForeign)
	}
	if err := k.RequireDirect(); err != nil {
		return err
	}
	if len(o.policies) > 0 {
		d = d.WithPolicies(o.policies)
	}
	in := agents.NewInput(v.Std)
	ctx, release := k.Suspendable(ctx, v, in.Restore)
	defer release()
	if about.CancelCause == "" && agent.Checkpoint(s).WithExpired(time.Now()).Waiting() {
		if s, err = answerHere(ctx, k, in, v, s); err != nil {
			return console.InterruptedOr(ctx, err)
		}
		if s.Waiting() {
			v.Note(timeline.Verdict(s, nil) + "\n" + k.HowToGoOn(s))
			return console.Exit(console.ExitParked)
		}
	}
	m, err := rebuild(ctx, k, in, v, d)
	if err != nil {
		return console.InterruptedOr(ctx, err)
	}
	for _, note := range m.Notes {
		v.Note(note)
	}
	running := ctx
	if m.Recording != nil {
		running = m.Recording.Into(ctx)
	}
	k.Running.Store(true)
	final, err := k.Keeper.Resume(running, m.Agent, about.ID, o.take).Get()
	if broken, ok := errors.AsType[*agent.RunError](err); ok {
		final = broken.State
	} else if err != nil { // another process holds it, or the store is gone
		return errors.Join(err, m.Close())
	}
	return k.Finish(ctx, m, v, final, err)
}

// answerHere asks the person at the terminal, if there is one, the questions of the run.
func answerHere(ctx context.Context, k *storage.Store, in *agents.Input, v *agents.View, s agent.State) (agent.State, error) {
	if in.Terminal == nil || k.Waits {
		return s, nil
	}
	for _, i := range storage.WaitingCalls(s) {
		if !i.Questions.Admit(agent.Approval{Verdict: agent.Approve, By: agents.Person, Identity: console.IdentityName()}) {
			continue // it waits for others, or for an event
		}
		answer, err := in.Ask(ctx, v, i.Call, i.Questions)
		if err != nil {
			return s, err
		}
		answer.By = console.UserName()
		switch err := durable.Approve(ctx, k.Control, s.Run().ID, i.ID, answer); {
		case errors.As(err, new(*durable.NotOpenError)):
			v.Note("Another person has already answered about " + i.CallID() + " meanwhile.")
		case err != nil:
			return s, err
		}
		if s = s.WithApprovalAt(i.ID, answer, time.Now()); !s.Waiting() {
			break
		}
	}
	return durable.Load(ctx, k.Store, s.Run().ID) // with the answers of others, too
}

// rebuild builds the agent with which a run began, in the folder where it began.
func rebuild(ctx context.Context, k *storage.Store, in *agents.Input, v *agents.View, d agents.Definition) (*agents.Built, error) {
	o, err := d.Options()
	if err != nil {
		return nil, console.Usage(err)
	}
	note, err := d.Enter()
	if err != nil {
		return nil, console.Usage(err)
	}
	file, err := o.Resolve()
	if err != nil {
		return nil, err
	}
	m, err := agents.Build(ctx, file, agents.Watchers{
		Observer: v.Observer(), Approver: k.Approver(in, v), Keeper: k.Keeper, Rules: o.Rules,
		Parks: k.Parks(in), Waivers: k.Direct, Note: v.Note,
	})
	if err != nil {
		return nil, err
	}
	m.Notes = append(m.Notes, d.ChangedFiles(file.Model, o.Rules.Policy)...)
	if note != "" {
		m.Notes = append(m.Notes, note)
	}
	return m, nil
}
