package recorded

import (
	"fmt"

	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// eventLog reads the output of "grapnel run --json"; docs/streams.md describes the format.
type eventLog struct {
	file
	open []*Run
}

type eventLine struct {
	V     int      `json:"v"`
	Type  string   `json:"type"`
	Run   string   `json:"run"`
	Agent string   `json:"agent"`
	Model string   `json:"model"`
	Text  string   `json:"text"`
	Input []string `json:"input"`
	Calls []struct {
		ID        string `json:"id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"calls"`
	Call struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"call"`
	Status string `json:"status"`
	Reason string `json:"reason"`
	Error  *struct {
		Text string `json:"text"`
	} `json:"error"`
}

// Information that the log lacks: older logs have no input, newer ones do.
const (
	eventsLack     = "what the user and the system prompt said, and the tools"
	eventsLackLess = "what the system prompt and hooks said, and the tools"
)

func newEvents(of file) *eventLog { return &eventLog{file: of} }

func (f *eventLog) add(v value) ([]*Run, error) {
	var kind struct {
		V    int    `json:"v"`
		Type string `json:"type"`
	}
	if v.last {
		return nil, nil
	}
	if err := strictjson.Unmarshal(v.text, &kind); err != nil {
		return nil, err
	}
	if kind.V != 1 {
		return nil, fmt.Errorf("the event log has version %d, but this program reads version 1: use a newer grapnel", kind.V)
	}
	switch kind.Type {
	case "run.started", "run.resumed", "inference.started", "inference.completed", "tool_call.completed", "run.completed":
	default:
		return nil, nil
	}
	var e eventLine
	if err := strictjson.Unmarshal(v.text, &e); err != nil {
		return nil, err
	}
	if e.Run == "" {
		return nil, fmt.Errorf("the event %q names no run", e.Type)
	}
	r := f.runOf(v.line, e)
	switch e.Type {
	case "inference.started":
		if len(e.Input) == 0 || len(r.Messages) > 0 { // a retry repeats the input
			break
		}
		for _, text := range e.Input {
			r.Messages = append(r.Messages, newMessage(replay.RoleUser, text))
		}
		r.Lacks = eventsLackLess
	case "inference.completed":
		if e.Error != nil {
			break
		}
		said := newMessage(replay.RoleAssistant, e.Text)
		for _, c := range e.Calls {
			said.ToolCalls = append(said.ToolCalls, call(c.ID, c.Name, c.Arguments))
		}
		r.Messages = append(r.Messages, said)
		r.Model = firstOf(e.Model, r.Model)
	case "tool_call.completed":
		failed := e.Reason != "" || e.Status == "failed" || e.Status == "not_executed" || e.Status == "unknown"
		r.Messages = append(r.Messages, newAnswer(e.Call.ID, e.Call.Name, e.Text, failed))
	case "run.completed":
		f.closeRun(r)
		return []*Run{r}, nil
	}
	return nil, nil
}

func (f *eventLog) runOf(line int, e eventLine) *Run {
	for _, r := range f.open {
		if r.ID == e.Run {
			r.Agent = firstOf(r.Agent, e.Agent)
			return r
		}
	}
	r := f.run(line, replay.Record{ID: e.Run, Source: "grapnel", Messages: []replay.Message{}})
	r.Agent, r.Lacks = e.Agent, eventsLack
	f.open = append(f.open, r)
	return r
}

func (f *eventLog) closeRun(r *Run) {
	for i, open := range f.open {
		if open == r {
			f.open = append(f.open[:i], f.open[i+1:]...)
			return
		}
	}
}

// end returns the runs that were unfinished or parked when the log ended.
func (f *eventLog) end() ([]*Run, []error) {
	open := f.open
	f.open = nil
	return open, nil
}
