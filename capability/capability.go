package capability

import (
	"errors"

	"github.com/samber/mo"
)

// Capability adds something to an agent: tools, hooks, limits, middleware. Install
// receives the plan so far and returns it with its own part added; it must not keep
// the plan, and may be called for several agents at once.
//
// A capability may also have any of the methods of Named, Dependent and Ordered.
type Capability interface {
	Install(p Plan) mo.Result[Plan]
}

// Named is a capability that an agent can have only once under its name.
type Named interface{ Name() string }

// Dependent is a capability that requires others, by their names. They are installed
// first.
type Dependent interface{ Requires() []string }

// Ordered is a capability that must be installed after others, by their names, if
// the agent has them.
type Ordered interface{ After() []string }

// Func is a Capability from a plain func.
type Func func(p Plan) (Plan, error)

// Install calls f.
func (f Func) Install(p Plan) mo.Result[Plan] {
	if f == nil {
		return mo.Err[Plan](errors.New("the func is nil"))
	}
	return mo.TupleToResult(f(p))
}
