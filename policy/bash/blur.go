package bash

import (
	"mvdan.cc/sh/v3/syntax"
)

// blurLoop forgets, before the body of a loop is walked, what an earlier round of it
// may have changed.
func (w *walker) blurLoop(c ctx, lists ...[]*syntax.Stmt) {
	for _, list := range lists {
		for _, s := range list {
			syntax.Walk(s, func(n syntax.Node) bool {
				if n == nil {
					return true
				}
				w.blurNode(c, n)
				return w.spend(1)
			})
		}
	}
}

func (w *walker) blurNode(c ctx, n syntax.Node) {
	switch x := n.(type) {
	case *syntax.Assign:
		if x.Name != nil {
			w.blurName(c, x.Name.Value)
		}
	case *syntax.BinaryArithm, *syntax.UnaryArithm:
		if e, ok := x.(syntax.ArithmExpr); ok {
			w.blurArithm(c, e)
		}
	case *syntax.ParamExp:
		if x.Exp != nil && (x.Exp.Op == syntax.AssignUnset || x.Exp.Op == syntax.AssignUnsetOrNull) && x.Param != nil {
			w.blurName(c, x.Param.Value)
		}
	case *syntax.WordIter:
		w.blurName(c, x.Name.Value)
	case *syntax.FuncDecl:
		if x.Name != nil {
			c.st.own()
			if f, found := c.st.funcs[x.Name.Value]; found {
				c.st.funcs[x.Name.Value] = f.or(function{bodies: []*syntax.FuncDecl{x}, from: []source{c.src}})
			}
		}
	case *syntax.CallExpr:
		w.blurCall(c, x)
	}
}

func (w *walker) blurName(c ctx, name string) {
	c.st.set(name, value{text: unknown})
	if name == "HOME" {
		c.st.home = unknown
	}
}

func (w *walker) blurCall(c ctx, x *syntax.CallExpr) {
	if len(x.Args) == 0 {
		return
	}
	name, plain := onlyLit(x.Args[0])
	_, isFunction := c.st.funcs[name]
	_, isAlias := c.st.aliases[name]
	switch {
	case !plain, isFunction, isAlias, name == "":
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
	case "read", "printf", "mapfile", "readarray", "getopts", "unset", "wait", "export", "declare", "local", "typeset", "readonly":
		for _, arg := range x.Args[1:] {
			if text, plain := onlyLit(arg); plain {
				if syntax.ValidName(text) {
					w.blurName(c, text)
				}
			} else if name != "printf" {
				c.st.forget()
			}
		}
	}
}

// blurArithm forgets the variables that an arithmetic expression sets.
func (w *walker) blurArithm(c ctx, x syntax.ArithmExpr) {
	if x == nil {
		return
	}
	syntax.Walk(x, func(n syntax.Node) bool {
		var target syntax.ArithmExpr
		switch x := n.(type) {
		case *syntax.BinaryArithm:
			if assigns(x.Op) {
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
			w.blurName(c, p.Value)
		case *syntax.ParamExp:
			if p.Param != nil {
				w.blurName(c, p.Param.Value)
			}
		}
		return w.spend(1)
	})
}
