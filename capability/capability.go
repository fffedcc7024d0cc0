package capability

import (
	"errors"

	"github.com/samber/mo"
)

// A Capability adds parts to an agent: tools, hooks, limits, middleware. Install receives the plan so far and returns
// it with the capability's parts added. It must not keep the plan, and can be called for several agents at the same
// time.
//
// A capability can also implement Named, Dependent and Ordered.
type Capability interface {
	Install(p Plan) mo.Result[Plan]
}

// A Named is a capability with a name. An agent can have only one capability with the same name.
type Named interface{ Name() string }

// A Dependent is a capability that requires other capabilities, given by name. These are installed first.
type Dependent interface{ Requires() []string }

// An Ordered is a capability that must be installed after other capabilities, given by name, if the agent has them.
type Ordered interface{ After() []string }

// Func adapts a func to the Capability interface.
type Func func(p Plan) (Plan, error)

// Install calls f.
func (f Func) Install(p Plan) mo.Result[Plan] {
	if f == nil {
		return mo.Err[Plan](errors.New("the func is nil"))
	}
	return mo.TupleToResult(f(p))
}
