package hooks

import (
	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
)

// New returns the group of commands about hooks and policies.
func New(std console.Streams) *cobra.Command {
	return console.Group(&cobra.Command{
		Use:   "hooks",
		Short: "Check and list policies, and try them on recorded runs",
	}, newHooksCheck(std), newHooksList(std), newHooksSchema(std), newHooksBacktest(std),
		newHooksFire(std), newHooksTest(std), newHooksExplain(std), newHooksTools(std), newHooksApprove(std))
}
