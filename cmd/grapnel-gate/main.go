// Command grapnel-gate decides on a call of another coding agent, as its hook. It is "grapnel gate" without everything else, so that it
// starts fast:
//
//	grapnel-gate codex --policy /home/ann/policy.yaml
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/grapnel-go/grapnel/internal/hostgate"
	"github.com/grapnel-go/grapnel/internal/hostgate/engine"
)

// memoryLimit is when garbage is collected. Below it, a process of some milliseconds has no time for that.
const memoryLimit = 256 << 20

func main() {
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(memoryLimit)
	os.Exit(run(os.Args[1:]))
}

// list is a flag that may be given several times.
type list []string

func (l *list) String() string { return strings.Join(*l, ", ") }

func (l *list) Set(value string) error {
	*l = append(*l, value)
	return nil
}

// run returns the exit code. A host denies when it is 2 and there is a text on standard error.
func run(args []string) int {
	if len(args) == 0 || !slices.Contains(hostgate.Hosts, hostgate.Host(args[0])) {
		fmt.Fprintf(os.Stderr, "usage: grapnel-gate HOST --policy FILE: HOST is one of %v\n", hostgate.Hosts)
		return 2
	}
	config := engine.Config{Host: hostgate.Host(args[0])}
	flags := flag.NewFlagSet("grapnel-gate", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Var((*list)(&config.Policies), "policy", "")
	flags.Var((*list)(&config.Servers), "mcp-server", "")
	flags.StringVar(&config.State, "state", "", "")
	flags.DurationVar(&config.Deadline, "deadline", 0, "")
	err := flags.Parse(args[1:])
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if err != nil {
		_, _ = os.Stdout.Write(hostgate.Refusal(config.Host, nil, "grapnel gate: not executed: "+err.Error()))
		return 0
	}
	if err := engine.Run(context.Background(), config, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	return 0
}
