package agents

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/internal/inputform"
)

// ReadInput returns the values of --input as one JSON object: it is one already, or has the form name=value.
func ReadInput(i agent.Intervention, values []string) (string, error) {
	r, asks := i.Questions.Asked()
	switch {
	case len(values) == 0:
		return "", nil
	case !asks:
		return "", console.Usagef("--input: the call asks for no input")
	case len(values) == 1 && strings.HasPrefix(strings.TrimSpace(values[0]), "{"):
		return values[0], nil
	case r.Schema == "":
		return "", console.Usagef("--input: only an approval or a rejection is asked for")
	}
	form, err := inputform.Parse(r.Schema)
	if err != nil {
		return "", err
	}
	texts := map[string][]string{}
	for _, one := range values {
		name, value, ok := strings.Cut(one, "=")
		if !ok {
			return "", console.Usagef("--input is %q: it must be a JSON object, or name=value", one)
		}
		texts[name] = append(texts[name], value)
	}
	content, problems := form.Content(texts)
	if len(problems) > 0 {
		lines := lo.Map(problems, func(p inputform.Problem, _ int) string { return "\n  " + p.Field + ": " + p.Text })
		return "", console.Usagef("the input does not fit; nothing was recorded:%s", strings.Join(lines, ""))
	}
	return content, nil
}

// DescribeInput returns what a tool asks for, as lines.
func DescribeInput(r *agent.InputRequest) string {
	lines := []string{fmt.Sprintf("%q", r.Message)}
	if r.URL != "" {
		lines = append(lines, "to visit: "+r.URL)
	}
	var form inputform.Form
	if r.Schema != "" {
		form, _ = inputform.Parse(r.Schema) // it was read when it was asked
	}
	for _, f := range form.Fields {
		lines = append(lines, fmt.Sprintf("%s (%s)", f.Name, describeField(f)))
	}
	return strings.Join(lines, "\n")
}

// describeField returns the kind of a field, what it is for and what it allows.
func describeField(f inputform.Field) string {
	label := lo.Ternary(f.Label() == f.Name, "", f.Label())
	options := strings.Join(lo.Map(f.Options, func(o inputform.Option, _ int) string {
		return lo.Ternary(o.Value == o.Label, o.Value, o.Value+" = "+o.Label)
	}), ", ")
	return strings.Join(lo.Compact([]string{string(f.Kind), lo.Ternary(f.Required, "required", ""), label, f.Hint(), options}), "; ")
}

// askInput asks the person at the terminal for the input that a tool needs.
func (in *Input) askInput(ctx context.Context, v *View, c agent.ToolCall, q agent.Questions, r agent.InputRequest) (agent.Approval, error) {
	v.question(c, q)
	v.Note(timeline.Clean(DescribeInput(&r)))
	in.Keys.Forget(in.Std.In) // earlier input does not answer this question
	in.Renew()
	interrupted := agent.Approval{Verdict: agent.RejectAndEnd, By: Person, Reason: "interrupted"}
	accept := lo.Ternary(r.Schema == "", "accept", "answer it")
	text, ends, err := in.answerLine(ctx, "  y = "+accept+", n = decline, e = end the run: ")
	if err != nil || ends {
		return interrupted, err
	}
	answer := repetition(text)
	if answer.Verdict != agent.Approve || r.Schema == "" {
		return answer, nil
	}
	form, err := inputform.Parse(r.Schema)
	if err != nil {
		return answer, err
	}
	texts, tries := map[string][]string{}, 0
	for i := 0; i < len(form.Fields); {
		f := form.Fields[i]
		initial := f.Initial()
		prompt := "  " + timeline.Clean(f.Label()) + lo.Ternary(len(initial) > 0, " ["+timeline.Clean(strings.Join(initial, ", "))+"]", "") + ": "
		text, ends, err := in.answerLine(ctx, prompt)
		if err != nil || ends {
			return interrupted, err
		}
		texts[f.Name] = fieldTexts(f, strings.TrimSpace(text), initial)
		if wrong := problemOf(form, f, texts); wrong != "" {
			v.Note(timeline.Clean(f.Label() + ": " + wrong))
			if tries++; tries >= maxTries { // such as at the end of the input
				return agent.Approval{Verdict: agent.RejectAndContinue, By: Person}, nil
			}
			continue
		}
		i++
	}
	answer.Input, _ = form.Content(texts)
	return answer, nil
}

// maxTries is how often a person may enter what does not fit; then the request is declined.
const maxTries = 10

// fieldTexts returns the texts of a field that a person typed: the proposed ones for an empty line, and the options
// between commas for choices.
func fieldTexts(f inputform.Field, text string, initial []string) []string {
	switch {
	case text == "":
		return initial
	case f.Kind == inputform.Choices:
		return lo.Map(strings.Split(text, ","), func(one string, _ int) string { return optionOf(f, strings.TrimSpace(one)) })
	case f.Kind == inputform.Choice:
		return []string{optionOf(f, text)}
	}
	return []string{text}
}

// optionOf returns the option that a person named by its value, its label or its number.
func optionOf(f inputform.Field, text string) string {
	for _, o := range f.Options {
		if o.Value == text || strings.EqualFold(o.Label, text) {
			return o.Value
		}
	}
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(f.Options) {
		return f.Options[n-1].Value
	}
	return text
}

// problemOf returns what is wrong with a field; empty if nothing is.
func problemOf(form inputform.Form, f inputform.Field, texts map[string][]string) string {
	content, problems := form.Content(texts)
	problems = append(problems, form.Check(content)...)
	p, _ := lo.Find(problems, func(p inputform.Problem) bool { return p.Field == f.Name })
	return p.Text
}
