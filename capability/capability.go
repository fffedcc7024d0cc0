package capability

import (
	"errors"

	"github.com/samber/mo"
)

// Capability brings something to an agent: tools, hooks, limits, middleware. Its
// one method gets the plan so far and returns it with its own part added; it must
// not keep the plan, and must be safe to be called for several agents at once.
//
// A capability may also have any of the methods of Named, Dependent and Ordered.
type Capability interface {
	Install(p Plan) mo.Result[Plan]
}

// Named is a capability of which an agent can have only one of that name.
type Named interface{ Name() string }

// Dependent is a capability that does not work without others, by their names.
// Those are installed first.
type Dependent interface{ Requires() []string }

// Ordered is a capability that must be installed after others, by their names,
// where they are there.
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
