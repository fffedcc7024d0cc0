package web

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/internal/invisible"
	"github.com/grapnel-go/grapnel/internal/markup"
)

// placeOf returns the path of the field beside which a mistake is shown. It prefers the exact member, then its parents, then the text field.
func (e *editor) placeOf(field, message string, shown []member) string {
	best := ""
	for _, m := range shown {
		if (field == m.path || strings.HasPrefix(field, m.path+".")) && len(m.path) > len(best) {
			best = m.path
		}
	}
	below := lo.Filter(shown, func(m member, _ int) bool { return best == "" && strings.HasPrefix(m.path, field+".") })
	for _, m := range below { // the message says which key is missing
		if key := m.path[len(field)+1:]; strings.Contains(message, " "+key+":") || strings.Contains(message, `"`+key+`"`) {
			best = m.path
		}
	}
	if best == "" && len(below) > 0 {
		best = below[0].path
	}
	return cmp.Or(best, textField)
}

// messages returns what is wrong by the fields that show it, and the paths of these fields in the order of the page.
func (e *editor) messages() (at map[string]string, order []string) {
	shown := lo.Filter(e.fields(e.doc), func(m member, _ int) bool { _, ok := m.read(e.doc); return ok })
	lines := map[string][]string{}
	for _, wrong := range e.mistakes {
		place, message := e.placeOf(wrong.Field, wrong.Message, shown), wrong.Message
		if place == textField && wrong.Field != textField {
			message = wrong.Field + ": " + message
		}
		lines[place] = append(lines[place], cutText(message, reasonLen))
	}
	for _, path := range append(lo.Map(shown, func(m member, _ int) string { return m.path }), textField) {
		if lines[path] != nil {
			order = append(order, path)
		}
	}
	return lo.MapValues(lines, func(all []string, _ string) string { return strings.Join(all, "\n") }), order
}

// checked is what a page of the editor is told while a person types. Was is the text that the fields show; nil if the text cannot be read.
type checked struct {
	Was      *string           `json:"was"`
	Merged   bool              `json:"merged"`
	Fields   string            `json:"fields"`
	Mistakes map[string]string `json:"mistakes"`
	Said     string            `json:"said"`
}

// replyChecked replies to a page that is open.
func (h *Handler) replyChecked(w http.ResponseWriter, v *view, e *editor) {
	at, order := e.messages()
	out := checked{Merged: e.isMerged, Mistakes: at, Said: e.summary(len(order))}
	if !e.isBroken && len(e.typed) == 0 {
		out.Was = new(treeText(e.doc))
		var fields markup.Page
		v.putFields(&fields, e, at)
		out.Fields = fields.String()
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out) //nolint:errchkjson // texts
}

func (e *editor) summary(fields int) string {
	if fields == 0 {
		return "No mistakes."
	}
	return countOf(len(e.mistakes), "mistake") + "."
}

// replyEditor serves the page of the editor.
func (h *Handler) replyEditor(w http.ResponseWriter, v *view, e *editor, status int) {
	at, order := e.messages()
	path := agentsPath + "/" + newAgent
	v.title, v.part = "New agent", partAgents
	v.Put("<p class=\"path\"><a href=\"%s\">Agents</a> / ", agentsPath)
	if e.name == "" {
		v.Put("new</p>\n")
	} else {
		path, v.title = editPath(e.name), "Edit "+firstLine(e.name)
		v.Put("<a href=\"%s\">%s</a> / edit</p>\n", agentPath(e.name), cutText(e.name, lineLen))
	}
	v.Put("<h1>%s</h1>\n", v.title)
	v.putOther(e)
	v.Put(`<form method="post" action="%s" class="editor" autocomplete="off" data-check>
<input type="hidden" name="version" value="%s"><input type="hidden" name="was" value="%s">
<div class="bar"><button name="do" value="check">Check</button><button class="yes" name="do" value="save">%s</button><span role="status" id="said">`,
		path, e.version, treeText(e.doc), e.saveLabel())
	v.PutIf(status == http.StatusOK && e.typed != nil, "%s", e.summary(0))
	v.Put("</span></div>\n")
	if len(order) > 0 {
		v.Put("<div id=\"mistakes\" class=\"verdict failed\" role=\"alert\" tabindex=\"-1\" autofocus><div><h2>%s to correct</h2><ul>\n",
			countOf(len(e.mistakes), "mistake"))
		for _, path := range order {
			v.Put("<li><a href=\"#f-%s\"><code>%s</code></a> <span class=\"text\">%s</span></li>\n", path, path, at[path])
		}
		v.Put("</ul></div></div>\n")
	}
	v.Put(`<nav class="tabs" aria-label="Parts of the agent">
<ul><li><a href="#agent">Agent</a></li><li><a href="#hooks">Hooks</a></li><li><a href="#whole">Text</a></li></ul></nav>
<div class="both"><div id="fields">
`)
	v.putFields(&v.Page, e, at)
	v.Put(`</div>
<section id="whole" class="card"><h2><label for="f-text">The whole agent as text</label></h2>
<p class="dim">YAML or JSON. Fields and text are one document.</p>
`)
	putArea(&v.Page, "f-"+textField, textField, lo.Ternary(e.isShowable(), e.text, treeText(e.doc)), 30, at[textField])
	v.Put("</section></div></form>\n")
	reply(w, status, v.render())
}

// isShowable reports whether the text has nothing that is invisible.
func (e *editor) isShowable() bool { return e.text == invisible.Escape(e.text) }

func (e *editor) saveLabel() string {
	if e.other != nil {
		return fmt.Sprintf("Save on top of version %d", e.other.Version)
	}
	return "Save"
}

// putOther shows what another person has saved meanwhile, and what saving would change in it.
func (v *view) putOther(e *editor) {
	if e.other == nil {
		return
	}
	v.Put(`<section class="verdict asked" role="alert" tabindex="-1" autofocus id="other"><div>
<h2>%s saved version %s %s, after version %s that you began with</h2>
<p>Nothing of yours is lost: the form has your text with that change, except where both of you have changed the same: there it has yours.</p>
<details open><summary>What %s has changed</summary>
`, cutText(e.other.By, lineLen), e.other.Version, formatWhen(e.other.Updated, v.now), e.base.Version, cutText(e.other.By, lineLen))
	putTextDiff(&v.Page, blueprintText(e.base), blueprintText(e.other))
	v.Put("</details>\n<details open><summary>What saving now would change in version %s</summary>\n", e.other.Version)
	putTextDiff(&v.Page, blueprintText(e.other), treeText(e.doc))
	v.Put("</details></div></section>\n")
}

// putFields shows the fields of a document.
func (v *view) putFields(out *markup.Page, e *editor, at map[string]string) {
	out.Put("<section id=\"agent\" class=\"card\"><h2>Agent</h2>\n")
	for _, m := range e.generalFields() {
		e.putMember(out, m, at[m.path])
	}
	out.Put("</section>\n<section id=\"hooks\" class=\"card\"><h2>Hooks</h2>\n")
	all := hooksIn(findIn(e.doc, "hooks"), "hooks.")
	out.PutIf(len(all) == 0, "<p class=\"dim\">It has no hooks.</p>\n")
	for _, h := range all {
		when, known := lo.Find(hookPoints, func(o option) bool { return o.value == h.point })
		out.Put("<fieldset class=\"hook\"><legend>%s <span class=\"dim\">%s</span></legend>\n", cutText(h.point, lineLen), when.label)
		if !known {
			out.Put("<p class=\"dim\">Edit it in the text.</p></fieldset>\n")
			continue
		}
		if ref := h.text("$ref"); ref != "" {
			out.Put("<p class=\"dim\">It is the definition <code>%s</code>, with what is set here.</p>\n", cutText(ref, lineLen))
		}
		for _, m := range e.hookFields(h) {
			e.putMember(out, m, at[m.path])
		}
		out.Put("<p><button class=\"no\" name=\"do\" value=\"remove %s\">Remove<span class=\"hide\"> the %s hook</span></button></p></fieldset>\n",
			h.path, h.point)
	}
	out.Put("<p><label for=\"point\">Another hook</label></p><div class=\"buttons\"><select id=\"point\" name=\"point\">\n")
	for _, p := range hookPoints {
		out.Put("<option value=\"%s\">%s: %s</option>\n", p.value, p.value, p.label)
	}
	out.Put("</select><button name=\"do\" value=\"add\">Add it</button></div></section>\n")
}

// putMember shows a field with what is wrong with it.
func (e *editor) putMember(out *markup.Page, m member, wrong string) {
	text, ok := m.read(e.doc)
	if typed, isTyped := e.typed[m.path]; isTyped {
		text, ok = typed, typed == invisible.Escape(typed)
	}
	name, id := fieldPrefix+m.path, m.id()
	label := func(tag string) {
		out.Put("<%s>%s", markup.HTML(tag), m.label)
		out.PutIf(m.hint != "", " <span class=\"dim\">%s</span>", m.hint)
	}
	out.Put("<div class=\"field %s\">", m.only)
	switch {
	case !ok:
		label("p")
		out.Put("</p><p class=\"dim\" id=\"%s\" tabindex=\"-1\">Edit it in the text.</p>", id)
	case m.kind == radioField:
		out.Put("<fieldset id=\"%s\" tabindex=\"-1\"%s><legend>%s</legend><div class=\"buttons\">", id, describe(m.path, wrong), m.label)
		for _, o := range m.options {
			out.Put(`<label class="box"><input type="radio" name="%s" value="%s"`, name, o.value)
			out.PutIf(text == o.value, " checked")
			out.Put("> %s</label>", o.label)
		}
		isOther := text != "" && !slices.ContainsFunc(m.options, func(o option) bool { return o.value == text })
		out.PutIf(isOther, "<span class=\"dim\">now %s</span>", cutText(text, lineLen))
		out.Put("</div></fieldset>")
	case m.kind == choiceField:
		label(`label for="` + id + `"`)
		out.Put("</label><select id=\"%s\" name=\"%s\"%s>", id, name, describe(m.path, wrong))
		options := m.options
		if !slices.ContainsFunc(options, func(o option) bool { return o.value == text }) {
			options = append([]option{{text, cmp.Or(text, "none")}}, options...)
		}
		for _, o := range options {
			out.Put(`<option value="%s"`, o.value)
			out.PutIf(text == o.value, " selected")
			out.Put(">%s</option>", cutText(o.label, lineLen))
		}
		out.Put("</select>")
	case m.rows > 0:
		label(`label for="` + id + `"`)
		out.Put("</label>")
		putArea(out, id, name, text, m.rows, wrong)
		out.Put("</div>\n")
		return
	default:
		label(`label for="` + id + `"`)
		out.Put("</label><input id=\"%s\" name=\"%s\" value=\"%s\" spellcheck=\"false\"%s>", id, name, text, describe(m.path, wrong))
	}
	out.Put("<p class=\"bad text\" id=\"m-%s\">%s</p></div>\n", m.path, wrong)
}

// describe returns the attributes that connect a field with what is wrong with it.
func describe(path, wrong string) markup.HTML {
	var p markup.Page
	p.Put(` aria-describedby="m-%s"`, path)
	p.PutIf(wrong != "", ` aria-invalid="true"`)
	return markup.HTML(p.String())
}

// putArea shows a field with several lines, with what is wrong with it.
func putArea(out *markup.Page, id, name, text string, rows int, wrong string) {
	path := strings.TrimPrefix(id, "f-")
	out.Put("<textarea id=\"%s\" name=\"%s\" rows=\"%s\" spellcheck=\"false\" class=\"code\"%s>\n%s</textarea><p class=\"bad text\" id=\"m-%s\">%s</p>\n",
		id, name, rows, describe(path, wrong), text, path, wrong)
}
