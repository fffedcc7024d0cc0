package condition

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// document is an event as JSON: the members that an action receives on its standard input, and more, so that a policy
// test can set everything that a condition can read.
type document struct {
	Version  int               `json:"version"`
	Point    string            `json:"point"`
	Agent    string            `json:"agent"`
	Stage    string            `json:"stage"`
	Run      agent.Run         `json:"run"`
	Elapsed  string            `json:"elapsed"`
	Now      time.Time         `json:"now"`
	Step     int               `json:"step"`
	StepKind string            `json:"step_kind"`
	Usage    documentUsage     `json:"usage"`
	Input    string            `json:"input"`
	Metadata map[string]any    `json:"metadata"`
	Calls    map[string]tally  `json:"calls"`
	Actions  map[string]Action `json:"actions"`

	Tool      string          `json:"tool"`
	CallID    string          `json:"call_id"`
	CallIndex int             `json:"call_index"`
	Arguments json.RawMessage `json:"arguments"`
	Original  json.RawMessage `json:"original_arguments"`
	Invalid   string          `json:"invalid"`
	Question  string          `json:"question"`
	Result    documentResult  `json:"result"`
	Error     string          `json:"error"`

	Reply         documentReply      `json:"reply"`
	Answer        string             `json:"answer"`
	Subagent      documentSubagent   `json:"subagent"`
	Compaction    documentCompaction `json:"compaction"`
	Continuations int                `json:"continuations"`
	Approvals     []approval         `json:"approvals"`
	Duration      int64              `json:"duration_ms"`
	Status        agent.Status       `json:"status"`
	End           agent.Signal       `json:"end"`
	Conversation  hooks.Conversation `json:"conversation"`
	Pipeline      hooks.Pipeline     `json:"pipeline"`
	Parameters    json.RawMessage    `json:"parameters"`

	Variables map[string]any `json:"variables"`

	// Members that actions receive and conditions ignore.
	Hook              string         `json:"hook"`
	Decides           bool           `json:"decides"`
	Decisions         []string       `json:"decisions"`
	Deadline          string         `json:"deadline"`
	Attempt           int            `json:"attempt"`
	ContinuationsLeft int            `json:"continuations_left"`
	ShouldContinue    bool           `json:"should_continue"`
	Vars              map[string]any `json:"vars"`

	sinceStart time.Duration
}

type documentResult struct {
	Text    string          `json:"text"`
	IsError bool            `json:"is_error"`
	Status  string          `json:"status"`
	Reason  string          `json:"reason"`
	Data    json.RawMessage `json:"data"`

	Attempts int `json:"attempts"`
}

type documentReply struct {
	Text  string   `json:"text"`
	Tools []string `json:"tools"`

	FinishReason string `json:"finish_reason"`
	Model        string `json:"model"`

	// Members that actions receive and conditions ignore.
	Usage documentUsage `json:"usage"`
}

type documentUsage struct {
	Tokens       *int64   `json:"tokens"`
	InputTokens  int64    `json:"input_tokens"`
	OutputTokens int64    `json:"output_tokens"`
	Cost         *float64 `json:"cost"`

	CacheReadTokens  int64 `json:"cache_read_tokens"`
	CacheWriteTokens int64 `json:"cache_write_tokens"`
	ReasoningTokens  int64 `json:"reasoning_tokens"`
}

type documentSubagent struct {
	Agent       string `json:"agent"`
	Instruction string `json:"instruction"`
	Result      string `json:"result"`

	Run     agent.RunID     `json:"run"`
	Session agent.SessionID `json:"session"`
	Status  agent.Status    `json:"status"`

	// Members that actions receive and conditions ignore.
	CallID string `json:"call_id"`
}

type documentCompaction struct {
	ID            string `json:"id"`
	Messages      int    `json:"messages"`
	Tokens        int64  `json:"tokens"`
	MessagesAfter int    `json:"messages_after"`
	Summary       string `json:"summary"`
}

// FromJSON reads an event at a hook point from a JSON object. Its members are the ones that an action receives, and
// more. Unknown members, duplicate members and wrong types are errors. A "point" in the object must equal at; it is
// required if at is empty.
func FromJSON(text []byte, at hooks.PointName) (Input, error) {
	ev, err := parseEvent(text, at)
	if err != nil {
		return Input{}, fmt.Errorf("reading the event: %w", err)
	}
	return Input{ev}, nil
}

func parseEvent(text []byte, at hooks.PointName) (*event, error) {
	var d document
	if err := strictjson.CheckObject(string(text)); err != nil {
		return nil, err
	}
	if err := strictjson.UnmarshalStrict(text, &d); err != nil {
		return nil, err
	}
	point, err := d.pointAt(at)
	if err != nil {
		return nil, err
	}
	ev := &event{source: &d, point: point, at: d.Now, values: Values{Actions: d.Actions, Names: map[string]string{}}}
	for name, v := range d.Variables {
		if !slices.ContainsFunc(environment, func(e variable) bool { return e.name == name }) {
			return nil, fmt.Errorf("unknown variable %q", name)
		}
		ev.values.Names[name] = fmt.Sprint(v)
	}
	if ofCalls.has(point) {
		ev.call = &call{called: *d.toolCall()}
	}
	return ev, nil
}

func (d *document) pointAt(at hooks.PointName) (hooks.PointName, error) {
	if d.Point != "" {
		own, known := hooks.PointNamed(d.Point)
		switch {
		case !known:
			return "", fmt.Errorf("unknown hook point %q", d.Point)
		case at != "" && own != at:
			return "", fmt.Errorf("the event is for %s, not for %s", own, at)
		}
		at = own
	}
	if at == "" {
		return "", errors.New(`the event names no hook point: add "point"`)
	}
	var err error
	if d.Elapsed != "" {
		d.sinceStart, err = time.ParseDuration(d.Elapsed)
	}
	return at, err
}

// turn returns the model's turn. Its text defaults to the answer.
func (r *documentReply) turn(answer string) reply {
	return reply{cmp.Or(r.Text, answer), r.Tools, r.FinishReason, r.Model}
}

func (d *document) approvals() []approval { return d.Approvals }

func (d *document) duration() time.Duration { return time.Duration(d.Duration) * time.Millisecond }

func (d *document) run() agent.Run {
	run := d.Run
	run.Agent, run.Stage = cmp.Or(d.Agent, run.Agent), cmp.Or(d.Stage, run.Stage)
	return run
}

func (d *document) toolCall() *called {
	arguments := argumentText(d.Arguments)
	original := arguments
	if d.Original != nil {
		original = argumentText(d.Original)
	}
	return &called{d.Tool, d.CallID, d.CallIndex, arguments, original}
}

// argumentText returns the text of arguments. Arguments other than a JSON object are given as a JSON string, which it
// unquotes.
func argumentText(raw json.RawMessage) string {
	if text, ok := strictjson.Unquote(string(raw)); ok {
		return text
	}
	return string(raw)
}

func (d *document) usage() agent.Usage {
	u := agent.Usage{
		InputTokens: d.Usage.InputTokens, OutputTokens: d.Usage.OutputTokens, Cost: mo.PointerToOption(d.Usage.Cost),
		CacheReadTokens: d.Usage.CacheReadTokens, CacheWriteTokens: d.Usage.CacheWriteTokens, ReasoningTokens: d.Usage.ReasoningTokens,
	}
	if d.Usage.Tokens != nil && *d.Usage.Tokens != u.Tokens() {
		u.OutputTokens = *d.Usage.Tokens - u.InputTokens
	}
	return u
}

func (d *document) step() int                        { return d.Step }
func (d *document) stepKind() string                 { return d.StepKind }
func (d *document) elapsedTime() time.Duration       { return d.sinceStart }
func (d *document) failure() string                  { return d.Error }
func (d *document) input() string                    { return d.Input }
func (d *document) reply() reply                     { return d.Reply.turn(d.Answer) }
func (d *document) continuations() int               { return d.Continuations }
func (d *document) pipeline() hooks.Pipeline         { return d.Pipeline }
func (d *document) conversation() hooks.Conversation { return d.Conversation }
func (d *document) parameters() string               { return string(d.Parameters) }
func (d *document) invalid() string                  { return d.Invalid }
func (d *document) question() string                 { return d.Question }

func (d *document) result() result {
	r := d.Result
	return result{r.Text, r.IsError, r.Status, r.Reason, string(r.Data), r.Attempts}
}

func (d *document) subagent() hooks.Subagent {
	s := d.Subagent
	return hooks.Subagent{
		Agent: s.Agent, Instruction: s.Instruction, Result: s.Result, Run: agent.Run{ID: s.Run, Session: s.Session}, Status: s.Status,
	}
}

func (d *document) compaction() hooks.Compaction {
	return hooks.Compaction{Messages: d.Compaction.Messages, Tokens: d.Compaction.Tokens}
}

func (d *document) end() (agent.Status, agent.Signal) { return d.Status, d.End }

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
