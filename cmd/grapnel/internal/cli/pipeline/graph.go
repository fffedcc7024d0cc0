package pipeline

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/pipeline"
)

// firstPipeline is the file that "pipeline init" writes.
//
//go:embed shipped/pipeline.yaml
var firstPipeline []byte

func (p *pipelines) newInit() *cobra.Command {
	return &cobra.Command{
		Use:   "init [FILE]",
		Short: "Write a small pipeline to begin with",
		Long: `Write a pipeline with commands, a check and a gate, that runs as it is and needs no key: pipeline.yaml, unless another name is
given. A file that exists is not changed.`,
		Example: "  grapnel pipeline init\n  grapnel pipeline start pipeline.yaml",
		Args:    console.Takes(0, 1, "takes one file at most"),
		RunE: func(_ *cobra.Command, args []string) error {
			path := append(args, "pipeline.yaml")[0]
			file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
			if errors.Is(err, fs.ErrExist) {
				return console.Usagef("%s exists: give another name", path)
			}
			if err != nil {
				return console.Usage(err)
			}
			_, err = file.Write(firstPipeline)
			if err = errors.Join(err, file.Close()); err != nil {
				return fmt.Errorf("writing the pipeline: %w", err)
			}
			_, err = fmt.Fprintf(p.Std.Out, "Wrote %s. Run it:\n  grapnel pipeline start %s\n", path, console.ShellWord(path))
			return err
		},
	}
}

func (p *pipelines) newSchema() *cobra.Command {
	var loop bool
	c := &cobra.Command{
		Use:   "schema",
		Short: "Write the JSON Schema of pipeline files, for editors",
		Long: `Write the JSON Schema of pipeline files, or of loop files. Editors with a YAML language server use it to complete and check
keys if the first line of a pipeline is:

  # yaml-language-server: $schema=` + pipeline.SchemaID + `

and that of a loop:

  # yaml-language-server: $schema=` + pipeline.LoopSchemaID,
		Example: "  grapnel pipeline schema > pipeline.schema.json\n  grapnel pipeline schema --loop > pipeline-loop.schema.json",
		Args:    console.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			schema := pipeline.Schema()
			if loop {
				schema = pipeline.LoopSchema()
			}
			_, err := p.Std.Out.Write(schema)
			return err
		},
	}
	c.Flags().BoolVar(&loop, "loop", false, "write the schema of loop files")
	return c
}

// whatRuns says what runs in the iterations of a stage.
func whatRuns(s *pipeline.Stage) string {
	switch {
	case s.Command != nil:
		return "command " + s.Command.Argv[0]
	case len(s.Parallel) > 0:
		return fmt.Sprintf("%d stages at the same time", len(s.Parallel))
	}
	return "agent " + s.Agent.String()
}

func (p *pipelines) newDryRun() *cobra.Command {
	var session string
	c := &cobra.Command{
		Use:   "dry-run FILE",
		Short: "Show which commands and hooks would run, and with which variables",
		Long: `Show what a session would run, stage by stage, and run nothing: the agent or the command, the variables of the first iteration, and
the hooks at each point in their order, with their conditions.`,
		Example: "  grapnel pipeline dry-run pipeline.yaml",
		Args:    oneFile,
		RunE: func(_ *cobra.Command, args []string) error {
			loaded, err := loadPipeline(args[0])
			if err != nil {
				return err
			}
			name := sessionName(session, loaded)
			dir, err := sessionDir(name)
			if err != nil {
				return err
			}
			plan, err := loaded.Plan(Host(), pipeline.SessionOptions{Name: name, Dir: dir})
			if err != nil {
				return console.Usage(err)
			}
			table := console.NewTable(p.Std.Out)
			for _, s := range plan {
				writePlanned(table, s)
			}
			return table.Flush()
		},
	}
	c.Flags().StringVar(&session, "session", "", "the `name` of the session; the default is the name of the pipeline")
	return c
}

// writePlanned writes what would run in a stage.
func writePlanned(w io.Writer, s pipeline.PlannedStage) {
	fmt.Fprintf(w, "%s\t%s\t%s\n", s.Name, timeline.Clean(whatRuns(s.Stage)), timeline.Clean(s.Ends()))
	if len(s.Parallel) == 0 {
		for _, name := range slices.Sorted(maps.Keys(s.Variables)) {
			if value := s.Variables[name]; value != "" {
				fmt.Fprintf(w, "  %s=%s\n", name, console.ShellWord(value))
			}
		}
	}
	for _, r := range s.Hooks {
		what := cmp.Or(r.Action, r.Decision)
		if r.Action != "" && r.Await {
			what += ", awaited"
		}
		when := ""
		if r.When != "" {
			when = "when " + r.When
		}
		fmt.Fprintf(w, "  %s\t%s/%s\t%s\t%s\n", r.Point, r.Policy, r.ID, what, timeline.Clean(when))
	}
}

func (p *pipelines) newRebuild() *cobra.Command {
	return &cobra.Command{
		Use:   "rebuild SESSION",
		Short: "Write the files of a session again",
		Long: `Write the files of a session again that show what is in its store: status.json, events.jsonl, and the outputs of its iterations.
Progress files stay as they are.`,
		Example: "  grapnel pipeline rebuild friday",
		Args:    oneSession,
		RunE: func(c *cobra.Command, args []string) error {
			return p.withSession(c.Context(), args[0], func(k *storage.Store, about durable.Run) error {
				return rebuildSession(c.Context(), p.Std.Out, k, about, args[0])
			})
		},
	}
}

// rebuildSession writes the files of a session again, unless a process runs it.
func rebuildSession(ctx context.Context, out io.Writer, k *storage.Store, about durable.Run, name string) error {
	if err := k.RequireDirect(); err != nil {
		return err
	}
	dir, err := sessionDir(name)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return err
	}
	unlock, err := lockSession(dir)
	if err != nil {
		return console.Usagef("session %q: %w", name, err)
	}
	defer unlock()
	if err := pipeline.Rebuild(ctx, k.Direct, about); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "The files of session %s are in %s.\n", name, dir)
	return err
}
