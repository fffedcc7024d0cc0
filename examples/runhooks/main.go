// Command runhooks shows hooks around runs at a coordinator: one agent after the other, parameters that a hook adds, a
// run that a hook blocks, and a log of all runs. The blueprints are files, which "grapnel blueprints apply" stores as
// well. Scripts play the models, so it needs no key.
//
//	go run ./examples/runhooks
package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/api"
	"github.com/grapnel-go/grapnel/coordinator/client"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/sqlite"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/registry"
)

//go:embed *.yaml
var files embed.FS

func main() {
	if err := showHooks(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "runhooks:", err)
		os.Exit(1)
	}
}

// answers are what the agents' models say.
var answers = map[string]string{
	"data-extractor": `{"records": ["2 grapnels", "1 rope"], "source": "mail"}`,
	"data-processor": "Booked 2 grapnels and 1 rope.",
}

func showHooks(ctx context.Context, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "runhooks")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	store, err := sqlite.Open(ctx, filepath.Join(dir, "runs.db"), sqlite.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	c, err := coordinator.New(coordinator.Options{Store: store})
	if err != nil {
		return err
	}
	stop, err := startWorker(ctx, c, store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	requests, closeServer, err := serve(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeServer()) }()
	if err := storeBlueprints(ctx, requests, dir); err != nil {
		return err
	}

	fmt.Fprintln(out, "Chaining: one agent, then another one with its result.")
	first, err := show(ctx, out, requests, "data-extractor", `{"prompt": "Please send 2 grapnels and 1 rope."}`)
	if err != nil {
		return err
	}
	if err := showNext(ctx, out, requests, first); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nEnrichment: a hook adds the path.")
	if _, err := show(ctx, out, requests, "report-generator", `{"report_id": "R123"}`); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nValidation: a hook lets one run through and blocks another one.")
	for _, folder := range []string{"/tmp/cache", "/home/ann"} {
		if _, err := show(ctx, out, requests, "cleanup", `{"folder": "`+folder+`"}`); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "\nLogging: what audit-logger has written.")
	return printLog(out, filepath.Join(dir, "audit.jsonl"))
}

// startWorker starts a worker that calls hooks and executes runs. Stop ends it.
func startWorker(ctx context.Context, c *coordinator.Coordinator, store durable.Store) (stop func() error, err error) {
	keeper := durable.Keep(c.RunnerStore(), durable.Options{})
	options := coordinator.RunnerOptions{
		Agents: func(ctx context.Context, d registry.Definition, rules []hooks.Hook) (*agent.Agent, func() error, error) {
			d.Model = "script/" + d.Name
			built, err := scripts.Build(ctx, d)
			if err != nil {
				return nil, nil, err
			}
			a, err := built.Builder.With(capability.UseHooks(rules...), capability.UseDurability{Keeper: keeper}).Build().Get()
			return a, built.Close, err
		},
	}
	runners := c.Runners(keeper, options)
	maps.Copy(runners, c.HookRunners(keeper))
	worker, err := durable.NewWorker(store, durable.WorkerOptions{Runners: runners, Labels: c.Labels(options, nil), Poll: 20 * time.Millisecond})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var ended error
	var running sync.WaitGroup
	running.Go(func() { ended = worker.Run(ctx) })
	return func() error {
		cancel()
		running.Wait()
		return ended
	}, nil
}

// scripts has the driver for models that give these answers.
var scripts = registry.Registry{Drivers: map[string]registry.DriverMaker{
	"script/": func(_ context.Context, _ *registry.Making, name string) (agent.Driver, error) {
		return agenttest.Script(agenttest.Say(answers[name])), nil
	},
}}

// serve serves a coordinator's API on this machine, and returns a client.
func serve(ctx context.Context, c *coordinator.Coordinator) (requests *client.Client, closeServer func() error, err error) {
	const token = "only-in-this-program"
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	server := &http.Server{Handler: api.Handler(c, api.Options{Token: token}), ReadHeaderTimeout: time.Minute}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) }) // it ends with Close
	closeServer = func() error {
		defer serving.Wait()
		return server.Close()
	}
	requests, err = client.New(client.Options{URL: "http://" + listener.Addr().String(), Token: token})
	if err != nil {
		return nil, nil, errors.Join(err, closeServer())
	}
	return requests, closeServer, nil
}

// stored are the blueprints in the order in which they are stored. Blueprints that hooks start come first.
var stored = []string{
	"audit-logger", "data-processor", "data-extractor", "path-resolver", "report-generator", "security-validator", "cleanup",
}

// storeBlueprints stores the blueprints, as "grapnel blueprints apply" does. Audit-logger writes to a folder.
func storeBlueprints(ctx context.Context, requests *client.Client, dir string) error {
	for _, name := range stored {
		text, err := files.ReadFile(name + ".yaml")
		if err != nil {
			return err
		}
		file := yamlfile.Parse(name+".yaml", text)
		root, ok := file.Root()
		if !ok {
			return file.Err()
		}
		b, ok := root.Value().(map[string]any)
		if !ok {
			return fmt.Errorf("%s.yaml is no mapping", name)
		}
		if command, ok := b["command"].(map[string]any); ok && name == "audit-logger" {
			command["dir"] = dir
		}
		if text, err = json.Marshal(b); err != nil {
			return err
		}
		if _, err := requests.CreateBlueprint(ctx, text); err != nil {
			return fmt.Errorf("storing blueprint %s: %w", name, err)
		}
	}
	return nil
}

// show submits a run, waits until it has ended and its hooks were called, and prints the outcome.
func show(ctx context.Context, out io.Writer, requests *client.Client, name, params string) (agent.RunID, error) {
	run, err := requests.Submit(ctx, wire.RunRequest{AgentName: name, Parameters: json.RawMessage(params)})
	if err != nil {
		return "", err
	}
	d, err := requests.Wait(ctx, run.RunID)
	for err == nil && !finishHookCalled(d) {
		time.Sleep(20 * time.Millisecond)
		d, err = requests.Run(ctx, run.RunID)
	}
	if err != nil {
		return "", err
	}
	fmt.Fprintf(out, "%s %s: %s\n", name, params, d.Status)
	for _, h := range d.Hooks {
		if h.EventType == wire.EventHookStart {
			continue
		}
		fmt.Fprintf(out, "  %s %s: %s", h.HookType, h.TargetName, h.EventType)
		switch {
		case h.ParametersTransformed:
			fmt.Fprintf(out, ", the parameters are now %s", h.After)
		case h.BlockReason != "":
			fmt.Fprintf(out, ", %s", h.BlockReason)
		}
		fmt.Fprintln(out)
	}
	printResult(out, d)
	return run.RunID, nil
}

// finishHookCalled reports whether the hook after a run was called. All blueprints whose runs are shown have one.
func finishHookCalled(d wire.RunDetail) bool {
	last := len(d.Hooks) - 1
	return last >= 0 && d.Hooks[last].HookType == "on_run_finish" && d.Hooks[last].EventType != wire.EventHookStart
}

func printResult(out io.Writer, d wire.RunDetail) {
	switch {
	case d.Error != nil:
		fmt.Fprintf(out, "  error: %s\n", *d.Error)
	case d.ResultText != nil:
		fmt.Fprintf(out, "  result: %s\n", strings.TrimSpace(*d.ResultText))
	default:
		fmt.Fprintf(out, "  result: %s\n", d.ResultData)
	}
}

// showNext prints the run that the hook after a run has started.
func showNext(ctx context.Context, out io.Writer, requests *client.Client, first agent.RunID) error {
	list, err := requests.Runs(ctx, url.Values{"parent_run_id": {string(first)}})
	if err != nil {
		return err
	}
	for _, r := range list.Runs {
		d, err := requests.Wait(ctx, r.RunID)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s, started by the hook: %s\n", r.AgentName, d.Status)
		printResult(out, d)
	}
	return nil
}

// printLog prints the lines of the log, without the IDs.
func printLog(out io.Writer, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		var entry struct {
			AgentName  string          `json:"agent_name"`
			Parameters json.RawMessage `json:"parameters"`
			Status     string          `json:"status"`
			Error      string          `json:"error"`
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			return err
		}
		fmt.Fprintln(out, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", entry.AgentName, entry.Parameters, entry.Status, entry.Error)))
	}
	return nil
}
