package builder

import (
	"fmt"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/capability"
)

// nameOf is the name of a capability that has one, its type otherwise.
func nameOf(c capability.Capability) string {
	if named, ok := c.(capability.Named); ok && named.Name() != "" {
		return fmt.Sprintf("%q", named.Name())
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", c), "*")
}

func keyOf(c capability.Capability) string {
	if named, ok := c.(capability.Named); ok {
		return named.Name()
	}
	return ""
}

// inOrder puts capabilities behind those that they require or come after, and
// otherwise leaves them in the order they were given. It finds all that is wrong:
// names that are there twice or missing, and circles.
func inOrder(given []capability.Capability) ([]capability.Capability, []error) {
	var wrong []error
	index := map[string]int{}
	for i, c := range given {
		if c == nil {
			wrong = append(wrong, fmt.Errorf("capability %d is nil", i+1))
			continue
		}
		name := keyOf(c)
		if _, twice := index[name]; twice && name != "" {
			wrong = append(wrong, fmt.Errorf("capability %q is there twice: an agent has one of them", name))
			continue
		}
		index[name] = i
	}
	before := make([][]int, len(given))
	for i, c := range given {
		required, after := dependencies(c)
		for _, name := range required {
			if _, ok := index[name]; !ok || name == "" {
				wrong = append(wrong, fmt.Errorf("capability %s requires %q, which is not there", nameOf(c), name))
			}
		}
		for _, name := range slices.Concat(required, after) {
			if j, ok := index[name]; ok && name != "" {
				before[i] = append(before[i], j)
			}
		}
	}
	order, circle := sorted(before)
	if len(circle) > 0 {
		names := lo.Map(circle, func(i int, _ int) string { return nameOf(given[i]) })
		wrong = append(wrong, fmt.Errorf("capabilities go in a circle: %s each wait for another", strings.Join(names, ", ")))
	}
	out := lo.FilterMap(order, func(i int, _ int) (capability.Capability, bool) { return given[i], given[i] != nil })
	return out, wrong
}

// sorted is a stable topological order of the indices, each behind those in its
// before list. What is in or behind a circle is returned apart.
func sorted(before [][]int) (order, circle []int) {
	done := make([]bool, len(before))
	for found := true; found; {
		found = false
		for i := range before {
			if !done[i] && lo.EveryBy(before[i], func(j int) bool { return done[j] }) {
				done[i], found = true, true
				order = append(order, i)
				break // from the start again: what was given first goes first
			}
		}
	}
	for i := range before {
		if !done[i] {
			circle = append(circle, i)
		}
	}
	return order, circle
}

func dependencies(c capability.Capability) (required, after []string) {
	if d, ok := c.(capability.Dependent); ok {
		required = d.Requires()
	}
	if o, ok := c.(capability.Ordered); ok {
		after = o.After()
	}
	return required, after
}
