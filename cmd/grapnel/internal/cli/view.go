package cli

import (
	"fmt"
	"io"

	"golang.org/x/term"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/events"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
)

// view shows the progress: a timeline for a person, events for a program, or nothing.
type view struct {
	std    streams
	show   *timeline.Timeline // nil when no timeline is shown
	events *events.Stream     // nil when no events are written
}

// newView returns the view that the flags select. Input makes the timeline show the user's messages.
func newView(std streams, o *options, asJSON, input bool) *view {
	v := &view{std: std}
	switch {
	case asJSON:
		v.events = events.New(std.out)
	case !o.quiet:
		v.show = timeline.New(timeline.Config{
			Out: std.err, Width: func() int { return widthOf(std.err) }, Colour: wantsColour(std.err, o.color), Input: input,
		})
	}
	return v
}

// observer returns the observer for the agent; nil for none.
func (v *view) observer() agent.Observer {
	switch {
	case v.show != nil:
		return v.show
	case v.events != nil:
		return v.events
	}
	return nil
}

func (v *view) delta(d agent.Delta) {
	if v.show != nil {
		v.show.Delta(d)
	}
	if v.events != nil {
		v.events.Delta(d)
	}
}

// note shows a message that is not an event of the agent.
func (v *view) note(text string) {
	if v.show != nil {
		v.show.Note(text)
		return
	}
	fmt.Fprintln(v.std.err, "grapnel: "+timeline.Clean(text))
}

// answer writes the final answer to standard output, unless standard output is a terminal on which the timeline has
// just shown the answer. If the view writes events, answer returns an error if some of them could not be written.
func (v *view) answer(text string) error {
	if v.events != nil {
		if err := v.events.Err(); err != nil {
			return fmt.Errorf("writing the events: %w", err)
		}
		return nil
	}
	terminal := term.IsTerminal(int(v.std.out.Fd()))
	if terminal && v.show != nil && term.IsTerminal(int(v.std.err.Fd())) {
		return nil
	}
	if terminal {
		text = timeline.Clean(text)
	}
	if _, err := io.WriteString(v.std.out, text+"\n"); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

// question shows the call that needs approval to the person.
func (v *view) question(c agent.ToolCall, q agent.Questions) {
	show := v.show
	if show == nil {
		show = timeline.New(timeline.Config{Out: v.std.err})
	}
	show.Question(c, q)
}
