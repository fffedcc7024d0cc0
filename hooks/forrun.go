package hooks

import (
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
)

var _ agent.HookSet = Set{}

// Controls returns the names of the controls, in the order they were given. A run that began
// with the set cannot be resumed without them. Controls in shadow are not included.
func (s Set) Controls() []string {
	return lo.FilterMap(s.hooks, func(h Hook, _ int) (string, bool) { return h.name, h.control && !h.shadow })
}

// WithHooks returns the settings for a run with hooks in addition to its agent's hooks: see agent.Agent.WithHooks. They
// apply to this run only.
//
//	final, err := a.RunWith(ctx, hooks.WithHooks(noPush), s, input).Get()
func WithHooks(list ...Hook) agent.RunSettings { return agent.RunSettings{Hooks: NewSet(list...)} }

// With returns c's hooks followed by more hooks, compiled for the same tools. Detached hooks run in the receiver's
// background.
func (c *Compiled) With(more Set) (*Compiled, error) {
	return c.set.With(more.hooks...).CompileIn(c.pool, c.reach)
}
