package pipeline

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/agents"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/internal/rooted"
	"github.com/grapnel-go/grapnel/pipeline"
)

// pipelines is the common part of the commands about pipelines.
type pipelines struct{ storage.Command }

// New returns the command pipeline.
func New(std console.Streams) *cobra.Command {
	p := &pipelines{storage.Command{Std: std}}
	c := console.Group(&cobra.Command{
		Use:   "pipeline",
		Short: "Check and run pipelines: stages of agents and commands",
		Long: `A pipeline is a file with stages. In each stage an agent or a command runs again and again until its
termination says stop, with hooks before and after (docs/pipelines.md). A session is one run of a pipeline. It is stored,
so that it continues after a crash: start it again with the same name.`,
		Example: `  grapnel pipeline check pipeline.yaml
  grapnel pipeline start pipeline.yaml --session friday
  grapnel pipeline status friday
  grapnel pipeline approve friday 5f0c8e31ab97`,
	}, p.newInit(), p.newCheck(), p.newGraph(), p.newDryRun(), p.newSchema())
	for _, below := range []*cobra.Command{
		p.newStart(), p.newStatus(), p.newAnswer(agent.Approve), p.newAnswer(agent.RejectAndContinue), p.newPause(), p.newResume(),
		p.newAbort(), p.newList(), p.newLogs(),
	} {
		c.AddCommand(p.AddFlags(below))
	}
	rebuild := p.newRebuild() // it needs the store itself
	storage.RegisterStore(rebuild, &p.At)
	c.AddCommand(rebuild)
	return c
}

// GlobalHooks returns the file with the user's hooks for all pipelines; empty when its folder is unknown.
func GlobalHooks() string {
	policy := agents.GlobalPolicy()
	if policy == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(policy), "hooks.yaml")
}

// Host performs the actions of hooks of pipelines.
func Host() action.Host {
	return action.Host{Secrets: action.Secrets{File: agents.SecretsFile()}, Approver: agents.NoTerminal, Parks: true}
}

// loadPipeline loads a pipeline and checks the files of its agents.
func loadPipeline(path string) (*pipeline.Pipeline, error) {
	o := pipeline.LoadOptions{Global: GlobalHooks(), NeedFiles: true, Host: Host()}
	if o.Global != "" {
		o.Folder = filepath.Dir(o.Global)
	}
	p, err := pipeline.Load(path, o)
	if err != nil {
		return nil, console.Usage(err)
	}
	for _, stage := range p.Agents() {
		o := &agents.Options{File: stage.Path, Texts: map[string]string{stage.Path: stage.Text}, Color: "auto"}
		if _, err := o.Resolve(); err != nil {
			return nil, err
		}
	}
	return p, nil
}

var oneFile = console.Takes(1, 1, "needs the file of one pipeline")

func (p *pipelines) newCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Check a pipeline, its hooks and its agents, and show its stages",
		Long: `Check a pipeline file, the hooks in it and in the user's hooks.yaml, and the files of its agents. Mistakes are written
with file, line and column. The stages of a correct pipeline are listed, after warnings about what is probably a mistake.`,
		Example: "  grapnel pipeline check pipeline.yaml",
		Args:    oneFile,
		RunE: func(_ *cobra.Command, args []string) error {
			loaded, err := loadPipeline(args[0])
			if err != nil {
				return err
			}
			warnings, err := loaded.Warnings(Host())
			if err != nil {
				return err
			}
			for _, warning := range warnings {
				fmt.Fprintf(p.Std.Err, "grapnel: warning: %s\n", timeline.Clean(warning.String()))
			}
			table := console.NewTable(p.Std.Out, fmt.Sprintf("pipeline %s: %d stages", loaded.Name, len(loaded.Stages)))
			for i := range loaded.Stages {
				s := &loaded.Stages[i]
				table.Row(fmt.Sprintf("  %d", i+1), s.Name, whatRuns(s), s.Ends())
			}
			return table.Flush()
		},
	}
}

var oneSession = console.Takes(1, 1, "needs the name of one session")

// sessionDir returns the directory of a session.
func sessionDir(name string) (string, error) {
	return filepath.Abs(filepath.Join(".grapnel", "pipelines", name))
}

// sessionBase returns the trusted directory above the directories of the sessions of this folder: agents may change what is below it.
func sessionBase() rooted.Base {
	dir, _ := filepath.Abs(".") // an empty base cannot be opened
	return rooted.Base(dir)
}

// folderDemand is the demand of pipelines that hooks of this folder's sessions have started without awaiting them: each process that
// runs a session of the folder executes them, also when the session that has started them has ended.
const folderDemand = "pipeline.folder.key"

// folderKey identifies this folder among all that have sessions in a store.
func folderKey() (string, error) {
	dir, err := sessionDir("")
	return sessionKey(dir), err
}

// isOfFolder reports whether a run is a session of this folder: one that was started in it, or one that a hook of such a session has
// started without awaiting it.
func isOfFolder(about durable.Run) (bool, error) {
	if about.Labels[pipeline.LabelDetached] != "" {
		key, err := folderKey()
		return about.Demands[folderDemand] == key, err
	}
	dir, err := sessionDir(about.Labels[pipeline.LabelSession])
	return about.Parent == "" && about.Demands[sessionDemand] == sessionKey(dir), err
}

// sessionKey identifies a session among all jobs of a store. It is also the demand that only this program's workers meet.
func sessionKey(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(sum[:16])
}

func (p *pipelines) newStatus() *cobra.Command {
	var asJSON, watch bool
	c := &cobra.Command{
		Use:   "status SESSION",
		Short: "Show what a session is doing, or how it has ended",
		Long: `Show a session of this folder: its stage and iteration, the last decision, what its agents have used, and how it has ended.
The records in the store are the truth; the files of the session are in .grapnel/pipelines/SESSION. With --watch, a terminal
shows the session until it has ended; elsewhere the events are written, as by "grapnel pipeline logs --follow".`,
		Example: `  grapnel pipeline status friday
  grapnel pipeline status friday --watch
  grapnel pipeline status friday --json | jq -r .stage`,
		Args: oneSession,
		RunE: func(c *cobra.Command, args []string) error {
			return p.withSession(c.Context(), args[0], func(k *storage.Store, about durable.Run) error {
				if watch {
					return p.watchStatus(c.Context(), k, about, asJSON)
				}
				report, err := report(c.Context(), k, about)
				if err != nil {
					return err
				}
				if asJSON {
					return console.WriteJSON(p.Std.Out, report)
				}
				return p.writeStatus(report, k.Address.Flag())
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write it as a JSON object; with --watch, each event")
	c.Flags().BoolVarP(&watch, "watch", "w", false, "show the session until it has ended")
	return c
}

func (p *pipelines) newAbort() *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "abort SESSION", Short: "End a session as cancelled",
		Long:    `Cancel a session and its current iteration. The process of the session ends it, or this one if there is none: no hook is called.`,
		Example: "  grapnel pipeline abort friday",
		Args:    oneSession,
		RunE: func(c *cobra.Command, args []string) error {
			return p.withOpen(c.Context(), args[0], func(k *storage.Store, about durable.Run) error {
				err := k.Control.Signal(c.Context(), about.ID, durable.Signal{Kind: durable.SignalCancel, Text: reason, By: console.UserName()})
				if err == nil {
					err = cancelBelow(c.Context(), k, about.ID)
				}
				if err == nil && !isServed(about) && !k.Served() {
					err = p.endHere(c.Context(), k, about)
				}
				return p.confirm(c.Context(), k, about, err, "is cancelled", "is cancelled: it ends when it is started again")
			})
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "a `sentence` that says why")
	return c
}

// endHere ends a cancelled session, unless another process runs it.
func (p *pipelines) endHere(ctx context.Context, k *storage.Store, about durable.Run) error {
	dir, unlock, err := lock(ctx, k, about)
	if err != nil {
		return nil
	}
	defer unlock()
	nowhere, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer nowhere.Close()
	quiet := *p
	quiet.Std.Out, quiet.Std.Err = nowhere, nowhere // the result is confirmed
	broken := quiet.runSession(ctx, k, about, sessionLook{dir: dir, noWait: true})
	if about, err = k.Store.Run(ctx, about.ID); err != nil || about.Status.Ended() { // that it was cancelled is an error, too
		return err
	}
	return broken
}

// cancelBelow cancels the iteration of a session, and the pipelines below: none of them is to begin again before the session ends.
func cancelBelow(ctx context.Context, k *storage.Store, run agent.RunID) error {
	for below, err := range k.Runs(ctx, durable.Filter{Parent: run, Status: open}) {
		if err != nil {
			return err
		}
		if below.Labels[pipeline.LabelPipeline] == "" { // a run that calls hooks when the session has ended
			continue
		}
		signal := durable.Signal{Kind: durable.SignalCancel, Text: "the pipeline was cancelled", By: console.UserName()}
		if err := errors.Join(k.Control.Signal(ctx, below.ID, signal), cancelBelow(ctx, k, below.ID)); err != nil {
			return err
		}
	}
	return nil
}

func (p *pipelines) newPause() *cobra.Command {
	return &cobra.Command{
		Use: "pause SESSION", Short: "Pause a session after its iteration",
		Long: `Pause a session. Its current iteration runs to its end; then the process of the session exits with 0. "grapnel pipeline resume"
continues it.`,
		Example: "  grapnel pipeline pause friday", Args: oneSession,
		RunE: func(c *cobra.Command, args []string) error {
			return p.withOpen(c.Context(), args[0], func(k *storage.Store, about durable.Run) error {
				err := k.Control.Signal(c.Context(), about.ID, durable.Signal{Kind: durable.SignalPause, By: console.UserName()})
				return p.confirm(c.Context(), k, about, err, "will pause after its iteration", "is paused")
			})
		},
	}
}

// confirm writes what a signal does to a session: with a process that runs it, or without one.
func (p *pipelines) confirm(ctx context.Context, k *storage.Store, about durable.Run, err error, alive, idle string) error {
	if err == nil {
		about, err = k.Store.Run(ctx, about.ID)
	}
	if err != nil {
		return err
	}
	report, err := report(ctx, k, about)
	if err != nil {
		return err
	}
	text := lo.Ternary(report.Alive, alive, idle)
	if about.Status.Ended() {
		text = "has ended as " + string(about.Status)
	}
	_, err = fmt.Fprintf(p.Std.Out, "Session %s %s.\n", report.Session, text)
	return err
}

// withSession opens the store and calls do with the run of a session.
func (p *pipelines) withSession(ctx context.Context, name string, do func(k *storage.Store, about durable.Run) error) error {
	return p.With(ctx, false, func(k *storage.Store) error {
		about, err := findSession(ctx, k, name)
		if err != nil {
			return err
		}
		return do(k, about)
	})
}

// withOpen works like withSession, for a session that must not have ended.
func (p *pipelines) withOpen(ctx context.Context, name string, do func(k *storage.Store, about durable.Run) error) error {
	return p.withSession(ctx, name, func(k *storage.Store, about durable.Run) error {
		if about.Status.Ended() {
			return console.Usagef("session %q has ended as %s", name, about.Status)
		}
		return do(k, about)
	})
}

// isServed reports whether a session is a run of a blueprint, which coordinators execute.
func isServed(about durable.Run) bool { return about.Labels[pipeline.LabelSession] == string(about.ID) }

// findServed returns the session of a blueprint: the run with an ID, which may be shortened.
func findServed(ctx context.Context, k *storage.Store, id string) (durable.Run, error) {
	about, err := k.Find(ctx, id)
	if err == nil && about.Kind != durable.KindPipeline {
		err = console.Usagef("run %s is no pipeline but of kind %s", storage.Short(about.ID), about.Kind)
	}
	return about, err
}

// findSession returns the newest run of the session with a name in this folder, or the run of a blueprint with an ID.
func findSession(ctx context.Context, k *storage.Store, name string) (durable.Run, error) {
	if k.Served() || strings.HasPrefix(name, "run_") {
		return findServed(ctx, k, name)
	}
	for about, err := range k.Runs(ctx, durable.Filter{Kind: durable.KindPipeline, Label: durable.Label{Name: pipeline.LabelSession, Value: name}}) {
		if err != nil {
			return about, err
		}
		if here, err := isOfFolder(about); err != nil || here {
			return about, err
		}
	}
	return durable.Run{}, console.Usagef("no session %q of this folder in %s", name, k.Address)
}

// writeStatus writes a session for a person, with the gates that are open below it, too. Flags follow its name in commands.
func (p *pipelines) writeStatus(s sessionReport, flags string) error {
	table := console.NewTable(p.Std.Out)
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(table, "%s\t%s\n", name, timeline.Clean(value))
		}
	}
	line("session", s.Session)
	line("pipeline", s.Pipeline)
	status := string(s.State)
	if s.State == statePausing {
		status = "running, will pause after its iteration"
	}
	if s.Reason != "" {
		status += " (" + string(s.Reason) + ")"
	}
	line("status", status)
	if s.Stage != "" {
		stage := s.Stage
		if s.MaxIterations > 0 { // a parallel block has no iterations
			stage += fmt.Sprintf(", iteration %d of at most %d", s.Iteration, s.MaxIterations)
		}
		line("stage", stage)
	}
	if s.Decision != "" {
		line("decision", strings.TrimSuffix(s.Decision+": "+s.Why, ": "))
	}
	for _, part := range s.Parts {
		line("  "+part.Stage, fmt.Sprintf("%s, iteration %d of at most %d", part.Status, part.Iteration, part.MaxIterations))
	}
	for _, g := range s.gates {
		line("waits for", strings.TrimSuffix(fmt.Sprintf("%s of %s, until %s: %s", g.For, g.Hook, console.LocalTime(g.Deadline), g.Reason), ": "))
		answer := lo.Ternary(g.For == durable.WaitApproval, "approve", "reject")
		line("answer", "grapnel pipeline "+answer+" "+s.Session+" "+console.ShellWord(storage.ShortWait(g.Wait))+flags)
	}
	line("next", s.remedy(flags))
	line("error", s.Error)
	if s.Steps > 0 {
		line("used", fmt.Sprintf("%s, %d tokens, $%.4f", timeline.Plural(s.Steps, "step"), s.Tokens, s.Cost))
	}
	line("run", string(s.Run))
	line("iteration run", string(s.IterationRun))
	line("updated", console.LocalTime(s.Updated))
	line("directory", s.Dir)
	return table.Flush()
}

// sessionName returns the name of a session: the given one, or that of the pipeline.
func sessionName(given string, p *pipeline.Pipeline) string { return cmp.Or(given, p.Name) }
