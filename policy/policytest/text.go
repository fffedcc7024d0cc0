package policytest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/hooks"
)

// decisionLine returns the decision in one line, with its rule and reason.
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

// Text returns an explanation of the decision as a tree for people: the rules in the order in which they were asked,
// with their results and the values in their conditions. Paint, unless nil, adds colour to a word. It receives the
// word and its meaning: a decision or a rule's result.
func (r *Report) Text(paint func(word, as string) string) string {
	if paint == nil {
		paint = func(word, _ string) string { return word }
	}
	t := tree{paint: paint}
	t.head(r)
	if len(r.Rules) == 0 {
		t.line("", "no rule is asked at %s", r.Point)
	}
	for i, s := range r.Rules {
		t.rule(s, i == len(r.Rules)-1)
	}
	t.outcome(r)
	return t.String()
}

// Summary returns the deciding rule with its place and facts, then the other rules with an opinion, and the number of
// rules without one. Width is the maximum number of columns; 0 means no limit. Paint works as in Text, which shows
// everything.
func (r *Report) Summary(paint func(word, as string) string, width int) string {
	if paint == nil {
		paint = func(word, _ string) string { return word }
	}
	t := tree{paint: paint, width: width}
	t.head(r)
	decider, found := lo.Find(r.Rules, func(s Said) bool { return s.Rule == r.Rule && r.Rule != "" })
	if found {
		t.line("   ", "at %s:%d:%d", decider.File, decider.Line, decider.Column)
		t.details("   ", decider)
	}
	t.outcome(r)
	none := 0
	for _, s := range r.Rules {
		switch {
		case found && s.Rule == r.Rule:
		case s.Said == SaidSkip || s.Said == SaidNotAsked || s.Said == string(hooks.Pass):
			none++
		default:
			t.rule(s, true)
		}
	}
	if advice := r.advice(decider, found); advice != "" {
		t.wrap("advice: " + advice)
	}
	switch {
	case len(r.Rules) == 0:
		t.line("", "no rule is asked at %s", r.Point)
	case none > 0:
		t.wrap(fmt.Sprintf("%d of %d rules had no opinion or were not asked: --all shows them", none, len(r.Rules)))
	}
	return t.String()
}

// advice returns a hint for the policy's author.
func (r *Report) advice(decider Said, found bool) string {
	switch {
	case !found:
		return ""
	case r.Failed:
		return "the rule could not decide. Check in its condition that the values exist, or set on_failure."
	case strings.HasPrefix(decider.File, "library:"):
		return "the rule is part of the library: a policy that includes it can set its variables, see docs/policy-library.md."
	case r.Decision == hooks.Deny || r.Decision == hooks.Ask || r.Decision == hooks.StopRun:
		return "change the rule at this place; mode: shadow or a waiver there lets calls through in the meantime."
	}
	return ""
}

// head writes the event and the decision.
func (t *tree) head(r *Report) {
	head := string(r.Point)
	if r.Tool != "" {
		arguments := r.Arguments
		if r.Original != nil {
			arguments = r.Original
		}
		head += ": " + strings.TrimSpace(r.Tool+" "+shortenText(readableJSON(arguments), 200))
	}
	t.line("", "%s", head)
	t.line("", "%s", t.paintWord(r.decisionLine(), string(r.Decision), r.Failed))
}

// outcome writes the call's result.
func (t *tree) outcome(r *Report) {
	if r.Original != nil {
		t.line("", "%s %s", lo.Ternary(lo.FromPtr(r.Ran), "it would run with", "the arguments were rewritten to"), readableJSON(r.Arguments))
	}
	if r.Told != "" {
		t.wrap("the model is told: " + r.Told)
	}
	for _, text := range r.Context {
		t.wrap("the model is also told: " + text)
	}
}

// readableJSON returns JSON with &, < and > unescaped; encoding/json writes them as \u0026, \u003c and \u003e.
func readableJSON(raw []byte) string {
	var b strings.Builder
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' || i+1 == len(raw) {
			b.WriteByte(raw[i])
			continue
		}
		if i+6 <= len(raw) {
			if letter, ok := map[string]byte{`\u0026`: '&', `\u003c`: '<', `\u003e`: '>'}[strings.ToLower(string(raw[i:i+6]))]; ok {
				b.WriteByte(letter)
				i += 5
				continue
			}
		}
		b.Write(raw[i : i+2]) // an escaped backslash does not start another escape
		i++
	}
	return b.String()
}

// tree is text that is written line by line.
type tree struct {
	strings.Builder

	paint func(word, as string) string
	width int // of a line; 0 means no limit
}

// wrap writes text in lines that fit. It indents all lines except the first.
func (t *tree) wrap(text string) {
	if t.width <= 0 {
		t.line("", "%s", text)
		return
	}
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > t.width {
			t.line("", "%s", line)
			line = "  "
		} else if line != "" {
			line += " "
		}
		line += word
	}
	t.line("", "%s", line)
}

// paintWord returns a line with its first word coloured.
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

// rule writes a rule with its result.
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
	t.details(below, s)
	if s.Said != string(hooks.Pass) && s.Said != SaidSkip {
		t.line(below, "%s:%d:%d", s.File, s.Line, s.Column)
	}
}

// details writes the facts behind a rule's result.
func (t *tree) details(below string, s Said) {
	for _, text := range s.Unmatched {
		t.line(below, "it is not about this: %s", text)
	}
	for i, f := range s.Facts {
		mark := "   "
		if i == 0 || f.Value == "true" || f.Value == "false" {
			mark = ""
		}
		t.fact(below+mark, f)
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
	if s.Needs != "" && s.Said == string(hooks.Ask) {
		t.line(below, "%s", s.Needs)
	}
	if s.After != nil {
		t.line(below, "before  %s", readableJSON(s.Before))
		t.line(below, "after   %s", readableJSON(s.After))
	}
	if s.Attempts > 1 {
		t.line(below, "asked %d times", s.Attempts)
	}
	if s.OnFailure != "" {
		t.line(below, "on failure: %s", s.OnFailure)
	}
}

// fact writes a value. In a narrow tree it shortens the name and the value.
func (t *tree) fact(branch string, f hooks.Fact) {
	name, value := f.Name, f.Value
	if room := t.width - len([]rune(branch)) - len(" = "); t.width > 0 && len([]rune(name+value)) > room {
		value = shortenText(value, max(room/2, room-len([]rune(name))-1))
		name = shortenText(name, max(0, room-len([]rune(value))-1))
	}
	t.line(branch, "%s = %s", name, value)
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
