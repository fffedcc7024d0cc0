package registry

import (
	"fmt"
	"slices"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/hooks"
)

// The points for hooks under preHooks and postHooks.
var (
	beforeRun = []hooks.PointName{hooks.InputSubmitted, hooks.ExecutionStart}
	afterRun  = []hooks.PointName{hooks.AgentFailed, hooks.ExecutionEnd}
)

// checkPoints returns an error for a hook at other points, unless points is empty.
func checkPoints(list []hooks.Hook, key string, points []hooks.PointName) error {
	if points == nil {
		return nil
	}
	for _, h := range list {
		elsewhere := lo.Filter(h.Points(), func(at hooks.PointName, _ int) bool { return !slices.Contains(points, at) })
		if len(elsewhere) > 0 {
			return fmt.Errorf("%q is at %s: %s is only for hooks at %s or %s; list it under hooks",
				h.Name(), elsewhere[0], key, points[0], points[1])
		}
	}
	return nil
}
