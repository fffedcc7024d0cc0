package action

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// parses says why bash cannot read a text.
func parses(text string) error {
	_, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	return err
}

// Lint finds variables that bash would take apart, or read as more than values.
func (s Shell) Lint() []Warning { return lintShell(s.Text) }

func lintShell(string) []Warning { return nil }
