package policytest

import (
	"context"
	"fmt"
	"slices"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/hooks"
)

// newControl returns a function that creates controls without an opinion, at a point whose contexts have type C.
func newControl[C hooks.Context](at hooks.Point[C]) func(name string, f func()) hooks.Hook {
	return func(name string, f func()) hooks.Hook {
		return hooks.On(at, name, func(context.Context, C) hooks.Result {
			f()
			return hooks.Result{}
		})
	}
}

// controls holds a constructor for each point at which hooks decide.
var controls = map[hooks.PointName]func(name string, f func()) hooks.Hook{
	hooks.ConversationStart: newControl(hooks.AtConversationStart),
	hooks.InputSubmitted:    newControl(hooks.AtInputSubmitted), hooks.ExecutionStart: newControl(hooks.AtExecutionStart),
	hooks.StepStart: newControl(hooks.AtStepStart), hooks.StepEnd: newControl(hooks.AtStepEnd),
	hooks.PreInference: newControl(hooks.AtPreInference), hooks.PostInference: newControl(hooks.AtPostInference),
	hooks.PreToolUse: newControl(hooks.AtPreToolUse), hooks.PostToolUse: newControl(hooks.AtPostToolUse), hooks.ToolFailed: newControl(hooks.AtToolFailed),
	hooks.PreCompact: newControl(hooks.AtPreCompact), hooks.PreSubagent: newControl(hooks.AtPreSubagent), hooks.PostSubagent: newControl(hooks.AtPostSubagent),
	hooks.InterventionRequested: newControl(hooks.AtInterventionRequested), hooks.Stop: newControl(hooks.AtStop),
	hooks.AgentFailed: newControl(hooks.AtAgentFailed), hooks.SessionStart: newControl(hooks.AtSessionStart),
	hooks.IterationStart: newControl(hooks.AtIterationStart), hooks.IterationComplete: newControl(hooks.AtIterationComplete),
	hooks.IterationFailed: newControl(hooks.AtIterationFailed), hooks.StageComplete: newControl(hooks.AtStageComplete),
	hooks.RunStart: newControl(hooks.AtRunStart), hooks.RunResult: newControl(hooks.AtRunResult), hooks.RunFailed: newControl(hooks.AtRunFailed),
}

// matched records whether a hook was asked, and which of its matchers matched.
type matched struct {
	turn bool
	yes  []bool
	text []string
}

// no describes the matchers that did not match.
func (m *matched) no() []string {
	return lo.Filter(m.text, func(_ string, i int) bool { return !m.yes[i] })
}

// addWitnesses returns the hooks with witnesses before each, which are asked at the same moment: one without
// matchers, which records that the hook was asked, and one for each of its matchers. Backwards is set at points that
// ask hooks in reverse order.
func addWitnesses(at hooks.PointName, list []hooks.Hook, backwards bool) (out []hooks.Hook, seen map[string]*matched) {
	seen = map[string]*matched{}
	for _, h := range list {
		m := &matched{}
		seen[h.Name()] = m
		witness := func(i int, f func()) hooks.Hook {
			name := fmt.Sprintf("%s%s#%d", witnessPrefix, h.Name(), i)
			make, decides := controls[at]
			if !h.Control() || !decides {
				return hooks.ObserveAll(name, func(context.Context, hooks.Context) error { f(); return nil }, at).WithPriority(h.Priority())
			}
			return make(name, f).WithPriority(h.Priority()).WithFailure(hooks.Open)
		}
		group := []hooks.Hook{witness(0, func() { m.turn = true })}
		for i, matcher := range h.Matchers() {
			m.yes, m.text = append(m.yes, false), append(m.text, matcher.String())
			group = append(group, witness(i+1, func() { m.yes[i] = true }).Matching(matcher))
		}
		group = append(group, h)
		if backwards {
			slices.Reverse(group)
		}
		out = append(out, group...)
	}
	return out, seen
}

// witnessPrefix begins the names of witnesses. No rule's name begins like this, because rule names contain a slash.
const witnessPrefix = "witness of "

// backwardsAt reports whether a point's hooks are asked in reverse order.
func backwardsAt(at hooks.PointName) bool {
	probe := func(name string) hooks.Hook {
		return hooks.ObserveAll(name, func(context.Context, hooks.Context) error { return nil }, at)
	}
	return hooks.NewSet(probe("a"), probe("b")).Order(at)[0] == "b"
}
