package cli

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/internal/near"
	"github.com/grapnel-go/grapnel/toolexec/shell"
)

// Main runs the command with its arguments, without the name of the program, and
// returns its exit code.
func Main(args []string) int {
	_ = shell.Conceal() // Linux only; see docs/agent-file.md
	surviveBrokenPipes()
	std := streams{os.Stdin, os.Stdout, os.Stderr}
	root := newRoot(std)
	root.SetArgs(args)
	return reportError(std.err, root.ExecuteContext(context.Background()))
}

// Root returns the commands, for manual pages and completion scripts.
func Root() *cobra.Command { return newRoot(streams{os.Stdin, os.Stdout, os.Stderr}) }

func newRoot(std streams) *cobra.Command {
	var showVersion bool
	root := &cobra.Command{
		Use:   "grapnel",
		Short: "Run agents with hooks you can trust",
		Long: `grapnel runs agents: a language model, tools, and hooks that watch, steer or stop it.

Without a key for a model service, it plays a recording that ships with it, and says so:

  grapnel run "Why do the tests fail?"

` + exitHelp,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          unknownCommand,
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
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)
	root.SuggestionsMinimumDistance = 2
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(
		newRun(std), newChat(std), newRuns(std), newApprovals(std), newPipeline(std), newServe(std), newRunner(std),
		newBlueprints(std), newSessions(std), newTokens(std), newHooks(std), newVersion(),
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
	return &usageError{fmt.Errorf("%s; %q lists the flags", text, c.CommandPath()+" --help")}
}
