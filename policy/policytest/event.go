package policytest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/near"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// Event is one event to judge, as files and the command line specify it. It has the format that actions receive
// (action.Request), and also everything else that a rule can read. Create one with ReadEvent.
type Event struct {
	// Version is 1, which is the default.
	Version int `key:"version"`
	// Point is the hook point, under any name that policies accept.
	Point Point `key:"point"`

	Agent string `key:"agent"`
	Stage string `key:"stage"`
	Run   Run    `key:"run"`
	// Step is the number of the run's earlier steps.
	Step     *int             `key:"step,nonnegative"`
	Usage    Usage            `key:"usage"`
	Now      Time             `key:"now"`
	Metadata map[string]Value `key:"metadata"`
	// Messages lists the earlier messages, from this run and the runs before it.
	Messages []Turn `key:"messages"`
	// Calls counts the run's earlier calls by tool, as a short form of Messages.
	Calls map[string]Calls `key:"calls"`

	Tool      string    `key:"tool"`
	CallID    string    `key:"call_id"`
	Arguments Arguments `key:"arguments"`
	// Args is another name for Arguments, as in conditions. An event has only one of them.
	Args Arguments `key:"args"`
	// Original holds the model's arguments, if they differ from Arguments.
	Original Arguments   `key:"original_arguments"`
	Invalid  string      `key:"invalid"`
	Result   *ToolResult `key:"result"`
	Question string      `key:"question"`
	Approval Approval    `key:"approval"`

	Input   string  `key:"input"`
	Answer  string  `key:"answer"`
	Reply   Reply   `key:"reply"`
	Request Request `key:"request"`
	Error   string  `key:"error"`

	Subagent      Subagent     `key:"subagent"`
	Compaction    Compaction   `key:"compaction"`
	Continuations int          `key:"continuations,nonnegative"`
	Status        string       `key:"status"`
	End           End          `key:"end"`
	Conversation  Conversation `key:"conversation"`
	Pipeline      Pipeline     `key:"pipeline"`
	Parameters    Value        `key:"parameters"`
	Variables     Variables    `key:"variables"`

	// Members that actions receive, but that rules cannot read or that follow from other members.
	Duration       int     `key:"duration_ms"`
	StepKind       string  `key:"step_kind"`
	Continues      bool    `key:"should_continue"`
	IdempotencyKey string  `key:"idempotency_key"`
	Approvals      []Value `key:"approvals"`
	Decided        Value   `key:"decided"`

	Hook              string           `key:"hook"`
	Decides           bool             `key:"decides"`
	Decisions         []string         `key:"decisions"`
	Deadline          string           `key:"deadline"`
	Attempt           int              `key:"attempt"`
	ContinuationsLeft int              `key:"continuations_left"`
	Vars              map[string]Value `key:"vars"`
}

// Point is a point's name.
type Point hooks.PointName

// Set parses a name.
func (p *Point) Set(text string) error {
	name, ok := hooks.PointNamed(text)
	if !ok {
		return fmt.Errorf("expected a point, such as PreToolUse or InputSubmitted%s", suggestion(text))
	}
	*p = Point(name)
	return nil
}

func suggestion(text string) string {
	names := lo.Map(hooks.PointNames(), func(p hooks.PointName, _ int) string { return string(p) })
	if name, ok := near.Name(text, names); ok && text != "" {
		return fmt.Sprintf(" (did you mean %q?)", name)
	}
	return ""
}

// Time is a day, or a time in RFC 3339.
type Time time.Time

// Set parses a time.
func (t *Time) Set(text string) error {
	for _, form := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(form, text); err == nil {
			*t = Time(at)
			return nil
		}
	}
	return errors.New("expected a time such as 2026-12-31T12:00:00Z, or a day such as 2026-12-31")
}

// Run is the event's run.
type Run struct {
	ID        string `key:"id"`
	Session   string `key:"session"`
	Agent     string `key:"agent"`
	Parent    string `key:"parent"`
	Root      string `key:"root"`
	Depth     int    `key:"depth,nonnegative"`
	Number    int    `key:"number,nonnegative"`
	Stage     string `key:"stage"`
	Iteration int    `key:"iteration,nonnegative"`
	Started   string `key:"started"`
}

// Usage is the run's consumption.
type Usage struct {
	Tokens       int64    `key:"tokens,nonnegative"`
	InputTokens  int64    `key:"input_tokens,nonnegative"`
	OutputTokens int64    `key:"output_tokens,nonnegative"`
	Cost         *float64 `key:"cost,nonnegative"`
	// The cache tokens are part of the input, the reasoning tokens part of the output.
	CacheReadTokens  int64 `key:"cache_read_tokens,nonnegative"`
	CacheWriteTokens int64 `key:"cache_write_tokens,nonnegative"`
	ReasoningTokens  int64 `key:"reasoning_tokens,nonnegative"`
}

// Calls counts one tool's calls. Calls that neither succeeded nor were denied have failed.
type Calls struct {
	Calls  int `key:"calls,nonnegative"`
	OK     int `key:"ok,nonnegative"`
	Denied int `key:"denied,nonnegative"`
}

// Check reports numbers that contradict each other.
func (c *Calls) Check(n yamlfile.Node) {
	if c.OK+c.Denied > c.Calls {
		n.Wrong("%d successful and %d denied calls exceed the number of calls, %d", c.OK, c.Denied, c.Calls)
	}
}

// Reply is a model turn.
type Reply struct {
	Text  string   `key:"text"`
	Tools []string `key:"tools"`
	Calls []Call   `key:"calls"`
	// FinishReason says why the model stopped writing, such as stop or length.
	FinishReason string `key:"finish_reason"`
	// Model is the model that answered.
	Model string `key:"model"`
	Usage Usage  `key:"usage"`
}

// Request is the request to the model.
type Request struct {
	Model           string   `key:"model"`
	Instructions    string   `key:"instructions"`
	MaxOutputTokens int      `key:"max_output_tokens,nonnegative"`
	Temperature     *float64 `key:"temperature,nonnegative"`
}

// Approval is a person's answer.
type Approval struct {
	// Verdict is approve, reject or reject_and_continue; the default is approve.
	Verdict string `key:"verdict"`
	By      string `key:"by"`
	Reason  string `key:"reason"`
}

// Subagent holds a sub-agent's data.
type Subagent struct {
	Agent       string `key:"agent"`
	Instruction string `key:"instruction"`
	Result      string `key:"result"`
	// Members that actions receive and rules cannot read.
	CallID  string `key:"call_id"`
	Run     string `key:"run"`
	Session string `key:"session"`
	Status  string `key:"status"`
}

// Compaction holds a compaction's data.
type Compaction struct {
	ID            string `key:"id"`
	Messages      int    `key:"messages,nonnegative"`
	Tokens        int64  `key:"tokens,nonnegative"`
	MessagesAfter int    `key:"messages_after,nonnegative"`
	Summary       string `key:"summary"`
}

// End says why a run ends.
type End struct {
	Reason  string           `key:"reason"`
	Message string           `key:"message"`
	Source  string           `key:"source"`
	Details map[string]Value `key:"details"`
}

// Conversation holds the data for conversation points.
type Conversation struct {
	// Source is startup or resume, at ConversationStart.
	Source string `key:"source"`
	// Reason says why the conversation was closed, at ConversationEnd.
	Reason string `key:"reason"`
	// Turns is the number of earlier runs; at ConversationEnd, of all runs.
	Turns int `key:"turns,nonnegative"`
}

// Pipeline holds the data for pipeline points.
type Pipeline struct {
	Name          string   `key:"name"`
	NextStage     string   `key:"next_stage"`
	MaxIterations int      `key:"max_iterations,nonnegative"`
	Progress      string   `key:"progress"`
	Status        string   `key:"status"`
	Context       string   `key:"context"`
	LastDecision  string   `key:"last_decision"`
	ChangedFiles  []string `key:"changed_files"`
	StageOutputs  []string `key:"stage_outputs"`
	Reason        string   `key:"reason"`
}

// Variables are the variables that actions receive. Pipeline variables are used if the event does not set the value
// elsewhere; the others result from the rules themselves.
type Variables struct {
	Session        string `key:"SESSION"`
	Stage          string `key:"STAGE"`
	NextStage      string `key:"NEXT_STAGE"`
	Iteration      int    `key:"ITERATION"`
	MaxIterations  int    `key:"MAX_ITERATIONS"`
	Progress       string `key:"PROGRESS"`
	Status         string `key:"STATUS"`
	Ctx            string `key:"CTX"`
	LastDecision   string `key:"LAST_DECISION"`
	ChangedFiles   string `key:"CHANGED_FILES"`
	StageOutputs   string `key:"STAGE_OUTPUTS"`
	Error          string `key:"ERROR"`
	LastHookStatus string `key:"LAST_HOOK_STATUS"`
	Timestamp      string `key:"TIMESTAMP"`
	CallbackURL    string `key:"CALLBACK_URL"`
	HookResponse   string `key:"HOOK_RESPONSE"`
	SpawnOutput    string `key:"SPAWN_OUTPUT"`
}

// ReadEvent parses an event. The name is used in errors, and its extension distinguishes YAML from JSON. The error is
// a *yamlfile.Error with all problems.
func ReadEvent(name string, text []byte) (*Event, error) {
	file := yamlfile.Parse(name, text)
	file.Advise = adviseEvent
	root, ok := file.Root()
	if !ok && file.Err() == nil {
		return nil, fmt.Errorf("reading the event: %s is empty: expected an object such as %s", name, exampleEvent)
	}
	e := &Event{}
	if ok {
		e.ReadNode(root)
	}
	if err := file.Err(); err != nil {
		return nil, fmt.Errorf("reading the event: %w", err)
	}
	return e, nil
}

const exampleEvent = `{"point":"PreToolUse","tool":"bash","arguments":{"command":"ls"}}`

type event Event

// ReadNode reads an event and checks that it is consistent.
func (e *Event) ReadNode(n yamlfile.Node) {
	if !n.Decode((*event)(e)) {
		return
	}
	e.Arguments, e.Args = oneOfArguments(n, e.Arguments, e.Args), ""
	if e.Version != 0 && e.Version != 1 {
		n.Find("version").Wrong("expected version 1, got %d", e.Version)
	}
	if e.Point == "" {
		if e.Tool == "" || e.Result != nil || e.Error != "" {
			n.Wrong("the key %q is missing: set it to a hook point, such as PreToolUse", "point")
			return
		}
		e.Point = Point(hooks.PreToolUse)
	}
	if _, err := e.moment(); err != nil {
		n.Wrong("%w", err)
	}
}

// oneOfArguments returns the arguments, which may be under either of two keys.
func oneOfArguments(n yamlfile.Node, arguments, args Arguments) Arguments {
	if n.Find("args").Kind() == yamlfile.AbsentNode {
		return arguments
	}
	if n.Find("arguments").Kind() != yamlfile.AbsentNode {
		n.Find("args").Wrong(`args is another name for "arguments": remove one of them`)
	}
	return args
}

func adviseEvent(key string) string {
	switch key {
	case "elapsed", "step_kind", "call_index":
		return "it cannot be set: it is computed when the event is fired"
	case "actions":
		return "actions run when the event is fired: in a test, set their results with fixtures and faults"
	case "transcript", "before":
		return `earlier messages are under "messages"`
	}
	return ""
}

// agentRun converts the run to an agent.Run.
func (e *Event) agentRun() agent.Run {
	r := e.Run
	return agent.Run{
		ID: agent.RunID(r.ID), Parent: agent.RunID(r.Parent), Root: agent.RunID(r.Root), Depth: r.Depth,
		Agent: lo.CoalesceOrEmpty(e.Agent, r.Agent), Stage: lo.CoalesceOrEmpty(e.Stage, r.Stage, e.Variables.Stage),
		Iteration: lo.CoalesceOrEmpty(r.Iteration, e.Variables.Iteration),
	}
}

// pipeline converts the pipeline data.
func (e *Event) pipeline() hooks.Pipeline {
	p, v := e.Pipeline, e.Variables
	lines := func(own []string, other string) []string {
		if len(own) > 0 || other == "" {
			return own
		}
		return strings.Split(other, "\n")
	}
	return hooks.Pipeline{
		Name: p.Name, NextStage: lo.CoalesceOrEmpty(p.NextStage, v.NextStage),
		MaxIterations: lo.CoalesceOrEmpty(p.MaxIterations, v.MaxIterations),
		Progress:      lo.CoalesceOrEmpty(p.Progress, v.Progress), Status: lo.CoalesceOrEmpty(p.Status, v.Status),
		Context: lo.CoalesceOrEmpty(p.Context, v.Ctx), LastDecision: lo.CoalesceOrEmpty(p.LastDecision, v.LastDecision),
		ChangedFiles: lines(p.ChangedFiles, v.ChangedFiles), StageOutputs: lines(p.StageOutputs, v.StageOutputs),
		Reason: p.Reason, Err: e.failure(),
	}
}

// failure returns the event's error; nil if it has none.
func (e *Event) failure() error {
	text := lo.CoalesceOrEmpty(e.Error, e.Variables.Error)
	if text == "" {
		return nil
	}
	return failure(text)
}

type failure string

func (f failure) Error() string { return string(f) }
