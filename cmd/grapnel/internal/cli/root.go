package cli

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/approvals"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/blueprints"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/gate"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/hooks"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/mcp"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/pipeline"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/run"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/runs"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/serve"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/stores"
	"github.com/grapnel-go/grapnel/internal/near"
	"github.com/grapnel-go/grapnel/toolexec/shell"
)

// Main runs the command with its arguments, without the name of the program, and
// returns its exit code.
func Main(args []string) int {
	_ = shell.Conceal() // Linux only; see docs/agent-file.md
	console.SurviveBrokenPipes()
	std := console.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	root := newRoot(std)
	root.SetArgs(args)
	return console.ReportError(std.Err, root.ExecuteContext(context.Background()))
}

// Root returns the commands, for manual pages and completion scripts.
func Root() *cobra.Command {
	return newRoot(console.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
}

func newRoot(std console.Streams) *cobra.Command {
	var showVersion bool
	root := &cobra.Command{
		Use:   "grapnel",
		Short: "Run agents with hooks you can trust",
		Long: `grapnel runs agents: a language model, tools, and hooks that watch, steer or stop it.

Without a key for a model service, it plays a recording that ships with it, and says so:

  grapnel run "Why do the tests fail?"

` + console.ExitHelp,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          console.UnknownCommand,
		RunE: func(c *cobra.Command, _ []string) error {
			if !showVersion {
				return c.Help()
			}
			_, err := fmt.Fprintln(c.OutOrStdout(), readBuild())
			return err
		},
	}
	// Cobra's own flag with a text of ours would link text/template, which adds 20 MB: docs/adr/0001.
	root.Flags().BoolVarP(&showVersion, "version", "v", false, "version for grapnel")
	root.SetIn(std.In)
	root.SetOut(std.Out)
	root.SetErr(std.Err)
	root.SuggestionsMinimumDistance = 2
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(
		run.New(std), run.NewChat(std), runs.New(std), approvals.New(std), pipeline.New(std), serve.New(std), serve.NewRunner(std),
		blueprints.New(std), serve.NewSessions(std), serve.NewTokens(std), hooks.New(std), gate.New(std), mcp.New(std), stores.New(std), newVersion(),
	)
	registerCompletions(root)
	return root
}

// flagName matches the flags in a help text.
var flagName = regexp.MustCompile(`--([a-z-]+)`)

// flagError returns an error that suggests a similar flag.
func flagError(c *cobra.Command, err error) error {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "unknown flag: --"); ok {
		known := lo.Map(flagName.FindAllStringSubmatch(c.Flags().FlagUsages(), -1), func(m []string, _ int) string { return m[1] })
		if meant, ok := near.Name(name, known); ok {
			text += fmt.Sprintf(" (did you mean --%s?)", meant)
		}
	}
	return console.Usagef("%s; %q lists the flags", text, c.CommandPath()+" --help")
}
