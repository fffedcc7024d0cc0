package runs

import (
	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/coordinator/wire"
)

func (r *runs) newRetry() *cobra.Command {
	var in wire.RetryRequest
	var o Reporting
	c := &cobra.Command{
		Use:   "retry ID",
		Short: "Submit a run of a blueprint again that has failed or was stopped",
		Long: `Submit a new run with the blueprint version, parameters, demands, labels and time limits of a run that has
failed, was blocked or was stopped. Nothing that it did is in the new run. The retry of a session's last run
continues the session as it was before that run. With --past, the on_run_start hook that has blocked the run is
not asked again; the error about a wrong name has the right one. --reason goes to the audit log and is shown
with the new run.

` + SubmitLong + console.ExitHelp,
		Example: `  grapnel runs retry run_7GHK2MWQ --wait
  grapnel runs retry run_7GHK2MWQ --past agent.report/RunStart-1 --reason "May is open again"`,
		Args: oneRun,
		RunE: func(c *cobra.Command, args []string) error {
			return r.WithCoordinator(c.Context(), func(k *storage.Store) error {
				about, err := k.Find(c.Context(), args[0])
				if err != nil {
					return err
				}
				submitted, err := k.Client.Retry(c.Context(), about.ID, in)
				if err != nil {
					return storage.Missing(err, "run %s was not submitted through a coordinator: submit it again", about.ID)
				}
				return o.Report(c.Context(), r.Std, k, submitted.RunID, submitted)
			})
		},
	}
	f := c.Flags()
	f.StringVar(&in.PastHook, "past", "", "skip the on_run_start hook that blocked the run; its `name`, or the agent or program that it calls")
	f.StringVar(&in.Reason, "reason", "", "why the run may pass the hook, as `text`")
	f.StringVar(&in.IdempotencyKey, "idempotency-key", "", "identifies the retry: retrying again with the same `key` returns the first new run")
	o.AddFlags(c)
	return c
}
