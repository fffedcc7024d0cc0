package condition

import (
	"slices"

	"github.com/grapnel-go/grapnel/hooks"
)

// where is the points at which a variable is known; nil is all of them.
type where []hooks.PointName

func (w where) has(p hooks.PointName) bool { return w == nil || slices.Contains(w, p) }

// Groups of points that share variables.
var (
	ofCalls   = where{hooks.PreToolUse, hooks.PostToolUse, hooks.ToolFailed, hooks.InterventionRequested}
	ofResults = where{hooks.PostToolUse, hooks.ToolFailed}
	ofErrors  = where{
		hooks.ToolFailed, hooks.AgentFailed, hooks.CompactFailed, hooks.SubagentFailed, hooks.ExecutionEnd,
		hooks.IterationFailed, hooks.RunFailed, hooks.RunTimeout,
	}
	ofReplies     = where{hooks.PostInference, hooks.StepEnd, hooks.Stop, hooks.ExecutionEnd}
	ofSteps       = where{hooks.PostInference, hooks.StepEnd}
	ofSubagents   = where{hooks.PreSubagent, hooks.PostSubagent, hooks.SubagentFailed}
	ofCompactions = where{hooks.PreCompact, hooks.PostCompact, hooks.CompactFailed}
	ofEnds        = where{hooks.Stop, hooks.ExecutionEnd}
	ofDone        = where{hooks.ExecutionEnd}
	ofStops       = where{hooks.Stop}
	ofAnswers     = where{hooks.PostSubagent}
	ofKinds       = where{hooks.StepEnd}
)
