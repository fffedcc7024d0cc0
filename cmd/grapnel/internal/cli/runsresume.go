package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/durable"
)

// resuming is how runs are resumed and shown.
type resuming struct {
	look   options // of which only what says how it looks
	asJSON bool
	noWait bool
	take   durable.Take
}

func (o *resuming) register(c *cobra.Command) {
	o.look.registerLook(c)
	c.Flags().BoolVar(&o.asJSON, "json", false, "write every event to standard output, as JSON Lines (docs/events.md)")
	c.Flags().BoolVar(&o.noWait, "no-wait", false, "park the run where a person is asked, also at a terminal")
}

func (r *runs) newResume() *cobra.Command {
	var o resuming
	var all, over, redo bool
	c := &cobra.Command{
		Use:   "resume ID | --all",
		Short: "Let a run go on, or all that can",
		Long: `Let a run go on from where its journal is: one that was suspended, or cut off with its
process, or whose questions have answers. What was done is not done again, and the
model is not asked again for what it has said. It goes on with the rules of its own that
it began with, and with your own policy as it is today. With --all it is every run that
waits to be taken up, one after the other: what a service does when it starts.

At a terminal you are asked what the run waits to be told.

` + exitHelp + `

With --all the code is 0, or 1 where a run could not be resumed: how they ended is in
the list.`,
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case all && len(args) > 0:
				return &usageError{errors.New("--all is for every run: give it, or the ID of one")}
			case !all && len(args) != 1:
				return someRun(c, args)
			}
			if over {
				o.take = durable.TakeOver
			}
			return r.resuming(c.Context(), &o, func(ctx context.Context, k *kept, v *view) error {
				if redo {
					k.keeper = durable.Keep(k.store, durable.Options{Again: action.Kept})
				}
				if all {
					return k.resumeAll(ctx, &o, v)
				}
				about, err := k.find(ctx, args[0])
				if err != nil {
					return err
				}
				return k.resume(ctx, &o, v, about)
			})
		},
	}
	o.register(c)
	c.Flags().BoolVar(&all, "all", false, "every run that waits to be taken up")
	c.Flags().BoolVar(&redo, "redo-actions", false, "do the actions of rules again that were done already where the run goes on, and have them decide again")
	c.Flags().BoolVar(&over, "take-over", false, "also where another process holds the run: it is gone, and its lease has not run out yet")
	return c
}

// resuming opens what is needed to resume runs.
func (r *runs) resuming(ctx context.Context, o *resuming, do func(ctx context.Context, k *kept, v *view) error) error {
	if err := o.look.checkLook(); err != nil {
		return err
	}
	return withTelemetry(ctx, "", r.std.err, func(ctx context.Context) error {
		return r.with(ctx, false, func(k *kept) error {
			k.waits = o.noWait
			return do(ctx, k, newView(r.std, &o.look, o.asJSON, true))
		})
	})
}

// resumeAll lets every run go on that waits to be taken up. One that cannot be is
// told of, and does not keep the others from going on.
func (k *kept) resumeAll(ctx context.Context, o *resuming, v *view) error {
	tried := map[agent.RunID]bool{}
	failed := 0
	for {
		due, err := k.store.Due(ctx, len(tried)+page)
		if err != nil {
			return err
		}
		due = lo.Filter(due, func(r durable.Run, _ int) bool { return !tried[r.ID] })
		if len(due) == 0 {
			break
		}
		for _, about := range due {
			tried[about.ID] = true
			err := k.resume(ctx, o, v, about)
			ended, isEnd := errors.AsType[*exitError](err)
			switch {
			case isEnd && (ended.code == exitSuspended || ended.code > 128): // by a signal, which is for all
				return err
			case err != nil && !isEnd:
				failed++
				v.note(fmt.Sprintf("%s could not be resumed: %s", short(about.ID), explainError(err)))
			}
		}
	}
	if len(tried) == 0 {
		v.note("There is nothing to resume.")
	}
	if failed > 0 {
		return &exitError{exitFailed}
	}
	return nil
}

// resume lets a run go on in this process.
func (k *kept) resume(ctx context.Context, o *resuming, v *view, about durable.Run) error {
	s, err := durable.Load(ctx, k.store, about.ID)
	if errors.Is(err, durable.ErrNotBegun) { // the keeper writes down that nothing can come of it
		_, err = k.keeper.Resume(ctx, nil, about.ID, o.take).Get()
	}
	if err != nil {
		return err
	}
	if about.Status.Terminal() {
		v.note(fmt.Sprintf("%s has ended: %s", short(about.ID), timeline.Verdict(s, nil)))
		return exitOf(exitCode(s, nil, nil))
	}
	d, known := definitionKey.From(s)
	if !known {
		return &usageError{fmt.Errorf("run %s was not begun by the command line, and what its agent is made of is not known here: "+
			"resume it with the program that began it", about.ID)}
	}
	in := newInput(v.std)
	ctx, release := k.suspendable(ctx, v, in.restore)
	defer release()
	if about.CancelReason == "" && agent.Checkpoint(s).WithExpired(time.Now()).Waiting() {
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
	} else if err != nil { // another process has it, or the store is gone
		return errors.Join(err, m.close())
	}
	return k.finish(ctx, m, v, final, err)
}

// answerHere asks the person at the terminal, if there is one, what the run waits to be
// told.
func (k *kept) answerHere(ctx context.Context, in *input, v *view, s agent.State) (agent.State, error) {
	if in.terminal == nil || k.waits {
		return s, nil
	}
	for _, i := range waitingCalls(s) {
		answer, err := in.ask(ctx, v, i.Call, i.Questions)
		if err != nil {
			return s, err
		}
		answer.By = userName()
		switch err := durable.Approve(ctx, k.store, s.Run().ID, i.CallID(), answer); {
		case errors.Is(err, durable.ErrAnswered), errors.Is(err, durable.ErrNotFound):
			v.note("Another person has answered about " + i.CallID() + " meanwhile.")
		case err != nil:
			return s, err
		}
		if s = s.WithApproval(i.CallID(), answer); !s.Waiting() {
			break
		}
	}
	return durable.Load(ctx, k.store, s.Run().ID) // with what others have said, too
}

// rebuild makes the agent that a run began with, in the folder that it began in.
func (k *kept) rebuild(ctx context.Context, in *input, v *view, d definition) (*made, error) {
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
	m, err := build(ctx, file, watchers{v.observer(), k.approver(in, v), k.keeper, tracesRuns(ctx), o.rules})
	if err != nil {
		return nil, err
	}
	m.notes = append(m.notes, d.changedFiles(file.Model, o.rules.policy)...)
	if note != "" {
		m.notes = append(m.notes, note)
	}
	return m, nil
}

// exitOf returns the end of a command with a code; nil for 0.
func exitOf(code int) error {
	if code == exitDone {
		return nil
	}
	return &exitError{code}
}
