package condition

import (
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// Function is a function that conditions can call. It must not change after it was passed to New.
type Function struct {
	// Name is the name in calls: "from_user", "path.within". With Member, it is the name after the dot: x.flag(…).
	Name string
	// Member makes the function a method of its first argument.
	Member bool
	// Overloads lists the function's signatures; at least one is required.
	Overloads []Overload
	// Call computes the result. The arguments have the types of an overload. The input holds the judged event: its
	// state and its values. Call reports an error with types.NewErr, which fails the evaluation, as does a panic.
	// Call must be fast and safe for concurrent use. Conditions on the same tool call share the results of calls
	// whose only arguments are constants and args.
	Call func(in Input, args ...ref.Val) ref.Val
	// Why, unless nil, explains a result in a few words, which Explain appends to it. It receives the same arguments
	// as Call and may be slower.
	Why func(in Input, args ...ref.Val) string
	// Pure declares that the result depends only on the arguments: Call receives the zero Input, and a call with
	// constant arguments is a constant.
	Pure bool
	// ByTool declares that the result depends only on constant arguments and on the called tool as the agent's
	// request describes it. The result is then cached for each tool in the run.
	ByTool bool
	// Cost is the fixed cost per call; zero means 1. One unit is about 50 ns. A call also costs one unit for each
	// value and for each ten bytes of text in its arguments, including nested ones. The cost is paid before Call
	// runs. The result of Call must not be much larger than its arguments.
	Cost uint64
}

// Overload is one way to call a function.
type Overload struct {
	Args   []*cel.Type
	Result *cel.Type
}

// function is a validated Function.
type function struct {
	Function

	once bool // results are shared by all conditions on one event
}

func (l *Language) add(f Function) error {
	switch {
	case f.Name == "" || f.Call == nil || len(f.Overloads) == 0:
		return fmt.Errorf("function %q: a function needs a name, an overload and a Call", f.Name)
	case l.functions[f.Name] != nil:
		return fmt.Errorf("function %q: the name is already in use", f.Name)
	}
	for part := range strings.SplitSeq(f.Name, ".") {
		if !identifier.MatchString(part) {
			return fmt.Errorf("function %q: %q is not a valid name", f.Name, part)
		}
	}
	l.functions[f.Name] = &function{Function: f}
	return nil
}

// declare returns the function as a CEL option. For a function that reads the input, the activation provides the
// implementation at evaluation.
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

// Text returns the string in a value and reports whether the value is a string. Use it in the Call of a Function that
// accepts any type.
func Text(v ref.Val) (string, bool) {
	s, ok := v.(types.String)
	return string(s), ok
}
