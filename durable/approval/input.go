package approval

import (
	"errors"
	"net/http"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/inputform"
	"github.com/grapnel-go/grapnel/internal/markup"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// inputPrefix begins the names of the form fields with input.
const inputPrefix = "input."

// addInput sets the input of an approval: from JSON, or from the fields of a form.
func (q *question) addInput(a *agent.Approval, given said) error {
	r, asks := q.asked.Questions.Asked()
	fail := func(lines ...string) error {
		return refuse(http.StatusUnprocessableEntity, "The input does not fit. Nothing was decided.\n%s", strings.Join(lines, "\n"))
	}
	switch {
	case given.Input != nil && (!asks || a.Verdict != agent.Approve):
		return refuse(http.StatusUnprocessableEntity, "Input is possible only for what asks for it, together with an approval. Nothing was decided.")
	case !asks || a.Verdict != agent.Approve:
		return nil
	case given.Input != nil:
		text, err := strictjson.Compact(string(given.Input))
		if err != nil {
			return fail(visible(err.Error()))
		}
		a.Input = text
	case len(given.fields) > 0 && r.Schema != "":
		form, err := inputform.Parse(r.Schema)
		if err != nil {
			return err
		}
		text, problems := form.Content(given.fields)
		if len(problems) > 0 {
			return fail(lo.Map(problems, func(p inputform.Problem, _ int) string { return visible(p.Field + ": " + p.Text) })...)
		}
		a.Input = text
	}
	err := q.asked.CheckInput(*a)
	if invalid, ok := errors.AsType[*agent.ArgumentsError](err); ok {
		return fail(lo.Map(invalid.Problems, func(p agent.ArgumentProblem, _ int) string { return visible(p.String()) })...)
	}
	return err
}

// putInput shows what a tool asks for, as a form with the values that were sent.
func (r reply) putInput(p *markup.Page, asked *agent.InputRequest) {
	p.Put("<fieldset>\n<legend>%s asks</legend>\n<blockquote class=\"text\">%s</blockquote>\n", visible(asked.By), visible(asked.Message))
	p.PutIf(asked.URL != "", "<p>It wants you to visit <code>%s</code>. Check the address before you copy it.</p>\n", visible(asked.URL))
	p.Put("<p class=\"dim\">The text and the fields come from outside of this program. What you enter is sent there.</p>\n")
	var form inputform.Form
	if asked.Schema != "" {
		form, _ = inputform.Parse(asked.Schema) // it was read when it was asked
	}
	for i, f := range form.Fields {
		values, sent := r.said.fields[f.Name]
		if !sent && len(r.said.fields) == 0 {
			values = f.Initial()
		}
		putField(p, i, f, values)
	}
	p.Put("</fieldset>\n")
}

// putField shows a field with its values.
func putField(p *markup.Page, i int, f inputform.Field, values []string) {
	name, value := inputPrefix+f.Name, strings.Join(values, "")
	label := func() {
		p.Put(`<label for="input-%d">%s`, i, visible(f.Label()))
		p.PutIf(f.Required, ` <span class="mark">required</span>`)
		p.PutIf(f.Hint() != "", ` <span class="dim">%s</span>`, visible(f.Hint()))
		p.Put("</label>\n")
	}
	option := func(tag, value, text string, on bool) {
		p.Put(`<`+tag+` value="%s"`, value)
		switch {
		case tag != "option":
			p.Put(` name="%s"`, name)
			p.PutIf(on, " checked")
			p.Put("> %s</label>\n", visible(text))
		default:
			p.PutIf(on, " selected")
			p.Put(">%s</option>\n", visible(text))
		}
	}
	switch f.Kind {
	case inputform.Yes:
		label()
		p.Put(`<input id="input-%d" type="checkbox" value="true" name="%s"`, i, name)
		p.PutIf(value == "true", " checked")
		p.Put(">\n")
	case inputform.Choice:
		label()
		p.Put("<select id=\"input-%d\" name=\"%s\">\n<option value=\"\"></option>\n", i, name)
		for _, o := range f.Options {
			option("option", o.Value, o.Label, value == o.Value)
		}
		p.Put("</select>\n")
	case inputform.Choices:
		label()
		p.Put("<div id=\"input-%d\">\n", i)
		for _, o := range f.Options {
			p.Put("<label>")
			option(`input type="checkbox"`, o.Value, o.Label, lo.Contains(values, o.Value))
		}
		p.Put("</div>\n")
	case inputform.Number, inputform.Integer:
		label()
		p.Put(`<input id="input-%d" inputmode="decimal" name="%s" value="%s">`+"\n", i, name, value)
	case inputform.Text:
		label()
		p.Put(`<input id="input-%d" name="%s" value="%s">`+"\n", i, name, value)
	}
}

// acceptLabel returns the label of the button that accepts.
func acceptLabel(asked *agent.InputRequest) string {
	if asked.Schema == "" {
		return "Accept"
	}
	return "Send this"
}
