package bash

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// blurLoop makes everything unknown that an earlier iteration may have changed. It is called before the loop body is
// walked.
func (w *walker) blurLoop(c ctx, lists ...[]*syntax.Stmt) {
	for _, list := range lists {
		for _, s := range list {
			syntax.Walk(s, func(n syntax.Node) bool {
				if n == nil {
					return true
				}
				if _, apart := n.(*syntax.Subshell); apart { // it changes only its own copy of the shell
					return false
				}
				w.blurNode(c, n)
				return w.spend(1)
			})
		}
	}
}

// blurNode makes everything unknown that a node may change, because the enclosing statement may run any number of
// times: while …; do i=$((i+1)); done makes i unknown before the loop is walked. Invariant: afterwards, the state is
// valid for every iteration.
func (w *walker) blurNode(c ctx, n syntax.Node) {
	switch x := n.(type) {
	case *syntax.Assign:
		w.blurAssign(c, x)
	case *syntax.BinaryArithm, *syntax.UnaryArithm:
		if e, ok := x.(syntax.ArithmExpr); ok {
			w.blurArithm(c, e)
		}
	case *syntax.ParamExp:
		if x.Exp != nil && (x.Exp.Op == syntax.AssignUnset || x.Exp.Op == syntax.AssignUnsetOrNull) && x.Param != nil {
			w.blurName(c, x.Param.Value)
		}
	case *syntax.WordIter:
		numbers := x.InPos.IsValid() && !slices.ContainsFunc(x.Items, func(word *syntax.Word) bool { return !listsNumbers(&state{}, word) })
		c.st.set(x.Name.Value, value{text: unknown, number: numbers && c.st.numberIn(x.Name.Value)})
	case *syntax.FuncDecl:
		if x.Name != nil {
			c.st.own()
			if f, found := c.st.funcs[x.Name.Value]; found {
				c.st.funcs[x.Name.Value] = f.or(function{bodies: []*syntax.FuncDecl{x}, from: []source{c.src}})
			}
		}
	case *syntax.DeclClause:
		for _, a := range x.Args {
			switch {
			case a.Name != nil:
				w.blurName(c, a.Name.Value)
			case a.Value != nil && a.Value.Lit() == "":
				c.st.forget() // "x=y"
			}
		}
	case *syntax.CallExpr:
		w.blurCall(c, x)
	}
}

// blurAssign makes an assigned variable unknown. The variable stays a number if its old and new values are numbers:
// i=$((i+1)).
func (w *walker) blurAssign(c ctx, x *syntax.Assign) {
	if x.Name == nil {
		return
	}
	if x.Value != nil {
		if text, plain := literalText(x.Value); plain {
			w.remember(x.Name.Value, text)
		}
	}
	number := x.Array == nil && x.Value != nil && makesNumber(nil, x.Value) && c.st.numberIn(x.Name.Value)
	c.st.set(x.Name.Value, value{text: unknown, number: number})
}

// blurName makes a variable unknown.
func (w *walker) blurName(c ctx, name string) {
	c.st.set(name, value{text: unknown})
	if name == "HOME" {
		c.st.home = unknown
	}
}

// blurCall makes everything unknown that a command may change in the shell: cd, read x, eval, and functions, which
// may change anything.
func (w *walker) blurCall(c ctx, x *syntax.CallExpr) {
	if len(x.Args) == 0 {
		return
	}
	name, plain := onlyLit(x.Args[0])
	_, isFunction := c.st.funcs[name]
	_, isAlias := c.st.aliases[name]
	switch {
	case !plain, isFunction, isAlias, name == "", strings.ContainsRune(name, '\\'):
		c.st.forget()
		return
	}
	switch name {
	case "cd", "pushd", "popd":
		c.st.dirs = nil
	case "shift", "set":
		c.st.params, c.st.noParams = nil, true
	case "eval", "source", ".", "command", "builtin", "alias", "trap":
		if name == "command" && len(x.Args) > 1 && (x.Args[1].Lit() == "-v" || x.Args[1].Lit() == "-V") {
			return
		}
		c.st.forget()
	case "printf":
		w.blurPrintf(c, x.Args[1:])
	case "read", "mapfile", "readarray", "getopts", "unset", "wait", "export", "declare", "local", "typeset", "readonly":
		for _, arg := range x.Args[1:] {
			text, plain := onlyLit(arg)
			switch name := text[:len(text)-len(strings.TrimLeft(text, nameLetters))]; {
			case !plain, namesBehind(text), strings.ContainsRune(text, '{'):
				c.st.forget()
			case syntax.ValidName(name):
				w.blurName(c, name)
			}
		}
	}
}

const nameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

// namesBehind reports whether an option's word may also contain a name (read -rax), or whether the option can be
// written in another form.
func namesBehind(text string) bool {
	i := strings.IndexAny(text, "apv")
	return strings.HasPrefix(text, "-") && i > 0 && i < len(text)-1 || strings.ContainsRune(text, '\\')
}

// blurPrintf makes the variable of printf -v unknown.
func (w *walker) blurPrintf(c ctx, args []*syntax.Word) {
	if len(args) == 0 {
		return
	}
	option, sure := begins(args[0])
	switch {
	case sure && !strings.HasPrefix(option, "-"), option == "--":
	case sure && option == "-v" && len(args) > 1 && syntax.ValidName(args[1].Lit()):
		w.blurName(c, args[1].Lit())
	default:
		c.st.forget()
	}
}

// begins returns the literal text at the start of a word, and whether it is not empty.
func begins(word *syntax.Word) (string, bool) {
	part := word.Parts[0]
	if quoted, ok := part.(*syntax.DblQuoted); ok && len(quoted.Parts) > 0 {
		part = quoted.Parts[0]
	}
	text, sure := "", false
	switch p := part.(type) {
	case *syntax.Lit:
		text, sure = p.Value, strings.IndexAny(p.Value, `\{`) != 0
	case *syntax.SglQuoted:
		text, sure = p.Value, !p.Dollar
	}
	return text, sure && text != ""
}

// jumps reports whether statements may exit early, so that later assignments may not overwrite earlier ones.
func (w *walker) jumps(c ctx, list ...*syntax.Stmt) bool {
	found := false
	for _, s := range list {
		syntax.Walk(s, func(n syntax.Node) bool {
			call, ok := n.(*syntax.CallExpr)
			if !ok || len(call.Args) == 0 {
				return !found && w.spend(1)
			}
			name, plain := onlyLit(call.Args[0])
			_, isFunction := c.st.funcs[name]
			_, isAlias := c.st.aliases[name]
			switch name {
			case "break", "continue", "return", "eval", "builtin", "command", "source", ".":
				found = true
			}
			found = found || !plain || isFunction || isAlias || strings.ContainsRune(name, '\\')
			return !found && w.spend(1)
		})
	}
	return found
}

// blurArithm makes the variables that an arithmetic expression sets unknown.
func (w *walker) blurArithm(c ctx, x syntax.ArithmExpr) {
	if x == nil {
		return
	}
	syntax.Walk(x, func(n syntax.Node) bool {
		var target syntax.ArithmExpr
		switch x := n.(type) {
		case *syntax.BinaryArithm:
			if isAssignment(x.Op) {
				target = x.X
			}
		case *syntax.UnaryArithm:
			if x.Op == syntax.Inc || x.Op == syntax.Dec {
				target = x.X
			}
		}
		word, ok := target.(*syntax.Word)
		if !ok || len(word.Parts) == 0 {
			return w.spend(1)
		}
		switch p := word.Parts[0].(type) {
		case *syntax.Lit:
			c.st.set(p.Value, value{text: unknown, number: true})
		case *syntax.ParamExp:
			if p.Param != nil {
				c.st.set(p.Param.Value, value{text: unknown, number: p.Index == nil || c.st.numberIn(p.Param.Value)})
			}
		}
		return w.spend(1)
	})
}
