package fire

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
)

// A Moment is a point at which hooks are called, with the call, result or text that they receive. It is an immutable
// value, and its methods return a changed copy. Create moments with the funcs named for the points, such as ToolCall.
type Moment struct {
	at     hooks.PointName
	input  []agent.Message
	reply  agent.Step
	result agent.ToolResult
	broken error        // the model call's error
	status agent.Status // the status with which the run ends
	signal agent.Signal

	compaction    hooks.Compaction
	subagent      hooks.Subagent
	conversation  *hooks.Conversation
	pipeline      *hooks.Pipeline
	blueprint     *hooks.BlueprintRun
	approval      *agent.Approval // the person's answer about the call
	invalid       error
	question      string // the reason for asking the person
	executor      agent.Executor
	request       agent.Request
	state         agent.State
	run           agent.Run
	before        []agent.Step
	answers       func(step int, c agent.ToolCall) (agent.ToolResult, bool) // tool results in the steps before; nil means "ok"
	effects       []agent.Effect
	continuations int
	wrong         []error
}

// Input returns the moment at which a user's text is about to be accepted:
// hooks.InputSubmitted.
func Input(text string) Moment { return InputOf(agent.UserText(text)) }

// InputOf works like Input for messages of any kind.
func InputOf(messages ...agent.Message) Moment {
	return Moment{at: hooks.InputSubmitted, input: slices.Clone(messages)}
}

// Start returns the moment at which a run with the given input starts: hooks.ExecutionStart.
func Start(text string) Moment {
	return Moment{at: hooks.ExecutionStart, input: []agent.Message{agent.UserText(text)}}
}

// StepStart returns the moment before a step: hooks.StepStart.
func StepStart() Moment { return Moment{at: hooks.StepStart} }

// Request returns the moment before a model is called with the given request:
// hooks.PreInference. WithState sets the conversation.
func Request(r agent.Request) Moment { return Moment{at: hooks.PreInference}.withRequest(r) }

// Reply returns the moment after a model has answered with the given text:
// hooks.PostInference.
func Reply(text string) Moment { return Moment{at: hooks.PostInference}.saying(text) }

// ToolCall returns the moment before a tool is called: hooks.PreToolUse. arguments is the model's JSON text. The tool
// answers "ok". There is no schema, so all arguments that can be parsed are valid, unless Invalid or WithExecutor says
// otherwise.
func ToolCall(tool, arguments string) Moment {
	return Moment{at: hooks.PreToolUse, result: successResult("ok")}.calling(tool, arguments)
}

// ToolResult returns the moment after a tool has answered with the given text:
// hooks.PostToolUse. For results other than success, see WithResult.
func ToolResult(tool, arguments, text string) Moment {
	return Moment{at: hooks.PostToolUse, result: successResult(text)}.calling(tool, arguments)
}

// Intervention returns the moment before a person is asked about a call:
// hooks.InterventionRequested. The person approves.
func Intervention(tool, arguments string) Moment {
	return afterAsk(hooks.InterventionRequested, tool, arguments, agent.Approval{Verdict: agent.Approve, By: person})
}

// InterventionAnswer returns the moment after a person has answered whether a call may run:
// hooks.InterventionResolved.
func InterventionAnswer(tool, arguments string, answer agent.Approval) Moment {
	return afterAsk(hooks.InterventionResolved, tool, arguments, answer)
}

// InterventionStopped returns the moment after a person's rejection has ended the run:
// hooks.InterventionStopped.
func InterventionStopped(tool, arguments, reason string) Moment {
	return afterAsk(hooks.InterventionStopped, tool, arguments, agent.Approval{Verdict: agent.RejectAndEnd, By: person, Reason: reason})
}

// Compact returns the moment before a compaction: hooks.PreCompact.
func Compact(about hooks.Compaction) Moment { return Moment{at: hooks.PreCompact, compaction: about} }

// CompactResult returns the moment after a compaction: hooks.PostCompact.
func CompactResult(about hooks.Compaction) Moment {
	return Moment{at: hooks.PostCompact, compaction: about}
}

// CompactFailure returns the moment after a compaction has failed: hooks.CompactFailed.
func CompactFailure(about hooks.Compaction) Moment {
	m := Moment{at: hooks.CompactFailed, compaction: about}
	if about.Err == nil {
		return m.blaming("CompactFailure: there is no error")
	}
	return m
}

// Subagent returns the moment before a sub-agent runs: hooks.PreSubagent.
func Subagent(name, instruction string) Moment {
	return Moment{at: hooks.PreSubagent, subagent: hooks.Subagent{Agent: name, Instruction: instruction}}
}

// SubagentResult returns the moment after a sub-agent has answered: hooks.PostSubagent.
func SubagentResult(name, instruction, result string) Moment {
	return Moment{at: hooks.PostSubagent, subagent: hooks.Subagent{
		Agent: name, Instruction: instruction, Result: result, Status: agent.StatusDone,
	}}
}

// SubagentFailure returns the moment after a sub-agent gave no answer: hooks.SubagentFailed.
func SubagentFailure(name, instruction string, err error) Moment {
	m := Moment{at: hooks.SubagentFailed, subagent: hooks.Subagent{
		Agent: name, Instruction: instruction, Status: agent.StatusFailed, Err: err,
	}}
	if err == nil {
		return m.blaming("SubagentFailure: the error is nil")
	}
	return m
}

// Conversation returns the moment at which a conversation starts or has ended: hooks.ConversationStart,
// hooks.ConversationEnd. It fires in an agent.Session that has had as many runs before as Turns says. At the start, a
// zero Source follows from Turns. At the end, a zero Reason is agent.ClosedOtherwise, and zero Turns are one.
func Conversation(at hooks.PointName, about hooks.Conversation) Moment {
	m := Moment{at: at}.onlyAt("Conversation", hooks.ConversationStart, hooks.ConversationEnd)
	if about.Turns < 0 || about.Turns > maxTurns {
		m = m.blaming("Conversation: %d turns: there can be 0 to %d", about.Turns, maxTurns)
	}
	switch {
	case at == hooks.ConversationStart && about.Reason != "":
		m = m.blaming("Conversation: %s has no reason", at)
	case at == hooks.ConversationEnd && about.Source != "":
		m = m.blaming("Conversation: %s has no source", at)
	case at == hooks.ConversationEnd:
		about.Reason, about.Turns = cmp.Or(about.Reason, agent.ClosedOtherwise), max(about.Turns, 1)
	case about.Source == agent.ConversationResume:
		about.Turns = max(about.Turns, 1)
	case about.Source == agent.ConversationStartup && about.Turns > 0:
		m = m.blaming("Conversation: a conversation with %d turns before its start has the source %q", about.Turns, agent.ConversationResume)
	case about.Source != "" && about.Source != agent.ConversationStartup:
		m = m.blaming("Conversation: unknown source %q: use %q or %q", about.Source, agent.ConversationStartup, agent.ConversationResume)
	}
	m.conversation = &about
	return m
}

// maxTurns is a conversation's maximum number of earlier runs.
const maxTurns = 1000

// Pipeline returns a pipeline's moment, such as hooks.IterationComplete. The stage and the iteration are in WithRun.
// The point fires outside an agent's run, through a hooks.RunScope.
func Pipeline(at hooks.PointName, about hooks.Pipeline) Moment {
	m := Moment{at: at, pipeline: &about}
	return m.onlyAt("Pipeline", hooks.SessionStart, hooks.SessionComplete, hooks.IterationStart, hooks.IterationComplete,
		hooks.IterationFailed, hooks.StageComplete)
}

// Blueprint returns a moment of a coordinator's run, such as hooks.RunStart. It fires like a moment from Pipeline.
func Blueprint(at hooks.PointName, about hooks.BlueprintRun) Moment {
	m := Moment{at: at, blueprint: &about}
	return m.onlyAt("Blueprint", hooks.RunStart, hooks.RunResult, hooks.RunFailed, hooks.RunTimeout, hooks.RunFinish)
}

// person is the name of the person who answers.
const person = "a person"

func afterAsk(at hooks.PointName, tool, arguments string, answer agent.Approval) Moment {
	return Moment{at: at, result: successResult("ok"), approval: &answer}.calling(tool, arguments)
}

// ToolFailure returns the moment after a tool ended in an error: hooks.ToolFailed.
func ToolFailure(tool, arguments string, err error) Moment {
	if err == nil {
		return Moment{at: hooks.ToolFailed}.blaming("ToolFailure: the error is nil")
	}
	return Moment{at: hooks.ToolFailed, result: agent.ToolResult{
		Content: agent.TextContent(err.Error()), Status: agent.ToolFailed, Reason: agent.ReasonError, Err: err, Attempts: 1,
	}}.calling(tool, arguments)
}

// StepEnd returns the moment after a step in which the model answered with the given text and
// called no tool: hooks.StepEnd. WithReply sets the other parts of the step.
func StepEnd(text string) Moment {
	return Moment{at: hooks.StepEnd, result: successResult("ok")}.saying(text)
}

// Stop returns the moment at which a run would end by itself with the given answer:
// hooks.Stop.
func Stop(answer string) Moment { return Moment{at: hooks.Stop}.saying(answer) }

// End returns a run's end with the given status: hooks.ExecutionEnd. WithSignal sets its cause, WithReply the model's
// last reply.
func End(status agent.Status) Moment {
	m := Moment{at: hooks.ExecutionEnd, status: status}.saying("done")
	if !status.Terminal() {
		return m.blaming("End(%q): a run does not end with that status", status)
	}
	return m
}

// RunFailure returns the moment at which a run has failed because its model call
// ended in an error: hooks.AgentFailed.
func RunFailure(err error) Moment {
	if err == nil {
		return Moment{at: hooks.AgentFailed}.blaming("RunFailure: the error is nil")
	}
	return Moment{at: hooks.AgentFailed, broken: err}
}

func successResult(text string) agent.ToolResult {
	return agent.ToolResult{Content: agent.TextContent(text), Status: agent.ToolExecuted, Attempts: 1}
}

func (m Moment) saying(text string) Moment {
	m.reply.Message = agent.Assistant(text)
	return m
}

func (m Moment) calling(tool, arguments string) Moment {
	if tool == "" {
		return m.blaming("the tool has no name")
	}
	m.reply.Message = agent.Assistant("").WithCalls(agent.ToolCall{ID: "call_1", Name: tool, Arguments: arguments})
	return m
}

func (m Moment) blaming(format string, args ...any) Moment {
	m.wrong = append(slices.Clip(m.wrong), fmt.Errorf(format, args...))
	return m
}

// onlyAt checks that a method applies to the moment's point.
func (m Moment) onlyAt(method string, points ...hooks.PointName) Moment {
	if slices.Contains(points, m.at) {
		return m
	}
	return m.blaming("%s says nothing about %s: it is for %s", method, m.at, lo.Map(points, func(p hooks.PointName, _ int) string { return string(p) }))
}

// Point returns the point at which the hooks are called.
func (m Moment) Point() hooks.PointName { return m.at }

// WithRun places the moment in a run: the IDs of run, parent and root, the agent, stage, iteration and depth. Other
// fields and empty IDs are generated.
func (m Moment) WithRun(run agent.Run) Moment { m.run = run; return m }

// WithState sets the state in which the run begins: a conversation and session metadata. Without it, the run begins
// with the user message "hello", at the input points with only the input. At the points around runs, the state is
// empty.
func (m Moment) WithState(s agent.State) Moment { m.state = s; return m }

// WithEffects applies effects to the run before it begins: run metadata, messages, context.
func (m Moment) WithEffects(effects ...agent.Effect) Moment {
	if err := agent.EffectsOf(effects...).Validate(); err != nil {
		return m.blaming("WithEffects: %v", err)
	}
	m.effects = append(slices.Clip(m.effects), effects...)
	return m
}

// withRequest sets the request to the model.
func (m Moment) withRequest(r agent.Request) Moment { m.request = r; return m }

// AfterSteps puts steps of the same run before the moment. Tools that they call answer "ok". The zero Step is a reply
// without text: make([]agent.Step, 3) puts three such steps before it.
func (m Moment) AfterSteps(steps ...agent.Step) Moment {
	m.before = append(slices.Clip(m.before), steps...)
	return m
}

// Answering sets the tool results in the steps of AfterSteps, which count from zero. A result can also be denied or
// mocked. If f returns false, the tool answered "ok".
func (m Moment) Answering(f func(step int, c agent.ToolCall) (agent.ToolResult, bool)) Moment {
	m.answers = f
	return m
}

// WithCallID sets the call ID. The default is "call_1".
func (m Moment) WithCallID(id string) Moment {
	if m.reply.Message.CallCount() == 1 {
		c := m.reply.Message.Call(0)
		c.ID = id
		m.reply.Message = agent.Assistant(m.reply.Message.Text()).WithCalls(c)
		return m
	}
	return m.blaming("WithCallID: there is no call at %s", m.at)
}

// WithQuestion sets the reason for asking a person about the call.
func (m Moment) WithQuestion(reason string) Moment {
	m.question = reason
	return m
}

// WithReply sets the model's whole turn: its calls, usage, finish reason. Tools that it calls answer "ok", unless
// WithResult sets another result.
func (m Moment) WithReply(step agent.Step) Moment {
	m.reply = step
	if role := step.Message.Role(); role != "" && role != agent.RoleAssistant {
		m = m.blaming("WithReply: the reply is a message of role %q: it must be %q", role, agent.RoleAssistant)
	}
	return m.onlyAt("WithReply", hooks.PostInference, hooks.StepEnd, hooks.Stop, hooks.ExecutionEnd)
}

// WithResult sets the tool's whole answer: status, reason, attempts, effects. Without an executed call, the result is
// mocked or not executed. The default status is executed.
func (m Moment) WithResult(r agent.ToolResult) Moment {
	r.Status = lo.CoalesceOrEmpty(r.Status, agent.ToolExecuted)
	if r.Executed() {
		r.Attempts = max(r.Attempts, 1)
	} else if m.at == hooks.PreToolUse {
		m = m.blaming("WithResult: the tool answers with status %q: that is for hooks to make at %s", r.Status, m.at)
	}
	m.result = r
	return m.onlyAt("WithResult", hooks.PreToolUse, hooks.PostToolUse, hooks.ToolFailed, hooks.StepEnd)
}

// Invalid sets the call's error according to the tool's schema, often an *agent.ArgumentsError. Arguments rewritten by
// a hook are valid.
func (m Moment) Invalid(err error) Moment {
	if err == nil {
		return m.blaming("Invalid: the error is nil")
	}
	m.invalid = err
	return m.onlyAt("Invalid", hooks.PreToolUse, hooks.PostToolUse)
}

// WithExecutor lets real tools answer the call, with their schemas. toolexec.NewExecutor makes such an executor.
func (m Moment) WithExecutor(x agent.Executor) Moment {
	if x == nil {
		return m.blaming("WithExecutor: the executor is nil")
	}
	m.executor = x
	return m.onlyAt("WithExecutor", hooks.PreToolUse, hooks.PostToolUse, hooks.ToolFailed, hooks.StepEnd)
}

// WithSignal sets the signal with which the run ends or would end.
func (m Moment) WithSignal(signal agent.Signal) Moment {
	m.signal = signal
	if m.at == hooks.Stop && !signal.Reason.Soft() {
		return m.blaming("no hook is asked at Stop when a run ends for %q: it does not end by itself", signal.Reason)
	}
	return m.onlyAt("WithSignal", hooks.Stop, hooks.ExecutionEnd)
}

// WithContinuations sets how often Stop hooks have already continued the run.
func (m Moment) WithContinuations(n int) Moment {
	m.continuations = n
	if n < 0 {
		m = m.blaming("WithContinuations(%d): it must not be negative", n)
	}
	return m.onlyAt("WithContinuations", hooks.Stop)
}

// check returns an error that joins all problems of the moment.
func (m Moment) check() error {
	wrong := slices.Clone(m.wrong)
	if m.at == "" {
		wrong = append(wrong, errors.New("the zero Moment is at no point: make one with ToolCall, Input or another func"))
	}
	if len(m.before) > 0 && slices.Contains([]hooks.PointName{hooks.ConversationStart, hooks.InputSubmitted, hooks.ExecutionStart}, m.at) {
		wrong = append(wrong, fmt.Errorf("AfterSteps: no step is taken before %s", m.at))
	}
	if len(m.before) > 0 && m.at.IsAroundRuns() {
		wrong = append(wrong, fmt.Errorf("AfterSteps: the run of %s takes no steps: no agent executes it", m.at))
	}
	if m.invalid != nil && m.executor != nil {
		wrong = append(wrong, errors.New("Invalid: the executor of WithExecutor says what is invalid"))
	}
	return errors.Join(wrong...)
}
