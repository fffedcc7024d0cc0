package hooks

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/agents"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
)

func newHooksApprove(std console.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "approve SETTINGS...",
		Short: "Approve settings files of Claude Code, with the scripts that they name",
		Long: `Approve settings files of Claude Code for --claude-hooks. Read them first: their hooks run programs as you. The approval is for the
content of the file and of the scripts that its commands name, and ends when one of them changes. Your own settings,
in ~/.claude, need none.`,
		Example: `  grapnel hooks approve .claude/settings.json`,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return console.Usagef("no file: name the settings files to approve")
			}
			lines, err := agents.ApproveClaudeHooks(args)
			if err != nil {
				return err
			}
			for _, line := range lines {
				fmt.Fprintln(std.Out, "approved", timeline.Clean(line))
			}
			return nil
		},
	}
}
