// Command bugfix runs a pipeline whose agent repairs a broken Go package, one failing test at a time: look, ask, mend,
// review. The package, its tests and the tools are real. Hooks start another pipeline, call a chat, and wait for its
// answer.
//
//	go run ./examples/bugfix                                              a recorded model
//	go run ./examples/bugfix -provider openai -model gpt-6.1-terra        with OPENAI_API_KEY
//
// The providers are openai, anthropic and gemini. It needs sh and the go command.
package main

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/drivers/anthropic"
	"github.com/grapnel-go/grapnel/drivers/gemini"
	"github.com/grapnel-go/grapnel/drivers/openai"
	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/gate"
	"github.com/grapnel-go/grapnel/durable/sqlite"
	"github.com/grapnel-go/grapnel/pipeline"
	"github.com/grapnel-go/grapnel/processor"
	"github.com/grapnel-go/grapnel/toolexec/files"
)

//go:embed broken
var broken embed.FS

//go:embed sessions.jsonl
var recordings []byte

func main() {
	provider := flag.String("provider", "recorded", "the provider of the model: recorded, openai, anthropic or gemini")
	model := flag.String("model", "", "the model, by its name at the provider")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := fix(ctx, os.Stdout, *provider, *model); err != nil {
		fmt.Fprintln(os.Stderr, "bugfix:", err)
		os.Exit(1) //nolint:gocritic // the signal handler goes with the process
	}
}

// fix makes the broken package and runs the pipeline in its folder.
func fix(ctx context.Context, out io.Writer, provider, model string) error {
	agents, err := newMenders(provider, model)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bugfix")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	chat, err := listen(ctx)
	if err != nil {
		return err
	}
	defer serveHandler(chat, &team{out: out})()
	work := filepath.Join(dir, "days")
	if err := unpackPackage(work, "http://"+chat.Addr().String()); err != nil {
		return err
	}
	store, err := sqlite.Open(ctx, filepath.Join(dir, "runs.db"), sqlite.Options{})
	if err != nil {
		return err
	}
	defer store.Close()

	host := action.Host{Parks: true} // gates wait in the store
	p, err := pipeline.Load(filepath.Join(work, "bugfix.yaml"), pipeline.LoadOptions{Host: host})
	if err != nil {
		return err
	}
	job, err := p.Job(pipeline.SessionOptions{Name: "today", Dir: filepath.Join(dir, "sessions", "today"), Workspace: work})
	if err != nil {
		return err
	}
	runs, err := store.Submit(ctx, job)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	working, err := startWorker(ctx, store, host, agents)
	if err != nil {
		stop()
		return err
	}
	defer working()
	defer stop()
	return followSession(ctx, out, store, runs[0].ID)
}

// listen returns a listener on this machine only.
func listen(ctx context.Context) (net.Listener, error) {
	var c net.ListenConfig
	return c.Listen(ctx, "tcp", "127.0.0.1:0")
}

// serveHandler serves a handler until stop is called.
func serveHandler(l net.Listener, h http.Handler) (stop func()) {
	server := &http.Server{Handler: h, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second}
	go func() { _ = server.Serve(l) }() // it ends with stop
	return func() { _ = server.Close() }
}

// unpackPackage writes the broken package and its pipelines. Its files end in .txt, so that the Go tools do not treat
// them as part of this module. The pipeline's chat gets its address.
func unpackPackage(dir, chat string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	entries, err := fs.ReadDir(broken, "broken")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		text, err := broken.ReadFile("broken/" + entry.Name())
		if err != nil {
			return err
		}
		text = bytes.ReplaceAll(text, []byte("http://chat.example"), []byte(chat))
		if err := os.WriteFile(filepath.Join(dir, strings.TrimSuffix(entry.Name(), ".txt")), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// startWorker starts a worker that executes the sessions and their iterations, and watches gates, until ctx is done.
// The returned func waits until it has ended.
func startWorker(ctx context.Context, store durable.Store, host action.Host, agents agentsFunc) (wait func(), err error) {
	callbacks, err := listen(ctx)
	if err != nil {
		return nil, err
	}
	stop := serveHandler(callbacks, gate.Handler(store, gate.HandlerOptions{}))
	watcher, err := gate.NewWatcher(store, gate.Options{Host: host, Callbacks: "http://" + callbacks.Addr().String()})
	if err != nil {
		stop()
		return nil, err
	}
	keeper := durable.Keep(store, durable.Options{})
	worker, err := durable.NewWorker(store, durable.WorkerOptions{
		Runners: pipeline.Runners(store, keeper, pipeline.Options{
			Pipelines: []string{"bugfix", "check"}, Host: host,
			Agents: func(_ context.Context, s pipeline.AgentStage) (*agent.Agent, func() error, error) {
				return agents(keeper, s)
			},
		}),
		Watch: watcher.Run,
	})
	if err != nil {
		stop()
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer stop()
		_ = worker.Run(ctx) // it returns nil
	}()
	return func() { <-ended }, nil
}

// agentsFunc builds one iteration's agent.
type agentsFunc func(k *durable.Keeper, s pipeline.AgentStage) (a *agent.Agent, closeAgent func() error, err error)

// newMenders returns the func that builds the agents. They read and edit files in their workspace, and nothing else.
func newMenders(provider, model string) (agentsFunc, error) {
	recorded := replay.NewReader(bytes.NewReader(recordings))
	if provider != "recorded" {
		if _, err := driverOf(provider, model, recorded); err != nil {
			return nil, err
		}
	}
	return func(k *durable.Keeper, s pipeline.AgentStage) (*agent.Agent, func() error, error) {
		driver, err := driverOf(provider, model, recorded)
		if err != nil {
			return nil, nil, err
		}
		tree, err := files.Open(files.Config{Root: s.Workspace})
		if err != nil {
			return nil, nil, err
		}
		a, err := builder.New().
			WithName(s.Agent).
			WithDriver(driver).
			With(
				capability.UseInstructions("You are a careful Go developer. Your tools work in the folder of one package."),
				capability.UseTools(append(tree.Tools(), s.Tools...)...),
				capability.UseStepProcessor("retry", processor.Retry{}),
				capability.UseGuards{Steps: 20, Time: 10 * time.Minute},
				capability.UseDurability{Keeper: k},
			).
			Build().Get()
		return a, tree.Close, err
	}, nil
}

// driverOf returns the chosen provider's driver, or a driver that plays the next recorded run.
func driverOf(provider, model string, recorded *replay.Reader) (agent.Driver, error) {
	switch provider {
	case "recorded":
		for record, err := range recorded.Records() {
			if err != nil {
				return nil, fmt.Errorf("sessions.jsonl: %w", err)
			}
			session, err := replay.NewSession(record)
			if err != nil {
				return nil, fmt.Errorf("sessions.jsonl: %w", err)
			}
			return played{session}, nil
		}
		return played{}, nil
	case "openai":
		return openai.New(openai.Config{Model: model})
	case "anthropic":
		return anthropic.New(anthropic.Config{Model: model})
	case "gemini":
		return gemini.New(gemini.Config{Model: model})
	}
	return nil, fmt.Errorf("unknown provider %q: expected recorded, openai, anthropic or gemini", provider)
}

// played is a driver that plays one recorded run. Without a run it fails.
type played struct{ session *replay.Session }

// Next returns the next step.
func (p played) Next(ctx context.Context, s agent.State) mo.Result[agent.Step] {
	if p.session == nil {
		return mo.Err[agent.Step](errors.New("sessions.jsonl has no more runs"))
	}
	return replay.Driver{}.Next(p.session.Into(ctx), s)
}

// team is a chat: it shows what hooks send, and answers their questions.
type team struct{ out io.Writer }

// ServeHTTP shows a message. If it is a question, a person approves it a moment later.
func (t *team) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var message struct {
		Text    string `json:"text"`
		Approve string `json:"approve"`
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&message); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	fmt.Fprintln(t.out, "chat:", message.Text)
	if message.Approve == "" {
		return
	}
	go func() {
		answer, err := http.Post(message.Approve, "", nil) //nolint:noctx // the gate's link
		if err != nil {
			fmt.Fprintln(t.out, "chat:", err)
			return
		}
		_ = answer.Body.Close()
		fmt.Fprintln(t.out, "chat: yes")
	}()
}

// followSession shows a session's events until it has ended.
func followSession(ctx context.Context, out io.Writer, store durable.Store, run agent.RunID) error {
	for e, err := range durable.Watch(ctx, store, run, 0) {
		if err != nil {
			return err
		}
		var d struct {
			Stage     string `json:"stage"`
			Iteration int    `json:"iteration"`
			Why       string `json:"why"`
			Reason    string `json:"reason"`
			Error     string `json:"error"`
		}
		_ = json.Unmarshal(e.Data, &d) // missing values are not shown
		what := strings.TrimPrefix(e.Name, "pipeline.")
		if why := cmp.Or(d.Why, d.Reason, d.Error); why != "" {
			what += ": " + why
		}
		if d.Iteration > 0 {
			what = fmt.Sprintf("%s %d: %s", d.Stage, d.Iteration, what)
		}
		fmt.Fprintln(out, what)
	}
	result, err := durable.ResultOf(ctx, store, run)
	if err == nil && result.Error != "" {
		err = fmt.Errorf("the package is not mended: %s", result.Error)
	}
	return err
}
