package registry

import (
	"fmt"
	"slices"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/hooks"
)

// Where the hooks under preHooks and postHooks stand.
var (
	beforeRun = []hooks.PointName{hooks.InputSubmitted, hooks.ExecutionStart}
	afterRun  = []hooks.PointName{hooks.AgentFailed, hooks.ExecutionEnd}
)

// checkPoints says which of the hooks stands elsewhere than the points, if those are given.
func checkPoints(list []hooks.Hook, key string, points []hooks.PointName) error {
	if points == nil {
		return nil
	}
	for _, h := range list {
		elsewhere := lo.Filter(h.Points(), func(at hooks.PointName, _ int) bool { return !slices.Contains(points, at) })
		if len(elsewhere) > 0 {
			return fmt.Errorf("%q stands at %s: under %s belong hooks that stand at %s or %s alone; list it under hooks",
				h.Name(), elsewhere[0], key, points[0], points[1])
		}
	}
	return nil
}
