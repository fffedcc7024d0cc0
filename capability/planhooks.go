package capability

import (
	"slices"

	"github.com/grapnel-go/grapnel/hooks"
)

// ReplaceHooks sets the hooks, in the place of those that are there: for an agent that is to run under other hooks than it
// was planned with, such as one that a hook starts. What they are for and this agent does not have is no error.
func (p Plan) ReplaceHooks(set hooks.Set) Plan {
	p.hooks = set
	for _, h := range set.All() {
		p.inherited = append(slices.Clip(p.inherited), h.Name())
	}
	return p
}
