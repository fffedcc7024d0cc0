package serve

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/worker"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/events"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/client"
	"github.com/grapnel-go/grapnel/durable"
)

// runnerName matches what the name of a runner cannot have.
var runnerName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// NewRunner returns the command runner.
func NewRunner(std console.Streams) *cobra.Command {
	o := &coordinating{}
	var server, name string
	var labels []string
	c := &cobra.Command{
		Use:   "runner [COMMANDS]",
		Short: "Execute runs of a coordinator on this machine",
		Long: `Execute the runs of a coordinator whose demands are among the labels of this runner, until
interrupted. It needs a token with the role runner, in the variable ` + storage.TokenVariable + ` (docs/coordinator.md).
The label host is the name of this machine.

Files with commands (docs/cli.md) are for procedural blueprints that name no program: the command with
the name of the blueprint runs.

The first SIGINT or SIGTERM suspends the runs: agents stop after their step, and another runner continues
them. A command runs to its end unless that takes longer than --grace. The second signal cuts off all of
them. SIGUSR1 drains the runner.`,
		Example: `  GRAPNEL_TOKEN=grp_… grapnel runner --server http://127.0.0.1:8420 --label zone=eu
  GRAPNEL_TOKEN=grp_… grapnel runner --server https://grapnel.example.com commands.yaml`,
		RunE: func(c *cobra.Command, args []string) error {
			return console.WithTelemetry(c.Context(), "", std.Err, func(ctx context.Context) error {
				return runRunner(ctx, std, o, server, name, labels, args)
			})
		},
	}
	f := c.Flags()
	f.StringVar(&server, "server", os.Getenv(storage.ServerVariable), "the `URL` of the coordinator (default: $"+storage.ServerVariable+")")
	f.StringVar(&name, "name", "", "the name of the runner, which no other one with the same token has (default: host, process and a random part)")
	f.StringArrayVarP(&labels, "label", "l", nil, "a label of the runner, as `NAME=VALUE` (may be repeated)")
	registerRunner(c, o)
	return c
}

// runRunner executes runs of a coordinator until it is stopped.
func runRunner(ctx context.Context, std console.Streams, o *coordinating, server, name string, given, files []string) error {
	labels, err := console.LabelsOf("--label", given)
	token := os.Getenv(storage.TokenVariable)
	switch {
	case err != nil:
	case server == "":
		err = fmt.Errorf("--server requires the URL of a coordinator: give it, or set %s", storage.ServerVariable)
	case token == "":
		err = fmt.Errorf("%s is not set: it must have a token with the role runner", storage.TokenVariable)
	default:
		err = o.check()
	}
	if err != nil {
		return console.Usage(err)
	}
	commands, err := commandsOf(files)
	if err != nil {
		return err
	}
	if labels == nil {
		labels = map[string]string{}
	}
	if host, err := os.Hostname(); err == nil && labels["host"] == "" {
		labels["host"] = host
	}
	c, err := client.New(client.Options{URL: server, Token: token})
	if err != nil {
		return console.Usage(err)
	}
	if name == "" {
		name = fmt.Sprintf("%s-%d-%s", runnerName.ReplaceAllString(labels["host"], "-"), os.Getpid(), strings.ToLower(rand.Text()[:6]))
	}
	store := c.Store(name, client.StoreOptions{Lease: o.lease, Capacity: o.capacity})
	defer store.Close()
	var refused *client.Error
	if _, err := store.DenyTools(ctx); errors.As(err, &refused) && (refused.Status == http.StatusUnauthorized || refused.Status == http.StatusForbidden) {
		return console.Usagef(`%s: %s: "grapnel tokens create NAME --role runner --server %s" makes one`,
			storage.TokenVariable, refused.Detail, server)
	}
	keeper := durable.Keep(store, durable.Options{Owner: name, Events: events.Stored, Lease: o.lease})
	log := &worker.Log{Std: std, AsJSON: o.asJSON}
	remote := coordinator.NewRemote(store, storage.HookHost(false))
	o.remote = true
	options := o.runnerOptions(keeper, store, log)
	options.Commands = commands
	all := remote.Labels(options, labels)
	return (&worker.Job{Log: log}).Run(ctx, store, durable.WorkerOptions{
		Runners: remote.Runners(keeper, options), Labels: all, Capacity: o.capacity, Lease: o.lease, Grace: o.grace,
		Scheduler: store.Scheduler(all),
	})
}
