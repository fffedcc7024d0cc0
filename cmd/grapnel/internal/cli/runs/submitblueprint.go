package runs

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/blueprints"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/coordinator/wire"
)

func (r *runs) newSubmitBlueprint() *cobra.Command {
	var in wire.RunRequest
	var demands, labels []string
	var params string
	var startWithin, timeout time.Duration
	var o Reporting
	c := &cobra.Command{
		Use:   "blueprint NAME [PROMPT | -]",
		Short: "Submit a run of a blueprint",
		Long: `Submit a run of a blueprint, to the coordinator at --server or in its store. The parameters are --params, or the
prompt: {"prompt": "…"}, from the arguments, or standard input if they end in "-".

` + SubmitLong + console.ExitHelp,
		Example: `  grapnel runs submit blueprint report --params '{"month": "May"}' --server http://127.0.0.1:8420 --wait
  grapnel runs submit blueprint fixer "Fix the build" --store runs.db`,
		Args: console.Takes(1, console.Unlimited, blueprints.NeedsBlueprint), // a prompt may follow
		RunE: func(c *cobra.Command, args []string) (err error) {
			in.AgentName = args[0]
			if in.Parameters, err = blueprintParams(params, args[1:], r.Std); err == nil {
				in.Demands, err = console.LabelsOf("--demand", demands)
			}
			if err == nil {
				in.Labels, err = console.LabelsOf("--label", labels)
			}
			if err == nil && (startWithin < 0 || timeout < 0) {
				err = errors.New("--start-within and --timeout must be above zero")
			}
			if err != nil {
				return console.Usage(err)
			}
			in.StartWithinSeconds, in.TimeoutSeconds = RoundedSeconds(startWithin), RoundedSeconds(timeout)
			return r.WithCoordinator(c.Context(), func(k *storage.Store) error {
				submitted, err := k.Client.Submit(c.Context(), in)
				if err != nil {
					return err
				}
				return o.Report(c.Context(), r.Std, k, submitted.RunID, submitted)
			})
		},
	}
	f := c.Flags()
	f.StringVar(&params, "params", "", "the parameters: a `JSON` object, @FILE, or - for standard input")
	f.StringArrayVar(&demands, "demand", nil, "a label that the runner must have, as `NAME=VALUE` (may be repeated)")
	f.StringArrayVarP(&labels, "label", "l", nil, "a label of the run, as `NAME=VALUE` (may be repeated)")
	f.Int8Var(&in.Priority, "priority", 0, "runs with a higher priority start first, from -128 to 127")
	f.DurationVar(&startWithin, "start-within", 0, "cancel the run unless a runner takes it within this `time`")
	f.DurationVar(&timeout, "timeout", 0, "stop the run after this total `time`, in which it may have waited")
	f.StringVar(&in.IdempotencyKey, "idempotency-key", "", "identifies the run: submitting again with the same `key` returns the first run")
	f.StringVar((*string)(&in.ParentSessionID), "parent-session", "", "the `ID` of the session that starts the run")
	f.StringVar((*string)(&in.ExecutionMode), "mode", "", "with --parent-session: async_callback tells that session how the run has ended, async_poll does not")
	o.AddFlags(c)
	return c
}

// blueprintParams returns the parameters of a run of a blueprint.
func blueprintParams(params string, prompt []string, std console.Streams) (json.RawMessage, error) {
	if params != "" {
		if len(prompt) > 0 {
			return nil, errors.New("both --params and a prompt are given: add the prompt to the parameters")
		}
		return paramsOf(params, std.In)
	}
	if len(prompt) == 0 {
		return json.RawMessage("{}"), nil
	}
	text, err := console.PromptOf(prompt, std.In)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]string{"prompt": text})
}

// RoundedSeconds returns a duration in seconds, rounded up.
func RoundedSeconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }
