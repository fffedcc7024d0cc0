package condition

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"

	"github.com/grapnel-go/grapnel/internal/near"
)

var (
	undeclared = regexp.MustCompile(`^undeclared reference to '([^']*)'`)
	noField    = regexp.MustCompile(`^undefined field '([^']*)'`)
	noOverload = regexp.MustCompile(`(?s)^found no matching overload for '([^']*)' applied to '(.*)'$`)
	dotted     = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(?:\s*\.\s*[A-Za-z_][A-Za-z0-9_]*)*`)
)

// explainIssue rewords a CEL error and adds a suggestion.
func (d *dialect) explainIssue(text, plain string, issue *cel.Error) *Error {
	offset := nameBefore(text, offsetOf(text, issue.Location))
	if m := undeclared.FindStringSubmatch(issue.Message); m != nil {
		return d.unknownName(text, plain, offset, strings.TrimPrefix(m[1], "."))
	}
	if m := noField.FindStringSubmatch(issue.Message); m != nil {
		e := d.wrongAt(text, offset, "unknown field %q", m[1])
		var all []string
		for _, k := range kinds {
			all = append(all, k.order...)
		}
		e.Suggestion, _ = near.Name(m[1], all)
		return e
	}
	if m := noOverload.FindStringSubmatch(issue.Message); m != nil {
		name := operatorText(m[1])
		return d.wrongAt(text, offset, "%s does not accept values of type %s", name, strings.ReplaceAll(strings.Trim(m[2], "()"), ".(", " ("))
	}
	message := shortenGrammar(issue.Message)
	e := d.wrongAt(text, offset, "%s", message)
	if unexpected, ok := strings.CutPrefix(message, "unexpected "); ok {
		e.Suggestion = foreignOperators[strings.Trim(unexpected, "' ")]
	}
	return e
}

// foreignOperators maps other languages' operators to the ones here.
var foreignOperators = map[string]string{"=": "==", "&": "&&", "|": "||", "and": "&&", "or": "||", "not": "!"}

// shortenGrammar returns the parser's message without its list of expected tokens.
func shortenGrammar(message string) string {
	message = strings.ReplaceAll(message, "\n", " ")
	text, isSyntax := strings.CutPrefix(message, "Syntax error: ")
	if !isSyntax {
		return message
	}
	text, _, _ = strings.Cut(text, " expecting ")
	for _, word := range []string{"mismatched input ", "extraneous input ", "no viable alternative at input ", "token recognition error at: "} {
		if what, ok := strings.CutPrefix(text, word); ok {
			if what == "'<EOF>'" {
				return "the expression is incomplete"
			}
			return "unexpected " + what
		}
	}
	if what, ok := strings.CutPrefix(text, "missing "); ok {
		return strings.Replace(what, " at ", " is missing at ", 1)
	}
	return text
}

// unknownName returns an error for a name that does not exist, or not at this point.
func (d *dialect) unknownName(text, plain string, offset int, name string) *Error {
	start := offset
	for start > 0 && (isNameByte(plain[start-1]) || plain[start-1] == '.') {
		start-- // CEL reports the place of the last dot of a path
	}
	whole := strings.Join(strings.Fields(dotted.FindString(plain[start:])), "")
	if !strings.HasPrefix(whole, name) {
		start, whole = offset, name
	}
	for _, v := range variables {
		if (v.name == whole || strings.HasPrefix(whole, v.name+".") || v.name == name) && !v.at.has(d.point) {
			return d.wrongAt(text, start, "%s does not exist at %s, only at %s", v.name, d.point, pointsText(v.at))
		}
	}
	e := d.wrongAt(text, start, "unknown name %q", whole)
	meant, ok := near.Name(whole, d.allNames())
	if !ok {
		head, _, _ := strings.Cut(whole, ".")
		meant, _ = near.Name(head, d.allNames())
	}
	e.Suggestion = meant
	return e
}

func pointsText(at where) string {
	names := make([]string, len(at))
	for i, p := range at {
		names[i] = string(p)
	}
	return strings.Join(names, ", ")
}

// allNames returns the point's variable and function names.
func (d *dialect) allNames() []string {
	names := slices.Collect(maps.Keys(d.names))
	for name := range d.env.Functions() {
		if identifier.MatchString(strings.ReplaceAll(name, ".", "_")) && !strings.HasPrefix(name, "_") {
			names = append(names, name)
		}
	}
	return append(names, "has", "all", "exists", "exists_one", "map", "filter")
}

// operatorText returns an operator as users write it: "==" for _==_.
func operatorText(name string) string {
	if name == "_[_]" {
		return "[…]"
	}
	return strings.Trim(strings.TrimSuffix(name, "_"), "_")
}

// stray finds the errors that type checking misses: expressions that create objects, unknown members of a variable,
// unknown action IDs, and regular expressions that are not constant.
func (d *dialect) stray(text string, checked *cel.Ast) Errors {
	var wrong Errors
	native := checked.NativeRep()
	say := func(e ast.Expr, format string, args ...any) *Error {
		offset := nameBefore(text, offsetOf(text, native.SourceInfo().GetStartLocation(e.ID())))
		wrong = append(wrong, d.wrongAt(text, offset, format, args...))
		return wrong[len(wrong)-1]
	}
	ast.PostOrderVisit(native.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch {
		case e.Kind() == ast.StructKind && kinds[e.AsStruct().TypeName()] != nil:
			_ = say(e, "a condition cannot create a %s", e.AsStruct().TypeName())
		case e.Kind() == ast.CallKind && e.AsCall().FunctionName() == "matches" && !d.isOwn(patternOf(e.AsCall())):
			_ = say(e, "the regular expression must be constant: write it here or in vars")
		}
		of, name, ok := memberOf(e)
		if !ok {
			return
		}
		if known := d.membersOf(of); known != nil && !slices.Contains(known, name) {
			say(e, "unknown name %q in %s", name, of).Suggestion, _ = near.Name(name, known)
		}
	}))
	return wrong
}

// membersOf returns a variable's member names; nil if they are unknown.
func (d *dialect) membersOf(of string) []string {
	v := d.names[of]
	switch {
	case of == "actions":
		return d.options.Actions
	case v != nil && v.fixed != nil:
		return membersOf(v)
	}
	return nil
}

// patternOf returns the pattern of matches(text, pattern) and text.matches(pattern).
func patternOf(call ast.CallExpr) ast.Expr { return call.Args()[len(call.Args())-1] }

// isOwn reports whether a value comes from the condition's author, as literals and vars.* do.
func (d *dialect) isOwn(e ast.Expr) bool {
	switch e.Kind() {
	case ast.LiteralKind:
		return true
	case ast.IdentKind:
		v := d.names[e.AsIdent()]
		return v != nil && v.fixed != nil
	case ast.SelectKind:
		return d.isOwn(e.AsSelect().Operand())
	case ast.CallKind:
		call := e.AsCall()
		return (call.FunctionName() == "_+_" || call.FunctionName() == "_[_]") && d.isOwn(call.Args()[0]) && d.isOwn(call.Args()[1])
	}
	return false
}

// memberOf splits v.name and v["name"], but not has(v.name).
func memberOf(e ast.Expr) (of, name string, ok bool) {
	switch e.Kind() {
	case ast.SelectKind:
		s := e.AsSelect()
		if s.Operand().Kind() == ast.IdentKind && !s.IsTestOnly() {
			return s.Operand().AsIdent(), s.FieldName(), true
		}
	case ast.CallKind:
		args := e.AsCall().Args()
		if e.AsCall().FunctionName() == "_[_]" && args[0].Kind() == ast.IdentKind && args[1].Kind() == ast.LiteralKind {
			text, isText := args[1].AsLiteral().(types.String)
			return args[0].AsIdent(), string(text), isText
		}
	}
	return "", "", false
}
