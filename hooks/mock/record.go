package mock

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// Recorder writes tool results from one session. Create one with Record. It is safe for concurrent use.
type Recorder struct {
	mu      sync.Mutex
	w       io.Writer
	session agent.SessionID
	seen    map[key]int
	err     error
}

// Record returns a recorder that writes to w at the end of each step. It makes one Write with one line for each call
// that a tool answered. The lines contain arguments and results: protect the file like the data in them.
func Record(w io.Writer) *Recorder { return &Recorder{w: w, seen: map[key]int{}} }

// Hook returns the observer at StepEnd that records. It sees the results after all PostToolUse hooks.
func (r *Recorder) Hook() hooks.Hook {
	return hooks.Observe(hooks.AtStepEnd, "record", func(_ context.Context, c hooks.StepEndContext) error {
		return r.step(c.Run().Session, c.Record())
	})
}

// Err returns the first error. After an error the recorder does not write any more.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

func (r *Recorder) step(session agent.SessionID, step agent.StepRecord) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.session == "" {
		r.session = session
	}
	for _, result := range step.Results() {
		if r.err != nil {
			return r.err
		}
		if !result.Executed() {
			continue
		}
		if r.session != session {
			r.err = fmt.Errorf("recording tools of session %s: got a step of session %s: use one recorder per session", r.session, session)
			return r.err
		}
		r.err = r.write(&result)
	}
	return r.err
}

func (r *Recorder) write(result *agent.ToolResult) error {
	call := result.Call()
	k, err := keyOf(call.Name, call.Arguments)
	if err != nil { // a call with such arguments does not run
		return fmt.Errorf("recording tool %q: %w", call.Name, err)
	}
	l := line{
		Tool: call.Name, Arguments: json.RawMessage(k.arguments), Occurrence: r.seen[k] + 1,
		Failed: result.IsError(), DurationMS: float64(result.Duration.Round(time.Microsecond)) / float64(time.Millisecond),
	}
	if text := result.Text(); result.Content.IsText() {
		l.Text = &text
	} else {
		for _, p := range result.Content.Parts() {
			l.Content = append(l.Content, p)
		}
	}
	text, err := strictjson.Marshal(l)
	if err == nil {
		_, err = io.WriteString(r.w, text+"\n")
	}
	if err != nil {
		return fmt.Errorf("recording tool %q: %w", call.Name, err)
	}
	r.seen[k]++
	return nil
}
