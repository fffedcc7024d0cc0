package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/internal/invisible"
	"github.com/grapnel-go/grapnel/internal/markup"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

const (
	// editBytes is how long the form of the editor may be: it has the text twice.
	editBytes = 4 << 20
	// agentsOffered is how many blueprints the editor offers for a hook.
	agentsOffered = 500
	// fieldPrefix begins the names of fields for members, textField is the field with the whole text.
	fieldPrefix, textField = "f.", "text"
)

// editor is a blueprint while a person edits it, in fields and as a text at once. The form has the text that its fields show, so that a field
// with another value was edited; such fields are changed in the text that was sent. What has no field stays.
type editor struct {
	name    string // empty for a new blueprint
	version int64  // that the person began with
	doc     tree
	// text is the whole text as it was sent, unless fields have changed it.
	text     string
	isMerged bool
	isBroken bool // the text cannot be read
	// typed has what cannot be stored in the document, by the paths of fields.
	typed    map[string]string
	mistakes []coordinator.FieldError
	agents   []string
	// base is the version that the person began with, other the newest, which another person has saved meanwhile.
	base, other *wire.Stored
}

// fieldKind is how a member is edited.
type fieldKind int

const (
	lineField fieldKind = iota
	areaField
	linesField  // a list of texts, one a line
	schemaField // YAML or JSON
	numberField
	choiceField
	radioField
)

// member is a field of the editor.
type member struct {
	path, label, hint string
	kind              fieldKind
	options           []option
	// only is the class of a field for one type of blueprint or hook.
	only string
	rows int
}

func (m member) id() string { return "f-" + m.path }

// read returns the text of a field; ok is false for a value that it cannot show.
func (m member) read(doc tree) (text string, ok bool) {
	switch v := findIn(doc, m.path).(type) {
	case gone:
		return "", true
	case string:
		ok = m.kind != linesField && m.kind != schemaField && (m.kind == areaField || !strings.Contains(v, "\n"))
		text = v
	case json.Number:
		text, ok = v.String(), m.kind == numberField
	case []any:
		lines := lo.FilterMap(v, func(one any, _ int) (string, bool) {
			line, isText := one.(string)
			return line, isText && line != "" && !strings.Contains(line, "\n")
		})
		text, ok = strings.Join(lines, "\n"), m.kind == linesField && len(lines) == len(v)
	default:
		text, ok = treeText(v), m.kind == schemaField
	}
	return text, ok && text == invisible.Escape(text) && !strings.Contains(text, "\r")
}

// parse returns the value that a person typed.
func (m member) parse(text string) (tree, error) {
	if strings.TrimSpace(text) == "" {
		return gone{}, nil
	}
	switch m.kind {
	case linesField:
		lines := lo.Compact(strings.Split(text, "\n"))
		return lo.ToAnySlice(lines), nil
	case schemaField:
		return parseTree(text)
	case numberField:
		if _, err := strconv.ParseInt(text, 10, 64); err == nil {
			return json.Number(text), nil
		}
	case lineField, areaField, choiceField, radioField:
	}
	return text, nil
}

// optionsOf returns values as options, which say what they are.
func optionsOf(values ...string) []option {
	return lo.Map(values, func(v string, _ int) option { return option{v, v} })
}

// generalFields are the fields of a blueprint besides its hooks.
func (e *editor) generalFields() []member {
	all := []member{
		{path: "type", label: "Type", kind: choiceField, options: []option{
			{"autonomous", "autonomous: an agent runs"}, {"procedural", "procedural: a command runs"}, {"pipeline", "pipeline: stages of both"},
		}},
		{path: "description", label: "Description", hint: "for people", kind: areaField, rows: 2},
		{path: "system_prompt", label: "System prompt", hint: "unless agent has instructions", kind: areaField, rows: 6, only: "of-autonomous"},
		{path: "command.argv", label: "Command", hint: "the program and each argument on a line of its own", kind: linesField, rows: 3, only: "of-procedural"},
		{path: "parameters_schema", label: "Parameters", hint: "JSON Schema, in YAML or JSON", kind: schemaField, rows: 6},
		{path: "output_schema", label: "Output", hint: "JSON Schema of the result", kind: schemaField, rows: 6},
	}
	if e.name == "" {
		all = append([]member{{path: "name", label: "Name", hint: "letters and digits, with . _ - between them"}}, all...)
	}
	return all
}

// targets are the members that say what a hook of a type calls.
var targets = map[string]string{"agent": "agent_name", "http": "url", "command": "argv", "shell": "command", "func": "func"}

// hookFields are the fields of a hook.
func (e *editor) hookFields(h hookAt) []member {
	at := h.path + "."
	isCall := h.point == "on_tool_call"
	kind := h.text("type")
	var all []member
	if !isCall || kind != "" {
		types := optionsOf("agent", "http", "command", "shell", "func")
		if isCall {
			types = types[1:]
		}
		all = append(all,
			member{path: at + "type", label: "Type", kind: choiceField, options: types},
			member{path: at + "command", label: "Shell command", only: "for-shell"},
			member{path: at + "argv", label: "Command", hint: "the program and each argument on a line of its own", kind: linesField, rows: 3, only: "for-command"},
			member{path: at + "url", label: "URL", only: "for-http"},
			member{path: at + "func", label: "Function", hint: "of the program that embeds the coordinator", only: "for-func"},
		)
		if !isCall {
			all = slices.Insert(all, 1, member{
				path: at + "agent_name", label: "Agent", kind: choiceField, only: "for-agent",
				options: append([]option{{"", "choose one"}}, optionsOf(e.agents...)...),
			})
		}
	} else {
		all = append(all,
			member{path: at + "id", label: "ID", hint: "which names the rule in events"},
			member{path: at + "match.tool", label: "Tool"},
			member{path: at + "when", label: "When", hint: "a condition, such as args.command.contains(\"rm \")"},
			member{path: at + "decision", label: "Decision", kind: choiceField, options: optionsOf("deny", "ask", "allow", "stop")},
			member{path: at + "reason", label: "Reason"},
		)
	}
	if !isCall || kind != "" {
		all = append(all, member{path: at + "on_error", label: "If it fails", kind: radioField, options: []option{
			{"block", "block"}, {"continue", "continue"},
		}})
	}
	if h.point == "on_run_start" {
		all = append(all, member{path: at + "timeout_seconds", label: "Time limit", hint: "in seconds; empty means 300", kind: numberField})
	}
	return all
}

// fields returns all fields of a document.
func (e *editor) fields(doc tree) []member {
	all := e.generalFields()
	for _, h := range hooksIn(findIn(doc, "hooks"), "hooks.") {
		if isPoint(h.point) {
			all = append(all, e.hookFields(h)...)
		}
	}
	return all
}

func isPoint(name string) bool {
	return slices.ContainsFunc(hookPoints, func(o option) bool { return o.value == name })
}

// showNewAgent serves the editor of a new blueprint.
func (h *Handler) showNewAgent(w http.ResponseWriter, r *http.Request, v *view) {
	if r.URL.Query().Has("version") {
		h.showVersion(w, r, v, newAgent)
		return
	}
	doc := yamlfile.Pairs{{Key: "name", Value: ""}, {Key: "type", Value: "autonomous"}}
	h.startEditor(w, r, v, &editor{doc: doc, text: treeText(doc)})
}

// showEditor serves the editor of a blueprint.
func (h *Handler) showEditor(w http.ResponseWriter, r *http.Request, v *view) {
	s, err := h.o.Coordinator.Blueprint(r.Context(), r.PathValue("name"), 0)
	if err != nil {
		h.fail(w, r, v, "reading a blueprint", err)
		return
	}
	text := blueprintText(&s)
	doc, err := parseTree(text)
	if err != nil {
		h.fail(w, r, v, "reading a blueprint", err)
		return
	}
	h.startEditor(w, r, v, &editor{name: s.Name, version: s.Version, doc: doc, text: text})
}

// startEditor serves an editor that nothing was typed into.
func (h *Handler) startEditor(w http.ResponseWriter, r *http.Request, v *view, e *editor) {
	if v.who.Role != wire.Admin {
		refuseEditor(w, v)
		return
	}
	if err := h.offerAgents(r.Context(), e); err != nil {
		h.fail(w, r, v, "listing blueprints", err)
		return
	}
	h.replyEditor(w, v, e, http.StatusOK)
}

func refuseEditor(w http.ResponseWriter, v *view) {
	v.title = "An admin can edit agents"
	v.Put("<h1>%s</h1>\n<p>Your token has the role %s. <a href=\"%s\">All agents</a></p>\n", v.title, string(v.who.Role), agentsPath)
	reply(w, http.StatusForbidden, v.render())
}

// offerAgents reads the names of the other blueprints.
func (h *Handler) offerAgents(ctx context.Context, e *editor) error {
	all, err := h.o.Coordinator.ListBlueprints(ctx, "", agentsOffered)
	e.agents = lo.FilterMap(all, func(s wire.Stored, _ int) (string, bool) { return s.Name, s.Name != e.name })
	return err
}

// readEditor reads the form of the editor.
func (h *Handler) readEditor(ctx context.Context, name string, form url.Values) (*editor, error) {
	value := func(name string) string { return strings.ReplaceAll(form.Get(name), "\r\n", "\n") }
	e := &editor{name: name, text: value(textField), typed: map[string]string{}}
	e.version, _ = strconv.ParseInt(value("version"), 10, 64)
	if err := h.offerAgents(ctx, e); err != nil {
		return nil, err
	}
	was, _ := parseTree(value("was"))
	doc, err := parseTree(e.text)
	if e.doc = doc; err != nil {
		e.doc, e.isBroken = was, true
		for _, line := range problemsOf(err) {
			e.mistakes = append(e.mistakes, coordinator.FieldError{Field: textField, Message: line})
		}
	}
	before := tree(was)
	for _, m := range e.fields(was) {
		typed := value(fieldPrefix + m.path)
		old, ok := m.read(before)
		if !ok || !form.Has(fieldPrefix+m.path) || typed == old {
			continue
		}
		if e.isBroken {
			e.typed[m.path] = typed
			continue
		}
		e.change(m, typed)
	}
	if e.isMerged {
		e.text = treeText(e.doc)
	}
	return e, nil
}

// problemsOf returns what is wrong with a text, one line each.
func problemsOf(err error) []string {
	problems, more := yamlfile.Problems(err)
	return slices.Concat(
		lo.Map(problems, func(p yamlfile.Problem, _ int) string { return fmt.Sprintf("line %d: %s", p.Line, p.Text) }),
		lo.Map(more, func(err error, _ int) string { return err.Error() }))
}

// change stores what a person typed into a field.
func (e *editor) change(m member, typed string) {
	at, key := m.path, ""
	if i := strings.LastIndex(at, "."); i >= 0 {
		at, key = at[:i], at[i+1:]
	}
	if kind, isHook := findIn(e.doc, at+".type").(string); isHook && strings.HasPrefix(m.path, "hooks.") {
		if slices.Contains(lo.Values(targets), key) && targets[kind] != key {
			return // of another type, which is hidden
		}
		if key == "type" {
			e.doc = withMember(e.doc, at+"."+targets[kind], gone{})
		}
	}
	value, err := m.parse(typed)
	if err != nil {
		e.typed[m.path] = typed
		for _, line := range problemsOf(err) {
			e.mistakes = append(e.mistakes, coordinator.FieldError{Field: m.path, Message: line})
		}
		return
	}
	if findIn(e.doc, at) == tree(gone{}) && strings.HasPrefix(at, "hooks") { // the text has no such hook any more
		return
	}
	e.doc, e.isMerged = withMember(e.doc, m.path, value), true
}

// addHook adds a hook at a point.
func (e *editor) addHook(point string) {
	if !isPoint(point) {
		return
	}
	at := "hooks." + point
	hook := yamlfile.Pairs{{Key: "type", Value: "agent"}, {Key: "on_error", Value: lo.Ternary(point == "on_run_start" || point == "on_result", "block", "continue")}}
	if point == "on_tool_call" {
		hook = yamlfile.Pairs{{Key: "id", Value: "ask"}, {Key: "match", Value: yamlfile.Pairs{{Key: "tool", Value: "bash"}}}, {Key: "decision", Value: "ask"}}
	}
	var value tree = hook
	switch old := findIn(e.doc, at).(type) {
	case gone:
	case []any:
		value = append(slices.Clone(old), hook)
	default:
		value = []any{old, hook}
	}
	e.doc = withMember(e.doc, at, value)
	e.text = treeText(e.doc)
}

// removeHook removes the hook at a path.
func (e *editor) removeHook(path string) {
	if strings.HasPrefix(path, "hooks.") {
		e.doc = withMember(e.doc, path, gone{})
		e.text = treeText(e.doc)
	}
}

// check adds everything that the coordinator finds wrong.
func (h *Handler) checkEditor(ctx context.Context, e *editor) error {
	if e.isBroken || len(e.mistakes) > 0 {
		return nil
	}
	var assumed []string
	if e.name != "" {
		assumed = []string{e.name}
	}
	b, err := h.o.Coordinator.CheckBlueprint(ctx, treeJSON(e.doc), assumed...)
	return e.note(b.Name, err)
}

// note adds the mistakes in an error. It returns other errors.
func (e *editor) note(name string, err error) error {
	invalid, isInvalid := errors.AsType[*coordinator.InvalidError](err)
	changed, isChanged := errors.AsType[*coordinator.ChangedError](err)
	switch {
	case isInvalid:
		e.mistakes = append(e.mistakes, invalid.Fields...)
	case isChanged && changed.Read == 0:
		e.mistakes = append(e.mistakes, coordinator.FieldError{Field: "name", Message: fmt.Sprintf("there is a blueprint %q: choose another name", changed.Name)})
	case err != nil:
		return err
	case e.name != "" && name != e.name:
		e.mistakes = append(e.mistakes, coordinator.FieldError{Field: "name", Message: fmt.Sprintf("a blueprint keeps its name, %q", e.name)})
	}
	return nil
}

// edit handles what a person does in the editor.
func (h *Handler) edit(w http.ResponseWriter, r *http.Request, v *view) {
	if v.who.Role != wire.Admin {
		refuseEditor(w, v)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, editBytes)
	if err := r.ParseForm(); err != nil {
		v.title = "Nothing was changed"
		v.Put("<h1>%s</h1>\n<p class=\"text bad\" role=\"alert\">%s</p>\n", v.title, errForm.Error())
		reply(w, http.StatusUnprocessableEntity, v.render())
		return
	}
	ctx, do := r.Context(), r.PostForm.Get("do")
	e, err := h.readEditor(ctx, r.PathValue("name"), r.PostForm)
	if err != nil {
		h.fail(w, r, v, "listing blueprints", err)
		return
	}
	if path, ok := strings.CutPrefix(do, "remove "); ok && !e.isBroken {
		e.removeHook(path)
	} else if do == "add" && !e.isBroken {
		e.addHook(r.PostForm.Get("point"))
	}
	if do == "check" || do == "save" || do == "live" {
		err = h.checkEditor(ctx, e)
	}
	if err != nil {
		h.fail(w, r, v, "checking a blueprint", err)
		return
	}
	switch {
	case do == "live":
		h.replyChecked(w, v, e)
	case do == "save" && len(e.mistakes) == 0:
		h.save(w, r, v, e)
	case len(e.mistakes) > 0:
		h.replyEditor(w, v, e, http.StatusUnprocessableEntity)
	default:
		h.replyEditor(w, v, e, http.StatusOK)
	}
}

// save stores the blueprint, unless another person has saved a version after the one that this person began with.
func (h *Handler) save(w http.ResponseWriter, r *http.Request, v *view, e *editor) {
	operation, text := "create-blueprint", treeJSON(e.doc)
	if e.name != "" {
		operation = "update-blueprint"
	}
	name, _ := findIn(e.doc, "name").(string)
	ctx, finish := h.o.Coordinator.WithAuditEntry(r.Context(), wire.AuditEntry{
		By: v.who.Name, TokenID: v.who.ID, Operation: operation, Path: r.URL.Path, Detail: name,
	})
	var stored wire.Stored
	var err error
	if e.name == "" {
		stored, err = h.o.Coordinator.CreateBlueprint(ctx, text, v.who.Name)
	} else {
		stored, err = h.replace(ctx, e, text, v.who.Name)
	}
	err = errors.Join(err, finish())
	if changed, ok := errors.AsType[*coordinator.ChangedError](err); ok && e.name != "" {
		if err = h.mergeOther(r.Context(), e, changed); err == nil {
			h.replyEditor(w, v, e, http.StatusConflict)
			return
		}
	} else if err == nil {
		http.Redirect(w, r, versionPath(stored.Name, stored.Version)+"#versions", http.StatusSeeOther)
		return
	}
	if err = e.note(name, err); err != nil {
		h.fail(w, r, v, "storing a blueprint", err)
		return
	}
	h.replyEditor(w, v, e, http.StatusUnprocessableEntity)
}

// replace stores a text as the version after the one that a person began with, without the members that are not in it.
func (h *Handler) replace(ctx context.Context, e *editor, text []byte, by string) (wire.Stored, error) {
	base, err := h.o.Coordinator.Blueprint(ctx, e.name, e.version)
	if err != nil {
		return base, err
	}
	changes := map[string]json.RawMessage{}
	before, err := json.Marshal(base.Blueprint)
	if err == nil {
		err = json.Unmarshal(before, &changes)
	}
	if err != nil {
		return base, err
	}
	for name := range changes {
		changes[name] = json.RawMessage("null")
	}
	if err := json.Unmarshal(text, &changes); err != nil {
		return base, err
	}
	all, err := json.Marshal(changes)
	if err != nil {
		return base, err
	}
	return h.o.Coordinator.UpdateBlueprint(ctx, e.name, all, base.Version, by)
}

// mergeOther puts what another person has saved meanwhile beside what this person has typed, to be saved on top of it.
func (h *Handler) mergeOther(ctx context.Context, e *editor, changed *coordinator.ChangedError) error {
	base, err := h.o.Coordinator.Blueprint(ctx, e.name, changed.Read)
	if err != nil {
		return err
	}
	other, err := h.o.Coordinator.Blueprint(ctx, e.name, changed.Now.Version)
	if err != nil {
		return err
	}
	before, err := parseTree(blueprintText(&base))
	if err != nil {
		return err
	}
	now, err := parseTree(blueprintText(&other))
	if err != nil {
		return err
	}
	e.base, e.other, e.version = &base, &other, other.Version
	e.doc = merge(before, e.doc, now)
	e.text = treeText(e.doc)
	return nil
}

// placeOf returns the path of the field that shows a mistake: the one of the member, or of a member above it, or the text.
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
	out := checked{Merged: e.isMerged, Mistakes: at, Said: e.said(len(order))}
	if !e.isBroken && len(e.typed) == 0 {
		out.Was = new(treeText(e.doc))
		var fields markup.Page
		v.putFields(&fields, e, at)
		out.Fields = fields.String()
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out) //nolint:errchkjson // texts
}

func (e *editor) said(fields int) string {
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
	v.PutIf(status == http.StatusOK && e.typed != nil, "%s", e.said(0))
	v.Put("</span></div>\n")
	if len(order) > 0 {
		v.Put("<div id=\"mistakes\" class=\"verdict failed\" role=\"alert\" tabindex=\"-1\" autofocus><div><h2>%s to correct</h2><ul>\n", countOf(len(e.mistakes), "mistake"))
		for _, path := range order {
			v.Put("<li><a href=\"#f-%s\"><code>%s</code></a> <span class=\"text\">%s</span></li>\n", path, path, at[path])
		}
		v.Put("</ul></div></div>\n")
	}
	v.Put(`<nav class="tabs" aria-label="Parts of the agent"><ul><li><a href="#agent">Agent</a></li><li><a href="#hooks">Hooks</a></li><li><a href="#whole">Text</a></li></ul></nav>
<div class="both"><div id="fields">
`)
	v.putFields(&v.Page, e, at)
	v.Put("</div>\n<section id=\"whole\" class=\"card\"><h2><label for=\"f-text\">The whole agent as text</label></h2>\n<p class=\"dim\">YAML or JSON. Fields and text are one document.</p>\n")
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
	v.Put(`<section class="verdict asked" role="alert" tabindex="-1" autofocus id="other"><div><h2>%s saved version %s %s, after version %s that you began with</h2>
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
		out.Put("<p><button class=\"no\" name=\"do\" value=\"remove %s\">Remove<span class=\"hide\"> the %s hook</span></button></p></fieldset>\n", h.path, h.point)
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
		out.PutIf(text != "" && !slices.ContainsFunc(m.options, func(o option) bool { return o.value == text }), "<span class=\"dim\">now %s</span>", cutText(text, lineLen))
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
