package action

import (
	"fmt"
	"slices"
	"strings"

	"github.com/samber/lo"
	"mvdan.cc/sh/v3/syntax"
)

// checkSyntax says why bash cannot read a text.
func checkSyntax(text string) error {
	_, err := parseBash(text)
	return err
}

func parseBash(text string) (*syntax.File, error) {
	return syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
}

// Lint finds variables that bash would take apart at spaces and wildcards, read as more than values, or not see at all.
func (s Shell) Lint() []Warning {
	file, err := parseBash(s.Text)
	if err != nil {
		return nil // Validate says so
	}
	l := &shellLint{text: s.Text}
	l.walk(file, split)
	slices.SortStableFunc(l.found, func(a, b Warning) int { return (a.Line-b.Line)*1_000_000 + a.Column - b.Column })
	return slices.Compact(l.found)
}

// shellLint is a text that is looked through.
type shellLint struct {
	text  string
	found []Warning
}

// where is what bash does to a value at a place in a text.
type where uint8

const (
	split  where = iota // it is taken apart, and wildcards are looked up
	whole               // it stays one value
	code                // it is run
	number              // it is computed, which can run what it says
)

// numbers are variables that are numbers, or nothing, whatever happens: there is nothing to take apart.
var numbers = []string{"ITERATION", "MAX_ITERATIONS", "LINENO", "RANDOM", "SECONDS", "EUID", "UID", "PPID", "OPTIND", "SHLVL", "BASHPID"}

// childNodes returns the nodes below one node.
func childNodes(node syntax.Node) []syntax.Node {
	var below []syntax.Node
	syntax.Walk(node, func(n syntax.Node) bool {
		if n == nil || n == node {
			return n == node
		}
		below = append(below, n)
		return false
	})
	return below
}

// walk looks at a node, and at what is below it.
func (l *shellLint) walk(node syntax.Node, at where) {
	switch n := node.(type) {
	case *syntax.ParamExp:
		l.param(n, at)
		for _, below := range childNodes(n) {
			l.walk(below, whole)
		}
		return
	case *syntax.SglQuoted:
		l.single(n)
	case *syntax.DblQuoted:
		at = max(at, whole)
	case *syntax.Assign:
		at = whole
		if n.Array != nil {
			at = split
		}
	case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause:
		at = number
	case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.Block, *syntax.Subshell:
		at = split
	case *syntax.TestClause:
		at = whole
	case *syntax.BinaryTest:
		if slices.Contains([]syntax.BinTestOperator{syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr}, n.Op) {
			at = number
		}
	case *syntax.CaseClause:
		l.walk(n.Word, whole)
		for _, item := range n.Items {
			for _, below := range childNodes(item) {
				_, pattern := below.(*syntax.Word) // which is not taken apart
				l.walk(below, lo.Ternary(pattern, whole, split))
			}
		}
		return
	case *syntax.Redirect:
		for _, below := range childNodes(n) {
			l.walk(below, whole) // a here-document, or one file
		}
		return
	case *syntax.CallExpr:
		l.call(n)
		return
	}
	for _, below := range childNodes(node) {
		l.walk(below, at)
	}
}

// call looks at a command, which may run its arguments.
func (l *shellLint) call(n *syntax.CallExpr) {
	for _, a := range n.Assigns {
		l.walk(a, whole)
	}
	name := ""
	if len(n.Args) > 0 {
		name = n.Args[0].Lit()
	}
	runs := name == "eval" || name == "source" || name == "." || name == "trap"
	for i, word := range n.Args {
		at := split
		if i > 0 && runs || i > 1 && isShell(name) && isC(n.Args[i-1].Lit()) {
			at = code
		}
		l.walk(word, at)
	}
}

func isShell(name string) bool {
	return slices.Contains([]string{"bash", "sh", "dash", "zsh", "ksh"}, name[strings.LastIndexByte(name, '/')+1:])
}

// harmless are variables of a shell's own that have nothing in them to take apart.
var harmless = []string{"?", "#", "$", "!", "-"}

// isC reports whether an argument of a shell says that a text follows.
func isC(argument string) bool {
	return strings.HasPrefix(argument, "-") && !strings.HasPrefix(argument, "--") && strings.HasSuffix(argument, "c")
}

// param looks at the use of a variable.
func (l *shellLint) param(n *syntax.ParamExp, at where) {
	if n.Param == nil || n.Length || n.Width {
		return // ${#x} is a number
	}
	name := n.Param.Value
	if slices.Contains(harmless, name) || slices.Contains(numbers, name) && at != code {
		return
	}
	var message string
	switch at {
	case split:
		if name == "*" || name == "@" {
			message = "quote it: \"$@\""
		} else {
			message = fmt.Sprintf("bash takes its value apart at spaces and looks up wildcards in it: write \"${%s}\"", name)
		}
	case code:
		message = "its value is run as a command: hand it over as an argument, such as bash -c 'use \"$1\"' - \"$" + name + "\""
	case number:
		message = "its value is computed, and what it says between brackets is run: make sure before that it is a number"
	default:
		return
	}
	l.say(n, message)
}

// single looks for variables where none are put in.
func (l *shellLint) single(n *syntax.SglQuoted) {
	for _, name := range named.FindAllStringSubmatch(n.Value, -1) {
		if slices.Contains(VariableNames(), name[1]) && !n.Dollar {
			l.say(n, fmt.Sprintf("${%s} between single quotes stays as it stands, for nothing is put into the text: use double quotes", name[1]))
		}
	}
}

func (l *shellLint) say(n syntax.Node, message string) {
	from, to := n.Pos(), n.End()
	l.found = append(l.found, Warning{
		Field: "command", Line: int(from.Line()), Column: int(from.Col()),
		Text: l.text[from.Offset():to.Offset()], Message: message,
	})
}
