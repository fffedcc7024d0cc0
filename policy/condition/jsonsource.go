package condition

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// document is an occasion as JSON: what an action is given on its standard input, and more, so that a test of a policy can
// say all that a condition may look at.
type document struct {
	Version      int               `json:"version"`
	Point        string            `json:"point"`
	Agent        string            `json:"agent"`
	Stage        string            `json:"stage"`
	Run          documentRun       `json:"run"`
	Step         int               `json:"step"`
	StepKind     string            `json:"step_kind"`
	Tool         string            `json:"tool"`
	CallID       string            `json:"call_id"`
	CallIndex    int               `json:"call_index"`
	Arguments    json.RawMessage   `json:"arguments"`
	Original     json.RawMessage   `json:"original_arguments"`
	Result       documentResult    `json:"result"`
	Input        string            `json:"input"`
	Error        string            `json:"error"`
	Reply        documentReply     `json:"reply"`
	Usage        documentUsage     `json:"usage"`
	Subagent     documentSubagent  `json:"subagent"`
	Compaction   documentCompact   `json:"compaction"`
	Continued    int               `json:"continuations"`
	End          documentEnd       `json:"end"`
	Metadata     map[string]any    `json:"metadata"`
	Calls        map[string]tally  `json:"calls"`
	Actions      map[string]Action `json:"actions"`
	Variables    map[string]any    `json:"variables"`
	Now          time.Time         `json:"now"`
	Hook         string            `json:"hook"`
	ElapsedValue string            `json:"elapsed"`

	took time.Duration
}

type documentRun struct {
	ID        string `json:"id"`
	Session   string `json:"session"`
	Parent    string `json:"parent"`
	Root      string `json:"root"`
	Depth     int    `json:"depth"`
	Number    int    `json:"number"`
	Agent     string `json:"agent"`
	Stage     string `json:"stage"`
	Iteration int    `json:"iteration"`
	Started   string `json:"started"`
}

type documentResult struct {
	Text    string `json:"text"`
	IsError bool   `json:"is_error"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
}

type documentReply struct {
	Text  string   `json:"text"`
	Tools []string `json:"tools"`
}

type documentUsage struct {
	Tokens       *int64   `json:"tokens"`
	InputTokens  int64    `json:"input_tokens"`
	OutputTokens int64    `json:"output_tokens"`
	Cost         *float64 `json:"cost"`
}

type documentSubagent struct {
	Agent       string `json:"agent"`
	Instruction string `json:"instruction"`
	Result      string `json:"result"`
}

type documentCompact struct {
	Messages int   `json:"messages"`
	Tokens   int64 `json:"tokens"`
}

type documentEnd struct {
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// FromJSON is an occasion at a point as a JSON object has it: for trying policies out. The members are those that an
// action is given (point, run, agent, step, tool, call_id, arguments, result, input, variables …) and the others that
// doc.go lists. It is strict: unknown members, duplicate ones and wrong types are errors. A "point" in it must be the one
// that is given. Empty at means the one in the text.
func FromJSON(text []byte, at hooks.PointName) (Input, error) {
	var d document
	if err := strictjson.CheckObject(string(text)); err != nil {
		return Input{}, fmt.Errorf("reading the event: %w", err)
	}
	if err := strictjson.UnmarshalStrict(text, &d); err != nil {
		return Input{}, fmt.Errorf("reading the event: %w", err)
	}
	point, err := d.pointAt(at)
	if err != nil {
		return Input{}, fmt.Errorf("reading the event: %w", err)
	}
	m := &moment{source: &d, point: point, at: d.Now, values: Values{Actions: d.Actions, Names: map[string]string{}}}
	for name, v := range d.Variables {
		m.values.Names[name] = fmt.Sprint(v)
	}
	if c := d.called(); ofCalls.has(point) {
		m.call = &call{called: *c}
	}
	return Input{m}, nil
}

func (d *document) pointAt(at hooks.PointName) (hooks.PointName, error) {
	if d.Point != "" {
		own, known := hooks.PointNamed(d.Point)
		switch {
		case !known:
			return "", fmt.Errorf("there is no hook point %q", d.Point)
		case at != "" && own != at:
			return "", fmt.Errorf("it is an event of %s, and %s was asked for", own, at)
		}
		at = own
	}
	if at == "" {
		return "", fmt.Errorf(`it does not say which hook point it is for: add "point"`)
	}
	var err error
	if d.ElapsedValue != "" {
		d.took, err = time.ParseDuration(d.ElapsedValue)
	}
	return at, err
}

func (d *document) run() agent.Run {
	return agent.Run{
		ID: agent.RunID(d.Run.ID), Session: agent.SessionID(d.Run.Session), Parent: agent.RunID(d.Run.Parent),
		Root: agent.RunID(d.Run.Root), Depth: d.Run.Depth, Number: d.Run.Number, Iteration: d.Run.Iteration,
		Agent: first(d.Agent, d.Run.Agent), Stage: first(d.Stage, d.Run.Stage),
	}
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (d *document) called() *called {
	original := d.Original
	if original == nil {
		original = d.Arguments
	}
	return &called{d.Tool, d.CallID, d.CallIndex, string(d.Arguments), string(original)}
}

func (d *document) usage() agent.Usage {
	u := agent.Usage{InputTokens: d.Usage.InputTokens, OutputTokens: d.Usage.OutputTokens, Cost: mo.PointerToOption(d.Usage.Cost)}
	if d.Usage.Tokens != nil && *d.Usage.Tokens != u.Tokens() {
		u.OutputTokens = *d.Usage.Tokens - u.InputTokens
	}
	return u
}

func (d *document) step() int              { return d.Step }
func (d *document) stepKind() string       { return d.StepKind }
func (d *document) elapsed() time.Duration { return d.took }
func (d *document) failure() string        { return d.Error }
func (d *document) input() string          { return d.Input }
func (d *document) reply() reply           { return reply{d.Reply.Text, d.Reply.Tools} }
func (d *document) continuations() int     { return d.Continued }

// pipeline is told as "variables", under the names of the environment.
func (d *document) pipeline() hooks.Pipeline { return hooks.Pipeline{} }

func (d *document) result() result {
	return result{d.Result.Text, d.Result.IsError, d.Result.Status, d.Result.Reason}
}

func (d *document) subagent() hooks.Subagent {
	return hooks.Subagent{Agent: d.Subagent.Agent, Instruction: d.Subagent.Instruction, Result: d.Subagent.Result}
}

func (d *document) compaction() hooks.Compaction {
	return hooks.Compaction{Messages: d.Compaction.Messages, Tokens: d.Compaction.Tokens}
}

func (d *document) end() (agent.Status, agent.Signal) {
	return agent.Status(d.End.Status), agent.Signal{Reason: agent.StopReason(d.End.Reason), Message: d.End.Message}
}

func (d *document) metadata(name string) (any, bool) {
	v, ok := d.Metadata[name]
	return v, ok
}

func (d *document) tally(tool string) tally {
	if tool != allTools {
		return d.Calls[tool]
	}
	var all tally
	for _, t := range d.Calls {
		all = tally{all.Calls + t.Calls, all.OK + t.OK, all.Denied + t.Denied}
	}
	return all
}
