package web

import (
	"fmt"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/durable/approval"
	"github.com/grapnel-go/grapnel/internal/inputform"
	"github.com/grapnel-go/grapnel/internal/invisible"
	"github.com/grapnel-go/grapnel/internal/markup"
)

// putInput shows what a tool asks for, as fields with the values that were sent.
func putInput(out *markup.Page, c card, id string) {
	q := c.Question.Input
	out.Put("<fieldset><legend>%s asks</legend>\n<p class=\"text\">%s</p>\n", invisible.Escape(q.By), invisible.Escape(q.Message))
	out.PutIf(q.URL != "", "<p>It wants you to visit <code>%s</code>. Check the address before you copy it.</p>\n", invisible.Escape(q.URL))
	out.Put("<p class=\"dim\">The text and the fields come from outside of this program. What you enter is sent there.</p>\n")
	var form inputform.Form
	if q.Schema != "" {
		form, _ = inputform.Parse(q.Schema) // it was read when it was asked
	}
	for i, f := range form.Fields {
		values := f.Initial()
		if c.Form != nil {
			values = c.Form[approval.InputField+f.Name]
		}
		putField(out, fmt.Sprintf("%s-%d", id, i), f, values)
	}
	out.Put("</fieldset>\n")
}

// putField shows a field with its values.
func putField(out *markup.Page, id string, f inputform.Field, values []string) {
	name, value := approval.InputField+f.Name, strings.Join(values, "")
	label := func(tag markup.HTML) {
		out.Put("<%s>%s", tag, invisible.Escape(f.Label()))
		out.PutIf(f.Required, " <b>required</b>")
		out.PutIf(f.Hint() != "", " <span class=\"dim\">%s</span>", invisible.Escape(f.Hint()))
	}
	forID := func() { label(markup.HTML(`label for="` + id + `"`)); out.Put("</label>\n") }
	box := func(value, text string, on bool) {
		out.Put(`<label class="box"><input type="checkbox" name="%s" value="%s"`, name, value)
		out.PutIf(on, " checked")
		out.Put("> %s</label>\n", invisible.Escape(text))
	}
	switch f.Kind {
	case inputform.Yes:
		box("true", f.Label(), value == "true")
		out.PutIf(f.Hint() != "", "<p class=\"dim\">%s</p>\n", invisible.Escape(f.Hint()))
	case inputform.Choice:
		forID()
		out.Put("<select id=\"%s\" name=\"%s\"><option value=\"\"></option>\n", id, name)
		for _, o := range f.Options {
			out.Put(`<option value="%s"`, o.Value)
			out.PutIf(value == o.Value, " selected")
			out.Put(">%s</option>\n", invisible.Escape(o.Label))
		}
		out.Put("</select>\n")
	case inputform.Choices:
		label("p")
		out.Put("</p>\n")
		for _, o := range f.Options {
			box(o.Value, o.Label, lo.Contains(values, o.Value))
		}
	case inputform.Number, inputform.Integer:
		forID()
		out.Put(`<input id="%s" inputmode="decimal" name="%s" value="%s">`+"\n", id, name, value)
	case inputform.Text:
		forID()
		out.Put(`<input id="%s" name="%s" value="%s">`+"\n", id, name, value)
	}
}
