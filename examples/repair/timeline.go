package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
)

// timeline prints an agent's events as they happen.
type timeline struct {
	out io.Writer
	dir string // shown as a dot
}

// Observe prints the events that a reader wants to see.
func (t *timeline) Observe(_ context.Context, e agent.Event) {
	switch e := e.(type) {
	case agent.InferenceCompleted:
		if e.Err == nil {
			t.line("step %d  %s", e.Step+1, e.Reply.Message.Text())
		}
	case agent.ToolCallCompleted:
		t.call(e.Result)
	case hooks.Event:
		switch {
		case e.Kind == hooks.HookComplete && e.Decision == hooks.Continue:
			t.line("  ↺ %s: %s", e.Hook, firstLine(e.Reason))
		case e.Kind == hooks.HookComplete && e.Decision == hooks.Replace:
			t.line("  ✎ %s changed the answer below", e.Hook)
		}
	case agent.RunCompleted:
		t.line("\n%s after %d steps: %s", e.State.Status(), e.State.RunStepCount(), e.State.StopSignal().Reason)
	}
}

func (t *timeline) call(r agent.ToolResult) {
	mark := "✓"
	switch {
	case r.Denied():
		mark = "✗"
	case r.IsError():
		mark = "!"
	}
	t.line("  %s %s %s\n      %s", mark, r.Tool(), r.Original().Arguments, firstLine(r.Text()))
}

func (t *timeline) line(format string, args ...any) {
	fmt.Fprintln(t.out, strings.ReplaceAll(fmt.Sprintf(format, args...), t.dir, "."))
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
