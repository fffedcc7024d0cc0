package capability

import (
	"slices"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
)

// AgentUnder builds what was planned as Agent does, under these hooks in the place of its own: for an agent that is to
// run under other hooks than it was planned with, such as one that a hook starts. What they are for and this agent does
// not have is no error.
func (p Plan) AgentUnder(set hooks.Set) mo.Result[*agent.Agent] { return p.under(set).Agent() }

// under returns the plan with inherited hooks alone.
func (p Plan) under(set hooks.Set) Plan {
	p.hooks = set
	for _, h := range set.All() {
		p.inherited = append(slices.Clip(p.inherited), h.Name())
	}
	return p
}
