package capability

import (
	"slices"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
)

// AgentUnder builds the agent like Agent, but with the hooks in set instead of the plan's hooks. Use it for an agent
// that must run under other hooks than planned, such as an agent that a hook starts. Hooks for tools that this agent
// does not have are not an error.
func (p Plan) AgentUnder(set hooks.Set) mo.Result[*agent.Agent] { return p.under(set).Agent() }

// under returns the plan with only the inherited hooks.
func (p Plan) under(set hooks.Set) Plan {
	p.hooks = set
	for _, h := range set.All() {
		p.inherited = append(slices.Clip(p.inherited), h.Name())
	}
	return p
}
