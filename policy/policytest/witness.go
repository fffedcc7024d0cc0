package policytest

import (
	"context"
	"fmt"
	"slices"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/policy/internal/points"
)

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
// matchers, which records that the hook was asked, and one for each of its matchers.
func addWitnesses(at *points.Point, list []hooks.Hook) (out []hooks.Hook, seen map[string]*matched) {
	seen = map[string]*matched{}
	for _, h := range list {
		m := &matched{}
		seen[h.Name()] = m
		witness := func(i int, f func()) hooks.Hook {
			name := fmt.Sprintf("%s%s#%d", witnessPrefix, h.Name(), i)
			if !h.Control() {
				return at.Observe(name, func(context.Context, hooks.Context) error { f(); return nil }).WithPriority(h.Priority())
			}
			return at.Control(name, func(context.Context, hooks.Context) hooks.Result {
				f()
				return hooks.Result{}
			}).WithPriority(h.Priority()).WithFailure(hooks.Open)
		}
		group := []hooks.Hook{witness(0, func() { m.turn = true })}
		for i, matcher := range h.Matchers() {
			m.yes, m.text = append(m.yes, false), append(m.text, matcher.String())
			group = append(group, witness(i+1, func() { m.yes[i] = true }).Matching(matcher))
		}
		group = append(group, h)
		if at.Backwards {
			slices.Reverse(group)
		}
		out = append(out, group...)
	}
	return out, seen
}

// witnessPrefix begins the names of witnesses. No rule's name begins like this, because rule names contain a slash.
const witnessPrefix = "witness of "
