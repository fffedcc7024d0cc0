package hooks

import (
	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

var _ agent.HookSet = Set{}

// Controls returns the names of the hooks whose answers count, in the order they were given:
// what a run that began with the set cannot go on without. Those in shadow are not among
// them.
func (s Set) Controls() []string {
	return lo.FilterMap(s.hooks, func(h Hook, _ int) (string, bool) { return h.name, h.control && !h.shadow })
}

// WithHooks returns the settings of a run that has more hooks than its agent: see
// agent.Agent.WithHooks. They are gone when the run has ended.
//
//	final, err := a.RunWith(ctx, hooks.WithHooks(noPush), s, input).Get()
func WithHooks(list ...Hook) agent.RunSettings { return agent.RunSettings{Hooks: NewSet(list...)} }

// With returns the hooks with more of them, ready to be used for the same tools. Their detached
// hooks run in the background of the receiver.
func (c *Compiled) With(more Set) mo.Result[*Compiled] {
	return c.set.With(more.hooks...).CompileIn(c.pool, c.reach)
}
