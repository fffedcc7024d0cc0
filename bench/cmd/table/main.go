// Command table builds the programs of all contenders, measures them, and writes the tables into README.md between
// two markers, the chart into chart.svg and every measurement into results.txt. Run it in the root of the module.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/bench/table"
)

// order is the order of the tables. Each name is a program below contenders. The others are compared with the first.
const order = "bare,grapnel,fantasy,eino,openaiagents,langchaingo,adk,trpc,genkit"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, progress io.Writer) error {
	flags := flag.NewFlagSet("table", flag.ContinueOnError)
	rounds := flags.Int("rounds", 7, "the number of rounds")
	atLeast := flags.Duration("time", 200*time.Millisecond, "the minimum time of a measurement")
	patience := flags.Duration("patience", 5*time.Second, "the maximum time of a contender for one job, in all rounds together")
	blocked := flags.Int("blocked", 10_000, "the number of waiting runs when memory is measured")
	only := flags.String("contenders", order, "the contenders; the first is the reference")
	dir := flags.String("o", ".", "the folder of README.md, chart.svg and results.txt")
	if err := flags.Parse(args); err != nil {
		return err
	}
	contenders, clean, err := build(ctx, strings.Split(*only, ","), progress)
	defer clean()
	if err != nil {
		return err
	}
	plan := table.Plan{
		Contenders: contenders, Rounds: *rounds, AtLeast: *atLeast, Blocked: *blocked, Patience: *patience, Progress: progress,
	}
	found, err := plan.Measure(ctx)
	if err != nil {
		return err
	}
	for name, text := range map[string]string{"results.txt": found.Benchstat(), "chart.svg": found.Chart()} {
		if err := os.WriteFile(filepath.Join(*dir, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("write results: %w", err)
		}
	}
	return table.WriteBetweenMarkers(filepath.Join(*dir, "README.md"), found.Markdown(plan.Here()))
}

// build builds the programs, and asks each program for its contenders.
func build(ctx context.Context, names []string, progress io.Writer) (all []table.Contender, clean func(), err error) {
	bin, err := os.MkdirTemp("", "grapnel-bench-")
	if err != nil {
		return nil, func() {}, fmt.Errorf("build contenders: %w", err)
	}
	clean = func() { _ = os.RemoveAll(bin) }
	for _, name := range names {
		_, _ = fmt.Fprintln(progress, "building", name)
		program := filepath.Join(bin, name)
		c := exec.CommandContext(ctx, "go", "build", "-o", program, ".") //nolint:gosec // a name that the developer gave
		c.Dir = filepath.Join("contenders", name)
		if out, err := c.CombinedOutput(); err != nil {
			return nil, clean, fmt.Errorf("build %s: %w\n%s", name, err, out)
		}
		some, err := table.Program(program).Contenders(ctx)
		if err != nil {
			return nil, clean, err
		}
		all = append(all, some...)
	}
	return all, clean, nil
}
