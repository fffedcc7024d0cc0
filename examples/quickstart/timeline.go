package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/hooks"
)

// timeline prints an agent's events on a terminal as they happen.
type timeline struct {
	out    io.Writer
	colour bool

	rewriter string // the hook that last rewrote a call

	calls, denied, rewritten, goOns int
}

func newTimeline(out io.Writer, colour bool) *timeline { return &timeline{out: out, colour: colour} }

// wantsColour reports whether f is a terminal that should receive colours.
func wantsColour(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

func (t *timeline) paint(style, text string) string {
	if !t.colour {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

func (t *timeline) line(format string, args ...any) { fmt.Fprintf(t.out, format+"\n", args...) }

func (t *timeline) title(text string) { t.line("%s\n", t.paint(bold, text)) }

// Observe prints the events that a reader wants to see.
func (t *timeline) Observe(_ context.Context, e agent.Event) {
	switch e := e.(type) {
	case agent.RunStarted:
		t.line("%s", t.paint(dim, "run begins: agent "+e.Run.Agent))
	case agent.StepStarted:
		t.line("")
	case agent.InferenceStarted:
		if m := e.State.LastMessage(); m.Role() == agent.RoleUser && m.Source() == "" {
			t.say("user", cyan, m.Text())
			t.line("")
		}
	case agent.InferenceCompleted:
		t.say(fmt.Sprintf("step %d", e.Step+1), bold, e.Reply.Message.Text())
	case agent.ToolCallCompleted:
		t.call(e.Result)
	case hooks.Event:
		t.hook(e)
	case agent.RunCompleted:
		signal := e.State.StopSignal()
		t.line("\n%s", t.paint(dim, fmt.Sprintf("run ends: %s (%s)", e.State.Status(), signal.Reason)))
	}
}

func (t *timeline) say(who, style, text string) {
	t.line("%s  %s", t.paint(style, who), wrapText(text, 76-len(who), strings.Repeat(" ", len(who)+2)))
}

// hook prints a hook's decision about the run. A decision about a call is printed with the call.
func (t *timeline) hook(e hooks.Event) {
	if e.Kind != hooks.HookComplete {
		return
	}
	if e.Decision == hooks.Rewrite {
		t.rewriter = e.Hook
	}
	if e.Decision == hooks.Continue {
		t.goOns++
		t.line("  %s %s", t.paint(yellow, "↺ "+e.Hook+" keeps it from stopping:"), wrapText(e.Reason, 74, "    "))
	}
}

// call prints one tool call with its result.
func (t *timeline) call(r agent.ToolResult) {
	mark := t.paint(green, "✓")
	switch {
	case r.Denied():
		mark = t.paint(red, "✗")
	case r.Rewritten():
		mark = t.paint(yellow, "✎")
	case r.IsError():
		mark = t.paint(yellow, "!")
	}
	t.line("  %s %-10s %s", mark, r.Tool(), shortenText(mainArgument(r.Original()), 64))
	if denied, ok := errors.AsType[*hooks.DeniedError](r.Err); ok {
		t.line("    %s %s", t.paint(red, "denied by "+denied.Hook+":"), denied.Reason)
	}
	if r.Rewritten() {
		t.line("    %s\n    %s", t.paint(yellow, "rewritten by "+t.rewriter+" to"), wrapText(mainArgument(r.Call()), 74, "    "))
	}
}

// mainArgument returns a call's most informative argument.
func mainArgument(c agent.ToolCall) string {
	var in map[string]string
	if json.Unmarshal([]byte(c.Arguments), &in) != nil {
		return c.Arguments
	}
	if command, ok := in["command"]; ok {
		return command
	}
	return in["path"]
}

func (t *timeline) count(r *agent.ToolResult) {
	t.calls++
	if r.Denied() {
		t.denied++
	}
	if r.Rewritten() {
		t.rewritten++
	}
}

func (t *timeline) summary(played replay.Played) {
	t.line("%s", t.paint(bold, fmt.Sprintf("%d steps, %d calls: %d denied, %d rewritten; stopped too early: %d.",
		played.State.StepCount(), t.calls, t.denied, t.rewritten, t.goOns)))
	if left, ok := played.FirstDeparture(); ok {
		t.line("%s", t.paint(dim, wrapText(fmt.Sprintf("The play left the recording at turn %d (%s): from there on the recorded model "+
			"did not know what the hooks had done.", left.Turn+1, left.Kind), 78, "")))
	}
}

func shortenText(text string, limit int) string {
	text, _, more := strings.Cut(text, "\n")
	runes := []rune(text)
	if len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	if more {
		return text + " …"
	}
	return text
}

// wrapText breaks text into lines with at most width runes, and indents all lines except the first.
func wrapText(text string, width int, indent string) string {
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		length := len([]rune(word))
		switch {
		case i == 0:
		case column+1+length > width:
			b.WriteString("\n" + indent)
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += length
	}
	return b.String()
}
