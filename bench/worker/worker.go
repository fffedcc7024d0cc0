// Package worker is the main program of a contender. It measures one thing and writes the result to standard output.
// Package table runs such programs.
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

// About describes a contender for a table.
type About struct {
	Name      string           `json:"name"`
	Module    string           `json:"module"`  // the path of the measured module, if any
	Version   string           `json:"version"` // the version of the module in the build
	NoHooks   string           `json:"noHooks"`
	AtOnce    int              `json:"atOnce"`
	Unordered bool             `json:"unordered"`
	Telemetry *bench.Telemetry `json:"telemetry"`
}

// Main is the main function of a program that measures the given contenders.
func Main(contenders ...bench.Contender) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := Run(ctx, os.Args[1:], os.Stdout, contenders...)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

// Run measures what the arguments select, and writes the result as JSON: a [bench.Sample] or, with -blocked, a
// [bench.Held]. Without arguments, it writes a list of [About].
func Run(ctx context.Context, args []string, out io.Writer, contenders ...bench.Contender) error {
	flags := flag.NewFlagSet("measure", flag.ContinueOnError)
	name := flags.String("contender", "", "the contender to measure; empty lists the contenders")
	text := flags.String("job", `{"steps": 100}`, "the job, as JSON")
	atLeast := flags.Duration("time", 200*time.Millisecond, "the minimum time of a measurement")
	blocked := flags.Int("blocked", 0, "if not zero, measure the memory that this number of runs hold while they wait for their model")
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
	return fmt.Errorf("measure %q: unknown contender: expected one of %+v", *name, list(contenders))
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
