package hooks

import (
	"slices"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
)

// PointName is the name of a point: a moment at which hooks are called.
type PointName string

// The points of a single agent.
const (
	ConversationStart     PointName = "ConversationStart"
	InputSubmitted        PointName = "InputSubmitted"
	ExecutionStart        PointName = "ExecutionStart"
	StepStart             PointName = "StepStart"
	StepEnd               PointName = "StepEnd"
	PreInference          PointName = "PreInference"
	PostInference         PointName = "PostInference"
	PreToolUse            PointName = "PreToolUse"
	PostToolUse           PointName = "PostToolUse"
	ToolFailed            PointName = "ToolFailed"
	PreCompact            PointName = "PreCompact"
	PostCompact           PointName = "PostCompact"
	CompactFailed         PointName = "CompactFailed"
	PreSubagent           PointName = "PreSubagent"
	PostSubagent          PointName = "PostSubagent"
	SubagentFailed        PointName = "SubagentFailed"
	InterventionRequested PointName = "InterventionRequested"
	InterventionResolved  PointName = "InterventionResolved"
	InterventionStopped   PointName = "InterventionStopped"
	Stop                  PointName = "Stop"
	ExecutionEnd          PointName = "ExecutionEnd"
	AgentFailed           PointName = "AgentFailed"
	ConversationEnd       PointName = "ConversationEnd"
)

// The points around runs, for pipelines and for coordinators that give runs to runners.
const (
	SessionStart      PointName = "SessionStart"
	SessionComplete   PointName = "SessionComplete"
	IterationStart    PointName = "IterationStart"
	IterationComplete PointName = "IterationComplete"
	IterationFailed   PointName = "IterationFailed"
	StageComplete     PointName = "StageComplete"
	RunStart          PointName = "RunStart"
	RunResult         PointName = "RunResult"
	RunFailed         PointName = "RunFailed"
	RunTimeout        PointName = "RunTimeout"
	RunFinish         PointName = "RunFinish"
)

// IsAroundRuns reports whether the point belongs to an engine's run, such as a pipeline, and not to an agent's run: see
// RunScope.
func (p PointName) IsAroundRuns() bool {
	return slices.Contains(pipelinePointNames, p) || slices.Contains(blueprintPointNames, p)
}

// A Point is a moment together with its hooks' context, so that the compiler checks which answers a hook can give. The
// points are the At… variables. There are no others.
type Point[C Context] struct {
	name PointName
}

// Name returns the point's name.
func (p Point[C]) Name() PointName { return p.name }

// The points, in run order. Each comment says when the point fires and which answers its controls may give. "add" means
// to return effects. Observers are possible at all points.
var (
	// AtInputSubmitted fires when a run begins with new user messages, before all other points. May deny,
	// rewrite the input, add.
	AtInputSubmitted = Point[InputContext]{InputSubmitted}
	// AtExecutionStart fires once in every run, before its first step. May deny,
	// stop, rewrite the input, add.
	AtExecutionStart = Point[ExecutionContext]{ExecutionStart}
	// AtStepStart fires before each step. May stop the run, add.
	AtStepStart = Point[StepContext]{StepStart}
	// AtPreInference fires before each model call. May rewrite the request, stop, add.
	AtPreInference = Point[InferenceContext]{PreInference}
	// AtPostInference fires after each model call, also a failed one: see ReplyContext.Err. May replace the
	// reply, add.
	AtPostInference = Point[ReplyContext]{PostInference}
	// AtPreToolUse fires for each tool call with readable arguments, before any tool of the
	// step runs. May deny, stop, rewrite the arguments, mock the tool, ask a person, add.
	AtPreToolUse = Point[ToolContext]{PreToolUse}
	// AtPreCompact fires before a part of the transcript is summarized for the model. May
	// deny.
	AtPreCompact = Point[PreCompactContext]{PreCompact}
	// AtPostCompact fires after a compaction, AtCompactFailed after a compaction that
	// failed and changed nothing. For observers only.
	AtPostCompact   = Point[PostCompactContext]{PostCompact}
	AtCompactFailed = Point[CompactFailedContext]{CompactFailed}
	// AtPreSubagent fires before a sub-agent runs, in the run that starts it. May deny, rewrite the
	// instruction.
	AtPreSubagent = Point[PreSubagentContext]{PreSubagent}
	// AtPostSubagent fires when a sub-agent has answered. May replace the answer.
	AtPostSubagent = Point[PostSubagentContext]{PostSubagent}
	// AtSubagentFailed fires when a sub-agent gave no answer. For observers only.
	AtSubagentFailed = Point[SubagentFailedContext]{SubagentFailed}
	// AtInterventionRequested fires for each call in a step that needs a person's answer, before the person is asked.
	// In a resumed run, it fires only for changed calls. May deny, rewrite the arguments, answer for the person.
	AtInterventionRequested = Point[InterventionContext]{InterventionRequested}
	// AtInterventionResolved fires once when all the step's calls that a person was asked about are answered, before
	// any of them runs. For observers only.
	AtInterventionResolved = Point[InterventionResolvedContext]{InterventionResolved}
	// AtToolFailed fires when a tool's body ended in an error, a panic or a timeout,
	// before AtPostToolUse. May replace the result, stop, add.
	AtToolFailed = Point[ToolFailureContext]{ToolFailed}
	// AtPostToolUse fires once for each tool call, whether it was executed, mocked, denied
	// or failed, as soon as a result exists. May replace the result, stop, add.
	AtPostToolUse = Point[ToolResultContext]{PostToolUse}
	// AtStepEnd fires after each step was recorded. May stop the run, add.
	AtStepEnd = Point[StepEndContext]{StepEnd}
	// AtStop fires when the run would end by itself. May make it continue, or stop it.
	AtStop = Point[StopContext]{Stop}
	// AtInterventionStopped fires when a run has ended because a person rejected a call, before AtExecutionEnd. The
	// step is recorded, and stored if runs are stored. For observers only.
	AtInterventionStopped = Point[InterventionStoppedContext]{InterventionStopped}
	// AtAgentFailed fires when a run failed, before AtExecutionEnd. May add.
	AtAgentFailed = Point[FailureContext]{AgentFailed}
	// AtExecutionEnd fires exactly once in every run, regardless of how the run ends. For observers only.
	AtExecutionEnd = Point[EndContext]{ExecutionEnd}
	// AtConversationStart fires in the first run of an agent.Session, before AtInputSubmitted. It never fires in a run
	// without a Session, nor in a resumed run. May add.
	AtConversationStart = Point[ConversationContext]{ConversationStart}
	// AtConversationEnd fires when an agent.Session is closed, after its last run: see
	// agent.Session.Close. For observers only.
	AtConversationEnd = Point[ConversationEndContext]{ConversationEnd}
)

// The points around runs. An engine fires them through a RunScope. An agent itself does not fire them.
var (
	// AtSessionStart fires before the first iteration of a pipeline. May stop it, add.
	AtSessionStart = Point[PipelineContext]{SessionStart}
	// AtIterationStart fires before each iteration. May stop the pipeline, add.
	AtIterationStart = Point[PipelineContext]{IterationStart}
	// AtIterationComplete fires after each iteration that did not fail, and AtIterationFailed after each failed one.
	// May stop the pipeline, add.
	AtIterationComplete = Point[PipelineContext]{IterationComplete}
	AtIterationFailed   = Point[PipelineContext]{IterationFailed}
	// AtStageComplete fires when a stage is done. May stop the pipeline, add.
	AtStageComplete = Point[PipelineContext]{StageComplete}
	// AtSessionComplete fires when a pipeline is done. For observers only.
	AtSessionComplete = Point[PipelineEndContext]{SessionComplete}
	// AtRunStart fires before a run is given to a runner. May deny, rewrite the parameters.
	AtRunStart = Point[RunStartContext]{RunStart}
	// AtRunResult fires when a runner reports the run's result. May replace it, add.
	AtRunResult = Point[RunResultContext]{RunResult}
	// AtRunFailed fires when a run failed. May add.
	AtRunFailed = Point[RunFailedContext]{RunFailed}
	// AtRunTimeout fires when a run exceeded its time limit. For observers only.
	AtRunTimeout = Point[RunEndContext]{RunTimeout}
	// AtRunFinish fires at the end of every run, regardless of how it ended. For observers only.
	AtRunFinish = Point[RunEndContext]{RunFinish}
)

// pointInfo describes a point, without its context.
type pointInfo struct {
	name PointName
	// also lists the point's names in other systems.
	also []string
	// tool reports that the point belongs to a tool call, so that tool matchers make sense.
	tool bool
	// kinds lists the kinds of steps that reach the point, where the kind is known.
	kinds []agent.StepKind
	// after reports that hooks are called in reverse order, so that pairs of hooks nest.
	after bool
	// decides reports that controls are possible.
	decides bool
	// closed is failure policy Closed's decision at this point.
	closed Decision
	// allowed is an Allow without effects at this point.
	allowed *Outcome
}

// The kinds of steps at points within a step.
var (
	toolStep = []agent.StepKind{agent.StepToolExecution}
	lastStep = []agent.StepKind{agent.StepFinalResponse}
	anyStep  = []agent.StepKind{agent.StepToolExecution, agent.StepFinalResponse}
)

var pointInfos = []*pointInfo{
	{name: ConversationStart, decides: true, closed: Deny},
	{name: InputSubmitted, also: []string{"UserPromptSubmit"}, decides: true, closed: Deny},
	{name: ExecutionStart, also: []string{"preHook", "beforeRun"}, decides: true, closed: Deny},
	{name: StepStart, also: []string{"beforeStep"}, decides: true, closed: StopRun},
	{name: PreInference, decides: true, closed: StopRun},
	{name: PostInference, kinds: anyStep, after: true, decides: true, closed: Withhold},
	{name: PreToolUse, kinds: toolStep, also: []string{"beforeToolCall", "on_tool_call"}, tool: true, decides: true, closed: Deny},
	{name: PreCompact, also: []string{"beforeCompact"}, decides: true, closed: Deny},
	{name: PostCompact, also: []string{"afterCompact"}, after: true},
	{name: CompactFailed, also: []string{"onCompactError"}, after: true},
	{name: PreSubagent, kinds: toolStep, also: []string{"beforeCallAgent", "SubagentStart"}, decides: true, closed: Deny},
	{name: PostSubagent, kinds: toolStep, also: []string{"afterCallAgent", "SubagentStop"}, after: true, decides: true, closed: Withhold},
	{name: SubagentFailed, kinds: toolStep, also: []string{"onCallAgentError"}, after: true},
	{name: InterventionRequested, kinds: toolStep, also: []string{"beforeHumanIntervention", "PermissionRequest"}, tool: true, decides: true, closed: Deny},
	{name: InterventionResolved, kinds: toolStep, also: []string{"afterHumanIntervention"}, after: true},
	{name: ToolFailed, kinds: toolStep, also: []string{"onToolCallError", "PostToolUseFailure"}, tool: true, after: true, decides: true, closed: Withhold},
	{name: PostToolUse, kinds: toolStep, also: []string{"afterToolCall"}, tool: true, after: true, decides: true, closed: Withhold},
	{name: StepEnd, kinds: anyStep, also: []string{"afterStep"}, after: true, decides: true, closed: StopRun},
	{name: Stop, kinds: lastStep, after: false, decides: true, closed: StopRun},
	{name: InterventionStopped, kinds: toolStep, also: []string{"onStopByHumanIntervention"}, after: true},
	{name: AgentFailed, also: []string{"onError"}, after: true, decides: true, closed: Pass},
	{name: ExecutionEnd, also: []string{"onComplete", "postHook"}, after: true},
	{name: ConversationEnd, after: true},

	{name: SessionStart, decides: true, closed: StopRun},
	{name: IterationStart, decides: true, closed: StopRun},
	{name: IterationComplete, after: true, decides: true, closed: StopRun},
	{name: IterationFailed, after: true, decides: true, closed: StopRun},
	{name: StageComplete, after: true, decides: true, closed: StopRun},
	{name: SessionComplete, after: true},
	{name: RunStart, decides: true, closed: Deny},
	{name: RunResult, after: true, decides: true, closed: Withhold},
	{name: RunFailed, after: true, decides: true, closed: Pass},
	{name: RunTimeout, after: true},
	{name: RunFinish, after: true},
}

// infos maps point names to descriptions.
var infos = lo.KeyBy(pointInfos, func(info *pointInfo) PointName {
	info.allowed = &Outcome{decision: Allow, point: info.name}
	return info.name
})

func infoOf(name PointName) (*pointInfo, bool) {
	info, ok := infos[name]
	return info, ok
}

// PointNames returns all point names: first an agent's points in run order, then the points around runs.
func PointNames() []PointName {
	names := make([]PointName, len(pointInfos))
	for i, info := range pointInfos {
		names[i] = info.name
	}
	return names
}

// PointNamed finds a point by its own name or by its name in another system.
func PointNamed(name string) (PointName, bool) {
	for _, info := range pointInfos {
		if string(info.name) == name || slices.Contains(info.also, name) {
			return info.name, true
		}
	}
	return "", false
}
