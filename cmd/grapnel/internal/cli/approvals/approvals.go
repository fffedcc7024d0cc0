package approvals

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/agents"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/approval"
)

// approvals are the commands about what runs wait for.
type approvals struct{ storage.Command }

// New returns the command approvals.
func New(std console.Streams) *cobra.Command {
	r := &approvals{storage.Command{Std: std}}
	c := console.Group(&cobra.Command{
		Use:   "approvals",
		Short: "List and answer what stored runs wait for, and serve the inbox",
		Long: `What stored runs wait for: approvals of calls, calls whose outcome is unknown, input that
tools ask for, and events. These commands list it across runs, show exactly what would run, answer,
and serve the same as pages and as an API for people on this machine.`,
		Example: `  grapnel approvals list
  grapnel approvals show run_7GHK2MWQ
  grapnel approvals answer run_7GHK2MWQ 5f0c8e31ab97 --approve
  grapnel approvals serve --people people.yaml`,
	}, r.newPersonToken()) // it needs no store
	for _, below := range []*cobra.Command{r.newInbox(), r.newShowWait(), r.newAnswerWait(), r.newServeInbox(), r.newWaive(), r.newWaivers(), r.newRevoke()} {
		c.AddCommand(r.AddFlags(below))
	}
	return c
}

func (r *approvals) newInbox() *cobra.Command {
	var asJSON, expired bool
	var limit int
	c := &cobra.Command{
		Use:   "list",
		Short: "List what runs wait for, oldest first",
		Args:  console.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if limit <= 0 {
				return console.Usagef("--limit is %d: it must be above zero", limit)
			}
			return r.With(c.Context(), false, func(k *storage.Store) error {
				items, next, err := approval.Inbox(c.Context(), k.Store, durable.WaitFilter{Expired: expired, Limit: limit})
				if err != nil {
					return err
				}
				if asJSON {
					return console.WriteJSON(r.Std.Out, append([]approval.Item{}, items...))
				}
				return r.listItems(k, items, next != nil)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write them as a JSON array")
	c.Flags().BoolVar(&expired, "expired", false, "only those whose deadline has passed")
	c.Flags().IntVarP(&limit, "limit", "n", 100, "the maximum number of waits")
	return c
}

func (r *approvals) listItems(k *storage.Store, items []approval.Item, more bool) error {
	if len(items) == 0 {
		fmt.Fprintf(r.Std.Err, "Nothing waits for a person in %s.\n", k.Address)
		return nil
	}
	now := time.Now()
	table := console.NewTable(r.Std.Out, "RUN", "CARD", "CALL", "KIND", "TOOL", "AGENT", "ASKED", "DEADLINE", "WOULD RUN", "WHY")
	for _, i := range items {
		deadline := "none"
		switch left := i.Deadline.Sub(now); {
		case i.Expired:
			deadline = "expired"
		case !i.Deadline.IsZero():
			deadline = "in " + timeline.Rough(left)
		}
		table.Row(storage.Short(i.Run), storage.ShortWait(i.Wait), i.Call, i.Kind, i.Tool, i.AgentText(), timeline.Ago(i.Asked, now), deadline,
			timeline.OneLine(console.Shorten(i.Preview, storage.MostPreview)), timeline.OneLine(whyOf(i)))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if more {
		fmt.Fprintln(r.Std.Err, "There are more: --limit shows them.")
	}
	return nil
}

// whyOf returns the reasons of the questions, with the progress of quorums.
func whyOf(i approval.Item) string {
	return strings.Join(lo.Uniq(lo.Map(i.Questions, func(q approval.MessageQuestion, _ int) string {
		text := q.Reason
		if q.Quorum > 1 {
			text += fmt.Sprintf(" (%d of %d approvals)", q.Approvals, q.Quorum)
		}
		return text
	})), "; ")
}

func (r *approvals) newShowWait() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "show RUN [CARD]",
		Short: "Show what a run waits for: exactly what would run, who asks and why, and former decisions",
		Args:  storage.RunAndCard,
		RunE: func(c *cobra.Command, args []string) error {
			return r.WithRun(c.Context(), args[0], func(k *storage.Store, about durable.Run) error {
				all, err := details(c.Context(), k, about, strings.Join(args[1:], ""))
				if err != nil {
					return err
				}
				if asJSON {
					return console.WriteJSON(r.Std.Out, all)
				}
				for _, d := range all {
					fmt.Fprint(r.Std.Out, timeline.Clean(describeWait(d, time.Now())))
				}
				return nil
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write them as a JSON array")
	return c
}

// details returns the waits of a run whose IDs begin with a text.
func details(ctx context.Context, k *storage.Store, about durable.Run, named string) ([]*approval.Detail, error) {
	waits, err := k.Store.Waits(ctx, about.ID)
	if err != nil {
		return nil, err
	}
	var all []*approval.Detail
	for _, w := range waits {
		if !slices.Contains(approval.InboxKinds(), w.Kind) || !isAbout(w, named) {
			continue
		}
		d, err := approval.Show(ctx, k.Store, w, true)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	if len(all) == 0 {
		subject := lo.Ternary(named == "", "", " about "+named)
		return nil, console.Usagef("run %s does not wait for a person%s: its status is %s", about.ID, subject, about.Status)
	}
	return all, nil
}

// isAbout reports whether a text is a prefix of the wait's ID or of its call ID.
func isAbout(w durable.Wait, text string) bool {
	i, _ := durable.InterventionOf(w) // one that cannot be read has no call
	return strings.HasPrefix(w.ID, text) || storage.ShortWait(w.ID) == text || strings.HasPrefix(i.CallID(), text)
}

// describeWait returns a wait as lines for a person.
func describeWait(d *approval.Detail, now time.Time) string {
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "  %-10s %s\n", name, value)
		}
	}
	fmt.Fprintf(&b, "%s %s, call %s: %s of %s, %s\n", d.Run, storage.ShortWait(d.Wait), d.Call, d.Kind, d.Tool, d.State)
	line("agent", d.AgentText())
	for _, q := range d.Questions {
		line("asked by", strings.Join(lo.Compact([]string{q.AskedBy, lo.Ternary(q.Rule == "", "", "rule "+q.Rule)}), ", "))
		line("why", q.Reason)
		if q.Quorum > 1 {
			line("approvals", fmt.Sprintf("%d of %d", q.Approvals, q.Quorum))
		}
	}
	line("server says", d.Description)
	line("needs", d.Needs)
	line("asked", timeline.Ago(d.Asked, now))
	if !d.Deadline.IsZero() {
		line("deadline", console.LocalTime(d.Deadline)+lo.Ternary(d.Expired, ", expired", "")+"; then: "+d.OnTimeout)
	}
	if d.Gate != nil {
		line("waits for", d.Gate.Kind+" "+cmp.Or(storage.GateFile(*d.Gate), string(d.Gate.Data)))
		line("host", d.Host)
	}
	block := func(title, text string) {
		fmt.Fprintf(&b, "  %s\n    %s\n", title, strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    "))
	}
	if d.Diff != "" {
		block("changed from what the model asked for:", d.Diff)
	}
	switch {
	case d.Input != nil:
		block("is running:", d.Arguments.Text())
		block("asks for, in words from outside:", agents.DescribeInput(d.Input))
	default:
		block(lo.Ternary(d.Begun, "may have happened:", "would run:"), d.Arguments.Text())
	}
	decisions := func(title string, all ...approval.Decision) {
		for _, one := range all {
			fmt.Fprintf(&b, "  %s %s\n", title, storage.DecisionLine(one))
		}
	}
	if d.Decided != nil {
		decisions("decided:", *d.Decided)
	}
	decisions("answer so far:", d.Answers...)
	for _, one := range d.History {
		fmt.Fprintf(&b, "  before: %s: %s\n", console.Shorten(one.Preview, storage.MostPreview), storage.DecisionLine(one))
	}
	return b.String()
}

func (r *approvals) newAnswerWait() *cobra.Command {
	var o storage.Answering
	var until waiving
	var approve, reject, goOn bool
	var arguments, reason string
	c := &cobra.Command{
		Use:   "answer RUN CARD",
		Short: "Record an answer; another process, or \"grapnel runs resume\", continues the run",
		Long: `Record an answer to what a run waits for, in the name of the user of the operating
system: approvers and quorums count that name. CARD names what was asked, as "grapnel approvals
list" shows it; without it, the command shows the commands that answer what is asked. The exit code
is 0 when the answer is recorded, also when more people must answer.

With --until, the rule does not ask again until then about calls with the same arguments, or with
arguments that match every --arg. The command first shows which answers of the last 30 days this
would have given.`,
		Example: `  grapnel approvals answer run_7GHK2MWQ 5f0c8e31ab97 --approve
  grapnel approvals answer run_7GHK2MWQ 5f0c8e31ab97 --approve --until friday
  grapnel approvals answer run_7GHK2MWQ 5f0c8e31ab97 --approve --args '{"command": "git push --dry-run"}'
  grapnel approvals answer run_7GHK2MWQ 5f0c8e31ab97 --approve --input name=Ann --input news=no
  grapnel approvals answer run_7GHK2MWQ 5f0c8e31ab97 --reject-and-continue --reason "only on a branch"`,
		Args: storage.RunAndCard,
		RunE: func(c *cobra.Command, args []string) error {
			answer := agent.Approval{By: o.By, Reason: reason, Arguments: arguments}
			switch {
			case lo.Count([]bool{approve, reject, goOn}, true) != 1:
				return console.Usagef("expected one of --approve, --reject and --reject-and-continue")
			case approve:
				answer.Verdict = agent.Approve
			case goOn:
				answer.Verdict = agent.RejectAndContinue
			}
			if err := storage.CheckArgumentsFlag(c, arguments); err != nil {
				return err
			}
			if arguments != "" && !approve {
				return console.Usagef("--args requires --approve")
			}
			if len(o.Input) > 0 && !approve {
				return console.Usagef("--input requires --approve")
			}
			waives := until.until != ""
			switch {
			case !waives && (len(until.args) > 0 || until.dryRun):
				return console.Usagef("--arg and --dry-run require --until")
			case waives && (!approve || arguments != ""):
				return console.Usagef("--until requires --approve, without --args")
			}
			return r.WithRun(c.Context(), args[0], func(k *storage.Store, about durable.Run) error {
				record := func() error {
					return k.Record(c.Context(), c, agents.NewView(r.Std, &agents.Options{}, false, false), about, args[1:], &o, answer)
				}
				if !waives {
					return record()
				}
				until.scope.Reason = reason
				return r.approveUntil(c, k, about, args[1:], &until, record)
			})
		},
	}
	f := c.Flags()
	f.BoolVar(&approve, "approve", false, "approve it, or repeat a call whose outcome is unknown")
	f.BoolVar(&reject, "reject", false, "reject it, and end the run")
	f.BoolVar(&goOn, "reject-and-continue", false, "reject it; the model is told, and the run continues")
	f.StringVar(&arguments, "args", "", "run it with these arguments instead, a `JSON` object")
	o.RegisterInput(c)
	until.registerScope(c, "also approve like calls until a `day` of the week has passed, or for a duration such as 30d")
	f.StringVar(&reason, "reason", "", "why, as `text` that the model is told")
	f.StringVar(&o.By, "by", console.UserName(), "`name` to record beside the verified one")
	storage.RegisterPeople(c, &o.People)
	return c
}
