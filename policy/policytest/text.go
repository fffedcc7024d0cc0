package policytest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/hooks"
)

// decisionLine tells the decision in one line: what, by whom, why.
func (r *Report) decisionLine() string {
	var b strings.Builder
	b.WriteString(lo.Ternary(r.Failed, SaidFailed, string(r.Decision)))
	if r.Rule != "" {
		b.WriteString(" by " + r.Rule)
	}
	if r.Reason != "" {
		b.WriteString(": " + r.Reason)
	} else if r.Failed && r.Error != "" {
		b.WriteString(": " + r.Error)
	}
	return b.String()
}

// Text returns why the decision is what it is, as a tree for people: the rules in the order in
// which they were asked, with what each of them said, and the values of their conditions.
// Paint, unless nil, puts colour around a word: it is given the word and what it stands for, a
// decision or what a rule said.
func (r *Report) Text(paint func(word, as string) string) string {
	if paint == nil {
		paint = func(word, _ string) string { return word }
	}
	t := tree{paint: paint}
	head := string(r.Point)
	if r.Tool != "" {
		arguments := string(r.Arguments)
		if r.Original != nil {
			arguments = string(r.Original)
		}
		head += ": " + strings.TrimSpace(r.Tool+" "+shortenText(arguments, 200))
	}
	t.line("", "%s", head)
	t.line("", "%s", t.paintWord(r.decisionLine(), string(r.Decision), r.Failed))
	if len(r.Rules) == 0 {
		t.line("", "no rule is asked at %s", r.Point)
	}
	for i, s := range r.Rules {
		t.rule(s, i == len(r.Rules)-1)
	}
	if r.Original != nil {
		t.line("", "%s %s", lo.Ternary(lo.FromPtr(r.Ran), "it would run with", "the arguments were rewritten to"), r.Arguments)
	}
	if r.Told != "" {
		t.line("", "the model is told: %s", r.Told)
	}
	for _, text := range r.Context {
		t.line("", "the model is told besides: %s", text)
	}
	return t.String()
}

// tree is text that is written line by line.
type tree struct {
	strings.Builder

	paint func(word, as string) string
}

// paintWord returns a line whose first word has a colour.
func (t *tree) paintWord(line, as string, failed bool) string {
	first, rest, _ := strings.Cut(line, " ")
	end := strings.TrimSuffix(first, ":")
	return t.paint(end, lo.Ternary(failed, SaidFailed, as)) + first[len(end):] + lo.Ternary(rest == "", "", " "+rest)
}

func (t *tree) line(branch, format string, args ...any) {
	text := strings.TrimSuffix(fmt.Sprintf(format, args...), "\n")
	indent := strings.TrimRight(strings.NewReplacer("├─", "│ ", "└─", "  ").Replace(branch), "") + "   "
	fmt.Fprintf(t, "%s%s\n", branch, strings.ReplaceAll(text, "\n", "\n"+indent))
}

// rule writes a rule with what it said.
func (t *tree) rule(s Said, last bool) {
	branch, below := "├─ ", "│  "
	if last {
		branch, below = "└─ ", "   "
	}
	word := map[string]string{SaidNotAsked: "not asked", SaidSkip: "skipped"}[s.Said]
	word = t.paint(lo.CoalesceOrEmpty(word, s.Said), s.Said)
	if s.Shadow && s.Said != SaidNotAsked && s.Said != SaidSkip {
		word += " in shadow"
	}
	t.line(branch, "%s  %s%s", s.Rule, word, reasonOf(s))
	if s.Said == SaidNotAsked {
		return
	}
	for _, text := range s.Unmatched {
		t.line(below, "it is not about this: %s", text)
	}
	for i, f := range s.Facts {
		mark := "   "
		if i == 0 || f.Value == "true" || f.Value == "false" {
			mark = ""
		}
		t.line(below+mark, "%s = %s", f.Name, f.Value)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Origins)) {
		t.line(below, "args.%s: %s", name, s.Origins[name])
		for _, part := range s.Origins[name].Parts {
			t.line(below, "   %s", part)
		}
	}
	if s.Action != "" && s.Said != SaidSkip {
		t.line(below, "it does: %s", s.Action)
	}
	if s.After != nil {
		t.line(below, "before  %s", s.Before)
		t.line(below, "after   %s", s.After)
	}
	if s.Attempts > 1 {
		t.line(below, "asked %d times", s.Attempts)
	}
	if s.OnFailure != "" {
		t.line(below, "on failure: %s", s.OnFailure)
	}
	if s.Said != string(hooks.Pass) && s.Said != SaidSkip {
		t.line(below, "%s:%d", s.File, s.Line)
	}
}

func reasonOf(s Said) string {
	switch {
	case s.Error != "":
		return ": " + s.Error
	case s.Reason != "":
		return ": " + s.Reason
	case s.Said == string(hooks.Pass) && s.Holds != nil && !*s.Holds:
		return ": its condition is false"
	}
	return ""
}

func shortenText(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}
