package recorded

import (
	"errors"
	"fmt"

	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// auditLog reads the log of package audit. The log lacks the model's text, so each step becomes a turn with the
// step's calls.
type auditLog struct {
	file
	open []*auditRun
}

type auditRun struct {
	run    *Run
	step   int // the last turn's step; -1 before the first
	turn   int // the last turn's index in the messages
	hashes bool
	cut    bool
}

type auditLine struct {
	V      int    `json:"v"`
	Event  string `json:"event"`
	Run    string `json:"run"`
	Agent  string `json:"agent"`
	Step   int    `json:"step"`
	Call   string `json:"call"`
	Tool   string `json:"tool"`
	Status string `json:"status"`
	Reason string `json:"reason"`
	Bytes  int    `json:"result_bytes"`
	Texts  *struct {
		Arguments string `json:"arguments"`
		Asked     string `json:"asked"`
		Result    string `json:"result"`
	} `json:"texts"`
}

func newAudit(of file) *auditLog { return &auditLog{file: of} }

var errHashes = errors.New("the audit log holds hashes instead of arguments: record it with Options.Content")

func (f *auditLog) add(v value) ([]*Run, error) {
	if v.last {
		return nil, nil
	}
	var e auditLine
	if err := strictjson.Unmarshal(v.text, &e); err != nil {
		return nil, err
	}
	if e.V != 1 {
		return nil, fmt.Errorf("the audit log has version %d, but this program reads version 1: use a newer grapnel", e.V)
	}
	if e.Run == "" {
		return nil, fmt.Errorf("the entry %q names no run", e.Event)
	}
	r := f.runOf(v.line, e)
	switch e.Event {
	case "tool_result":
		r.addResult(e)
	case "run_ended":
		for i, open := range f.open {
			if open == r {
				f.open = append(f.open[:i], f.open[i+1:]...)
				break
			}
		}
		return r.finish()
	}
	return nil, nil
}

// addResult adds a call and its answer. Calls in one step belong to one turn.
func (r *auditRun) addResult(e auditLine) {
	if e.Texts == nil {
		r.hashes = true
		return
	}
	if e.Step != r.step {
		r.step, r.turn = e.Step, len(r.run.Messages)
		r.run.Messages = append(r.run.Messages, replay.Message{Role: replay.RoleAssistant})
	}
	turn := &r.run.Messages[r.turn]
	turn.ToolCalls = append(turn.ToolCalls, call(e.Call, e.Tool, firstOf(e.Texts.Asked, e.Texts.Arguments)))
	failed := e.Reason != "" || e.Status == "failed" || e.Status == "not_executed" || e.Status == "unknown"
	r.run.Messages = append(r.run.Messages, newAnswer(e.Call, e.Tool, e.Texts.Result, failed))
	r.cut = r.cut || e.Bytes > len(e.Texts.Result)
}

func (r *auditRun) finish() ([]*Run, error) {
	if r.hashes {
		return nil, atLine(r.run.Line, fmt.Errorf("run %q: %w", r.run.ID, errHashes))
	}
	if r.cut {
		r.run.Lacks += ", and the ends of long results"
	}
	return []*Run{r.run}, nil
}

func (f *auditLog) runOf(line int, e auditLine) *auditRun {
	for _, r := range f.open {
		if r.run.ID == e.Run {
			return r
		}
	}
	r := &auditRun{run: f.run(line, replay.Record{ID: e.Run, Source: "grapnel", Messages: []replay.Message{}}), step: -1}
	r.run.Agent, r.run.Lacks = e.Agent, "what was said, and the tools"
	f.open = append(f.open, r)
	return r
}

func (f *auditLog) end() (runs []*Run, wrong []error) {
	for _, r := range f.open {
		list, err := r.finish()
		runs = append(runs, list...)
		if err != nil {
			wrong = append(wrong, err)
		}
	}
	f.open = nil
	return runs, wrong
}
