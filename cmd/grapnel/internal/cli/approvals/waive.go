package approvals

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/approval"
	"github.com/grapnel-go/grapnel/durable/waiver"
)

// waiving are the flags of the command that makes a waiver.
type waiving struct {
	scope  waiver.Scope
	args   []string
	until  string
	dryRun bool
	asJSON bool
}

// previewed is the maximum number of recorded answers that the effect of a waiver is computed from.
const previewed = 10_000

// registerScope registers the flags that describe a waiver.
func (o *waiving) registerScope(c *cobra.Command, until string) {
	c.Flags().StringArrayVar(&o.args, "arg", nil, "only calls with this argument, as `PATH=PATTERN` (may be repeated)")
	c.Flags().StringVar(&o.until, "until", "", until)
	c.Flags().BoolVar(&o.dryRun, "dry-run", false, "only show the effect")
}

// expires returns when the waiver expires: at the end of a day of the week in UTC, after a duration, or at a time.
func (o *waiving) expires(now time.Time) (time.Time, error) {
	for day := time.Sunday; day <= time.Saturday; day++ {
		if strings.EqualFold(day.String(), o.until) {
			return waiver.EndOf(day, now), nil
		}
	}
	at, err := console.InstantOf("--until", o.until, now, 1)
	if err != nil {
		return at, console.Usage(err)
	}
	return at, nil
}

func (r *approvals) newWaive() *cobra.Command {
	var o waiving
	c := &cobra.Command{
		Use:   "waive [RUN CARD]",
		Short: "Approve a rule's questions about like calls from now on",
		Long: `Make a waiver: until it expires or is revoked, it approves the questions of one rule about
one tool, and only for calls whose arguments match every --arg. RUN and CARD take rule and
tool from a call that waits; the call itself is not answered.

The command first shows which of the answers that people gave in the last 30 days the waiver
would have given. A waiver never answers questions of required policies, questions with approvers or a
quorum, or the question whether a call in doubt is repeated.`,
		Example: `  grapnel approvals waive run_7GHK2MWQ 5f0c8e31ab97 --arg to=landlord --until 30d --dry-run
  grapnel approvals waive --rule payments/large --tool transfer --arg 'to=land*' --until 30d`,
		Args: console.Takes(0, 2, "takes a run ID and a card ID"),
		RunE: func(c *cobra.Command, args []string) error {
			return r.With(c.Context(), false, func(k *storage.Store) error { return r.waive(c, k, &o, args) })
		},
	}
	c.Flags().StringVar(&o.scope.Rule, "rule", "", "the `name` of the rule that asks, such as payments/large")
	c.Flags().StringVar(&o.scope.Tool, "tool", "", "a tool, or a `pattern` of tools")
	o.registerScope(c, "a `duration` such as 30d, a time, or a day of the week, after which it expires (required)")
	c.Flags().StringVar(&o.scope.Reason, "reason", "", "why, as `text` for the audit log")
	c.Flags().BoolVar(&o.asJSON, "json", false, "write the waiver and its effect as a JSON object")
	return c
}

// scopeOf returns the scope that the flags and the call describe.
func (o *waiving) scopeOf(c *cobra.Command, k *storage.Store, args []string) (waiver.Scope, error) {
	s := o.scope
	var err error
	if s.Arguments, err = o.arguments(); err != nil || len(args) == 0 {
		return s, err
	}
	about, err := k.Find(c.Context(), args[0])
	if err != nil {
		return s, err
	}
	_, call, err := k.FindWait(c.Context(), c, about, args[1:])
	if err != nil {
		return s, err
	}
	if s.Tool == "" {
		s.Tool = call.Call.Name
	}
	rules := lo.Uniq(lo.FilterMap(call.Questions.Open(), func(q agent.Question, _ int) (string, bool) { return q.By, waiver.CanAnswer(q) }))
	switch {
	case s.Rule != "":
	case len(rules) == 1:
		s.Rule = rules[0]
	case len(rules) == 0:
		_, _, err := waiver.ScopeOfCall(call.Questions, call.Call)
		return s, console.Usagef("no waiver can answer the questions about call %s of run %s: %w", call.CallID(), about.ID, err)
	default:
		return s, console.Usagef("several rules ask about call %s: name one with --rule: %s", call.CallID(), strings.Join(rules, ", "))
	}
	return s, nil
}

// arguments returns the patterns of arguments by their paths.
func (o *waiving) arguments() (map[string]string, error) {
	all := map[string]string{}
	for _, text := range o.args {
		path, pattern, err := console.LabelOf("--arg", text)
		if err != nil {
			return nil, console.Usage(err)
		}
		all[path] = pattern
	}
	return all, nil
}

// waiveJSON is the output of the command as JSON.
type waiveJSON struct {
	Waiver  *waiverJSON   `json:"waiver,omitempty"`
	Answers int           `json:"answers"`
	Covered []coveredJSON `json:"covered"`
}

type coveredJSON struct {
	Tool      string `json:"tool"`
	Arguments string `json:"arguments"`
	Verdict   string `json:"verdict"`
	By        string `json:"by"`
}

func (r *approvals) waive(c *cobra.Command, k *storage.Store, o *waiving, args []string) error {
	ctx := c.Context()
	if o.until == "" {
		return console.Usagef("a waiver expires: say when with --until, such as --until 30d")
	}
	s, err := o.scopeOf(c, k, args)
	if err != nil {
		return err
	}
	w, effect, err := r.preview(ctx, k, o, s)
	if err != nil {
		return err
	}
	if !o.dryRun {
		if w, err = r.addWaiver(ctx, k, o, s, w); err != nil {
			return err
		}
	}
	if !o.asJSON {
		return nil
	}
	told := waiveJSON{Answers: effect.Answers, Covered: lo.Map(effect.Covered, func(a durable.Answered, _ int) coveredJSON {
		return coveredJSON{a.Call.Name, a.Call.Arguments, a.Verdict.String(), a.By}
	})}
	if !o.dryRun {
		shown, err := waiverOf(w)
		if err != nil {
			return err
		}
		told.Waiver = &shown
	}
	return console.WriteJSON(r.Std.Out, told)
}

// preview returns a waiver that is not stored, and shows its effect.
func (r *approvals) preview(ctx context.Context, k *storage.Store, o *waiving, s waiver.Scope) (w durable.Waiver, e waiver.Effect, err error) {
	now := time.Now()
	until, err := o.expires(now)
	if err != nil {
		return w, e, err
	}
	if w, err = waiver.New(s, console.IdentityName(), until); err != nil {
		return w, e, console.Usage(err)
	}
	e, err = waiver.Preview(ctx, k.Store, s, now.AddDate(0, 0, -approval.EffectDays), previewed)
	if err == nil && !o.asJSON {
		writeEffect(r.Std.Out, s, e)
	}
	return w, e, err
}

// addWaiver stores a waiver. A coordinator gives it another ID, and the name of the token.
func (r *approvals) addWaiver(ctx context.Context, k *storage.Store, o *waiving, s waiver.Scope, w durable.Waiver) (durable.Waiver, error) {
	var err error
	if k.Served() {
		w, err = k.Store.NewWaiver(ctx, wire.WaiverRequest{Rule: s.Rule, Tool: s.Tool, Arguments: s.Arguments, Reason: s.Reason, Expires: w.Expires})
	} else {
		err = k.Direct.AddWaiver(ctx, w)
	}
	if err == nil && !o.asJSON {
		fmt.Fprintf(r.Std.Out, "Waiver %s is in force until %s. \"grapnel approvals revoke %s\" ends it.\n", w.ID, localTime(w.Expires), w.ID)
	}
	return w, err
}

// approveUntil approves a call, and makes a waiver for like calls.
func (r *approvals) approveUntil(c *cobra.Command, k *storage.Store, about durable.Run, card []string, o *waiving, record func() error) error {
	_, call, err := k.FindWait(c.Context(), c, about, card)
	if err != nil {
		return err
	}
	s, free, err := waiver.ScopeOfCall(call.Questions, call.Call)
	if err != nil {
		return console.Usagef("a waiver cannot answer this: %w: approve it without --until", err)
	}
	if len(o.args) > 0 {
		if s.Arguments, err = o.arguments(); err != nil {
			return err
		}
	} else if len(free) > 0 {
		fmt.Fprintf(r.Std.Out, "No pattern can describe %s: any value is allowed.\n", timeline.Clean(strings.Join(free, ", ")))
	}
	s.Reason = o.scope.Reason
	if !s.Covers(s.Rule, call.Call) {
		return console.Usagef("--arg does not match the call that waits")
	}
	w, _, err := r.preview(c.Context(), k, o, s)
	if err != nil || o.dryRun {
		return err
	}
	if err := record(); err != nil {
		return err
	}
	_, err = r.addWaiver(c.Context(), k, o, s, w)
	return err
}

func localTime(at time.Time) string { return at.Local().Format("2006-01-02 15:04") }

// writeEffect tells what a waiver would have done.
func writeEffect(out io.Writer, s waiver.Scope, e waiver.Effect) {
	fmt.Fprintf(out, "%s\n", timeline.Clean(s.String()))
	switch {
	case e.Answers == 0:
		fmt.Fprintf(out, "In the last %d days, people answered no question about this tool.\n", approval.EffectDays)
		return
	case len(e.Covered) == 0:
		fmt.Fprintf(out, "In the last %d days, people answered %s about this tool. The waiver would have given none of these answers.\n",
			approval.EffectDays, timeline.Plural(e.Answers, "question"))
		return
	}
	fmt.Fprintf(out, "In the last %d days, people answered %s about this tool. The waiver would have given %d of these answers; people rejected %d of them.\n",
		approval.EffectDays, timeline.Plural(e.Answers, "question"), len(e.Covered), e.Rejected)
	const most = 10
	for _, a := range e.Covered[:min(most, len(e.Covered))] {
		fmt.Fprintf(out, "  %s by %s: %s %s\n", a.Verdict, timeline.Clean(a.By), timeline.Clean(a.Call.Name), timeline.Clean(a.Call.Arguments))
	}
	if more := len(e.Covered) - most; more > 0 {
		fmt.Fprintf(out, "  and %d more\n", more)
	}
}

// waiverJSON is a waiver as JSON.
type waiverJSON struct {
	durable.Waiver

	Data  struct{}     `json:"-"`
	Scope waiver.Scope `json:"scope"`
}

func waiverOf(w durable.Waiver) (waiverJSON, error) {
	s, err := waiver.ScopeOf(w)
	return waiverJSON{Waiver: w, Scope: s}, err
}

func (r *approvals) newWaivers() *cobra.Command {
	var all, asJSON bool
	c := &cobra.Command{
		Use:   "waivers",
		Short: "List the waivers in force",
		Args:  console.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return r.With(c.Context(), false, func(k *storage.Store) error { return r.listWaivers(c.Context(), k, all, asJSON) })
		},
	}
	c.Flags().BoolVar(&all, "all", false, "list those that expired or were revoked, too")
	c.Flags().BoolVar(&asJSON, "json", false, "write them as a JSON array")
	return c
}

func (r *approvals) listWaivers(ctx context.Context, k *storage.Store, all, asJSON bool) error {
	waivers, err := k.Store.Waivers(ctx, all)
	if err != nil {
		return err
	}
	shown := []waiverJSON{}
	for _, w := range waivers {
		one, err := waiverOf(w)
		if err != nil {
			return err
		}
		shown = append(shown, one)
	}
	if asJSON {
		return console.WriteJSON(r.Std.Out, shown)
	}
	if len(shown) == 0 {
		fmt.Fprintln(r.Std.Out, "There are no waivers.")
		return nil
	}
	table := console.NewTable(r.Std.Out, "WAIVER", "RULE", "TOOL", "ARGUMENTS", "BY", "UNTIL")
	for _, w := range shown {
		until := localTime(w.Expires)
		switch {
		case !w.Revoked.IsZero():
			until = "revoked by " + w.RevokedBy
		case !w.Expires.After(time.Now()):
			until = "expired"
		}
		table.Row(w.ID, w.Scope.Rule, w.Scope.Tool, console.LabelText(w.Scope.Arguments), w.By, until)
	}
	return table.Flush()
}

func (r *approvals) newRevoke() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke WAIVER",
		Short: "Revoke a waiver",
		Args:  console.Takes(1, 1, `needs the ID of a waiver, or a unique beginning: "grapnel approvals waivers" lists them`),
		RunE: func(c *cobra.Command, args []string) error {
			return r.With(c.Context(), false, func(k *storage.Store) error { return r.revoke(c.Context(), k, args[0]) })
		},
	}
}

// revoke revokes the waiver whose ID begins with a text.
func (r *approvals) revoke(ctx context.Context, k *storage.Store, id string) error {
	all, err := k.Store.Waivers(ctx, true)
	if err != nil {
		return err
	}
	found := lo.Filter(all, func(w durable.Waiver, _ int) bool { return strings.HasPrefix(w.ID, id) })
	switch {
	case len(found) == 0:
		return console.Usagef(`no waiver %q: "grapnel approvals waivers --all" lists them`, id)
	case len(found) > 1:
		return console.Usagef("%q is the beginning of %d waivers: write more of its ID", id, len(found))
	}
	if err := k.Control.RevokeWaiver(ctx, found[0].ID, console.IdentityName()); err != nil {
		return err
	}
	fmt.Fprintf(r.Std.Out, "Waiver %s is revoked.\n", found[0].ID)
	return nil
}
