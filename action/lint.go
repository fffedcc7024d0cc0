package action

import (
	"fmt"
	"slices"
	"strings"

	"github.com/samber/lo"
	"mvdan.cc/sh/v3/syntax"
)

// checkSyntax returns an error if bash cannot parse a text.
func checkSyntax(text string) error {
	_, err := parseBash(text)
	return err
}

func parseBash(text string) (*syntax.File, error) {
	return syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
}

// Lint returns warnings about variables that bash would split at spaces and wildcards, evaluate as code, or not expand.
func (s Shell) Lint() []Warning {
	file, err := parseBash(s.Text)
	if err != nil {
		return nil // Validate reports it
	}
	l := &shellLint{text: s.Text}
	l.walk(file, split)
	slices.SortStableFunc(l.found, func(a, b Warning) int { return (a.Line-b.Line)*1_000_000 + a.Column - b.Column })
	return slices.Compact(l.found)
}

// shellLint collects the warnings about one text.
type shellLint struct {
	text  string
	found []Warning
}

// where is how bash treats a value at a position in a text.
type where uint8

const (
	split  where = iota // splits it at spaces and expands wildcards
	whole               // keeps it as one value
	code                // runs it
	number              // evaluates it as arithmetic, which can run code in it
)

// numbers lists variables that are always numeric or empty, so bash cannot split them.
var numbers = []string{"ITERATION", "MAX_ITERATIONS", "LINENO", "RANDOM", "SECONDS", "EUID", "UID", "PPID", "OPTIND", "SHLVL", "BASHPID"}

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

// walk checks a node and its children.
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
				_, pattern := below.(*syntax.Word) // a pattern is not split
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

// call checks a command. The command may run its arguments.
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

// harmless lists special parameters whose values bash cannot split.
var harmless = []string{"?", "#", "$", "!", "-"}

// isC reports whether a shell argument, such as -c, says that the next argument is code.
func isC(argument string) bool {
	return strings.HasPrefix(argument, "-") && !strings.HasPrefix(argument, "--") && strings.HasSuffix(argument, "c")
}

// param checks the use of a variable.
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
			message = fmt.Sprintf("bash splits its value at spaces and expands wildcards in it: write \"${%s}\"", name)
		}
	case code:
		message = "its value is run as a command: pass it as an argument, such as bash -c 'use \"$1\"' - \"$" + name + "\""
	case number:
		message = "its value is evaluated as arithmetic, which can run commands in it: check first that it is a number"
	default:
		return
	}
	l.say(n, message)
}

// single warns about variables between single quotes, where bash expands nothing.
func (l *shellLint) single(n *syntax.SglQuoted) {
	for _, name := range named.FindAllStringSubmatch(n.Value, -1) {
		if slices.Contains(VariableNames(), name[1]) && !n.Dollar {
			l.say(n, fmt.Sprintf("${%s} is not expanded between single quotes: use double quotes", name[1]))
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
