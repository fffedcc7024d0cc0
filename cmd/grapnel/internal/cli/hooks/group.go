package hooks

import (
	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
)

// New returns the group of commands about hooks and policies.
func New(std console.Streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "hooks",
		Short: "Check and list policies, and try them on recorded runs",
		Args:  console.UnknownCommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newHooksCheck(std), newHooksList(std), newHooksSchema(std), newHooksBacktest(std),
		newHooksFire(std), newHooksTest(std), newHooksExplain(std), newHooksTools(std))
	return c
}
