package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/hooks"
)

// prePost runs an agent with three hooks. The run waits for the first, which may deny the input. The other two are
// detached: they only observe and run in the background. The program waits for them with Drain.
func prePost(ctx context.Context, out io.Writer) error {
	var log lines
	validator := hooks.On(hooks.AtInputSubmitted, "input-validator", func(_ context.Context, c hooks.InputContext) hooks.Result {
		if strings.TrimSpace(c.Text()) == "" {
			return c.Deny("the message is empty")
		}
		return c.Allow()
	})
	requests := hooks.Observe(hooks.AtExecutionStart, "request-logger", func(_ context.Context, c hooks.ExecutionContext) error {
		log.add("1 before: %s was asked %q", c.Run().Agent, c.Text())
		return nil
	}).Detach()
	responses := hooks.Observe(hooks.AtExecutionEnd, "response-logger", func(_ context.Context, c hooks.EndContext) error {
		log.add("2 after: %s ended as %s in %v", c.Run().Agent, c.Status(), roundTime(c.Duration()))
		return nil
	}).Detach()

	model := agenttest.Script().Then(delayTurn(200*time.Millisecond, agenttest.Say("Hello to you!")))
	a, err := newAgent("Assistant", model, nil, validator, requests, responses)
	if err != nil {
		return err
	}
	for _, message := range []string{"Hello!", "  "} {
		final, err := a.Run(ctx, agent.NewState(), agent.UserText(message)).Get()
		if err != nil {
			return err
		}
		if final.Status() == agent.StatusDenied {
			fmt.Fprintf(out, "%q was denied by %s: %s\n", message, final.StopSignal().Source, final.StopSignal().Message)
		} else {
			fmt.Fprintf(out, "%q was answered: %s\n", message, final.Answer())
		}
		if err := a.Drain(ctx); err != nil { // waits for the detached hooks
			return err
		}
		for _, line := range log.takeSorted() {
			fmt.Fprintln(out, " ", line)
		}
	}
	return nil
}

// lines collects what several goroutines write.
type lines struct {
	mu   sync.Mutex
	list []string
}

func (l *lines) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, fmt.Sprintf(format, args...))
}

// takeSorted empties the list and returns its lines in alphabetical order, because detached hooks write in any order.
func (l *lines) takeSorted() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.list
	l.list = nil
	slices.Sort(list)
	return list
}
