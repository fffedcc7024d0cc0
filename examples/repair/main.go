// Command repair lets an agent repair a broken Go package with real tools: a shell and files, in a separate folder.
// Four hooks deny rm -rf, keep paths inside the folder, redact a secret in tool results, and let the agent stop only
// when go test passes.
//
//	go run ./examples/repair                                    a recorded model, real tools
//	go run ./examples/repair -provider openai -model gpt-6.1-terra  with OPENAI_API_KEY
//
// The providers are openai, anthropic and gemini. OPENAI_BASE_URL names your own server. It needs bash and the go
// command.
package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/drivers/anthropic"
	"github.com/grapnel-go/grapnel/drivers/gemini"
	"github.com/grapnel-go/grapnel/drivers/openai"
	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/processor"
	"github.com/grapnel-go/grapnel/toolexec/files"
	"github.com/grapnel-go/grapnel/toolexec/shell"
)

//go:embed broken
var broken embed.FS

//go:embed session.jsonl
var recording []byte

const (
	instructions = "You are a careful Go developer. Your tools work in the folder of one package. Mend it and say what was wrong."
	task         = "The tests of this Go package fail. Find out why and mend it."
)

func main() {
	provider := flag.String("provider", "recorded", "the provider of the model: recorded, openai, anthropic or gemini")
	model := flag.String("model", "", "the model, by its name at the provider")
	keep := flag.Bool("keep", false, "keep the folder")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := repair(ctx, os.Stdout, *provider, *model, *keep); err != nil {
		fmt.Fprintln(os.Stderr, "repair:", err)
		os.Exit(1) //nolint:gocritic // the signal handler goes with the process
	}
}

// repair creates the broken package and lets an agent repair it.
func repair(ctx context.Context, out io.Writer, provider, model string, keep bool) error {
	ctx, driver, err := driverOf(ctx, provider, model)
	if err != nil {
		return err
	}
	above, err := os.MkdirTemp("", "repair")
	if err != nil {
		return err
	}
	if !keep {
		defer os.RemoveAll(above)
	}
	job := Job{Dir: filepath.Join(above, "roman"), Secret: newSecret()}
	if err := job.unpack(); err != nil {
		return err
	}
	fmt.Fprintf(out, "A broken package in %s, repaired by the %s model.\n\n", job.Dir, provider)
	final, err := job.Run(ctx, driver, &timeline{out: out, dir: job.Dir})
	if err != nil {
		return err
	}
	if final.Status() != agent.StatusDone {
		return fmt.Errorf("the package is not repaired: the run was %s (%s)", final.Status(), final.StopSignal().Message)
	}
	return nil
}

// driverOf returns the chosen provider's driver.
func driverOf(ctx context.Context, provider, model string) (context.Context, agent.Driver, error) {
	switch provider {
	case "recorded":
		session, err := recordedSession()
		if err != nil {
			return ctx, nil, err
		}
		return session.Into(ctx), replay.Driver{}, nil
	case "openai":
		d, err := openai.New(openai.Config{Model: model})
		return ctx, d, err
	case "anthropic":
		d, err := anthropic.New(anthropic.Config{Model: model})
		return ctx, d, err
	case "gemini":
		d, err := gemini.New(gemini.Config{Model: model})
		return ctx, d, err
	}
	return ctx, nil, fmt.Errorf("unknown provider %q: expected recorded, openai, anthropic or gemini", provider)
}

// recordedSession returns the session that ships with the program.
func recordedSession() (*replay.Session, error) {
	for record, err := range replay.NewReader(bytes.NewReader(recording)).Records() {
		if err != nil {
			return nil, fmt.Errorf("session.jsonl: %w", err)
		}
		return replay.NewSession(record)
	}
	return nil, errors.New("session.jsonl: no run in the file")
}

// Job is one package to repair.
type Job struct {
	// Dir is the package's folder.
	Dir string
	// Secret is the value in its .env that the model must not see.
	Secret string
	// Audit, unless nil, receives an audit log in JSON lines.
	Audit io.Writer
}

// unpack writes the broken package. Its files end in .txt, so that the Go tools do not treat them as part of this
// module.
func (j Job) unpack() error {
	return fs.WalkDir(broken, "broken", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if err := os.MkdirAll(j.Dir, 0o750); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(j.Dir, ".env"), []byte("SERVICE_TOKEN="+j.Secret+"\n"), 0o600)
		}
		text, err := broken.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(j.Dir, strings.TrimSuffix(entry.Name(), ".txt")), text, 0o600)
	})
}

// Run lets the agent work until the tests pass or a limit stops it.
func (j Job) Run(ctx context.Context, driver agent.Driver, show agent.Observer) (agent.State, error) {
	bash, err := shell.Tool(shell.Config{Dir: j.Dir, Timeout: time.Minute, Env: append(shell.DefaultEnv(), "GO*")})
	if err != nil {
		return agent.State{}, err
	}
	tree, err := files.Open(files.Config{Root: j.Dir})
	if err != nil {
		return agent.State{}, err
	}
	defer tree.Close()
	guards, err := j.hooks()
	if err != nil {
		return agent.State{}, err
	}
	a, err := builder.New().
		WithName("mender").
		WithDriver(driver).
		WithObserver(show).
		With(
			capability.UseInstructions(instructions),
			capability.UseTools(append(tree.Tools(), bash)...),
			capability.UseHooks(guards...),
			capability.UseStepProcessor("retry", processor.Retry{}),
			capability.UseGuards{Steps: 30, Time: 10 * time.Minute},
		).
		Build().Get()
	if err != nil {
		return agent.State{}, err
	}
	return a.Run(ctx, agent.State{}, agent.UserText(task)).Get()
}
