// Command backtest tells what Go policies would have done to agents that have already run. It plays their recordings
// through a real agent that has the policy as a hook. It counts which harmful calls the policy denies and which good
// runs it breaks. It needs no model, key or network.
//
//	go run ./examples/backtest                              # recordings beside the module, else a small sample
//	go run ./examples/backtest -html report.html dir        # recordings of your own, with a page for a browser
//
// The policies are in package rules, and the engine is package policy/backtest. For policies in files, there is
// "grapnel hooks backtest". README.md has more.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/grapnel-go/grapnel/policy/backtest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second ctrl-C ends the program immediately
	shared := filepath.Join(cmp.Or(os.Getenv("GRAPNEL_SHARED"), filepath.Join("..", "shared")), "transcripts")
	colour := os.Getenv("NO_COLOR") == ""
	bar := &backtest.Bar{Out: os.Stderr, Columns: func() int { return columns(os.Stderr) }, Colour: colour, Prefix: "backtest: "}
	look := backtest.Look{Width: columns(os.Stdout), Colour: colour && columns(os.Stdout) > 0}
	err := runProgram(ctx, os.Args[1:], shared, os.Stdout, look, bar)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintf(os.Stderr, "backtest: %v\n", err)
		os.Exit(1)
	}
}

// columns returns the number of columns to use for output to f: zero if f is not a terminal.
func columns(f *os.File) int {
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return 0
	}
	return 80
}

// runProgram runs the program. Shared is the folder in which it looks for recordings if none is named.
func runProgram(ctx context.Context, args []string, shared string, out io.Writer, look backtest.Look, bar *backtest.Bar) error {
	flags := flag.NewFlagSet("backtest", flag.ContinueOnError)
	flags.SetOutput(bar.Out)
	facts := flags.String("facts", "", "the `file` of facts for the policies, instead of the one beside the recordings")
	html := flags.String("html", "", "write a page for a browser to a `file`, too")
	if err := flags.Parse(args); err != nil {
		return err
	}
	found, known, err := findRecordings(flags.Args(), shared, *facts)
	if err != nil {
		return err
	}
	report, err := backtest.Run(ctx, found, backtest.Options{Policies: allPolicies(known), Progress: bar.Show})
	bar.End()
	if err != nil {
		return err
	}
	if err := report.WriteText(out, look); err != nil {
		return err
	}
	if *html != "" {
		file, err := os.Create(*html)
		if err != nil {
			return err
		}
		if err := errors.Join(report.WriteHTML(file), file.Close()); err != nil {
			return err
		}
	}
	switch {
	case report.Interrupted:
		return context.Cause(ctx)
	case report.Runs == 0:
		return errors.New("no run could be played")
	case report.Failed > 0:
		return fmt.Errorf("%d runs and lines could not be played", report.Failed)
	}
	return nil
}
