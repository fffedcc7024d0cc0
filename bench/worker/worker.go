// Package worker makes a program of a contender: it measures one thing and says on
// standard output what it found. Package table runs such programs.
package worker

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"time"

	"github.com/grapnel-go/grapnel/bench"
)

// About is what a table says of a contender.
type About struct {
	Name      string           `json:"name"`
	Module    string           `json:"module"`  // its path, if it is one
	Version   string           `json:"version"` // of the module, as it was built
	NoHooks   string           `json:"noHooks"`
	AtOnce    int              `json:"atOnce"`
	Unordered bool             `json:"unordered"`
	Telemetry *bench.Telemetry `json:"telemetry"`
}

// Main is the main function of a program that measures these contenders.
func Main(contenders ...bench.Contender) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := Run(ctx, os.Args[1:], os.Stdout, contenders...)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

// Run does what the arguments say, and writes its result as JSON: a list of [About]
// without arguments, else a [bench.Sample] or, with -blocked, a [bench.Held].
func Run(ctx context.Context, args []string, out io.Writer, contenders ...bench.Contender) error {
	flags := flag.NewFlagSet("measure", flag.ContinueOnError)
	name := flags.String("contender", "", "whom to measure; nobody: say who is here")
	text := flags.String("job", `{"steps": 100}`, "the job, as JSON")
	atLeast := flags.Duration("time", 200*time.Millisecond, "the least time for a measurement")
	blocked := flags.Int("blocked", 0, "if not zero, measure what so many runs hold while they wait for their model")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *name == "" {
		return json.NewEncoder(out).Encode(list(contenders))
	}
	var job bench.Job
	if err := json.Unmarshal([]byte(*text), &job); err != nil {
		return fmt.Errorf("read job %s: %w", *text, err)
	}
	for _, c := range contenders {
		if c.Name != *name {
			continue
		}
		var found any
		var err error
		if *blocked != 0 {
			found, err = bench.Blocked(ctx, c, job, *blocked)
		} else {
			found, err = bench.Measure(ctx, c, job, *atLeast)
		}
		if err != nil {
			return err
		}
		return json.NewEncoder(out).Encode(found)
	}
	return fmt.Errorf("measure %q: no such contender here: want one of %+v", *name, list(contenders))
}

func list(contenders []bench.Contender) []About {
	versions := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			versions[d.Path] = d.Version
		}
	}
	all := make([]About, len(contenders))
	for i, c := range contenders {
		all[i] = About{c.Name, c.Module, versions[c.Module], c.NoHooks, c.AtOnce, c.Unordered, c.Telemetry}
	}
	return all
}
