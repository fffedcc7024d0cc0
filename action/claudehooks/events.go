package claudehooks

import (
	"cmp"
	"time"
)

// event describes an event of Claude Code.
type event struct {
	// missing says why the event never happens here; empty for events that do.
	missing string
	// field is what matchers match: a member of the input. Empty means that the event has no matchers.
	field string
	// isTool reports whether handlers may have a condition (if).
	isTool bool
	// blocks reports whether exit code 2 blocks or gives feedback. If not, the text is only shown to the user.
	blocks bool
	// ignoresFailure means that onFailure has no effect.
	ignoresFailure bool
	// takesText means that plain text on standard output becomes context.
	takesText bool
	// takesContext means that additionalContext reaches the model.
	takesContext bool
	// takesBlock means that the top-level decision "block" has an effect.
	takesBlock bool
	// dropsContinue and dropsMessage mean that continue and systemMessage have no effect.
	dropsContinue, dropsMessage bool
	// isDeaf means that all output is discarded.
	isDeaf bool
	// timeout is the default time limit for commands; zero means ten minutes.
	timeout time.Duration
}

// The names of the events that happen here.
const (
	sessionStart       = "SessionStart"
	sessionEnd         = "SessionEnd"
	userPromptSubmit   = "UserPromptSubmit"
	preToolUse         = "PreToolUse"
	postToolUse        = "PostToolUse"
	postToolUseFailure = "PostToolUseFailure"
	postToolBatch      = "PostToolBatch"
	permissionRequest  = "PermissionRequest"
	notification       = "Notification"
	stopEvent          = "Stop"
	stopFailure        = "StopFailure"
	subagentStart      = "SubagentStart"
	subagentStop       = "SubagentStop"
	preCompact         = "PreCompact"
	postCompact        = "PostCompact"
)

const (
	noTasks    = "there are no teams and shared tasks here"
	noModels   = "the model does not change here"
	noWorktree = "no worktrees are created here"
	noWatch    = "nothing watches files, directories and settings here"
	noPoint    = "there is no hook point for it here"
)

var events = map[string]event{
	sessionStart: {field: "source", takesText: true, takesContext: true, dropsContinue: true},
	sessionEnd:   {field: "reason", isDeaf: true},
	userPromptSubmit: {
		blocks: true, takesText: true, takesContext: true, takesBlock: true, timeout: 30 * time.Second,
	},
	preToolUse:         {field: "tool_name", isTool: true, blocks: true, takesContext: true, takesBlock: true},
	postToolUse:        {field: "tool_name", isTool: true, blocks: true, takesContext: true, takesBlock: true},
	postToolUseFailure: {field: "tool_name", isTool: true, blocks: true, takesContext: true, takesBlock: true},
	permissionRequest:  {field: "tool_name", isTool: true},
	postToolBatch:      {blocks: true, takesContext: true, takesBlock: true},
	notification:       {field: "notification_type", dropsContinue: true, dropsMessage: true},
	stopEvent:          {blocks: true, ignoresFailure: true, takesContext: true, takesBlock: true},
	stopFailure:        {field: "error", isDeaf: true},
	subagentStart:      {field: "agent_type", takesContext: true},
	subagentStop:       {field: "agent_type", blocks: true, ignoresFailure: true, takesContext: true, takesBlock: true},
	preCompact:         {field: "trigger", blocks: true, takesBlock: true, dropsContinue: true, dropsMessage: true},
	postCompact:        {field: "trigger", dropsContinue: true, dropsMessage: true},

	"Setup":                {missing: "programs prepare themselves before the run", field: "trigger"},
	"InstructionsLoaded":   {missing: "instructions are not loaded from files here", field: "load_reason"},
	"UserPromptExpansion":  {missing: "there are no slash commands here", field: "command_name"},
	"PreSkillShellCommand": {missing: "there are no skills with shell commands here", field: "tool_name"},
	"PermissionDenied":     {missing: "no classifier decides on permissions here", field: "tool_name", isTool: true},
	"MessageDisplay":       {missing: noPoint},
	"TaskCreated":          {missing: noTasks},
	"TaskCompleted":        {missing: noTasks, ignoresFailure: true},
	"TeammateIdle":         {missing: noTasks, ignoresFailure: true},
	"ConfigChange":         {missing: noWatch, field: "source"},
	"CwdChanged":           {missing: noWatch},
	"DirectoryAdded":       {missing: noWatch, field: "source"},
	"FileChanged":          {missing: noWatch, field: "file_path"},
	"WorktreeCreate":       {missing: noWorktree},
	"WorktreeRemove":       {missing: noWorktree},
	"PreModelSwitch":       {missing: noModels, field: "to_model"},
	"PostModelSwitch":      {missing: noModels, field: "to_model"},
	"Elicitation":          {missing: noPoint, field: "mcp_server_name"},
	"ElicitationResult":    {missing: noPoint, field: "mcp_server_name"},
}

const (
	defaultTimeout       = 10 * time.Minute
	defaultPromptTimeout = 30 * time.Second
	// endTimeout is the time limit for all SessionEnd handlers together; longest is the highest that settings can set.
	endTimeout = 1500 * time.Millisecond
	longestEnd = time.Minute
)

// timeoutOf returns a handler's time limit.
func (h *handler) timeoutOf() time.Duration {
	switch {
	case h.timeout > 0:
		return h.timeout
	case h.kind == kindPrompt:
		return defaultPromptTimeout
	case h.event == sessionEnd:
		return endTimeout
	}
	return cmp.Or(events[h.event].timeout, defaultTimeout)
}
