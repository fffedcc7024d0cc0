package hooks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/agents"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/storedruns"
	"github.com/grapnel-go/grapnel/policy"
	"github.com/grapnel-go/grapnel/policy/backtest"
	"github.com/grapnel-go/grapnel/policy/policytest"
	"github.com/grapnel-go/grapnel/policy/recorded"
	"github.com/grapnel-go/grapnel/registry"
)

// exitDiffers is the exit code of hooks backtest --diff when the policies decide differently.
const exitDiffers = 8

// backtestFlags are the flags of hooks backtest.
type backtestFlags struct {
	policies []string
	hooks    []string
	diff     bool
	format   string
	tools    string
	json     bool
	all      bool
	html     string
	actions  bool
	atOnce   int
	color    string

	store, server string // of the runs; empty for none
	agent, since  string
	limit         int
	playsStore    bool
}

func newHooksBacktest(std console.Streams) *cobra.Command {
	f := &backtestFlags{}
	c := &cobra.Command{
		Use:   "backtest POLICY... RECORDING...",
		Short: "Show what policies would have done to recorded runs",
		Long: `backtest plays recorded runs through a real agent with the rules of policy files as hooks, and counts which
calls they deny, by rule and tool, and, if the recordings have labels, how many attacks they block and how many good
runs they break. No model is called, and no tool runs.

A POLICY is a file with rules, or library:NAME; --policy names one, too. The other arguments are recordings.

A RECORDING is a file, or a folder of them (*.jsonl, *.json, also with .gz): recordings of this project, OpenAI chat or
Anthropic Messages JSON, Claude Code sessions, event logs of grapnel run --json, audit logs with texts, GenAI spans in
OTLP JSON. The format of a file is detected.

--store and --server also play stored runs of agents: --agent, --since and --limit select them.

Several policies are in force together, with the ready-made hooks of --hook, as in grapnel run.
With --diff, the first two arguments are policy files, and the report lists the calls about which they decide differently.

Actions of rules (commands, requests, agents, questions to a person) are not executed without --actions: such a rule then has
no opinion, and the report says so.

docs/backtesting.md defines the counts.

Exit codes:
  0    everything was played; with --diff: the policies decide alike
  1    something could not be read or played, or the report could not be written; the report still covers the rest
  2    the command or a policy file is wrong
  8    with --diff: the policies decide differently
  130  interrupted with Ctrl-C; the report covers the runs before`,
		Example: `  grapnel hooks backtest workspace.yaml ~/.claude/projects/site/
  grapnel hooks backtest mail.yaml --html report.html transcripts/*.jsonl.gz
  grapnel hooks backtest --diff old.yaml new.yaml transcripts/
  grapnel hooks backtest mail.yaml --store runs.db --agent clerk --since 30d`,
		RunE: func(c *cobra.Command, args []string) error {
			f.playsStore = c.Flags().Changed("store") || c.Flags().Changed("server")
			for _, name := range []string{"agent", "since", "limit"} {
				if c.Flags().Changed(name) && !f.playsStore {
					return console.Usagef("--%s selects stored runs: add --store or --server, or leave it out", name)
				}
			}
			if f.limit <= 0 {
				return console.Usagef("--limit is %d: it must be above zero", f.limit)
			}
			return f.run(c.Context(), std, args)
		},
	}
	c.Flags().StringVar(&f.store, "store", "", "also the runs of this `STORE`: a SQLite file, sqlite:FILE or a postgres:// URL")
	c.Flags().StringVar(&f.server, "server", "", "also the runs of the coordinator at this `URL`; its token is in $"+storage.TokenVariable)
	c.MarkFlagsMutuallyExclusive("store", "server")
	c.Flags().StringVar(&f.agent, "agent", "", "only stored runs of the agent or blueprint with this `name`")
	c.Flags().StringVar(&f.since, "since", "", "only stored runs created since this `time`: a duration such as 12h or 7d, or an RFC 3339 time")
	c.Flags().IntVar(&f.limit, "limit", 10_000, "how many stored runs to play at most: the newest ones")
	c.Flags().SortFlags = false
	c.Flags().StringArrayVarP(&f.policies, "policy", "p", nil, "a policy `file`; may be given several times")
	c.Flags().StringArrayVar(&f.hooks, "hook", nil, "a ready-made hook: base-dir, redact (may be repeated)")
	c.Flags().BoolVar(&f.diff, "diff", false, "compare two policies: the first two arguments")
	formats := lo.Map(recorded.Formats(), func(f recorded.Format, _ int) string { return string(f) })
	c.Flags().StringVar(&f.format, "format", "", "the format of the recordings, instead of detecting it: "+strings.Join(formats, ", "))
	c.Flags().StringVar(&f.tools, "tools", "", "a `file` of tool schemas, for recordings without their own")
	c.Flags().BoolVar(&f.all, "all", false, "show the rules that were never asked, too")
	c.Flags().BoolVar(&f.json, "json", false, "write the report as JSON")
	c.Flags().StringVar(&f.html, "html", "", "write a report with charts and transcripts to a `file`, for a browser")
	c.Flags().BoolVar(&f.actions, "actions", false, "execute the actions of rules, for every call that they match")
	c.Flags().IntVar(&f.atOnce, "at-once", 0, "the number of runs to play at once; 0 means one for each core")
	c.Flags().StringVar(&f.color, "color", "auto", "colours: auto, always or never")
	return c
}

func (f *backtestFlags) run(ctx context.Context, std console.Streams, args []string) (err error) {
	if err := f.arguments(&args); err != nil {
		return console.Usage(err)
	}
	idle := &idleActions{}
	o := backtest.Options{AtOnce: f.atOnce}
	if f.html == "" {
		o.Keep = -1
	}
	given, done, err := f.makeHooks(ctx)
	if err != nil {
		return console.Usage(err)
	}
	defer func() { err = errors.Join(err, done()) }()
	if o.Policies, err = f.load(idle, given); err != nil {
		return console.Usage(err)
	}
	if f.tools != "" {
		if o.Tools, err = replay.LoadTools(f.tools); err != nil {
			return console.Usage(err)
		}
	}
	found, err := backtest.Find(args...)
	if err != nil {
		return err
	}
	for i := range found {
		found[i].Format = recorded.Format(f.format)
	}
	if !f.playsStore {
		return f.play(ctx, std, found, o, idle)
	}
	k, err := storage.Open(ctx, cmp.Or(f.store, f.server), false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.Close()) }()
	stored, err := f.findStored(ctx, k, std)
	if err != nil {
		return err
	}
	return f.play(ctx, std, append(found, stored...), o, idle)
}

// findStored returns the runs of a store.
func (f *backtestFlags) findStored(ctx context.Context, k *storage.Store, std console.Streams) ([]backtest.Recording, error) {
	filter := storedruns.Filter{Agent: f.agent, Most: f.limit}
	var err error
	if f.since != "" {
		if filter.Since, err = console.InstantOf("--since", f.since, time.Now(), -1); err != nil {
			return nil, console.Usage(err)
		}
	}
	stored, n, cut, err := storedruns.Find(ctx, k.Store, filter)
	if cut {
		fmt.Fprintf(std.Err, "grapnel: only the newest %d runs of %s are played: --limit changes that\n", n, k.Address)
	}
	return stored, err
}

// arguments separates policies from recordings, and reports missing ones.
func (f *backtestFlags) arguments(args *[]string) (err error) {
	if !f.diff {
		if *args, err = agents.PoliciesIn(*args, &f.policies, -1); err != nil {
			return err
		}
	}
	switch {
	case f.diff && len(f.policies)+len(f.hooks) > 0:
		return errors.New("--diff takes its two policies as arguments, not with --policy or --hook")
	case f.diff && (len(*args) < 2 || len(*args) < 3 && !f.playsStore):
		return errors.New("--diff needs two policy files and a recording")
	case f.diff:
		f.policies, *args = (*args)[:2], (*args)[2:]
	case len(f.policies)+len(f.hooks) == 0:
		return errors.New("no policy to try: name a file with rules, or library:NAME, as an argument or with --policy")
	case len(*args) == 0 && !f.playsStore:
		return errors.New("no recording to try the policy on: name files or folders, or a store with --store")
	}
	if err := console.CheckColour(f.color); err != nil {
		return err
	}
	if f.format != "" {
		if _, err := recorded.FormatNamed(f.format); err != nil {
			return fmt.Errorf("--format: %w", err)
		}
	}
	return nil
}

// makeHooks creates the ready-made hooks of --hook; done closes what it opened.
func (f *backtestFlags) makeHooks(ctx context.Context) (list []hooks.Hook, done func() error, err error) {
	file := &registry.File{}
	for _, kind := range f.hooks {
		if file.Hooks, err = agents.AddPart(file.Hooks, "hook", kind, agents.NewRegistry().Hooks); err != nil {
			return nil, nil, fmt.Errorf("--hook: %w", err)
		}
	}
	p := &agents.Parts{}
	p.Clean, p.Unclean = agents.Redacting(file.Definition)
	built, err := p.Registry().BuildFile(ctx, file)
	if err != nil {
		return nil, nil, err
	}
	plan, err := built.Builder.Plan().Get()
	if err != nil {
		return nil, nil, errors.Join(err, built.Close())
	}
	for _, h := range plan.Hooks().All() {
		list = append(list, h)
	}
	return list, built.Close, nil
}

// load loads the policies: all files as one policy or, with --diff, each file as a policy.
func (f *backtestFlags) load(idle *idleActions, given []hooks.Hook) ([]backtest.Policy, error) {
	sets := [][]string{f.policies}
	if f.diff {
		sets = [][]string{f.policies[:1], f.policies[1:]}
	}
	var out []backtest.Policy
	for _, files := range sets {
		o := policy.Options{}
		if !f.actions {
			o.Wrap, o.Host = idle.instead, policytest.IdleHost() // without actions, no host is needed
		}
		p, err := policy.Load([]policy.Layer{{Name: "run", Files: files}}, o)
		if err != nil {
			return nil, err
		}
		list, err := p.Hooks()
		if err != nil {
			return nil, err
		}
		var undone []string
		if !f.actions {
			undone = acting(p, list)
		}
		list = append(given, list...)
		if len(list) == 0 {
			return nil, fmt.Errorf("%s has no rules that are in force", strings.Join(files, ", "))
		}
		name := strings.Join(append(lo.Map(files, func(file string, _ int) string { return filepath.Base(file) }), f.hooks...), ", ")
		if f.diff && filepath.Base(f.policies[0]) == filepath.Base(f.policies[1]) {
			name = files[0]
		}
		set := backtest.Always(name, list...)
		set.Undone = undone
		out = append(out, set)
	}
	if len(out) == 2 && out[0].Name == out[1].Name {
		return nil, errors.New("--diff: both policies are the same")
	}
	return out, nil
}

// acting returns the names of the hooks whose rules have an action.
func acting(p *policy.Policy, list []hooks.Hook) []string {
	acts := map[string]bool{}
	for _, r := range p.Rules() {
		acts[r.Hook()] = r.Action != ""
	}
	return lo.FilterMap(list, func(h hooks.Hook, _ int) (string, bool) {
		o := h.Origin()
		return h.Name(), o != nil && acts[policy.Rule{Policy: o.Policy, ID: o.Rule}.Hook()]
	})
}

func (f *backtestFlags) play(ctx context.Context, std console.Streams, found []backtest.Recording, o backtest.Options, idle *idleActions) error {
	ctx, stop := console.WithInterrupt(ctx, func() {}, func() {})
	defer stop()
	bar := &backtest.Bar{Out: std.Err, Colour: console.WantsColour(std.Err, f.color), Prefix: "grapnel: "}
	if console.IsTerminal(std.Err) && os.Getenv("TERM") != "dumb" {
		bar.Columns = func() int { return console.WidthOf(std.Err) }
	}
	o.Progress = bar.Show
	report, err := backtest.Run(ctx, found, o)
	bar.End()
	if err != nil {
		return err
	}
	var diff *backtest.Diff
	if f.diff {
		if diff, err = report.Diff(); err != nil {
			return err
		}
	}
	if err := f.writeReport(std, report, diff); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	for _, rule := range idle.names() {
		fmt.Fprintf(std.Err, "grapnel: the action of rule %s was not executed and had no opinion: --actions executes it\n", timeline.Clean(rule))
	}
	switch {
	case report.Interrupted:
		return console.InterruptedOr(ctx, console.Exit(console.ExitInterrupted))
	case report.Runs == 0:
		return errors.New("no run could be played")
	case report.Failed > 0:
		return console.Exit(console.ExitFailed)
	case diff != nil && !diff.Empty():
		return console.Exit(exitDiffers)
	}
	return nil
}

// writeReport writes the report to its outputs.
func (f *backtestFlags) writeReport(std console.Streams, report *backtest.Report, diff *backtest.Diff) error {
	if f.html != "" {
		if err := writeFile(f.html, report.WriteHTML); err != nil {
			return err
		}
		fmt.Fprintf(std.Err, "grapnel: the HTML report is %s\n", f.html)
	}
	look := backtest.Look{All: f.all, Colour: console.WantsColour(std.Out, f.color), Width: console.ColumnsOf(std.Out)}
	switch {
	case f.json && diff != nil:
		return diff.WriteJSON(std.Out)
	case f.json:
		return report.WriteJSON(std.Out)
	case diff != nil:
		return diff.WriteText(std.Out, look)
	}
	return report.WriteText(std.Out, look)
}

// writeFile writes a file completely, or leaves the old one.
func writeFile(path string, write func(io.Writer) error) error {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	err = errors.Join(file.Chmod(0o644), write(file), file.Close()) // others may read the report
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name()) // the caller gets the first error
	}
	return err
}

// idleActions replaces actions that are not executed.
type idleActions struct {
	mu   sync.Mutex
	seen map[string]bool
}

// instead returns an action that does nothing and has no opinion, and records that it was called.
func (i *idleActions) instead(r policy.Rule, _ action.Action) action.Action {
	return idleAction{i, r.Hook()}
}

type idleAction struct {
	of   *idleActions
	rule string
}

func (a idleAction) Do(context.Context, *action.Request) (*action.Answer, error) {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	if a.of.seen == nil {
		a.of.seen = map[string]bool{}
	}
	a.of.seen[a.rule] = true
	return &action.Answer{Off: true}, nil
}

// names returns the rules whose actions were called.
func (i *idleActions) names() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	names := lo.Keys(i.seen)
	slices.Sort(names)
	return names
}
