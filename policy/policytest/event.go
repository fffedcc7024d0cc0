package policytest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// Event is one occasion on which the rules at a point are asked, as files and the command
// line say it. Its form is that of what actions are told (action.Request), with what else
// a rule may look at. Make one with ReadEvent.
type Event struct {
	// Version may be 1, which it is if left out.
	Version int `key:"version"`
	// Point is where: the name of a point, or what else it is called in policies.
	Point Point `key:"point"`

	Agent string `key:"agent"`
	Stage string `key:"stage"`
	Run   Run    `key:"run"`
	// Step is how many steps the run has taken before.
	Step     *int             `key:"step,nonnegative"`
	Usage    Usage            `key:"usage"`
	Now      Time             `key:"now"`
	Metadata map[string]Value `key:"metadata"`
	// Messages are what was said before, in this run and in those before it.
	Messages []Turn `key:"messages"`
	// Calls are how often tools were called in this run before, where Messages are too
	// much to write.
	Calls map[string]Calls `key:"calls"`

	Tool      string    `key:"tool"`
	CallID    string    `key:"call_id"`
	Arguments Arguments `key:"arguments"`
	// Args is another name for Arguments, as conditions have it; a file has one of the two.
	Args Arguments `key:"args"`
	// Original are the arguments that the model gave, where an action was told others.
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

	Subagent      Subagent   `key:"subagent"`
	Compaction    Compaction `key:"compaction"`
	Continuations int        `key:"continuations,nonnegative"`
	Status        string     `key:"status"`
	End           End        `key:"end"`
	Pipeline      Pipeline   `key:"pipeline"`
	Parameters    Value      `key:"parameters"`
	Variables     Variables  `key:"variables"`

	// What actions are told besides, and no rule asks for, or what follows from the rest.
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

// Point is the name of a point.
type Point hooks.PointName

// Set takes a name.
func (p *Point) Set(text string) error {
	name, ok := hooks.PointNamed(text)
	if !ok {
		return fmt.Errorf("expected a point, such as PreToolUse or InputSubmitted%s", near(text))
	}
	*p = Point(name)
	return nil
}

func near(text string) string {
	names := lo.Map(hooks.PointNames(), func(p hooks.PointName, _ int) string { return string(p) })
	if name, ok := yamlfile.Nearest(text, names); ok && text != "" {
		return fmt.Sprintf(" (did you mean %q?)", name)
	}
	return ""
}

// Time is a day, or a time in RFC 3339.
type Time time.Time

// Set reads a time.
func (t *Time) Set(text string) error {
	for _, form := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(form, text); err == nil {
			*t = Time(at)
			return nil
		}
	}
	return errors.New("expected a time such as 2026-12-31T12:00:00Z, or a day such as 2026-12-31")
}

// Run places an event in a run.
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

// Usage is what the run has consumed.
type Usage struct {
	Tokens       int64    `key:"tokens,nonnegative"`
	InputTokens  int64    `key:"input_tokens,nonnegative"`
	OutputTokens int64    `key:"output_tokens,nonnegative"`
	Cost         *float64 `key:"cost,nonnegative"`
	// The first two are part of the input, the third of the output.
	CacheReadTokens  int64 `key:"cache_read_tokens,nonnegative"`
	CacheWriteTokens int64 `key:"cache_write_tokens,nonnegative"`
	ReasoningTokens  int64 `key:"reasoning_tokens,nonnegative"`
}

// Calls are how often a tool was called, and how that went. What neither went well nor
// was denied has failed.
type Calls struct {
	Calls  int `key:"calls,nonnegative"`
	OK     int `key:"ok,nonnegative"`
	Denied int `key:"denied,nonnegative"`
}

// Check compares.
func (c *Calls) Check(n yamlfile.Node) {
	if c.OK+c.Denied > c.Calls {
		n.Wrong("%d calls went well and %d were denied, which is more than there were: %d", c.OK, c.Denied, c.Calls)
	}
}

// Reply is a turn of the model.
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

// Request is what the model is asked with.
type Request struct {
	Model           string   `key:"model"`
	Instructions    string   `key:"instructions"`
	MaxOutputTokens int      `key:"max_output_tokens,nonnegative"`
	Temperature     *float64 `key:"temperature,nonnegative"`
}

// Approval is what a person said.
type Approval struct {
	// Verdict is approve, reject or reject_and_continue; approve if left out.
	Verdict string `key:"verdict"`
	By      string `key:"by"`
	Reason  string `key:"reason"`
}

// Subagent is what is known of a sub-agent.
type Subagent struct {
	Agent       string `key:"agent"`
	Instruction string `key:"instruction"`
	Result      string `key:"result"`
	// CallID, Run, Session and Status are what actions are told besides; no rule asks for them.
	CallID  string `key:"call_id"`
	Run     string `key:"run"`
	Session string `key:"session"`
	Status  string `key:"status"`
}

// Compaction is what is known of a compaction.
type Compaction struct {
	ID            string `key:"id"`
	Messages      int    `key:"messages,nonnegative"`
	Tokens        int64  `key:"tokens,nonnegative"`
	MessagesAfter int    `key:"messages_after,nonnegative"`
	Summary       string `key:"summary"`
}

// End is why a run ends.
type End struct {
	Reason  string           `key:"reason"`
	Message string           `key:"message"`
	Source  string           `key:"source"`
	Details map[string]Value `key:"details"`
}

// Pipeline is what is known at the points of a pipeline.
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

// Variables are what actions are told under names of their own. Those of a pipeline count
// where the event says nothing else; the others come from what the rules themselves do.
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

// ReadEvent reads an event. The name is what errors call it, and says whether it is YAML
// or JSON. The error is everything that is wrong with it, a *yamlfile.Error.
func ReadEvent(name string, text []byte) (*Event, error) {
	file := yamlfile.Parse(name, text)
	file.Advise = adviseEvent
	root, ok := file.Root()
	if !ok && file.Err() == nil {
		return nil, fmt.Errorf("reading the event: %s is empty: it is an object such as %s", name, exampleEvent)
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

// ReadNode reads an event and finds out whether it makes sense.
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
			n.Wrong("the key %q is missing: an event is at a point, such as PreToolUse", "point")
			return
		}
		e.Point = Point(hooks.PreToolUse)
	}
	if _, err := e.moment(); err != nil {
		n.Wrong("%w", err)
	}
}

// oneOfArguments returns the arguments, which stand under one of their two keys.
func oneOfArguments(n yamlfile.Node, arguments, args Arguments) Arguments {
	if n.Find("args").Kind() == yamlfile.AbsentNode {
		return arguments
	}
	if n.Find("arguments").Kind() != yamlfile.AbsentNode {
		n.Find("args").Wrong(`args is another name for "arguments": one of them has to go`)
	}
	return args
}

func adviseEvent(key string) string {
	switch key {
	case "elapsed", "step_kind", "call_index":
		return "it cannot be set: it is what it is when the event is fired"
	case "actions":
		return "actions are done when the event is fired; in a test, fixtures and faults say how they go"
	case "transcript", "before":
		return `what was said before stands under "messages"`
	}
	return ""
}

// agentRun returns the run as an agent has it.
func (e *Event) agentRun() agent.Run {
	r := e.Run
	return agent.Run{
		ID: agent.RunID(r.ID), Parent: agent.RunID(r.Parent), Root: agent.RunID(r.Root), Depth: r.Depth,
		Agent: lo.CoalesceOrEmpty(e.Agent, r.Agent), Stage: lo.CoalesceOrEmpty(e.Stage, r.Stage, e.Variables.Stage),
		Iteration: lo.CoalesceOrEmpty(r.Iteration, e.Variables.Iteration),
	}
}

// pipeline returns what is known of the pipeline.
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

// failure returns the error of the event; nil where it has none.
func (e *Event) failure() error {
	text := lo.CoalesceOrEmpty(e.Error, e.Variables.Error)
	if text == "" {
		return nil
	}
	return failure(text)
}

type failure string

func (f failure) Error() string { return string(f) }
