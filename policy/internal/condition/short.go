package condition

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// Most conditions compare arguments and names with constants. A judge evaluates them without CEL and without
// allocating. Like CEL, it works from left to right, and returns unsure at the first unusual value. Then CEL
// evaluates the whole expression, so that every error comes from CEL.
type judge func(ev *event) verdict

// verdict is a judge's result.
type verdict uint8

const (
	unsure verdict = iota // CEL must decide
	no
	yes
)

func verdictOf(b bool) verdict {
	if b {
		return yes
	}
	return no
}

// not returns the opposite verdict.
func (v verdict) not() verdict {
	switch v {
	case yes:
		return no
	case no:
		return yes
	}
	return unsure
}

// truth returns a bool as a verdict.
func (s scalar) truth() verdict {
	if s.kind != boolKind {
		return unsure
	}
	return verdictOf(s.bits != 0)
}

// judge returns an expression's judge; nil if it needs CEL.
func (d *dialect) judge(e ast.Expr) judge {
	if e.Kind() == ast.CallKind {
		if j, known := d.judgeOfCall(e.AsCall()); known {
			return j
		}
	}
	if e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly() {
		if p := d.argument(e); p != nil {
			return func(ev *event) verdict { _, _, there := p.in(ev); return there }
		}
		return nil
	}
	if value := d.operand(e); value != nil {
		return func(ev *event) verdict { return value(ev).truth() }
	}
	return nil
}

// judgeOfCall returns the judge for an operator or method with a bool result; known is false for other calls.
func (d *dialect) judgeOfCall(c ast.CallExpr) (j judge, known bool) {
	args := c.Args()
	switch name := c.FunctionName(); name {
	case operators.LogicalAnd, operators.LogicalOr:
		return d.compileJoined(args, verdictOf(name == operators.LogicalOr)), true
	case operators.LogicalNot:
		if of := d.judge(args[0]); of != nil {
			return func(ev *event) verdict { return of(ev).not() }, true
		}
	case operators.Conditional:
		return d.conditional(args), true
	case operators.Equals:
		return d.compileComparison(args, compareEqual), true
	case operators.NotEquals:
		return d.compileComparison(args, func(a, b scalar) verdict { return compareEqual(a, b).not() }), true
	case operators.Less:
		return d.compileComparison(args, compareOrder(func(order int) bool { return order < 0 })), true
	case operators.LessEquals:
		return d.compileComparison(args, compareOrder(func(order int) bool { return order <= 0 })), true
	case operators.Greater:
		return d.compileComparison(args, compareOrder(func(order int) bool { return order > 0 })), true
	case operators.GreaterEquals:
		return d.compileComparison(args, compareOrder(func(order int) bool { return order >= 0 })), true
	case operators.In:
		return d.among(args[0], args[1]), true
	case "startsWith":
		return d.ofTexts(c, strings.HasPrefix), true
	case "endsWith":
		return d.ofTexts(c, strings.HasSuffix), true
	case "contains":
		return d.ofTexts(c, strings.Contains), true
	case "matches":
		return d.matching(c), true
	default:
		return nil, false
	}
	return nil, true
}

// compileJoined returns the judge for parts joined by && or ||. A part with the verdict end decides, and later parts
// are not evaluated.
func (d *dialect) compileJoined(parts []ast.Expr, end verdict) judge {
	judges := make([]judge, len(parts))
	for i, part := range parts {
		if judges[i] = d.judge(part); judges[i] == nil {
			if i == 0 {
				return nil
			}
			judges[i] = func(*event) verdict { return unsure }
		}
	}
	return func(ev *event) verdict {
		for _, j := range judges {
			if v := j(ev); v == end || v == unsure {
				return v
			}
		}
		return end.not()
	}
}

// compileComparison returns the judge for a comparison of two values.
func (d *dialect) compileComparison(args []ast.Expr, compare func(a, b scalar) verdict) judge {
	left, right := d.operand(args[0]), d.operand(args[1])
	if left == nil || right == nil {
		return nil
	}
	return func(ev *event) verdict {
		a := left(ev)
		if a.kind <= tooLarge {
			return unsure
		}
		return compare(a, right(ev))
	}
}

// compareEqual compares like CEL: values of different kinds differ. It leaves numbers of different kinds to CEL.
func compareEqual(a, b scalar) verdict {
	switch {
	case a.kind <= tooLarge || b.kind <= tooLarge:
		return unsure
	case a.kind != b.kind:
		if a.number() && b.number() {
			return unsure
		}
		return no
	}
	switch a.kind {
	case nullKind:
		return yes
	case boolKind, intKind, uintKind:
		return verdictOf(a.bits == b.bits)
	case textKind:
		return verdictOf(a.text == b.text)
	case doubleKind:
		return verdictOf(math.Float64frombits(a.bits) == math.Float64frombits(b.bits))
	case unknownKind, tooLong, tooLarge, listKind, objectKind:
	}
	return unsure
}

func (s scalar) number() bool { return s.kind >= intKind && s.kind <= doubleKind }

// compareOrder compares two values of one kind.
func compareOrder(is func(order int) bool) func(a, b scalar) verdict {
	return func(a, b scalar) verdict {
		if a.kind != b.kind {
			return unsure
		}
		switch a.kind {
		case intKind:
			return verdictOf(is(cmp.Compare(int64(a.bits), int64(b.bits)))) //nolint:gosec // the bits are int64s
		case uintKind:
			return verdictOf(is(cmp.Compare(a.bits, b.bits)))
		case doubleKind:
			return verdictOf(is(cmp.Compare(math.Float64frombits(a.bits), math.Float64frombits(b.bits))))
		case textKind:
			return verdictOf(is(strings.Compare(a.text, b.text)))
		case unknownKind, tooLong, tooLarge, nullKind, boolKind, listKind, objectKind:
		}
		return unsure
	}
}

// among returns the judge for value in list, for a constant list or a list or object in the arguments.
func (d *dialect) among(value, of ast.Expr) judge {
	left := d.operand(value)
	if left == nil {
		return nil
	}
	if list, ok := d.constants(of); ok {
		return func(ev *event) verdict {
			a, found := left(ev), no
			if a.kind <= tooLarge {
				return unsure
			}
			for _, b := range list {
				switch compareEqual(a, b) {
				case yes:
					return yes
				case unsure:
					found = unsure
				case no:
				}
			}
			return found
		}
	}
	if p := d.argument(of); p != nil {
		return func(ev *event) verdict {
			a := left(ev)
			if a.kind <= tooLarge {
				return unsure
			}
			if t, at, there := p.in(ev); there == yes {
				return t.has(at, a)
			}
			return unsure
		}
	}
	return nil
}

// has reports whether a value is in the list or object at an index.
func (t *tree) has(at int, a scalar) verdict {
	switch n := &t.row[at]; {
	case n.kind == objectKind && a.kind == textKind:
		_, there := t.member(at, a.text)
		return there
	case n.kind == listKind:
		i, found := at+1, no
		for range mostLooks {
			if i >= t.behind(at) {
				return found
			}
			switch compareEqual(a, t.row[i].scalar) {
			case yes:
				return yes
			case unsure:
				found = unsure
			case no:
			}
			i = t.behind(i)
		}
	}
	return unsure
}

// constants returns a constant list's values.
func (d *dialect) constants(e ast.Expr) (list []scalar, ok bool) {
	switch e.Kind() {
	case ast.ListKind:
		for _, element := range e.AsList().Elements() {
			if element.Kind() != ast.LiteralKind {
				return nil, false
			}
			list = append(list, scalarOf(element.AsLiteral()))
		}
	case ast.IdentKind:
		v := d.names[e.AsIdent()]
		if v == nil {
			return nil, false
		}
		fixed, isList := v.fixed.(traits.Lister)
		if !isList {
			return nil, false
		}
		for it := fixed.Iterator(); it.HasNext() == types.True; {
			list = append(list, scalarOf(it.Next()))
		}
	default:
		return nil, false
	}
	return list, len(list) <= mostLooks && !slices.ContainsFunc(list, func(s scalar) bool { return s.kind == unknownKind })
}

// ofTexts returns the judge for a string method with a string argument.
func (d *dialect) ofTexts(c ast.CallExpr, is func(text, part string) bool) judge {
	if !c.IsMemberFunction() || len(c.Args()) != 1 {
		return nil
	}
	return d.compileComparison([]ast.Expr{c.Target(), c.Args()[0]}, func(a, b scalar) verdict {
		if a.kind != textKind || b.kind != textKind {
			return unsure
		}
		return verdictOf(is(a.text, b.text))
	})
}

// matching returns the judge for a match with a constant regular expression.
func (d *dialect) matching(c ast.CallExpr) judge {
	if !c.IsMemberFunction() || len(c.Args()) != 1 || c.Args()[0].Kind() != ast.LiteralKind {
		return nil
	}
	expression, err := regexp.Compile(scalarOf(c.Args()[0].AsLiteral()).text)
	if err != nil {
		return nil
	}
	return d.ofTexts(c, func(text, _ string) bool { return expression.MatchString(text) })
}

// operand returns a function that reads a value; nil if only CEL can compute it.
func (d *dialect) operand(e ast.Expr) func(ev *event) scalar {
	if e.Kind() == ast.LiteralKind {
		constant := scalarOf(e.AsLiteral())
		return func(*event) scalar { return constant }
	}
	if e.Kind() == ast.IdentKind {
		v := d.names[e.AsIdent()]
		switch {
		case v == nil:
			return nil
		case v.fixed != nil:
			constant := scalarOf(v.fixed)
			return func(*event) scalar { return constant }
		case v.plain != nil:
			return v.plain
		}
		return func(ev *event) scalar { return scalarOf(v.value(ev)) }
	}
	if e.Kind() == ast.CallKind {
		switch c := e.AsCall(); {
		case c.FunctionName() == "size":
			return d.sizeOperand(c)
		case d.functions[c.FunctionName()] != nil:
			if call := d.compileCall(c); call != nil {
				return func(ev *event) scalar { return scalarOf(call(ev)) }
			}
			return nil
		}
	}
	if p := d.argument(e); p != nil {
		return func(ev *event) scalar {
			if t, at, there := p.in(ev); there == yes {
				return t.row[at].scalar
			}
			return scalar{}
		}
	}
	return nil
}

// constantValue returns the value of a constant string or a constant list of strings; nil for other expressions.
func (d *dialect) constantValue(e ast.Expr) ref.Val {
	var v ref.Val
	switch e.Kind() {
	case ast.LiteralKind:
		v = e.AsLiteral()
	case ast.ListKind:
		var elements []ref.Val
		for _, element := range e.AsList().Elements() {
			if element.Kind() != ast.LiteralKind {
				return nil
			}
			elements = append(elements, element.AsLiteral())
		}
		v = types.NewRefValList(types.DefaultTypeAdapter, elements)
	case ast.IdentKind:
		if known := d.names[e.AsIdent()]; known != nil {
			v = known.fixed
		}
	default:
	}
	if v == nil || !typeOf(v).IsExactType(cel.StringType) && !typeOf(v).IsExactType(texts) {
		return nil
	}
	return v
}

// argument is the path to a value in the arguments: args.a.b, args["a"].b, original_args.a.
type argument struct {
	original bool
	names    []string
}

// argument returns the argument that an expression names or that has(…) tests; nil for other expressions.
func (d *dialect) argument(e ast.Expr) *argument {
	var names []string
	for of := e; ; {
		name, next := memberStep(of)
		switch {
		case next != nil && (of == e || of.Kind() != ast.SelectKind || !of.AsSelect().IsTestOnly()):
			names, of = append(names, name), next
			continue
		case of.Kind() != ast.IdentKind, len(names) == 0 || d.names[of.AsIdent()] == nil:
			return nil
		}
		slices.Reverse(names)
		switch of.AsIdent() {
		case "args":
			return &argument{names: names}
		case "original_args":
			return &argument{names: names, original: true}
		}
		return nil
	}
}

// memberStep returns a member's name and the expression that contains it; nil if e is not a member access.
func memberStep(e ast.Expr) (name string, of ast.Expr) {
	switch e.Kind() {
	case ast.SelectKind:
		return e.AsSelect().FieldName(), e.AsSelect().Operand()
	case ast.CallKind:
		args := e.AsCall().Args()
		if e.AsCall().FunctionName() == operators.Index && args[1].Kind() == ast.LiteralKind {
			if name, ok := args[1].AsLiteral().(types.String); ok {
				return string(name), args[0]
			}
		}
	default:
	}
	return "", nil
}

// in finds the value's tree and index. The verdict is no if the last name does not exist.
func (p *argument) in(ev *event) (t *tree, at int, there verdict) {
	if ev.call == nil {
		return nil, 0, unsure
	}
	if t = ev.call.effective(); p.original {
		t = ev.call.original()
	}
	if t.err != nil {
		return nil, 0, unsure
	}
	for i, name := range p.names {
		if at, there = t.member(at, name); there != yes {
			if i < len(p.names)-1 {
				there = unsure
			}
			return t, 0, there
		}
	}
	return t, at, yes
}
