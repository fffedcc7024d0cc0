package web

import (
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
	onError := lo.Ternary(point == "on_run_start" || point == "on_result", "block", "continue")
	hook := yamlfile.Pairs{{Key: "type", Value: "agent"}, {Key: "on_error", Value: onError}}
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

// checkEditor adds everything that the coordinator finds wrong.
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
		e.mistakes = append(e.mistakes, coordinator.FieldError{
			Field: "name", Message: fmt.Sprintf("there is a blueprint %q: choose another name", changed.Name),
		})
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
	err = errors.Join(err, finish(err))
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
