package cli

import "github.com/spf13/cobra"

// newHooks returns the group of commands about hooks and policies.
func newHooks(std streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "hooks",
		Short: "Check and list policies, and try them on recorded runs",
		Args:  unknownCommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newHooksCheck(std), newHooksList(std), newHooksSchema(std), newHooksBacktest(std),
		newHooksFire(std), newHooksTest(std), newHooksExplain(std), newHooksTools(std))
	return c
}
