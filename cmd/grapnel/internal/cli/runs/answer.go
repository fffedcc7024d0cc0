package runs

import (
	"context"
	"errors"
	"fmt"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/agents"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/durable"
)

// approving are the flags of commands that answer and then resume the run.
type approving struct {
	resuming
	storage.Answering

	noResume bool
}

func (o *approving) register(c *cobra.Command) {
	o.resuming.register(c)
	c.Flags().StringVar(&o.By, "by", console.UserName(), "`name` to record as the author of the answer")
	storage.RegisterPeople(c, &o.People)
	c.Flags().BoolVar(&o.noResume, "no-resume", false, "only record it: another process resumes the run")
}

func (r *runs) newApprove() *cobra.Command {
	var o approving
	var arguments string
	c := &cobra.Command{
		Use:   "approve RUN CARD",
		Short: "Approve a call that a run waits for, and resume the run",
		Long: `Approve a call that a run waits for, unchanged or with other arguments. When no other
call waits, the run resumes in this process, unless --no-resume leaves that to
another process. CARD names what was asked, so that the command answers nothing else:
without it, the command shows what is asked, and the commands that answer it.

The approval covers the call as shown: hooks judge it again, and if they change it, you are
asked again.

` + console.ExitHelp,
		Example: `  grapnel runs approve run_7GHK2MWQ 5f0c8e31ab97
  grapnel runs approve run_7GHK2MWQ 5f0c8e31ab97 --args '{"command": "git push --dry-run"}'`,
		Args: storage.RunAndCard,
		RunE: func(c *cobra.Command, args []string) error {
			answer := agent.Approval{Verdict: agent.Approve, By: o.By, Arguments: arguments}
			if err := storage.CheckArgumentsFlag(c, arguments); err != nil {
				return err
			}
			return r.answer(c, &o, args, answer)
		},
	}
	o.register(c)
	o.RegisterInput(c)
	c.Flags().StringVar(&arguments, "args", "", "run it with these arguments instead, a `JSON` object")
	return c
}

func (r *runs) newReject() *cobra.Command {
	var o approving
	var reason string
	var end bool
	c := &cobra.Command{
		Use:   "reject RUN CARD",
		Short: "Reject a call that a run waits for",
		Long: `Reject a call that a run waits for. The model is told, and the run continues without the
call; with --end, the run ends as interrupted (exit code 5). CARD names what was asked.

` + console.ExitHelp,
		Example: `  grapnel runs reject run_7GHK2MWQ 5f0c8e31ab97 --reason "only on a branch"`,
		Args:    storage.RunAndCard,
		RunE: func(c *cobra.Command, args []string) error {
			verdict := lo.Ternary(end, agent.RejectAndEnd, agent.RejectAndContinue)
			return r.answer(c, &o, args, agent.Approval{Verdict: verdict, By: o.By, Reason: reason})
		},
	}
	o.register(c)
	c.Flags().StringVar(&reason, "reason", "", "why, as `text` that the model is told")
	c.Flags().BoolVar(&end, "end", false, "end the run")
	return c
}

// answer records an answer, and resumes the run.
func (r *runs) answer(c *cobra.Command, o *approving, args []string, answer agent.Approval) error {
	return r.resuming(c.Context(), &o.resuming, func(ctx context.Context, k *storage.Store, v *agents.View) error {
		about, err := k.Find(ctx, args[0])
		if err != nil {
			return err
		}
		if err := k.Record(ctx, c, v, about, args[1:], &o.Answering, answer); err != nil {
			return err
		}
		if o.noResume || k.Served() { // the coordinator goes on with it
			return nil
		}
		s, err := durable.Load(ctx, k.Store, about.ID)
		switch {
		case err != nil:
			return err
		case s.Waiting(): // other calls wait; this one is answered
			v.Note(timeline.Verdict(s, nil) + "\n" + k.HowToGoOn(s))
			return nil
		}
		if _, known := agents.DefinitionKey.From(s); !known {
			v.Note(fmt.Sprintf("A worker that serves %s resumes %s.", about.Needs(), storage.Short(about.ID)))
			return nil
		}
		err = resume(ctx, k, &o.resuming, v, about)
		if held, ok := errors.AsType[*durable.HeldError](err); ok {
			v.Note(fmt.Sprintf("%s is held by %s, which resumes it.", storage.Short(about.ID), held.Owner))
			return nil
		}
		if _, ended := errors.AsType[*console.ExitError](err); err != nil && !ended {
			return fmt.Errorf("the answer is recorded, but the run was not resumed: %w", err)
		}
		return err
	})
}
