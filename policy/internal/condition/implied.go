package condition

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/grapnel-go/grapnel/hooks"
)

// ImpliedMatchers returns matchers that match every event for which the condition is true: the tools, stages and
// arguments that it compares with constants. A condition such as args.amount == "1000" can never be true for an
// integer amount.
func (c *Condition) ImpliedMatchers() []hooks.Matcher {
	return c.c.d.implyMatchers(c.c.ast.NativeRep().Expr())
}

// implyMatchers returns the matchers that an expression implies.
func (d *dialect) implyMatchers(e ast.Expr) []hooks.Matcher {
	if e.Kind() != ast.CallKind {
		return nil
	}
	c := e.AsCall()
	args := c.Args()
	switch c.FunctionName() {
	case operators.LogicalAnd:
		return slices.Concat(d.implyMatchers(args[0]), d.implyMatchers(args[1]))
	case operators.LogicalOr:
		left, right := d.implyMatchers(args[0]), d.implyMatchers(args[1])
		if len(left) == 0 || len(right) == 0 {
			return nil
		}
		return []hooks.Matcher{hooks.Or(hooks.And(left...), hooks.And(right...))}
	case operators.Equals:
		if subject, value := d.equality(args); value != nil {
			return d.impliedBy(subject, []ref.Val{value})
		}
	case operators.In:
		if values := d.constantList(args[1]); len(values) > 0 {
			return d.impliedBy(args[0], values)
		}
	}
	return nil
}

// equality returns both sides of a comparison with a constant. The value is nil for other comparisons.
func (d *dialect) equality(args []ast.Expr) (subject ast.Expr, value ref.Val) {
	for i, arg := range args {
		if arg.Kind() == ast.LiteralKind {
			return args[1-i], arg.AsLiteral()
		}
	}
	return nil, nil
}

// constantList returns a literal list's elements.
func (d *dialect) constantList(e ast.Expr) []ref.Val {
	if e.Kind() != ast.ListKind {
		return nil
	}
	var out []ref.Val
	for _, element := range e.AsList().Elements() {
		if element.Kind() != ast.LiteralKind {
			return nil
		}
		out = append(out, element.AsLiteral())
	}
	return out
}

// plainName matches a member name that a matcher's path can contain.
var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// impliedBy returns the matchers that follow if an expression equals one of the values.
func (d *dialect) impliedBy(subject ast.Expr, values []ref.Val) []hooks.Matcher {
	var either []hooks.Matcher
	for _, value := range values {
		m, ok := d.matcherOf(subject, value)
		if !ok {
			return nil
		}
		either = append(either, m)
	}
	if len(either) == 1 {
		return either
	}
	return []hooks.Matcher{hooks.Or(either...)}
}

func (d *dialect) matcherOf(subject ast.Expr, value ref.Val) (hooks.Matcher, bool) {
	if subject.Kind() == ast.IdentKind && subject.AsIdent() == "tool" && d.names["tool"] != nil {
		text, ok := Text(value)
		return hooks.ToolNamed(text), ok && text != ""
	}
	if subject.Kind() == ast.IdentKind && slices.Contains([]string{"stage", "STAGE"}, subject.AsIdent()) && d.names[subject.AsIdent()] != nil {
		text, ok := Text(value)
		return hooks.StageNamed(hooks.Exact(text)), ok && text != ""
	}
	path := d.argument(subject)
	if path == nil || path.original || slices.ContainsFunc(path.names, func(name string) bool { return !plainName.MatchString(name) }) {
		return hooks.Matcher{}, false
	}
	switch value.(type) {
	case types.String, types.Bool, types.Int, types.Uint, types.Double:
		return hooks.ArgumentEquals(strings.Join(path.names, "."), value.Value()), true
	}
	return hooks.Matcher{}, false
}

// Contradiction says which value would have to equal two constants for the condition to be true, or "".
func (c *Condition) Contradiction() string {
	return c.c.d.findContradiction(c.c.ast.NativeRep().Expr(), map[string]ref.Val{})
}

// findContradiction adds to must the equalities that must hold for an expression to be true. It returns the first
// contradiction.
func (d *dialect) findContradiction(e ast.Expr, must map[string]ref.Val) string {
	if e.Kind() != ast.CallKind {
		return ""
	}
	switch c := e.AsCall(); c.FunctionName() {
	case operators.LogicalAnd:
		if found := d.findContradiction(c.Args()[0], must); found != "" {
			return found
		}
		return d.findContradiction(c.Args()[1], must)
	case operators.Equals:
		subject, value := d.equality(c.Args())
		if value == nil {
			return ""
		}
		name := ""
		if path := d.argument(subject); path != nil {
			name = "args." + strings.Join(path.names, ".")
			if path.original {
				name = "original_" + name
			}
		} else if subject.Kind() == ast.IdentKind && d.names[subject.AsIdent()] != nil {
			name = subject.AsIdent()
		}
		if name == "" {
			return ""
		}
		first, there := must[name]
		if there && equalValues(first, value) == types.False {
			return fmt.Sprintf("%s would be both %s and %s", name, showValue(first), showValue(value))
		}
		must[name] = value
	}
	return ""
}
