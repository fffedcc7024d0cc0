package web_test

import (
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/coordinator/wire"
)

// fields returns what the form of the editor would send.
func fields(t *testing.T, body string) url.Values {
	t.Helper()
	form := url.Values{}
	value := regexp.MustCompile(`value="([^"]*)"`)
	add := func(name, text string) { form.Set(name, html.UnescapeString(text)) }
	for _, m := range regexp.MustCompile(`<input[^>]* name="([^"]+)"[^>]*>`).FindAllStringSubmatch(body, -1) {
		if v := value.FindStringSubmatch(m[0]); v != nil && (!strings.Contains(m[0], `type="radio"`) || strings.Contains(m[0], " checked")) {
			add(m[1], v[1])
		}
	}
	for _, m := range regexp.MustCompile(`<textarea[^>]* name="([^"]+)"[^>]*>\n([^<]*)</textarea>`).FindAllStringSubmatch(body, -1) {
		add(m[1], m[2])
	}
	for _, m := range regexp.MustCompile(`(?s)<select[^>]* name="([^"]+)".*?</select>`).FindAllStringSubmatch(body, -1) {
		if v := regexp.MustCompile(`<option value="([^"]*)" selected`).FindStringSubmatch(m[0]); v != nil {
			add(m[1], v[1])
		}
	}
	require.True(t, form.Has("was"), body)
	return form
}

// with returns a form with other values.
func with(form url.Values, pairs ...string) url.Values {
	out := url.Values{}
	maps.Copy(out, form)
	for i := 0; i < len(pairs); i += 2 {
		out.Set(pairs[i], pairs[i+1])
	}
	return out
}

// The list finds blueprints by name and description; the page of one has its hooks, runs and versions.
func TestAgents(t *testing.T) {
	r := newRoom(t, nil)
	for i := range 60 {
		_, err := r.c.CreateBlueprint(t.Context(), fmt.Appendf(nil, `{"name": "agent-%02d", "type": "procedural", "description": "number %d."}`, i, i), "ann")
		require.NoError(t, err)
	}
	_, err := r.c.UpdateBlueprint(t.Context(), "gated", []byte(`{"description": "one line\nand another", "parameters_schema": {"type": "object"}}`), 1, "bob")
	require.NoError(t, err)
	r.submit(wire.RunRequest{AgentName: "gated"})
	r.signIn(r.token(wire.Viewer))
	names := func(path string) []string {
		page := r.get(path)
		require.Equal(t, http.StatusOK, page.StatusCode)
		return lo.Map(regexp.MustCompile(`<a class="row" data-key href="/ui/agents/([^"]+)"`).FindAllStringSubmatch(page.body, -1), func(m []string, _ int) string { return m[1] })
	}
	assert.Len(t, names("/ui/agents"), 50)
	next := regexp.MustCompile(`href="(/ui/agents\?[^"]+)">More agents`).FindStringSubmatch(r.get("/ui/agents").body)
	require.Len(t, next, 2)
	assert.Equal(t, append(lo.Times(10, func(i int) string { return fmt.Sprintf("agent-%d", 50+i) }), "gated", "plain"), names(html.UnescapeString(next[1])))
	assert.Equal(t, []string{"agent-07"}, names("/ui/agents?q=Number+7."))
	assert.Equal(t, []string{"gated"}, names("/ui/agents?q=GATED"))
	assert.Empty(t, names("/ui/agents?q=nothing"))
	list := text(r.get("/ui/agents?q=gated").body)
	assert.Contains(t, list, "gated one line and another procedural v2 just now bob · 1 hook Runs")
	assert.NotContains(t, list, "New agent")

	page := r.get("/ui/agents/gated")
	require.Equal(t, http.StatusOK, page.StatusCode)
	shown := text(page.body)
	for _, want := range []string{"gated v2", "on_run_start func gate before a runner gets the run", "on error block", "Version 2 by bob", "Version 1 by ann", "+ parameters_schema:", "+ type: object"} {
		assert.Contains(t, shown, want)
	}
	assert.Contains(t, page.body, `href="/ui/runs/run_`)
	assert.NotContains(t, page.body, "/edit")
	first := text(r.get("/ui/agents/gated?version=1").body)
	assert.Contains(t, first, "An earlier version")
	assert.Contains(t, first, "It is the first version")
	assert.Equal(t, http.StatusNotFound, r.get("/ui/agents/nothing").StatusCode)
	assert.Equal(t, http.StatusNotFound, r.get("/ui/agents/gated?version=9").StatusCode)
	for _, path := range []string{"/ui/agents/new", "/ui/agents/gated/edit"} {
		assert.Equal(t, http.StatusForbidden, r.get(path).StatusCode, path)
		assert.Equal(t, http.StatusForbidden, r.do(http.MethodPost, path, url.Values{"do": {"save"}}).StatusCode, path)
	}
	r.cookie = ""
	r.signIn(r.token(wire.Operator))
	assert.Contains(t, text(r.get("/ui/submit?name=gated").body), "gated")
	assert.NotContains(t, text(r.get("/ui/submit?name=gated").body), "plain")
	assert.Equal(t, http.StatusForbidden, r.do(http.MethodPost, "/ui/agents/gated/edit", url.Values{"do": {"save"}}).StatusCode)
}

// A person creates a blueprint, adds a hook with a mistake, reads what is wrong at its field, and saves. The text has what fields have, and
// the other way round.
func TestEditor(t *testing.T) {
	r := newRoom(t, nil)
	r.signIn(r.token(wire.Admin))
	const path = "/ui/agents/new"
	form := fields(t, r.get(path).body)
	before := len(r.audit())
	post := func(at string, status int, form url.Values) reply {
		t.Helper()
		got := r.do(http.MethodPost, at, form)
		require.Equal(t, status, got.StatusCode, text(got.body))
		return got
	}
	page := post(path, http.StatusUnprocessableEntity, with(form, "do", "check")).body
	assert.Contains(t, page, `href="#f-name"`)
	assert.Regexp(t, `<input id="f-name"[^>]* aria-describedby="m-name" aria-invalid="true">`, page)
	form = with(fields(t, page), "f.name", "report", "f.type", "procedural", "f.command.argv", "cat\r\n-u")
	form = fields(t, post(path, http.StatusOK, with(form, "do", "add", "point", "on_run_start")).body)
	assert.Equal(t, "name: report\ntype: procedural\ncommand:\n  argv:\n    - cat\n    - -u\nhooks:\n  on_run_start:\n    type: agent\n    on_error: block\n", form.Get("text"))
	page = post(path, http.StatusUnprocessableEntity, with(form, "do", "save", "f.hooks.on_run_start.timeout_seconds", "soon")).body
	assert.Regexp(t, `id="m-hooks.on_run_start.timeout_seconds">[^<]`, page)
	assert.Regexp(t, `<select id="f-hooks.on_run_start.agent_name"[^>]*aria-invalid="true"`, page)
	assert.Regexp(t, `(?s)f-hooks.on_run_start.agent_name.*<option value="gated">`, page)
	form = with(fields(t, page), "f.hooks.on_run_start.timeout_seconds", "60", "f.hooks.on_run_start.agent_name", "plain", "f.hooks.on_run_start.on_error", "continue")
	form.Set("text", form.Get("text")+"description: typed there\n") // at once with the fields
	assert.Len(t, r.audit(), before, "nothing has changed yet")
	got := post(path, http.StatusSeeOther, with(form, "do", "save"))
	assert.Equal(t, "/ui/agents/report?version=1#versions", got.Header.Get("Location"))
	b, err := r.c.Blueprint(t.Context(), "report", 0)
	require.NoError(t, err)
	assert.JSONEq(t, `{"on_run_start": {"type": "agent", "agent_name": "plain", "on_error": "continue", "timeout_seconds": 60}}`, string(b.Hooks))
	assert.Equal(t, "typed there", b.Description)
	assert.Equal(t, "my-admin", b.By)
	assert.Equal(t, "create-blueprint report", r.audit()[before].Operation+" "+r.audit()[before].Detail)
	page = post(path, http.StatusUnprocessableEntity, with(form, "do", "save")).body
	assert.Contains(t, page, "choose another name")

	const edit = "/ui/agents/report/edit"
	form = fields(t, r.get(edit).body)
	assert.NotContains(t, r.get(edit).body, `<option value="report"`, "a blueprint is not its own hook")
	page = post(edit, http.StatusUnprocessableEntity, with(form, "do", "check", "text", "name: [", "f.description", "kept")).body
	assert.Contains(t, page, `href="#f-text"`)
	assert.Contains(t, page, ">\nkept</textarea>")
	assert.Contains(t, page, ">\nname: [</textarea>")
	page = post(edit, http.StatusUnprocessableEntity, with(form, "do", "check", "f.output_schema", "type: objekt")).body
	assert.Regexp(t, `id="m-output_schema">[^<]`, page)
	page = post(edit, http.StatusUnprocessableEntity, with(form, "do", "check", "f.output_schema", "a: [")).body
	assert.Regexp(t, `id="m-output_schema">line 2`, page)
	form = fields(t, post(edit, http.StatusOK, with(form, "do", "add", "point", "on_run_start")).body)
	form = fields(t, post(edit, http.StatusOK, with(form, "do", "remove hooks.on_run_start.0", "f.hooks.on_run_start.1.type", "func")).body)
	assert.Contains(t, form.Get("text"), "on_run_start:\n    - type: func\n      on_error: block\n")
	live := post(edit, http.StatusOK, with(form, "do", "live"))
	assert.Equal(t, "application/json", live.Header.Get("Content-Type"))
	assert.Contains(t, live.body, `"mistakes":{"hooks.on_run_start.0.func":`)
	form = with(form, "f.hooks.on_run_start.0.func", "gate", "f.description", "")
	post(edit, http.StatusSeeOther, with(form, "do", "save"))
	b, err = r.c.Blueprint(t.Context(), "report", 0)
	require.NoError(t, err)
	assert.JSONEq(t, `{"on_run_start": [{"type": "func", "func": "gate", "on_error": "block"}]}`, string(b.Hooks))
	assert.Empty(t, b.Description)
	shown := text(r.get("/ui/agents/report").body)
	assert.Contains(t, shown, "- agent_name: plain")
	assert.Contains(t, shown, "- description: typed there")
	assert.Equal(t, http.StatusForbidden, r.do(http.MethodPost, edit, form, "Origin", "https://evil.example").StatusCode)
}

// Two people save at once: one is told what the other has changed, has lost nothing, and saves on top of it.
func TestEditorOfTwoPeople(t *testing.T) {
	r := newRoom(t, nil)
	r.signIn(r.token(wire.Admin))
	const edit = "/ui/agents/gated/edit"
	form := with(fields(t, r.get(edit).body), "do", "save")
	_, err := r.c.UpdateBlueprint(t.Context(), "gated", []byte(`{"output_schema": {"type": "object"}, "command": {"argv": ["tee"]}}`), 1, "bob")
	require.NoError(t, err)
	got := r.do(http.MethodPost, edit, with(form, "f.description", "mine", "f.command.argv", "cat\n-u"))
	require.Equal(t, http.StatusConflict, got.StatusCode, text(got.body))
	shown := text(got.body)
	for _, want := range []string{"bob saved version 2 just now , after version 1", "Nothing of yours is lost", "+ output_schema:", "- - tee", "+ - cat", "+ description: mine", "Save on top of version 2"} {
		assert.Contains(t, shown, want)
	}
	form = with(fields(t, got.body), "do", "save")
	require.Equal(t, http.StatusSeeOther, r.do(http.MethodPost, edit, form).StatusCode)
	b, err := r.c.Blueprint(t.Context(), "gated", 0)
	require.NoError(t, err)
	assert.Equal(t, int64(3), b.Version)
	assert.Equal(t, "mine", b.Description)
	assert.Equal(t, []string{"cat", "-u"}, b.Command.Argv)
	assert.JSONEq(t, `{"type": "object"}`, string(b.OutputSchema))
	again := r.do(http.MethodPost, edit, form)
	require.Equal(t, http.StatusSeeOther, again.StatusCode, "a form that is sent twice")
	assert.Equal(t, "/ui/agents/gated?version=3#versions", again.Header.Get("Location"))
}

// What a person does not change stays as it was, whatever a blueprint has.
func TestEditorKeepsWhatItDoesNotKnow(t *testing.T) {
	r := newRoom(t, nil)
	const all = `{"name": "odd", "type": "autonomous", "description": "a\r\n\u202eb\u0007\ud83d\ude00 'yes' : #", "system_prompt": "  lines\n\n\twith tabs \n",
		"parameters_schema": {"type": "object", "properties": {"a.b": {"type": "number", "default": 1.0, "enum": [1.0, 1e3, -0.5, null, true, "1", "no", "~", "null", "0x1f", "2026-01-01", ""]}}},
		"demands": {"zone": "yes"}, "definitions": {"d": {"type": "shell", "command": "true", "on_error": "ignore"}},
		"hooks": {"on_run_finish": [{"$ref": "d"}, {"type": "command", "argv": ["a b", "c\nd"], "on_error": "continue", "timeout_seconds": 3}], "on_tool_call": {"id": "one", "match": {"tool": "bash"}, "when": "true", "decision": "rewrite", "set": {"command": "'ls'"}}}}`
	_, err := r.c.CreateBlueprint(t.Context(), []byte(all), "ann")
	require.NoError(t, err)
	created, err := r.c.Blueprint(t.Context(), "odd", 0)
	require.NoError(t, err)
	r.signIn(r.token(wire.Admin))
	const edit = "/ui/agents/odd/edit"
	page := r.get(edit)
	require.Equal(t, http.StatusOK, page.StatusCode)
	assert.NotContains(t, page.body, "\u202e")
	form := with(fields(t, page.body), "do", "save")
	got := r.do(http.MethodPost, edit, form)
	require.Equal(t, http.StatusSeeOther, got.StatusCode, text(got.body))
	now, err := r.c.Blueprint(t.Context(), "odd", 0)
	require.NoError(t, err)
	assert.Equal(t, created, now, "no new version")
	got = r.do(http.MethodPost, edit, with(form, "f.output_schema", "type: object"))
	require.Equal(t, http.StatusSeeOther, got.StatusCode, text(got.body))
	now, err = r.c.Blueprint(t.Context(), "odd", 0)
	require.NoError(t, err)
	assert.JSONEq(t, `{"type": "object"}`, string(now.OutputSchema))
	created.OutputSchema = now.OutputSchema
	assert.Equal(t, created.Blueprint, now.Blueprint)
}
