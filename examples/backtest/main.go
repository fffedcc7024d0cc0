// Command backtest tells what a tool policy would have done to agents that ran already: it plays their recordings
// through a real agent that has the policy as a hook, and counts which harmful calls it denies and which good runs it
// breaks. No model, no key and no network are needed.
//
//	go run ./examples/backtest                          # recordings beside the module, else a small sample
//	go run ./examples/backtest -policy deny-writes dir  # one policy, recordings of your own
//	go run ./examples/backtest -json banking.jsonl.gz   # for programs
//
// The policies are in package rules; the recordings are as package replay reads them, with the facts that the
// policies stand on in facts.json beside them. README.md explains the table.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/samber/lo"
)

// What the program ends with.
const (
	exitDone        = 0
	exitFailed      = 1 // something could not be read or played
	exitUsage       = 2
	exitInterrupted = 130
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second ctrl-C ends the program at once
	os.Exit(program{
		stdout: screenOf(os.Stdout), stderr: screenOf(os.Stderr), shared: sharedFolder(),
	}.run(ctx, os.Args[1:]))
}

// program is the command with all that it needs of the world.
type program struct {
	stdout, stderr screen
	shared         string // where recordings are looked for when none is named
}

// options is what the user asked for.
type options struct {
	policies []policy
	json     bool
	facts    string
	paths    []string
}

func (p program) run(ctx context.Context, args []string) int {
	o, err := parse(args, p.stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitDone
	case err != nil:
		fmt.Fprintf(p.stderr, "backtest: %v\nbacktest -h lists the flags\n", err)
		return exitUsage
	}
	found, err := find(o, p.shared)
	if err != nil {
		fmt.Fprintf(p.stderr, "backtest: %v\n", err)
		return exitFailed
	}
	done := newBacktest(o.policies, found, newProgress(p.stderr)).run(ctx)
	if o.json {
		err = done.writeJSON(p.stdout)
	} else {
		err = done.writeText(p.stdout)
	}
	switch {
	case err != nil:
		fmt.Fprintf(p.stderr, "backtest: write the report: %v\n", err)
		return exitFailed
	case done.Interrupted:
		return exitInterrupted
	case len(done.Rows) == 0:
		fmt.Fprintln(p.stderr, "backtest: there was no run that could be played")
		return exitFailed
	case done.Failed > 0:
		return exitFailed
	}
	return exitDone
}

const usage = `backtest plays recordings of agents through tool policies, and tells what these would have done.

  backtest [flags] [recordings and folders of recordings]

Recordings are files named *.jsonl or *.jsonl.gz; facts.json beside them has what the policies stand on. Without any,
those in ../shared/transcripts are played, or a small sample that is part of the program.

`

// parse reads the arguments; flags may stand before, behind and between the paths.
func parse(args []string, help io.Writer) (options, error) {
	flags := flag.NewFlagSet("backtest", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the caller says what is wrong
	names := strings.Join(lo.Map(policies, func(p policy, _ int) string { return p.name }), ", ")
	chosen := flags.String("policy", "both", "the `policy` to try: "+names+", or both")
	asJSON := flags.Bool("json", false, "write the report as JSON")
	facts := flags.String("facts", "", "a `file` of facts for all recordings, in the place of those beside them")
	var paths []string
	for len(args) > 0 {
		switch err := flags.Parse(args); {
		case errors.Is(err, flag.ErrHelp):
			fmt.Fprint(help, usage)
			flags.SetOutput(help)
			flags.PrintDefaults()
			return options{}, err
		case err != nil:
			return options{}, err
		}
		rest := flags.Args()
		if consumed := len(args) - len(rest); consumed > 0 && args[consumed-1] == "--" {
			paths, rest = append(paths, rest...), nil
		}
		if len(rest) > 0 {
			paths, rest = append(paths, rest[0]), rest[1:]
		}
		args = rest
	}
	o := options{json: *asJSON, facts: *facts, paths: paths}
	o.policies = lo.Filter(policies, func(p policy, _ int) bool { return *chosen == "both" || *chosen == p.name })
	if len(o.policies) == 0 {
		return options{}, fmt.Errorf("there is no policy %q: take %s, or both", *chosen, names)
	}
	return o, nil
}
