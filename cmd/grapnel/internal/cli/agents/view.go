package agents

import (
	"fmt"
	"io"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/events"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
)

// View shows the progress: a timeline for a person, events for a program, or nothing.
type View struct {
	Std    console.Streams
	Show   *timeline.Timeline // nil when no timeline is shown
	Events *events.Stream     // nil when no events are written
}

// NewView returns the view that the flags select. Input makes the timeline show the user's messages.
func NewView(std console.Streams, o *Options, asJSON, input bool) *View {
	v := &View{Std: std}
	switch {
	case asJSON:
		v.Events = events.New(std.Out)
	case !o.quiet:
		v.Show = timeline.New(timeline.Config{
			Out: std.Err, Width: func() int { return console.WidthOf(std.Err) }, Colour: console.WantsColour(std.Err, o.Color), Input: input,
		})
	}
	return v
}

// Observer returns the observer for the agent; nil for none.
func (v *View) Observer() agent.Observer {
	switch {
	case v.Show != nil:
		return v.Show
	case v.Events != nil:
		return v.Events
	}
	return nil
}

// Delta implements agent.Listener.
func (v *View) Delta(d agent.Delta) {
	if v.Show != nil {
		v.Show.Delta(d)
	}
	if v.Events != nil {
		v.Events.Delta(d)
	}
}

// Note shows a message that is not an event of the agent.
func (v *View) Note(text string) {
	if v.Show != nil {
		v.Show.Note(text)
		return
	}
	fmt.Fprintln(v.Std.Err, "grapnel: "+timeline.Clean(text))
}

// Answer writes the final answer to standard output, unless standard output is a terminal on which the timeline has
// just shown the answer. If the view writes events, answer returns an error if some of them could not be written.
func (v *View) Answer(text string) error {
	if v.Events != nil {
		if err := v.Events.Err(); err != nil {
			return fmt.Errorf("writing the events: %w", err)
		}
		return nil
	}
	terminal := console.IsTerminal(v.Std.Out)
	if terminal && v.Show != nil && console.IsTerminal(v.Std.Err) {
		return nil
	}
	if terminal {
		text = timeline.Clean(text)
	}
	if _, err := io.WriteString(v.Std.Out, text+"\n"); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

// question shows the call that needs approval to the person.
func (v *View) question(c agent.ToolCall, q agent.Questions) {
	show := v.Show
	if show == nil {
		show = timeline.New(timeline.Config{Out: v.Std.Err})
	}
	show.Question(c, q)
}
