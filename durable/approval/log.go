package approval

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// Log returns a notifier that writes a line with a link for each waiting call, for a person who watches a terminal or a
// file. Everyone who can read the output can decide.
func Log(w io.Writer, links Links) durable.Notifier {
	var mu sync.Mutex
	return durable.NotifierFunc(func(_ context.Context, n durable.Notice) error {
		var lines strings.Builder
		for _, c := range openCalls(n) {
			what := "approval of"
			if _, asks := c.Questions.Asked(); asks {
				what = "input for"
			}
			fmt.Fprintf(&lines, "%s waits for %s %s", oneLine(noticeName(n)), what, oneLine(c.Call.Name))
			if reason := c.Questions.Reason(); reason != "" {
				fmt.Fprintf(&lines, " (%s)", oneLine(reason))
			}
			if !c.Deadline.IsZero() {
				fmt.Fprintf(&lines, ", until %s", c.Deadline.UTC().Format(time.RFC3339))
			}
			fmt.Fprintf(&lines, ": %s\n", links.To(c.Token))
		}
		mu.Lock()
		defer mu.Unlock()
		if _, err := io.WriteString(w, lines.String()); err != nil {
			return fmt.Errorf("announcing that run %s waits: %w", n.Run.ID, err)
		}
		return nil
	})
}

// openCalls returns the calls of a notice that a person must answer about: not those that only wait for events.
func openCalls(n durable.Notice) []durable.WaitingCall {
	return lo.Filter(n.Calls, func(c durable.WaitingCall, _ int) bool {
		return c.Token != "" && lo.SomeBy(c.Questions, func(q agent.Question) bool { return q.Kind != agent.QuestionGate })
	})
}

func noticeName(n durable.Notice) string {
	if n.Run.Agent == "" {
		return fmt.Sprintf("run %s", n.Run.ID)
	}
	return fmt.Sprintf("run %s of %s", n.Run.ID, n.Run.Agent)
}

// oneLine returns text without line breaks and terminal control characters.
func oneLine(text string) string {
	return visible(strings.Join(strings.Fields(text), " "))
}
