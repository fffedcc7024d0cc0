package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/agentfile"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/worker"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/command"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// submitting are the flags of a submitted job.
type submitting struct {
	demands, labels              []string
	priority                     int8
	notBefore, startBy, deadline string
	key                          string
	files                        []string
	params                       string // of a command
	steps, tokens                yamlfile.Count
	cost                         agentfile.Dollars
	time                         yamlfile.Duration

	Reporting
}

// Reporting are the flags that say what a command writes about a run that it submits.
type Reporting struct{ wait, asJSON bool }

// AddFlags adds the flags.
func (o *Reporting) AddFlags(c *cobra.Command) {
	c.Flags().BoolVarP(&o.wait, "wait", "w", false, "wait until the run ends, write its result, and exit with its code")
	c.Flags().BoolVar(&o.asJSON, "json", false, "write the run as a JSON object")
}

// Report writes a run that was submitted, or waits until it has ended and writes its result.
func (o *Reporting) Report(ctx context.Context, std console.Streams, k *storage.Store, id agent.RunID, submitted any) error {
	text := timeline.Clean(string(id))
	switch {
	case o.wait:
		fmt.Fprintf(std.Err, "grapnel: submitted %s in %s%s.\n", text, k.Address, k.Address.Encrypts())
		return awaitEnd(ctx, std, k, id, o.asJSON)
	case o.asJSON:
		return console.WriteJSON(std.Out, submitted)
	}
	_, err := fmt.Fprintln(std.Out, text)
	return err
}

func (o *submitting) register(c *cobra.Command) {
	f := c.Flags()
	f.StringArrayVar(&o.demands, "demand", nil, "a label that the worker must have, as `NAME=VALUE` (may be repeated)")
	f.StringArrayVarP(&o.labels, "label", "l", nil, "a label of the run, as `NAME=VALUE` (may be repeated)")
	f.Int8Var(&o.priority, "priority", 0, "runs with a higher priority start first, from -128 to 127")
	f.StringVar(&o.notBefore, "not-before", "", "when the run may start: a `time` such as 10m or 2d from now, or an RFC 3339 time")
	f.StringVar(&o.startBy, "start-by", "", "cancel the run unless it has started by this `time`")
	f.StringVar(&o.deadline, "deadline", "", "cancel the run unless it has ended by this `time`, also while it waits")
	f.Var(&o.time, "time", "stop the run after this time, such as 10m, counted from its start; while it waits, parked, it does not count")
	f.StringVar(&o.key, "idempotency-key", "", "identifies the job: submitting the `key` again returns the first run")
	f.StringArrayVarP(&o.files, "file", "f", nil, "`file` of the worker that defines the agent or command: the job is checked against it (may be repeated)")
	o.AddFlags(c)
}

func (r *runs) newSubmit() *cobra.Command {
	return console.Group(&cobra.Command{
		Use:   "submit",
		Short: "Submit a run for a worker",
		Long: `Store a run of an agent or a command, which a worker ("grapnel runs work") executes, or of a blueprint, which
a coordinator ("grapnel serve") or its runners execute.`,
	}, r.newSubmitAgent(), r.newSubmitCommand(), r.newSubmitBlueprint())
}

// SubmitLong explains what commands that submit runs have in common.
const SubmitLong = `It writes the ID of the run to standard output. With --wait, it writes the result of the run instead when
the run has ended; interrupting it does not end the run.

`

func (r *runs) newSubmitAgent() *cobra.Command {
	var o submitting
	c := &cobra.Command{
		Use:   "agent NAME [PROMPT | -]",
		Short: "Submit a run of an agent",
		Long: `Submit a run of the agent with a name, as its worker knows it. The prompt is the arguments, or standard
input if they end in "-" or if there are none and input is piped. --steps, --tokens, --cost and --time limit
the run together with the runs that it starts, in addition to the limits of the agent.

` + SubmitLong + console.ExitHelp,
		Example: `  grapnel runs submit agent fixer "Fix the build" --wait
  grapnel runs submit agent fixer "Fix the build" --file fixer.yaml --demand project=web --deadline 2h`,
		Args: someName,
		RunE: func(c *cobra.Command, args []string) error {
			prompt, err := console.PromptOf(args[1:], r.Std.In)
			if err == nil && prompt == "" {
				err = fmt.Errorf(`no prompt: give one, as in %s %s "Fix the build", or pipe one in`, c.CommandPath(), args[0])
			}
			if err != nil {
				return console.Usage(err)
			}
			job, err := durable.AgentJob(args[0], agent.NewState(), agent.UserText(prompt))
			if err != nil {
				return err
			}
			return r.submit(c.Context(), &o, job)
		},
	}
	o.register(c)
	f := c.Flags()
	f.Var(&o.steps, "steps", "stop the run after this number of model turns, including sub-agents")
	f.Var(&o.tokens, "tokens", "stop the run after this number of tokens, input and output together")
	f.Var(&o.cost, "cost", "stop the run at this cost in US dollars; an unknown cost counts as reached")
	return c
}

func (r *runs) newSubmitCommand() *cobra.Command {
	var o submitting
	c := &cobra.Command{
		Use:   "command NAME",
		Short: "Submit a run of a command",
		Long: `Submit a run of the command with a name, as its worker knows it. The command reads the parameters, a JSON
object, from its standard input.

` + SubmitLong + console.ExitHelp,
		Example: `  grapnel runs submit command report --params '{"month": "2026-11"}' --wait
  grapnel runs submit command report --params @november.json --file commands.yaml --idempotency-key report-2026-11`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return console.Usagef("%s has one argument, the name: give parameters with --params", c.CommandPath())
			}
			return someName(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			params, err := paramsOf(o.params, r.Std.In)
			if err != nil {
				return console.Usage(err)
			}
			job, err := command.Job(args[0], params)
			if err != nil {
				return console.Usage(err)
			}
			return r.submit(c.Context(), &o, job)
		},
	}
	o.register(c)
	c.Flags().StringVar(&o.params, "params", "{}", "the parameters: a `JSON` object, @FILE, or - for standard input")
	return c
}

var someName = console.Takes(1, console.Unlimited, "needs the name of an agent or command")

// paramsOf returns the parameters of a command.
func paramsOf(text string, in io.Reader) (json.RawMessage, error) {
	data, err := []byte(text), error(nil)
	switch path, file := strings.CutPrefix(text, "@"); {
	case file:
		data, err = os.ReadFile(path)
	case text == "-":
		data, err = io.ReadAll(io.LimitReader(in, console.MostInput+1))
		if err == nil && len(data) > console.MostInput {
			err = errors.New("they are longer than 10 MiB")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("--params: %w", err)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil || object == nil {
		return nil, errors.New(`--params: the parameters must be a JSON object, such as '{"month": "2026-11"}'`)
	}
	return data, nil
}

// complete sets what the flags say about a job.
func (o *submitting) complete(job *durable.Job, now time.Time) (err error) {
	if job.Demands, err = console.LabelsOf("--demand", o.demands); err != nil {
		return err
	}
	if job.Labels, err = console.LabelsOf("--label", o.labels); err != nil {
		return err
	}
	for _, t := range []struct {
		flag, text string
		at         *time.Time
	}{{"--not-before", o.notBefore, &job.NotBefore}, {"--start-by", o.startBy, &job.StartBy}, {"--deadline", o.deadline, &job.Deadline}} {
		if t.text == "" {
			continue
		}
		if *t.at, err = console.InstantOf(t.flag, t.text, now, 1); err != nil {
			return err
		}
	}
	job.Priority, job.IdempotencyKey, job.By = o.priority, o.key, console.IdentityName()
	job.Limits = agent.Limits{Steps: int(o.steps), Tokens: int64(o.tokens), Cost: float64(o.cost), Time: time.Duration(o.time)}
	if len(o.files) > 0 {
		if err := checkJob(job, o.files); err != nil {
			return err
		}
	}
	_, err = job.Prepare()
	return err
}

// checkJob checks a job against the files of its worker.
func checkJob(job *durable.Job, files []string) error {
	d, err := worker.Load(files)
	if err == nil {
		err = d.Check(job.Kind, job.Name)
	}
	if err != nil || job.Kind != durable.KindCommand {
		return err
	}
	if err := d.Commands[job.Name].Validate(job.Input); err != nil {
		return fmt.Errorf("the parameters of command %q are invalid: %w", job.Name, err)
	}
	return nil
}

// submit stores a job.
func (r *runs) submit(ctx context.Context, o *submitting, job durable.Job) error {
	job.Kind = lo.CoalesceOrEmpty(job.Kind, durable.KindAgent)
	if err := o.complete(&job, time.Now()); err != nil {
		return console.Usage(err)
	}
	return r.WithDirect(ctx, true, func(k *storage.Store) error {
		stored, err := k.Direct.Submit(ctx, job)
		if err != nil {
			return err
		}
		return o.Report(ctx, r.Std, k, stored[0].ID, stored[0])
	})
}

// followInterval is how often a command that follows a run looks at it when the store reports no change.
const followInterval = 200 * time.Millisecond

// lastError returns why no runner could execute a run of a blueprint that waits to be tried again; empty for other runs.
func lastError(ctx context.Context, k *storage.Store, about durable.Run) string {
	if about.Events == 0 || about.Status != durable.StatusPending && about.Status != durable.StatusReady {
		return ""
	}
	last, err := k.Store.Events(ctx, about.ID, about.Events-1, 1)
	var data durable.RunnerError
	if err != nil || len(last) == 0 || last[0].Name != durable.EventRunnerError || json.Unmarshal(last[0].Data, &data) != nil {
		return ""
	}
	return data.Error
}

// justReady is how long a run has been ready at most that workers may not have looked for.
const justReady = 3 * time.Second

// awaitEnd waits until a run ends, writes its result, and returns its exit code.
func awaitEnd(ctx context.Context, std console.Streams, k *storage.Store, id agent.RunID, asJSON bool) error {
	var changes <-chan struct{}
	if !k.Served() { // a coordinator reports no changes
		changes = k.Direct.Changes(ctx)
	}
	told := ""
	for {
		about, err := k.Store.Run(ctx, id)
		if err != nil {
			return err
		}
		if about.Status.Ended() {
			return showEnd(ctx, std, k, about, asJSON)
		}
		all, err := listRuns(ctx, k, about)
		if err != nil {
			return err
		}
		now := string(about.Status)
		if all[0].Unserved && time.Since(about.Ready) < justReady { // no worker can have looked for it
			all[0].Unserved = false
		}
		if standing := all[0].standing(time.Now()); standing != "" && about.Status != durable.StatusRunning {
			now += ": " + standing
		}
		if failure := lastError(ctx, k, about); failure != "" {
			now += ": " + failure
		}
		if now != told {
			told = now
			fmt.Fprintf(std.Err, "grapnel: %s is %s\n", storage.Short(id), timeline.Clean(now))
		}
		if changes, err = pauseUntil(ctx, changes); err != nil {
			return err
		}
	}
}

// pauseUntil waits for a change of the store, at most for followInterval.
func pauseUntil(ctx context.Context, changes <-chan struct{}) (<-chan struct{}, error) {
	timer := time.NewTimer(followInterval)
	defer timer.Stop()
	select {
	case _, open := <-changes:
		if !open {
			changes = nil
		}
	case <-timer.C:
	case <-ctx.Done():
	}
	return changes, context.Cause(ctx)
}

// showEnd writes the result of a run that has ended, and returns its exit code.
func showEnd(ctx context.Context, std console.Streams, k *storage.Store, about durable.Run, asJSON bool) error {
	result, err := durable.ResultOf(ctx, k.Store, about.ID)
	if err != nil {
		return err
	}
	switch {
	case asJSON:
		err = console.WriteJSON(std.Out, shownRun{listed: listed{Run: about}, Result: &result})
	case about.Status == durable.StatusCompleted:
		text := lo.CoalesceOrEmpty(string(result.Data), strings.TrimSuffix(result.Text, "\n"))
		_, err = fmt.Fprintln(std.Out, text)
	}
	hasAnswer := about.Status != durable.StatusCompleted || about.Kind != durable.KindAgent || strings.TrimSpace(result.Text+string(result.Data)) != ""
	if about.Status != durable.StatusCompleted || !hasAnswer {
		text := fmt.Sprintf("%s has ended as %s", storage.Short(about.ID), about.Status)
		if !hasAnswer {
			text = storage.Short(about.ID) + " has ended without an answer"
		}
		if result.Error != "" {
			text += ": " + result.Error
		} else if about.Reason != "" {
			text += ": " + string(about.Reason)
		}
		fmt.Fprintln(std.Err, "grapnel: "+timeline.Clean(text))
	}
	if err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	if !hasAnswer {
		return console.Exit(console.ExitFailed)
	}
	return console.Exit(exitCodeOf(about))
}

// exitCodeOf returns the exit code for a run that has ended.
func exitCodeOf(about durable.Run) int {
	switch about.AgentStatus() {
	case agent.StatusDone:
		return console.ExitDone
	case agent.StatusStopped:
		return console.ExitStopped
	case agent.StatusDenied:
		return console.ExitDenied
	case agent.StatusInterrupted:
		return console.ExitRejected
	case agent.StatusCancelled:
		return console.ExitInterrupted
	}
	return console.ExitFailed
}
