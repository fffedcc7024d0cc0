package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/durable"
)

// answering are the common flags of answers.
type answering struct {
	resuming

	by       string
	noResume bool
}

func (o *answering) register(c *cobra.Command) {
	o.resuming.register(c)
	c.Flags().StringVar(&o.by, "by", userName(), "`name` to record as the author of the answer")
	c.Flags().BoolVar(&o.noResume, "no-resume", false, "only record it: another process resumes the run")
}

func (r *runs) newApprove() *cobra.Command {
	var o answering
	var arguments string
	c := &cobra.Command{
		Use:   "approve ID [CALL]",
		Short: "Approve a call that a run waits for, and resume the run",
		Long: `Approve a call that a run waits for, unchanged or with other arguments. When no other
call waits, the run resumes in this process, unless --no-resume leaves that to
another process. CALL is not needed if only one call waits.

The approval covers the call as shown: hooks judge it again, and if they change it, you are
asked again.

` + exitHelp,
		Example: `  grapnel runs approve run_7GHK2MWQ
  grapnel runs approve run_7GHK2MWQ call_1 --args '{"command": "git push --dry-run"}'`,
		Args: runAndCall,
		RunE: func(c *cobra.Command, args []string) error {
			answer := agent.Approval{Verdict: agent.Approve, By: o.by, Arguments: arguments}
			var object map[string]json.RawMessage
			if c.Flags().Changed("args") && (json.Unmarshal([]byte(arguments), &object) != nil || object == nil) {
				return &usageError{fmt.Errorf(`--args is %q: it must be a JSON object, such as '{"command": "true"}'`, arguments)}
			}
			return r.answer(c.Context(), &o, args, answer)
		},
	}
	o.register(c)
	c.Flags().StringVar(&arguments, "args", "", "run it with these arguments instead, a `JSON` object")
	return c
}

func (r *runs) newReject() *cobra.Command {
	var o answering
	var reason string
	var end bool
	c := &cobra.Command{
		Use:   "reject ID [CALL]",
		Short: "Reject a call that a run waits for",
		Long: `Reject a call that a run waits for. The model is told, and the run continues without the
call; with --end, the run ends as interrupted (exit code 5). CALL is not needed if only one
call waits.

` + exitHelp,
		Example: `  grapnel runs reject run_7GHK2MWQ --reason "only on a branch"`,
		Args:    runAndCall,
		RunE: func(c *cobra.Command, args []string) error {
			verdict := lo.Ternary(end, agent.RejectAndEnd, agent.RejectAndContinue)
			return r.answer(c.Context(), &o, args, agent.Approval{Verdict: verdict, By: o.by, Reason: reason})
		},
	}
	o.register(c)
	c.Flags().StringVar(&reason, "reason", "", "why, as `text` that the model is told")
	c.Flags().BoolVar(&end, "end", false, "end the run")
	return c
}

func runAndCall(c *cobra.Command, args []string) error {
	if len(args) == 1 || len(args) == 2 {
		return nil
	}
	return &usageError{fmt.Errorf(`%s needs the ID of a run, and the ID of a call if several wait: "grapnel runs show ID" shows them`, c.CommandPath())}
}

// answer records an answer, and resumes the run.
func (r *runs) answer(ctx context.Context, o *answering, args []string, answer agent.Approval) error {
	return r.resuming(ctx, &o.resuming, func(ctx context.Context, k *kept, v *view) error {
		about, err := k.find(ctx, args[0])
		if err != nil {
			return err
		}
		call, err := k.waitingCall(ctx, about, strings.Join(args[1:], ""))
		if err != nil {
			return err
		}
		if err := durable.Approve(ctx, k.store, about.ID, call.CallID(), answer); err != nil {
			return err
		}
		what := map[agent.ApprovalVerdict]string{
			agent.Approve: "approved", agent.RejectAndEnd: "rejected, and the run ends", agent.RejectAndContinue: "rejected, and the run continues",
		}
		v.note(fmt.Sprintf("Recorded for %s (%s): %s, by %s.", call.Call.Name, call.CallID(), what[answer.Verdict], answer.By))
		if o.noResume {
			return nil
		}
		s, err := durable.Load(ctx, k.store, about.ID)
		switch {
		case err != nil:
			return err
		case s.Waiting(): // other calls wait; this one is answered
			v.note(timeline.Verdict(s, nil) + "\n" + k.howToGoOn(s))
			return nil
		}
		if _, known := definitionKey.From(s); !known {
			v.note(fmt.Sprintf("A worker that serves %s resumes %s.", about.Needs(), short(about.ID)))
			return nil
		}
		err = k.resume(ctx, &o.resuming, v, about)
		if held, ok := errors.AsType[*durable.HeldError](err); ok {
			v.note(fmt.Sprintf("%s is held by %s, which resumes it.", short(about.ID), held.Owner))
			return nil
		}
		if _, ended := errors.AsType[*exitError](err); err != nil && !ended {
			return fmt.Errorf("the answer is recorded, but the run was not resumed: %w", err)
		}
		return err
	})
}

// waitingCall returns the named call of a parked run, or the only one if none is named.
func (k *kept) waitingCall(ctx context.Context, about durable.Run, named string) (agent.Intervention, error) {
	var none agent.Intervention
	if about.Status != durable.StatusWaiting && about.Status != durable.StatusReady { // a ready run may have answered questions
		return none, &usageError{fmt.Errorf("run %s does not wait for an answer: its status is %s", about.ID, about.Status)}
	}
	questions, err := k.store.Waits(ctx, about.ID)
	if err != nil {
		return none, err
	}
	var open, answered []agent.Intervention
	for _, q := range questions {
		i, err := durable.InterventionOf(q)
		switch {
		case err != nil:
			return none, err
		case named != "" && !strings.HasPrefix(i.CallID(), named):
		case i.CallID() == named && i.Answer() == nil:
			return i, nil
		case i.Answer() == nil:
			open = append(open, i)
		default:
			answered = append(answered, i)
		}
	}
	switch {
	case len(open) == 1:
		return open[0], nil
	case len(open) > 1:
		lines := lo.Map(open, func(i agent.Intervention, _ int) string {
			return fmt.Sprintf("  %s  %s %s", i.CallID(), i.Call.Name, i.Call.Arguments)
		})
		return none, &usageError{fmt.Errorf("several calls of run %s wait: name one\n%s", about.ID, strings.Join(lines, "\n"))}
	case len(answered) > 0 && named != "":
		return none, fmt.Errorf("call %s of run %s: %w, by %s: %s", answered[0].CallID(), about.ID, durable.ErrAnswered,
			answered[0].Answer().By, answered[0].Answer().Verdict)
	case named != "":
		return none, &usageError{fmt.Errorf("run %s is not waiting for a call %q: \"grapnel runs show %s\" shows what it is waiting for",
			about.ID, named, short(about.ID))}
	}
	return none, &usageError{fmt.Errorf("run %s does not wait for an answer: \"grapnel runs resume %s\" resumes it", about.ID, short(about.ID))}
}
