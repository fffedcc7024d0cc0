package capability

import "github.com/grapnel-go/grapnel/hooks"

// ReplaceHooks sets the hooks, in the place of those that are there: for an agent that is to run under other hooks than it
// was planned with, such as one that a hook starts.
func (p Plan) ReplaceHooks(set hooks.Set) Plan { p.hooks = set; return p }
