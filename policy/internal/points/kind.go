package points

import (
	"errors"
	"fmt"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// Kind is the kind of a file with rules. It determines the names of points in the file, and the other keys, which other
// packages read.
type Kind uint8

const (
	// Policies are policy files, as docs/policies.md describes them.
	Policies Kind = iota
	// Pipelines are files that describe a pipeline or a stage and may have hooks.
	Pipelines
	// Blueprints are files that describe a coordinator's agent and may have hooks.
	Blueprints
)

func (k Kind) String() string { return [...]string{"policy", "pipeline", "blueprint"}[k] }

// aliases holds the other names of points in each kind of file.
var aliases = map[Kind]map[string]hooks.PointName{
	Pipelines: {
		"on_session_start": hooks.SessionStart, "on_iteration_start": hooks.IterationStart,
		"on_iteration_complete": hooks.IterationComplete, "on_stage_complete": hooks.StageComplete,
		"on_session_complete": hooks.SessionComplete, "on_error": hooks.IterationFailed,
	},
	Blueprints: {
		"on_run_start": hooks.RunStart, "on_run_finish": hooks.RunFinish, "on_result": hooks.RunResult,
		"on_error": hooks.RunFailed, "on_timeout": hooks.RunTimeout, "on_tool_call": hooks.PreToolUse,
	},
}

// PointNamed returns the point with a name in a kind of file, or an error that suggests one.
func (k Kind) PointNamed(name string) (*Point, error) {
	if also, ok := aliases[k][name]; ok {
		return ByName(also), nil
	}
	at, known := hooks.PointNamed(name)
	switch {
	case known && k.fires(at):
		return ByName(at), nil
	case name == "on_error" || name == "onError" && k != Policies:
		return nil, fmt.Errorf("%q is ambiguous: use AgentFailed, IterationFailed (of a pipeline) or RunFailed (of the coordinator)", name)
	case name == "SessionEnd":
		return nil, fmt.Errorf("%q is unknown: use ConversationEnd, or SessionComplete (of a pipeline)", name)
	case known:
		return nil, fmt.Errorf("%s does not fire in a %s: put its rules in a policy of the agent", at, k)
	}
	own := lo.FilterMap(All(), func(p *Point, _ int) (string, bool) { return string(p.Name), k.fires(p.Name) })
	return nil, errors.New(yamlfile.Unknown("point of a "+k.String(), name, append(own, lo.Keys(aliases[k])...)))
}

// fires reports whether a point fires where files of the kind apply. Only pipelines fire the points in their files.
func (k Kind) fires(name hooks.PointName) bool {
	return k != Pipelines || ByName(name).Source == OfPipelines
}
