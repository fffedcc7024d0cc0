// Command table measures every contender on every job, in several rounds of
// random order, and writes the medians into a README between two markers.
//
// Ratios are taken within a round, from measurements minutes apart at most, and
// only then is their median taken: what else the machine did falls on both sides.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/grapnel-go/grapnel/bench/contenders"
)

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
	rounds := flags.Int("rounds", 7, "how often everything is measured")
	atLeast := flags.Duration("time", 200*time.Millisecond, "the least time for one measurement")
	blocked := flags.Int("blocked", 1000, "how many runs wait at once when memory is measured")
	file := flags.String("o", "README.md", "the file to write the table into")
	if err := flags.Parse(args); err != nil {
		return err
	}
	plan := plan{contenders: contenders.All(), rounds: *rounds, atLeast: *atLeast, blocked: *blocked}
	measured, err := plan.measure(ctx, progress)
	if err != nil {
		return err
	}
	return writeBetweenMarkers(*file, render(measured, here(*rounds)))
}
