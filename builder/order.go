package builder

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/internal/nils"
)

// part is a capability with its position among the given ones, counted from one.
type part struct {
	capability.Capability

	position int
}

// name returns the capability's name, or an empty string when it has none.
func (p part) name() string {
	if named, ok := p.Capability.(capability.Named); ok {
		return named.Name()
	}
	return ""
}

// String returns the capability's name for errors.
func (p part) String() string {
	if name := p.name(); name != "" {
		return fmt.Sprintf("capability %q", name)
	}
	return fmt.Sprintf("capability %d (%s)", p.position, strings.TrimPrefix(fmt.Sprintf("%T", p.Capability), "*"))
}

// each returns the errors that are joined in err, each with the capability's name.
func (p part) each(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || errors.Join(joined.Unwrap()...).Error() != err.Error() {
		return []error{fmt.Errorf("%s: %w", p, err)}
	}
	return lo.FlatMap(joined.Unwrap(), func(err error, _ int) []error { return p.each(err) })
}

// needs returns the names of the capabilities that this one requires. Before also has the capabilities that must come
// earlier if the agent has them.
func (p part) needs() (required, before []string) {
	if d, ok := p.Capability.(capability.Dependent); ok {
		required = lo.Uniq(d.Requires())
	}
	before = required
	if o, ok := p.Capability.(capability.Ordered); ok {
		before = slices.Concat(required, o.After())
	}
	return required, before
}

// inOrder puts each capability after the capabilities that it requires or must follow, and otherwise keeps their order.
// It returns all errors: nil capabilities, names that are declared twice or missing, and cycles.
func inOrder(given []capability.Capability) ([]part, []error) {
	var wrong []error
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	var parts []part
	index := map[string]int{}
	for i, c := range given {
		p := part{c, i + 1}
		if nils.Is(c) {
			say("capability %d of %d is nil", i+1, len(given))
			continue
		}
		if name := p.name(); name != "" {
			if _, twice := index[name]; twice {
				say("%s is declared twice: an agent can have only one", p)
				continue
			}
			index[name] = len(parts)
		}
		parts = append(parts, p)
	}
	before := make([][]int, len(parts))
	for i, p := range parts {
		required, names := p.needs()
		for _, name := range required {
			if _, ok := index[name]; !ok {
				say("%s requires %q, which is not installed", p, name)
			}
		}
		before[i] = lo.FilterMap(names, func(name string, _ int) (int, bool) {
			at, ok := index[name]
			return at, ok
		})
	}
	order, circle := sortByNeeds(before)
	if len(circle) > 0 {
		say("capabilities require each other in a cycle: %s", strings.Join(lo.Map(circle, func(i int, _ int) string { return parts[i].String() }), ", "))
	}
	return lo.Map(order, func(i int, _ int) part { return parts[i] }), wrong
}

// sortByNeeds returns a stable topological order of the indices, each after the indices in its before list. When
// several indices can come next, the lowest does. Indices in a cycle are returned separately, in order.
func sortByNeeds(before [][]int) (order, circle []int) {
	placed := make([]bool, len(before))
	for i := 0; i < len(before); i++ {
		if !placed[i] && lo.EveryBy(before[i], func(j int) bool { return placed[j] }) {
			placed[i] = true
			order = append(order, i)
			i = -1 // start again with the first index
		}
	}
	stuck := lo.Filter(lo.Range(len(before)), func(i int, _ int) bool { return !placed[i] })
	for {
		circle = lo.Filter(stuck, func(i int, _ int) bool { // another index in the cycle waits for it
			return lo.SomeBy(stuck, func(j int) bool { return slices.Contains(before[j], i) })
		})
		if len(circle) == len(stuck) {
			return order, circle
		}
		stuck = circle
	}
}
