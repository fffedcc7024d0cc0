package storage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/samber/lo"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/agents"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/approval"
)

// Answering are the common flags of answers.
type Answering struct {
	By     string
	People string
	Input  []string // what a tool asks for
}

// RegisterInput registers the flag for the input that a tool asks for.
func (o *Answering) RegisterInput(c *cobra.Command) {
	c.Flags().StringArrayVar(&o.Input, "input", nil, "what a tool asks for: a `JSON` object, or name=value for each field")
}

// RunAndCard checks the arguments of a command about one question.
var RunAndCard = console.Takes(1, 2, `needs a run ID and a card ID: "grapnel runs show RUN" shows both`)

// CheckArgumentsFlag returns an error when --args is not a JSON object.
func CheckArgumentsFlag(c *cobra.Command, arguments string) error {
	var object map[string]json.RawMessage
	if c.Flags().Changed("args") && (json.Unmarshal([]byte(arguments), &object) != nil || object == nil) {
		return console.Usagef(`--args is %q: it must be a JSON object, such as '{"command": "true"}'`, arguments)
	}
	return nil
}

// Record records an answer to a card of a run. Its identity is the user of the operating system, with the roles that a file of people
// lists for that user.
func (k *Store) Record(
	ctx context.Context, c *cobra.Command, v *agents.View, about durable.Run, card []string, o *Answering, answer agent.Approval,
) error {
	who, err := operator(o.People)
	if err != nil {
		return err
	}
	answer.Identity, answer.Roles = who.Name, who.Roles
	w, i, err := k.FindWait(ctx, c, about, card)
	if err != nil {
		return err
	}
	if w.Answer == nil { // otherwise it is refused as answered
		if answer.Input, err = agents.ReadInput(i, o.Input); err != nil {
			return err
		}
	}
	recorded, err := durable.Decide(ctx, k.Control, w, answer)
	if invalid, ok := errors.AsType[*agent.ArgumentsError](err); ok {
		lines := lo.Map(invalid.Problems, func(p agent.ArgumentProblem, _ int) string { return "\n  " + p.String() })
		what := lo.Ternary(w.Kind == durable.WaitInput, "the input does not fit what the tool %s asks for", "the arguments do not fit the tool %s")
		return console.Usagef(what+"; nothing was recorded:%s", i.Call.Name, strings.Join(lines, ""))
	}
	if err != nil {
		return err
	}
	what := map[agent.ApprovalVerdict]string{
		agent.Approve: "approved", agent.RejectAndEnd: "rejected, and the run ends", agent.RejectAndContinue: "rejected, and the run continues",
	}
	by := ", by " + answer.By
	if k.Served() { // which records the name of the token
		by = ""
	}
	text := fmt.Sprintf("Recorded for %s (%s): %s%s.", i.Call.Name, i.CallID(), what[answer.Verdict], by)
	if more := approval.StillNeeds(recorded); more != "" {
		text += " " + more
	}
	v.Note(text)
	return nil
}

// shortCard is the number of characters of the ID of a card that name it.
const shortCard = 12

// ShortWait returns the beginning of the ID of a wait, which names it, with the hook of a gate.
func ShortWait(id string) string {
	card, hook, isGate := strings.Cut(id, "#")
	card = card[:min(len(card), shortCard)]
	if isGate {
		card += "#" + hook
	}
	return card
}

// IsNamed reports whether a person has typed the ID of a wait, or enough of it that it means nothing else.
func IsNamed(id, typed string) bool {
	return id == typed || ShortWait(id) == typed || len(typed) >= shortCard && strings.HasPrefix(id, typed)
}

// IsCard reports whether a text that a person has typed can be the ID of a card, which is a hash.
func IsCard(typed string) bool {
	card, _, _ := strings.Cut(typed, "#")
	return len(card) >= shortCard && strings.Trim(card, "0123456789abcdef") == ""
}

// isGate reports whether an event answers a wait.
func isGate(w durable.Wait) bool {
	return w.Kind != durable.WaitApproval && w.Kind != durable.WaitDoubt && w.Kind != durable.WaitInput
}

// FindWait returns the wait for a card of a run. The card of a call about which only gates ask stands for its first open gate: rejecting
// one rejects all of them. Without a card, or with another name, the error has the commands for what the run asks now.
func (k *Store) FindWait(
	ctx context.Context, c *cobra.Command, about durable.Run, card []string,
) (w durable.Wait, i agent.Intervention, err error) {
	typed := strings.Join(card, "")
	all, err := k.Store.Waits(ctx, about.ID)
	if err != nil {
		return w, i, err
	}
	all = lo.Filter(all, func(w durable.Wait, _ int) bool { return slices.Contains(approval.InboxKinds(), w.Kind) })
	named := lo.Filter(all, func(w durable.Wait, _ int) bool { return IsNamed(w.ID, typed) })
	slices.SortStableFunc(named, func(a, b durable.Wait) int { return rankWait(a) - rankWait(b) })
	switch {
	case len(named) > 0:
		w = named[0]
	case IsCard(typed): // the run asks something else now: the error tells whose answer counted
		id, err := k.CardOf(ctx, about.ID, typed)
		if err != nil {
			return w, i, err
		}
		if w, err = durable.FindWait(ctx, k.Store, about.ID, id); err != nil {
			return w, i, err
		}
	default:
		return w, i, k.newUnnamedError(c, about, typed, all)
	}
	i, err = durable.InterventionOf(w)
	return w, i, err
}

// rankWait orders waits of a card: what people answer, open gates, decided gates.
func rankWait(w durable.Wait) int {
	switch {
	case !isGate(w):
		return 0
	case w.Answer == nil:
		return 1
	}
	return 2
}

// CardOf returns the ID of a card that was answered in a run, by its beginning; other texts it returns as they are.
func (k *Store) CardOf(ctx context.Context, run agent.RunID, typed string) (string, error) {
	f := durable.AuditFilter{Kind: durable.AuditAnswer, Run: run}
	for {
		records, err := k.Store.AuditRecords(ctx, f)
		if err != nil {
			return "", err
		}
		for _, r := range records {
			if r.Answer != nil && IsNamed(r.Answer.Wait, typed) {
				return r.Answer.Wait, nil
			}
		}
		if len(records) < durable.DefaultLimit {
			return typed, nil
		}
		f.Before = records[len(records)-1].Seq
	}
}

// newUnnamedError returns the error for a command that names no card: the commands for what the run asks, about the call that is named
// instead if there is one.
func (k *Store) newUnnamedError(c *cobra.Command, about durable.Run, typed string, waits []durable.Wait) error {
	var asked, gates []agent.Intervention
	for _, w := range waits {
		i, err := durable.InterventionOf(w)
		switch {
		case err != nil:
			return err
		case w.Answer != nil:
		case isGate(w): // a rejection answers all gates of a call
			gates = append(gates, i)
		default:
			asked = append(asked, i)
		}
	}
	if len(asked) == 0 {
		asked = lo.UniqBy(gates, func(i agent.Intervention) string { return i.ID })
	}
	switch {
	case about.Status != durable.StatusWaiting && about.Status != durable.StatusReady: // a ready run may have answered questions
		return console.Usagef("run %s does not wait for an answer: its status is %s", about.ID, about.Status)
	case len(asked) == 0:
		return console.Usagef("run %s does not wait for an answer: \"grapnel runs resume %s\" resumes it", about.ID, Short(about.ID))
	}
	if asked = lo.Filter(asked, func(i agent.Intervention, _ int) bool { return strings.HasPrefix(i.CallID(), typed) }); len(asked) == 0 {
		return console.Usagef("run %s asks nothing under %q: \"grapnel runs show %s\" shows what it waits for",
			about.ID, typed, Short(about.ID))
	}
	lines := lo.Map(asked, func(i agent.Intervention, _ int) string {
		return "\n  " + k.CommandLine(c, Short(about.ID), ShortWait(i.ID)) + "\n      " + describeCall(i)
	})
	return console.Usagef("name what you answer, so that the command answers nothing else: run %s asks%s",
		about.ID, strings.Join(lines, ""))
}

// describeCall returns what is asked about a call, in one line.
func describeCall(i agent.Intervention) string {
	text := fmt.Sprintf("%s: %s %s (%s)", i.CallID(), i.Call.Name, i.Call.Arguments, lo.CoalesceOrEmpty(i.Questions.Reason(), "no reason given"))
	return timeline.OneLine(text)
}

// CommandLine returns a command with other arguments and with the flags that were given.
func (k *Store) CommandLine(c *cobra.Command, args ...string) string {
	words := append([]string{c.CommandPath()}, lo.Map(args, func(arg string, _ int) string { return console.ShellWord(arg) })...)
	c.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			switch {
			case f.Name == "store" || f.Name == "server": // at the end
			case f.Value.Type() == "bool" && value == "true":
				words = append(words, "--"+f.Name)
			default:
				words = append(words, "--"+f.Name+"="+console.ShellWord(value))
			}
		}
	})
	return strings.Join(words, " ") + k.Address.Flag()
}

// MostPreview is the maximum number of characters of what would run in a list.
const MostPreview = 50

// DecisionLine returns a decision as one line.
func DecisionLine(d approval.Decision) string {
	by := lo.Ternary(d.Author == agent.AuthorEvent, "the event of ", "")
	text := fmt.Sprintf("%s by %s%s, %s", d.Verdict, by, lo.CoalesceOrEmpty(d.By, d.Identity, "a person"), console.LocalTime(d.At))
	switch d.Identity {
	case "":
	case d.By:
		text += " (verified)"
	default:
		text += " (verified as " + d.Identity + ")"
	}
	if d.Reason != "" {
		text += ": " + d.Reason
	}
	return timeline.OneLine(text)
}

// GateFile returns the file that a gate waits for; empty for other gates.
func GateFile(g agent.Gate) string {
	var at struct {
		Path string `json:"path"`
	}
	if json.Unmarshal(g.Data, &at) != nil {
		return ""
	}
	return at.Path
}
