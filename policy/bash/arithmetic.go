package bash

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Bash evaluates some strings twice. In arithmetic it takes a variable's value as an expression and expands the array
// indexes in it, so x='a[$(id)]'; ((x)) runs id. Therefore arithmetic is opaque unless its text is known to be a
// number or a plain expression. The same holds for assignments to integer variables.

// maxEvaluations limits how far evaluate follows the values of variables in expressions.
const maxEvaluations = 8

var (
	integer = lazyRegexp(`^[-+]?[0-9]*$`)
	// expressionWords matches an expression's names and numbers; 0x1f and 16#ff are numbers, not names.
	expressionWords = lazyRegexp(`[0-9][0-9A-Za-z_@#]*|[A-Za-z_][A-Za-z0-9_]*`)
)

// isNumber reports whether the variable is known to be a number or empty.
func (v value) isNumber() bool {
	if v.array {
		for _, element := range v.list {
			if !integer().MatchString(element) {
				return false
			}
		}
		return true
	}
	return v.number || isKnown(v.text) && integer().MatchString(v.text)
}

// numberIn reports whether a variable that the line sets is a number. It trusts variables that the line does not set,
// because their values come from the environment.
func (s *state) numberIn(name string) bool {
	v, found := s.vars[name]
	return !found && name != "REPLY" && name != "OPTARG" || v.isNumber() || isIntegerVariable(name)
}

// isIntegerVariable reports whether bash itself declares the variable as an integer, so that it evaluates assigned
// values.
func isIntegerVariable(name string) bool {
	switch name {
	case "RANDOM", "SRANDOM", "SECONDS", "LINENO", "HISTCMD", "BASHPID", "OPTIND", "OPTERR", "PPID", "UID", "EUID", "BASH_SUBSHELL", "EPOCHSECONDS", "MAILCHECK",
		"COMP_CWORD", "COMP_POINT", "COMP_TYPE", "COMP_KEY", "READLINE_POINT", "READLINE_MARK", "SHLVL", "COLUMNS", "LINES", "HISTSIZE", "HISTFILESIZE", "TMOUT":
		return true
	}
	return false
}

// setVariable sets a variable. If the variable is an integer, it also walks the arithmetic in the value.
func (w *walker) setVariable(c ctx, name string, v value, at int) {
	w.remember(name, append(slices.Clip(v.list), v.text)...)
	if c.st.vars[name].integer || isIntegerVariable(name) {
		switch {
		case v.array:
			for _, element := range v.list {
				w.walkArithmetic(c, element, at)
			}
		case !v.number:
			w.walkArithmetic(c, v.text, at)
		}
		v.number = true
	}
	c.st.set(name, v)
}

// walkArithmetic walks text that bash evaluates as an arithmetic expression.
func (w *walker) walkArithmetic(c ctx, text string, at int) { w.evaluate(c, text, at, maxEvaluations) }

// evaluate walks text that bash evaluates: $((text)), arr[text], let text. It also evaluates the values of names in
// the text, so x='a[$(reboot)]'; echo $((x)) reaches reboot. Invariant: text is opaque unless it is a number, a known
// plain expression, or a name whose value is one of these. Depth limits how many names are followed.
func (w *walker) evaluate(c ctx, text string, at, depth int) {
	if integer().MatchString(text) || !w.spend(len(text)/16+1) {
		return
	}
	if strings.ContainsRune(text, '[') && strings.ContainsAny(text, "$`\\") {
		w.opaque(c, at, -1, OpaqueText, "the index of an array is expanded when bash evaluates it as arithmetic")
		w.document(c.by(Eval, "arithmetic", at), strings.ReplaceAll(text, unknown, "0"), at)
		return
	}
	if !isKnown(text) {
		w.opaque(c, at, -1, OpaqueText, "bash evaluates unknown text as arithmetic, which may run commands in it")
		return
	}
	for _, name := range expressionWords().FindAllString(text, -1) {
		v, found := c.st.vars[name]
		switch {
		case name[0] >= '0' && name[0] <= '9', !found, v.isNumber(), isIntegerVariable(name):
		case depth == 0:
			w.opaque(c, at, -1, OpaqueText, "an expression names variables that name variables")
		case v.array:
			for _, element := range v.list {
				w.evaluate(c, element, at, depth-1)
			}
		case v.text != text:
			w.evaluate(c, v.text, at, depth-1)
		}
	}
}

// makesNumber reports whether a word always expands to a number or nothing. With a nil state, this must hold for any
// values of variables; otherwise for the state's known values.
func makesNumber(st *state, word *syntax.Word) bool {
	if word == nil {
		return true
	}
	for _, p := range word.Parts {
		if !partMakesNumber(st, p) {
			return false
		}
	}
	return true
}

// partMakesNumber reports whether part of a word always expands to a number: 5, "$((i+1))", $(wc -l <x).
func partMakesNumber(st *state, part syntax.WordPart) bool {
	switch x := part.(type) {
	case *syntax.Lit:
		return integer().MatchString(x.Value)
	case *syntax.SglQuoted:
		return integer().MatchString(x.Value)
	case *syntax.ArithmExp:
		return true
	case *syntax.DblQuoted:
		for _, p := range x.Parts {
			if !partMakesNumber(st, p) {
				return false
			}
		}
		return true
	case *syntax.CmdSubst:
		return printsNumbers(st, x)
	case *syntax.ParamExp:
		return paramMakesNumber(st, x)
	}
	return false
}

// paramMakesNumber reports whether a parameter always expands to a number: $#, ${#x}, $i after i=0, ${n:-5}.
func paramMakesNumber(st *state, x *syntax.ParamExp) bool {
	switch {
	case x.Param == nil || x.Excl:
		return false
	case x.Length:
		return true
	}
	name := x.Param.Value
	holds := name == "#" || name == "?" || name == "$" || name == "!" || isIntegerVariable(name)
	if st != nil && !holds {
		v, found := st.vars[name]
		switch {
		case x.Index != nil && indexLit(x) != "0":
			holds = found && v.isNumber()
		case syntax.ValidName(name):
			holds = st.numberIn(name)
		default:
			holds = st.parameterIsNumber(name)
		}
	}
	if !holds || isWhole(x) {
		return holds
	}
	if x.Exp != nil {
		switch x.Exp.Op {
		case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull, syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
			return makesNumber(st, x.Exp.Word)
		}
	}
	return false
}

// parameterIsNumber reports whether $1, $2 … is known to be a number.
func (s *state) parameterIsNumber(name string) bool {
	n, ok := parameterIndex(name)
	if !ok || s.noParams || n == 0 {
		return false
	}
	for i, p := range s.params {
		if p.Many || p.Kind == Pattern {
			return false
		}
		if i == n-1 {
			return p.Kind == Literal && integer().MatchString(p.Text)
		}
	}
	return true
}

// parameterIndex returns the number of a positional parameter: 1 for $1, 12 for ${12}.
func parameterIndex(name string) (int, bool) {
	if len(name) == 0 || len(name) > 4 || !integer().MatchString(name) || name[0] == '-' || name[0] == '+' {
		return 0, false
	}
	n := 0
	for _, digit := range name {
		n = n*10 + int(digit-'0')
	}
	return n, true
}

var numericDate = lazyRegexp(`^\+(%-?[sNYymdHMSjuwVCGk]|[0-9-])+$`)

// printsNumbers reports whether a substitution's output consists of numbers and blanks: $(wc -l < x), $(date +%s),
// $(seq 3).
func printsNumbers(st *state, x *syntax.CmdSubst) bool {
	if len(x.Stmts) != 1 {
		return false
	}
	s := x.Stmts[0]
	for {
		pipe, ok := s.Cmd.(*syntax.BinaryCmd)
		if !ok {
			break
		}
		if pipe.Op != syntax.Pipe {
			return false
		}
		s = pipe.Y
	}
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 || len(call.Assigns) > 0 {
		return false
	}
	args := make([]string, len(call.Args))
	for i, word := range call.Args {
		text, literal := literalText(word)
		if !literal {
			text = unknown
		}
		args[i] = text
	}
	if st != nil {
		if _, found := st.funcs[args[0]]; found || len(st.aliases) > 0 {
			return false
		}
	}
	for _, r := range s.Redirs {
		if r.Op != syntax.RdrIn && r.Op != syntax.WordHdoc && r.Op != syntax.Hdoc && r.Op != syntax.DashHdoc && (r.N == nil || r.N.Value != "2") {
			return false
		}
	}
	return numericOutput(args)
}

// numericOutput reports whether a program with these arguments prints only numbers: wc -l, id -u, date +%s.
func numericOutput(args []string) bool {
	option := func(letters string) bool {
		for _, a := range args[1:] {
			if !strings.HasPrefix(a, "-") || a == "-" || strings.Trim(a[1:], letters) != "" {
				return false
			}
		}
		return len(args) > 1
	}
	switch args[0] {
	case "wc":
		return option("lcwm")
	case "nproc":
		return len(args) == 1
	case "id":
		return len(args) == 2 && (args[1] == "-u" || args[1] == "-g")
	case "pgrep":
		return len(args) > 1 && args[1] != "-l" && args[1] != "-a" && !strings.HasPrefix(args[1], unknown)
	case "date":
		return len(args) == 2 && numericDate().MatchString(args[1])
	case "seq":
		for _, a := range args[1:] {
			if a == unknown || !integer().MatchString(a) {
				return false
			}
		}
		return true
	case "grep":
		return len(args) == 3 && args[1] == "-c" && !strings.HasPrefix(args[2], "-") && !strings.HasPrefix(args[2], unknown)
	case "tput":
		return len(args) == 2 && (args[1] == "cols" || args[1] == "lines")
	}
	return false
}

// literalText returns a word's text if it has no expansions.
func literalText(word *syntax.Word) (string, bool) {
	var b strings.Builder
	for _, p := range word.Parts {
		switch x := p.(type) {
		case *syntax.Lit:
			if strings.ContainsAny(x.Value, `\~*?[{`) {
				return "", false
			}
			b.WriteString(x.Value)
		case *syntax.SglQuoted:
			if x.Dollar {
				return "", false
			}
			b.WriteString(x.Value)
		case *syntax.DblQuoted:
			for _, q := range x.Parts {
				lit, ok := q.(*syntax.Lit)
				if !ok || strings.ContainsRune(lit.Value, '\\') {
					return "", false
				}
				b.WriteString(lit.Value)
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}

// listsNumbers reports whether a word of a for loop expands to numbers: 3, {1..20}, $(seq 9), "${!list[@]}".
func listsNumbers(st *state, word *syntax.Word) bool {
	if makesNumber(st, word) {
		return true
	}
	if len(word.Parts) != 1 {
		return false
	}
	part := word.Parts[0]
	if quoted, ok := part.(*syntax.DblQuoted); ok && len(quoted.Parts) == 1 {
		part = quoted.Parts[0]
	}
	switch x := part.(type) {
	case *syntax.Lit:
		return numericSequence().MatchString(x.Value)
	case *syntax.ParamExp:
		if index := indexLit(x); x.Param != nil && (index == "@" || index == "*") {
			v, found := st.vars[x.Param.Value]
			return !found || !v.assoc && (x.Excl && v.array || !x.Excl && !x.Length && x.Exp == nil && x.Repl == nil && v.isNumber())
		}
	}
	return false
}

var numericSequence = lazyRegexp(`^\{-?[0-9]+\.\.-?[0-9]+(\.\.-?[0-9]+)?\}$`)

// index walks an array index. Bash does not evaluate the indexes of associative arrays.
func (w *walker) index(c ctx, name string, x syntax.ArithmExpr) {
	if !c.st.vars[name].assoc {
		w.arithm(c, x)
		return
	}
	syntax.Walk(x, func(n syntax.Node) bool {
		word, ok := n.(*syntax.Word)
		if ok {
			w.value(c, word, false)
		}
		return !ok && w.spend(1)
	})
}
