package condition

import (
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// Function is a function that conditions can call. It is immutable once a Language was made with it.
type Function struct {
	// Name as it is called: "from_user", "path.within". With Member, the name after the dot: x.flag(…).
	Name string
	// Member says that it is called on its first argument.
	Member bool
	// Overloads are what it can be called with; at least one.
	Overloads []Overload
	// Call computes it. The arguments have the types of an overload. The input is the occasion that is judged: its state,
	// its values. What went wrong is returned as types.NewErr and fails the evaluation; a panic does so, too. It must be
	// quick, and safe for concurrent use.
	Call func(in Input, args ...ref.Val) ref.Val
	// Why, unless nil, says in some words what a result rests on; Explain tells it behind the result. It is given what Call
	// was given, and may cost more.
	Why func(in Input, args ...ref.Val) string
	// Pure says that the result depends on the arguments alone: Call is given the zero Input, and a call with constant
	// arguments is a constant.
	Pure bool
	// Cost is what a call adds to the cost of an evaluation, besides one for each value and for each ten bytes of text that
	// it is given, with all that is in them; zero means 1. It is paid before Call runs. One is about 50 ns. What Call
	// returns must not be much larger than what it is given.
	Cost uint64
}

// Overload is one way to call a function.
type Overload struct {
	Args   []*cel.Type
	Result *cel.Type
}

// function is a Function that was checked.
type function struct{ Function }

func (l *Language) add(f Function) error {
	switch {
	case f.Name == "" || f.Call == nil || len(f.Overloads) == 0:
		return fmt.Errorf("function %q: a function needs a name, an overload and a Call", f.Name)
	case l.functions[f.Name] != nil:
		return fmt.Errorf("function %q: there is one of that name already", f.Name)
	}
	for part := range strings.SplitSeq(f.Name, ".") {
		if !identifier.MatchString(part) {
			return fmt.Errorf("function %q: %q is no name", f.Name, part)
		}
	}
	l.functions[f.Name] = &function{f}
	return nil
}

// declare returns the function as CEL wants it. One that looks at the input is bound when a condition is evaluated, by the
// activation of that evaluation.
func (f *function) declare() cel.EnvOption {
	var options []cel.FunctionOpt
	for i, o := range f.Overloads {
		binding := cel.LateFunctionBinding()
		if f.Pure {
			binding = cel.FunctionBinding(func(args ...ref.Val) ref.Val { return f.Call(Input{}, args...) })
		}
		make := cel.Overload
		if f.Member {
			make = cel.MemberOverload
		}
		options = append(options, make(fmt.Sprintf("grapnel_%s_%d", f.Name, i), o.Args, o.Result, binding))
	}
	return cel.Function(f.Name, options...)
}

// Text returns the string in a value, and whether it is one: for the Call of a Function that takes values of any type.
func Text(v ref.Val) (string, bool) {
	s, ok := v.(types.String)
	return string(s), ok
}
