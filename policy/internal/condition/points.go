package condition

import (
	"slices"

	"github.com/grapnel-go/grapnel/hooks"
)

// where lists the points at which a variable exists; nil means all points.
type where []hooks.PointName

func (w where) has(p hooks.PointName) bool { return w == nil || slices.Contains(w, p) }

// Groups of points that share variables.
var (
	ofCalls   = where{hooks.PreToolUse, hooks.PostToolUse, hooks.ToolFailed, hooks.InterventionRequested}
	ofNew     = where{hooks.PreToolUse}
	ofAsking  = where{hooks.InterventionRequested}
	ofResults = where{hooks.PostToolUse, hooks.ToolFailed}
	ofTexts   = where{hooks.PostToolUse, hooks.ToolFailed, hooks.RunResult, hooks.RunFinish}
	ofErrors  = where{
		hooks.ToolFailed, hooks.AgentFailed, hooks.CompactFailed, hooks.SubagentFailed, hooks.ExecutionEnd,
		hooks.IterationFailed, hooks.RunFailed, hooks.RunTimeout, hooks.RunFinish,
	}
	ofApprovals          = where{hooks.InterventionRequested, hooks.InterventionResolved, hooks.InterventionStopped}
	ofChildEnds          = where{hooks.PostSubagent, hooks.SubagentFailed}
	ofReplies            = where{hooks.PostInference, hooks.StepEnd, hooks.Stop, hooks.ExecutionEnd}
	ofTurns              = where{hooks.PostInference, hooks.StepEnd}
	ofSteps              = where{hooks.StepEnd}
	ofSubagents          = where{hooks.PreSubagent, hooks.PostSubagent, hooks.SubagentFailed}
	ofAnswers            = where{hooks.PostSubagent}
	ofCompactions        = where{hooks.PreCompact, hooks.PostCompact, hooks.CompactFailed}
	ofStops              = where{hooks.Stop}
	ofEnds               = where{hooks.Stop, hooks.ExecutionEnd}
	ofDone               = where{hooks.ExecutionEnd, hooks.RunFinish}
	ofConversationStarts = where{hooks.ConversationStart}
	ofConversationEnds   = where{hooks.ConversationEnd}
	ofConversations      = where{hooks.ConversationStart, hooks.ConversationEnd}
	ofPipelines          = where{
		hooks.SessionStart, hooks.SessionComplete, hooks.IterationStart, hooks.IterationComplete, hooks.IterationFailed,
		hooks.StageComplete,
	}
	ofBlueprints = where{hooks.RunStart, hooks.RunResult, hooks.RunFailed, hooks.RunTimeout, hooks.RunFinish}
)
