package serve

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/samber/lo"
	"github.com/spf13/cobra"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/agents"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	pipelinecmd "github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/pipeline"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/worker"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/events"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/api"
	"github.com/grapnel-go/grapnel/coordinator/web"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/approval"
	"github.com/grapnel-go/grapnel/durable/command"
	"github.com/grapnel-go/grapnel/durable/gate"
	"github.com/grapnel-go/grapnel/durable/waiver"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/version"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/pipeline"
	"github.com/grapnel-go/grapnel/registry"
)

// coordinating are the flags of "grapnel serve".
type coordinating struct {
	listen   string
	noRunner bool
	tlsCert  string
	tlsKey   string
	origins  []string
	rate     float64
	people   string
	folder   string // for pipelines
	retain   string
	env      []string
	model    string
	capacity int
	asJSON   bool
	grace    time.Duration
	lease    time.Duration
	// remote is set in a runner: gates wait in its process, because the coordinator watches none for runners.
	remote bool
}

// services are the commands of a coordinator and about its sessions and tokens.
type services struct{ storage.Command }

// New returns the command serve.
func New(std console.Streams) *cobra.Command {
	r := &services{storage.Command{Std: std}}
	o := &coordinating{}
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve a coordinator: blueprints, runs and the hooks around them, over HTTP",
		Long: `Serve the API of a coordinator on this machine until interrupted (docs/coordinator.md): it stores
blueprints, accepts runs of them, calls their hooks, and gives the runs to runners. Unless --no-runner is
given, this process executes runs, too: those whose demands need no further labels. The API is described
at /openapi.json. People see what runs do at /ui/, and answer what runs wait for at /approvals/, with the
token of an operator or of the people of --people.

It prints one token with the role admin, which is only in memory and ends with this process; the variable ` + storage.TokenVariable + `
gives it another one. "grapnel tokens create" makes tokens for others. For other machines, give it a certificate
and its --origin, or put a proxy with HTTPS in front of it.

The first SIGINT or SIGTERM suspends the runs of this process, the second cuts them off.`,
		Example: `  grapnel serve
  grapnel serve --store postgres://localhost/grapnel --listen 127.0.0.1:8420 --no-runner`,
		Args: console.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return console.WithTelemetry(c.Context(), "", r.Std.Err, func(ctx context.Context) error { return r.serve(ctx, o) })
		},
	}
	storage.RegisterStore(c, &r.At)
	f := c.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:8420", "the `address` to listen on; one that is no loopback needs --tls-cert")
	f.StringVar(&o.tlsCert, "tls-cert", "", "serve HTTPS with the certificate in this `file`; renewed files are read again")
	f.StringVar(&o.tlsKey, "tls-key", "", "the `file` with the private key of --tls-cert")
	f.StringArrayVar(&o.origins, "origin", nil, "a `URL` under which the service is reached, such as https://grapnel.example.com (may be repeated)")
	f.Float64Var(&o.rate, "rate", 100,
		"the maximum number of requests a second for each token, and for each person on the pages; runners are not limited; 0 for no limit")
	storage.RegisterPeople(c, &o.people)
	f.StringVar(&o.folder, "pipelines", "", "the `folder` for the files of pipelines (default: pipelines in the user's state)")
	f.StringVar(&o.retain, "retain", "", "delete runs that ended longer ago than this `time`, such as 30d")
	f.BoolVar(&o.noRunner, "no-runner", false, "call hooks only: other processes execute the runs (grapnel runner)")
	registerRunner(c, o)
	return c
}

// registerRunner registers the flags of a process that executes runs of blueprints.
func registerRunner(c *cobra.Command, o *coordinating) {
	f := c.Flags()
	f.StringVarP(&o.model, "model", "m", "", "the model of agents whose blueprints name none, such as openai/gpt-5-mini")
	f.IntVar(&o.capacity, "capacity", 8, "the maximum number of concurrent runs")
	f.StringArrayVar(&o.env, "env", nil, "an environment `variable` of this process that blueprints may use, or a pattern such as DEPLOY_* (may be repeated)")
	f.DurationVar(&o.grace, "grace", 10*time.Second, "how long runs may take to suspend before they are cut off")
	f.DurationVar(&o.lease, "lease", 30*time.Second, "how long a run stays with this process when it dies or stops answering")
	f.BoolVar(&o.asJSON, "json", false, "write what the process does to standard output, as JSON Lines")
}

// minLease is the shortest lease that the protocol of runners allows.
const minLease = 2 * time.Second

// check returns an error for flags with wrong values.
func (o *coordinating) check() error {
	switch {
	case o.capacity <= 0 || o.grace <= 0:
		return errors.New("--capacity and --grace must be above zero")
	case (o.tlsCert == "") != (o.tlsKey == ""):
		return errors.New("--tls-cert and --tls-key belong together: give both or neither")
	case o.rate < 0:
		return fmt.Errorf("--rate is %v: it must be above zero, or zero for no limit", o.rate)
	case o.lease < minLease || o.lease > 10*time.Minute:
		return fmt.Errorf("--lease is %s: it must be between %s and 10m", o.lease, minLease)
	}
	return nil
}

// scheme returns the scheme of the address.
func (o *coordinating) scheme() string {
	if o.tlsCert != "" {
		return "https"
	}
	return "http"
}

// open listens on the address: with a certificate, on any.
func (o *coordinating) open(ctx context.Context) (net.Listener, error) {
	for _, origin := range o.origins {
		if at, err := url.Parse(origin); err != nil || at.Scheme != "https" && at.Scheme != "http" || at.Host == "" || at.Path != "" {
			return nil, fmt.Errorf("--origin is %q: expected a URL without a path, such as https://grapnel.example.com", origin)
		}
	}
	if o.tlsCert == "" {
		listener, err := worker.ListenLocally(ctx, "--listen", o.listen)
		if err != nil {
			if errors.Is(err, syscall.EADDRINUSE) {
				return nil, fmt.Errorf("%w: another program listens there: stop it, or choose another port", err)
			}
			return nil, fmt.Errorf("%w; other addresses need --tls-cert and --tls-key", err)
		}
		return listener, nil
	}
	files := &certificate{cert: o.tlsCert, key: o.tlsKey}
	if _, err := files.get(nil); err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.listen)
	if err != nil {
		return nil, fmt.Errorf("--listen %s: %w", o.listen, err)
	}
	return tls.NewListener(listener, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: files.get}), nil
}

// certificate is a certificate in files. It is safe for concurrent use.
type certificate struct {
	cert, key string

	mu      sync.Mutex
	loaded  *tls.Certificate
	changed time.Time // when the file was changed that was loaded
}

// get returns the certificate, which it reads again when the file has changed. While the new one cannot be read, it returns the old one.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	about, err := os.Stat(c.cert)
	if err == nil && c.loaded != nil && about.ModTime().Equal(c.changed) {
		return c.loaded, nil
	}
	var read tls.Certificate
	if err == nil {
		read, err = tls.LoadX509KeyPair(c.cert, c.key)
	}
	if err != nil {
		if c.loaded != nil {
			return c.loaded, nil
		}
		return nil, fmt.Errorf("--tls-cert %s: %w", c.cert, err)
	}
	c.loaded, c.changed = &read, about.ModTime()
	return c.loaded, nil
}

// serve serves a coordinator until it is stopped.
func (r *services) serve(ctx context.Context, o *coordinating) error {
	if err := o.check(); err != nil {
		return console.Usage(err)
	}
	retain, err := worker.RetainOf(o.retain)
	if err != nil {
		return console.Usage(err)
	}
	return r.WithDirect(ctx, true, func(k *storage.Store) (err error) {
		host := storage.HookHost(true)
		folder, err := o.pipelineFolder()
		if err != nil {
			fmt.Fprintf(r.Std.Err, "grapnel: This coordinator runs no pipelines: %v\n", err)
		}
		log := &worker.Log{Std: r.Std, AsJSON: o.asJSON}
		settings := coordinator.Options{
			Store: k.Direct, Host: host, Env: o.env, Observe: func(h wire.HookEvent) { observeHook(log, h) },
			Pipelines: coordinator.PipelineOptions{Dir: folder, Hooks: pipelinecmd.GlobalHooks()},
		}
		if !o.noRunner { // else the runners know the names
			known := agents.NewRegistry()
			settings.Registry = &known
		}
		c, err := coordinator.New(settings)
		if err != nil && o.folder == "" && folder != "" { // the default one
			fmt.Fprintf(r.Std.Err, "grapnel: This coordinator runs no pipelines: %v: name a folder with --pipelines\n", err)
			settings.Pipelines.Dir = ""
			c, err = coordinator.New(settings)
		}
		if err != nil {
			return err
		}
		listener, err := o.open(ctx)
		if err != nil {
			return console.Usage(err)
		}
		logger := slog.New(slog.NewTextHandler(r.Std.Err, nil))
		var people *approval.People
		if o.people != "" {
			if people, err = approval.OpenPeople(o.people, approval.PeopleOptions{Log: logger}); err != nil {
				return errors.Join(console.Usage(err), listener.Close())
			}
		}
		token := os.Getenv(storage.TokenVariable)
		if token == "" {
			token = rand.Text()
		}
		pages := web.New(web.Options{
			Coordinator: api.Local{Coordinator: c}, Store: k.Direct, Token: token, People: people, Origins: o.origins, Rate: o.rate, Log: logger,
		})
		server := &http.Server{
			Handler: otelhttp.NewHandler(api.Handler(c, api.Options{
				Version: version.Read(), Token: token, Origins: o.origins, Rate: o.rate, Log: logger, Pages: pages,
			}), "grapnel serve"),
			ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		}
		var serving sync.WaitGroup
		serving.Go(func() { _ = server.Serve(listener) }) // it ends with Close
		defer serving.Wait()
		defer server.Close()
		log.Note(fmt.Sprintf("The coordinator listens on %s://%s, and its API is described at /openapi.json.", o.scheme(), listener.Addr()))
		room := lo.FirstOr(o.origins, fmt.Sprintf("%s://%s", o.scheme(), listener.Addr()))
		if os.Getenv(storage.TokenVariable) == "" {
			log.Note("Its token, until it stops: " + token)
			log.Note("Open the control room within an hour, once: " + room + web.SignInPath(pages.NewCode()))
		} else {
			log.Note("Open the control room and sign in with a token: " + room + "/ui/")
		}

		keeper := durable.Keep(c.RunnerStore(), durable.Options{Events: events.Stored, Lease: o.lease})
		runners, labels := map[durable.Kind]durable.Runner{}, map[string]string{}
		if !o.noRunner {
			options := o.runnerOptions(keeper, k.Direct, log)
			options.Pipelines = &pipeline.Options{
				Events: events.Stored,
				Agents: func(ctx context.Context, s pipeline.AgentStage) (*agent.Agent, func() error, error) {
					return pipelinecmd.BuildStage(ctx, keeper, k.Direct, s, o.checkDefinition)
				},
			}
			runners, labels = c.Runners(keeper, options), c.Labels(options, nil)
		}
		maps.Copy(runners, c.HookRunners(keeper))
		watcher, err := gate.NewWatcher(k.Direct, gate.Options{Host: host, Owner: keeper.Owner()})
		if err != nil {
			return err
		}
		return (&worker.Job{Log: log}).Run(ctx, k.Direct, durable.WorkerOptions{
			Runners: runners, Labels: labels, Capacity: o.capacity, Lease: o.lease, Grace: o.grace, Retain: retain, Watch: watcher.Run,
		})
	})
}

// hookLine is the JSON form of an event of a hook around a run.
type hookLine struct {
	Time  time.Time `json:"time"`
	Event string    `json:"event"`
	wire.HookEvent
}

// observeHook reports a hook that has blocked a run or has failed.
func observeHook(l *worker.Log, h wire.HookEvent) {
	text := h.Failure()
	switch h.EventType {
	case wire.EventHookBlocked:
		text = h.Title() + " blocked: " + h.BlockReason
	case wire.EventHookFailed, wire.EventHookTimeout:
	default:
		return
	}
	if l.AsJSON {
		if line, err := json.Marshal(hookLine{h.Timestamp, h.EventType, h}); err == nil {
			l.Line(l.Std.Out, string(line))
		}
		return
	}
	l.Note(fmt.Sprintf("hook      %s  %s", storage.Short(h.RunID), timeline.OneLine(text)))
}

// pipelineFolder returns the folder for the files of pipelines.
func (o *coordinating) pipelineFolder() (string, error) {
	if o.folder != "" {
		return o.folder, nil
	}
	state, err := storage.StateFolder()
	if err != nil {
		return "", console.Usagef("the default folder for pipelines is unknown (%w): name one with --pipelines", err)
	}
	return filepath.Join(state, "pipelines"), nil
}

// runnerOptions returns what the runners of blueprints need.
func (o *coordinating) runnerOptions(keeper *durable.Keeper, waivers waiver.Source, log *worker.Log) coordinator.RunnerOptions {
	return coordinator.RunnerOptions{
		Agents: func(ctx context.Context, d registry.Definition, rules []hooks.Hook) (*agent.Agent, func() error, error) {
			if d.Model == "" {
				d.Model = o.model
			}
			if err := o.checkDefinition(d); err != nil {
				return nil, nil, err
			}
			return buildBlueprint(ctx, d, log, agents.Watchers{
				Approver: agent.ParkApprover, Keeper: keeper, Waivers: waivers, Parks: !o.remote, Hooks: rules,
			})
		},
	}
}

// checkDefinition returns an error if the agent of a blueprint names environment variables that --env does not allow.
func (o *coordinating) checkDefinition(d registry.Definition) error {
	d.Options, d.Output = nil, registry.Output{} // their keys are others'
	text, err := d.YAML()
	if err != nil {
		return err
	}
	root, _ := yamlfile.Parse(d.Name+".yaml", text).Root()
	check := coordinator.CheckVariable(o.env)
	var wrong []coordinator.FieldError
	for _, name := range variablesIn(root) {
		if err := check(name); err != nil {
			wrong = append(wrong, coordinator.FieldError{Field: "agent", Message: fmt.Sprintf("%q: %s: %v", d.Name, name, err)})
		}
	}
	if len(wrong) > 0 {
		return &coordinator.InvalidError{Fields: wrong}
	}
	return nil
}

// variablesIn returns the environment variables that a definition names: its keys env, api_key_env, token_env and key_env.
func variablesIn(n yamlfile.Node) (names []string) {
	if n.Kind() == yamlfile.ListNode {
		return lo.FlatMap(n.Items(), func(item yamlfile.Node, _ int) []string { return variablesIn(item) })
	}
	if n.Kind() != yamlfile.MappingNode {
		return nil
	}
	for _, e := range n.Entries() {
		isNames := e.Key.Raw() == "env" || strings.HasSuffix(e.Key.Raw(), "_env")
		switch {
		case isNames && e.Value.Kind() == yamlfile.TextNode:
			names = append(names, e.Value.Raw())
		case isNames && e.Value.Kind() == yamlfile.ListNode:
			names = append(names, lo.Map(e.Value.Items(), func(item yamlfile.Node, _ int) string { return item.Raw() })...)
		default:
			names = append(names, variablesIn(e.Value)...)
		}
	}
	return names
}

// buildBlueprint builds the agent of a blueprint for one run.
func buildBlueprint(
	ctx context.Context, d registry.Definition, log *worker.Log, w agents.Watchers,
) (*agent.Agent, func() error, error) {
	text, err := d.YAML()
	if err != nil {
		return nil, nil, err
	}
	path := d.Name + ".yaml"
	o := &agents.Options{File: path, Texts: map[string]string{path: string(text)}, Color: "auto"}
	file, err := o.Resolve()
	if err != nil {
		return nil, nil, err
	}
	w.Rules = o.Rules
	m, err := agents.Build(ctx, file, w)
	if err != nil {
		return nil, nil, err
	}
	for _, note := range m.Notes {
		log.Note(d.Name + ": " + note)
	}
	return m.Agent, m.Stop, nil
}

// commandsOf returns the commands of files, by their names.
func commandsOf(paths []string) (map[string]command.Command, error) {
	d, err := worker.Load(paths)
	if err != nil {
		return nil, err
	}
	if len(d.Agents) > 0 {
		names := slices.Sorted(maps.Keys(d.Agents))
		return nil, console.Usagef("%s: a runner takes files with commands; agents are in blueprints", strings.Join(names, ", "))
	}
	return d.All(), nil
}
