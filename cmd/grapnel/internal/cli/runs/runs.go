package runs

import (
	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/worker"
)

// runs are the commands about stored runs.
type runs struct{ storage.Command }

// New returns the command runs.
func New(std console.Streams) *cobra.Command {
	r := &runs{storage.Command{Std: std}}
	return r.AddFlags(console.Group(&cobra.Command{
		Use:   "runs",
		Short: "Submit, execute, list, answer, resume and remove stored runs",
		Long: `Runs of "grapnel run --durable" are kept in a store. These commands show their
status, answer their questions, and resume them: in this process, with the agent
that they began with, in the folder that they began in. "grapnel runs submit" stores
runs of agents and commands that a worker executes: "grapnel runs work".

A run's ID may be shortened to any unique prefix.

` + console.ExitHelp,
		Example: `  grapnel runs list --status waiting
  grapnel runs show run_7GHK2MWQ
  grapnel runs approve run_7GHK2MWQ 5f0c8e31ab97
  grapnel runs resume --all
  grapnel runs submit agent fixer "Fix the build"
  grapnel runs work fixer.yaml`,
	},
		r.newSubmit(), worker.New(&r.Command), r.newList(), r.newShow(), r.newCheck(), r.newWatch(), r.newResume(), r.newRetry(), r.newApprove(), r.newReject(),
		r.newPause(), r.newTell(), r.newCancel(), r.newExport(), r.newDelete(), r.newPrune(), r.newDenyTools(), r.newSchema(),
	))
}

const needsRun = `needs the ID of one run: "grapnel runs list" lists them`

var oneRun = console.Takes(1, 1, needsRun)
