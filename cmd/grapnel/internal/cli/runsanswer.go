package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/approval"
)

// answering are the common flags of answers.
type answering struct {
	resuming

	by       string
	people   string
	noResume bool
	input    []string // what a tool asks for
}

// registerInput registers the flag for the input that a tool asks for.
func (o *answering) registerInput(c *cobra.Command) {
	c.Flags().StringArrayVar(&o.input, "input", nil, "what a tool asks for: a `JSON` object, or name=value for each field")
}

func (o *answering) register(c *cobra.Command) {
	o.resuming.register(c)
	c.Flags().StringVar(&o.by, "by", userName(), "`name` to record as the author of the answer")
	registerPeople(c, &o.people)
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
			if err := checkArgumentsFlag(c, arguments); err != nil {
				return err
			}
			return r.answer(c.Context(), &o, args, answer)
		},
	}
	o.register(c)
	o.registerInput(c)
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

// checkArgumentsFlag returns an error when --args is not a JSON object.
func checkArgumentsFlag(c *cobra.Command, arguments string) error {
	var object map[string]json.RawMessage
	if c.Flags().Changed("args") && (json.Unmarshal([]byte(arguments), &object) != nil || object == nil) {
		return &usageError{fmt.Errorf(`--args is %q: it must be a JSON object, such as '{"command": "true"}'`, arguments)}
	}
	return nil
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
		if err := k.record(ctx, v, about, strings.Join(args[1:], ""), o, answer); err != nil {
			return err
		}
		if o.noResume || k.place.server() { // the coordinator goes on with it
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

// record records an answer to the named wait of a run, or to the only one. Its identity is the user of the operating
// system, with the roles that a file of people lists for that user.
func (k *kept) record(ctx context.Context, v *view, about durable.Run, named string, o *answering, answer agent.Approval) error {
	who, err := operator(o.people)
	if err != nil {
		return err
	}
	answer.Identity, answer.Roles = who.Name, who.Roles
	w, i, err := k.openWait(ctx, about, named)
	if err != nil {
		return err
	}
	if answer.Input, err = readInput(i, o.input); err != nil {
		return err
	}
	recorded, err := durable.Decide(ctx, k.store, w, answer)
	if invalid, ok := errors.AsType[*agent.ArgumentsError](err); ok {
		lines := lo.Map(invalid.Problems, func(p agent.ArgumentProblem, _ int) string { return "\n  " + p.String() })
		what := lo.Ternary(w.Kind == durable.WaitInput, "the input does not fit what the tool %s asks for", "the arguments do not fit the tool %s")
		return &usageError{fmt.Errorf(what+"; nothing was recorded:%s", i.Call.Name, strings.Join(lines, ""))}
	}
	if err != nil {
		return err
	}
	what := map[agent.ApprovalVerdict]string{
		agent.Approve: "approved", agent.RejectAndEnd: "rejected, and the run ends", agent.RejectAndContinue: "rejected, and the run continues",
	}
	by := ", by " + answer.By
	if k.place.server() { // which records the name of the token
		by = ""
	}
	text := fmt.Sprintf("Recorded for %s (%s): %s%s.", i.Call.Name, i.CallID(), what[answer.Verdict], by)
	if more := approval.StillNeeds(recorded); more != "" {
		text += " " + more
	}
	v.note(text)
	return nil
}

// shortWait returns the beginning of the ID of a wait, which names it, with the hook of a gate.
func shortWait(id string) string {
	card, hook, isGate := strings.Cut(id, "#")
	card = card[:min(len(card), 12)]
	if isGate {
		card += "#" + hook
	}
	return card
}

// isNamed reports whether a person means this wait: by its ID or the beginning of it, or by its call.
func isNamed(w durable.Wait, named string) bool {
	i, _ := durable.InterventionOf(w) // one that cannot be read has no call
	return strings.HasPrefix(w.ID, named) || shortWait(w.ID) == named || strings.HasPrefix(i.CallID(), named)
}

// gatesOfCall returns those of the waits that are gates of a call.
func gatesOfCall(waits []durable.Wait, call string) []durable.Wait {
	return lo.Filter(waits, func(w durable.Wait, _ int) bool {
		i, err := durable.InterventionOf(w)
		_, isGate := durable.GateOf(w, i)
		return err == nil && isGate && i.CallID() == call
	})
}

// openWait returns the named wait of a parked run; the only one that people answer if none is named, or else the only gate. The ID
// of a call about which only gates ask, and no name if there is only that call, stand for its first open gate.
func (k *kept) openWait(ctx context.Context, about durable.Run, named string) (w durable.Wait, i agent.Intervention, err error) {
	if about.Status != durable.StatusWaiting && about.Status != durable.StatusReady { // a ready run may have answered questions
		return w, i, &usageError{fmt.Errorf("run %s does not wait for an answer: its status is %s", about.ID, about.Status)}
	}
	all, err := k.store.Waits(ctx, about.ID)
	if err != nil {
		return w, i, err
	}
	all = lo.Filter(all, func(w durable.Wait, _ int) bool {
		return slices.Contains(approval.InboxKinds(), w.Kind) && isNamed(w, named)
	})
	exact := lo.Filter(all, func(w durable.Wait, _ int) bool {
		i, err := durable.InterventionOf(w)
		_, isGate := durable.GateOf(w, i)
		return w.ID == named || shortWait(w.ID) == named || err == nil && !isGate && i.CallID() == named
	})
	if ofCall := gatesOfCall(all, named); len(exact) == 0 && len(ofCall) > 0 {
		all = ofCall
	}
	open := lo.Filter(all, func(w durable.Wait, _ int) bool { return w.Answer == nil })
	people := lo.Filter(open, func(w durable.Wait, _ int) bool {
		return w.Kind == durable.WaitApproval || w.Kind == durable.WaitDoubt || w.Kind == durable.WaitInput
	})
	switch {
	case len(exact) == 1:
		open = exact
	case len(people) > 0:
		open = people
	}
	if len(open) > 1 && len(people) == 0 {
		if first, err := durable.InterventionOf(open[0]); err == nil && len(gatesOfCall(open, first.CallID())) == len(open) {
			open = open[:1] // a rejection answers all gates of the call
		}
	}
	switch {
	case len(open) == 1 && open[0].Answer == nil:
		i, err = durable.InterventionOf(open[0])
		return open[0], i, err
	case len(open) > 1:
		lines := lo.Map(open, func(w durable.Wait, _ int) string {
			i, _ := durable.InterventionOf(w) // without it, the line has no arguments
			return fmt.Sprintf("  %s  %s: %s %s", shortWait(w.ID), i.CallID(), i.Call.Name, i.Call.Arguments)
		})
		return w, i, &usageError{fmt.Errorf("several calls of run %s wait: name one\n%s", about.ID, strings.Join(lines, "\n"))}
	case named != "" && len(all) > 0:
		answered := all[0]
		decision := ""
		if d := approval.DecisionsOf([]durable.AuditRecord{{Answer: answered.Answer}}); len(d) > 0 {
			decision = fmt.Sprintf(", by %s: %s", d[0].By, d[0].Verdict)
		}
		return w, i, fmt.Errorf("%s of run %s: %w%s", named, about.ID, durable.ErrAnswered, decision)
	case named != "":
		return w, i, &usageError{fmt.Errorf("run %s is not waiting for a call %q: \"grapnel runs show %s\" shows what it is waiting for",
			about.ID, named, short(about.ID))}
	}
	return w, i, &usageError{fmt.Errorf("run %s does not wait for an answer: \"grapnel runs resume %s\" resumes it", about.ID, short(about.ID))}
}
