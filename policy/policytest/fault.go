package policytest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// injectedFault is a failure of an action that a case simulates.
type injectedFault struct { //nolint:recvcheck // ReadNode sets the fields, other methods read the value
	// Fault is timeout, crash, signal, start, network, status, bad_output, cancelled or
	// slow.
	Fault string `key:"fault,required"`
	// Delay is how long a slow action waits before it runs; the default is a second.
	Delay time.Duration `key:"delay,positive"`
	// Times is how often the action fails before it succeeds; the default is always.
	Times int `key:"times,positive"`
}

type fault injectedFault

// ReadNode reads a word, or a mapping.
func (f *injectedFault) ReadNode(n yamlfile.Node) {
	at := n.Find("fault")
	if n.Kind() == yamlfile.TextNode {
		f.Fault, at = n.Raw(), n
	} else if !n.Decode((*fault)(f)) {
		return
	}
	if !slices.Contains(faults, f.Fault) {
		at.Wrong("%s", yamlfile.Unknown("fault", f.Fault, faults))
	}
	if f.Delay > 0 && f.Fault != "slow" {
		n.Find("delay").Wrong("delay: requires fault: slow")
	}
}

var faults = []string{"timeout", "crash", "signal", "start", "network", "status", "bad_output", "cancelled", "slow"}

// faulty is an action with an injected fault.
type faulty struct {
	injectedFault

	kind  string
	inner action.Action

	mu   *sync.Mutex
	left *int
}

// with wraps an action with the fault.
func (f injectedFault) with(kind string, inner action.Action) action.Action {
	left := f.Times
	return faulty{injectedFault: f, kind: kind, inner: inner, mu: &sync.Mutex{}, left: &left}
}

// goesWell reports whether the action has failed often enough and now succeeds.
func (f faulty) goesWell() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	*f.left--
	return f.Times > 0 && *f.left < 0
}

// Do performs the action or simulates the failure.
func (f faulty) Do(ctx context.Context, r *action.Request) (*action.Answer, error) {
	if f.goesWell() {
		return f.inner.Do(ctx, r)
	}
	fail := func(kind action.Fault, text string) (*action.Answer, error) {
		return nil, &action.Error{Type: f.kind, Fault: kind, Err: errors.New(text + " (injected)")}
	}
	switch f.Fault {
	case "slow":
		return f.slow(ctx, r)
	case "timeout":
		return fail(action.FaultTimeout, "it exceeded its time limit")
	case "signal":
		return fail(action.FaultSignal, "it was killed by SIGKILL")
	case "start":
		return fail(action.FaultStart, "it did not start")
	case "network":
		return fail(action.FaultNetwork, "connection refused")
	case "status":
		return fail(action.FaultStatus, "the answer is 500 Internal Server Error")
	case "cancelled":
		return fail(action.FaultCancelled, "cancelled")
	case "bad_output":
		return f.badOutput(ctx, r)
	}
	return fail(action.FaultExit, "it ended with exit code 1")
}

// slow waits and then performs the action.
func (f faulty) slow(ctx context.Context, r *action.Request) (*action.Answer, error) {
	wait := time.NewTimer(cmp.Or(f.Delay, time.Second))
	defer wait.Stop()
	select {
	case <-wait.C:
		return f.inner.Do(ctx, r)
	case <-ctx.Done():
		kind := action.FaultCancelled
		if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			kind = action.FaultTimeout
		}
		return nil, &action.Error{Type: f.kind, Fault: kind, Err: fmt.Errorf("delayed (injected): %w", context.Cause(ctx))}
	}
}

// badOutput runs a program whose output begins like a decision but is invalid.
func (f faulty) badOutput(ctx context.Context, r *action.Request) (*action.Answer, error) {
	babbling, err := action.Command{Argv: []string{"echo", `{"decision": "maybe"}`}}.Action(action.Host{})
	if err != nil {
		return nil, err
	}
	answer, err := babbling.Do(ctx, r)
	if failed, ok := errors.AsType[*action.Error](err); ok {
		return nil, &action.Error{Type: f.kind, Fault: failed.Fault, Err: fmt.Errorf("%w (injected)", failed.Err)}
	}
	if answer != nil {
		answer.Output = strings.TrimSpace(answer.Output)
	}
	return answer, err
}
