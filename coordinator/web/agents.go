package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable/approval"
	"github.com/grapnel-go/grapnel/internal/markup"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

const (
	partAgents = "Agents"
	agentsPath = prefix + "agents"
	newAgent   = "new"
	// agentRows is how many blueprints a page lists, among agentsRead that it reads at most.
	agentRows, agentsRead = 50, 500
	// agentRuns is how many runs, and agentVersions how many versions, the page of a blueprint lists.
	agentRuns, agentVersions = 5, 20
	// diffLen is the most bytes of a shown diff between versions.
	diffLen = 64 << 10
)

// agentPath returns the address of a blueprint's page.
func agentPath(name string) string {
	at := agentsPath + "/" + url.PathEscape(name)
	if name == newAgent { // the page that makes new ones
		at += "?version=0"
	}
	return at
}

func editPath(name string) string { return agentsPath + "/" + url.PathEscape(name) + "/edit" }

// versionPath returns the address of a version.
func versionPath(name string, version int64) string {
	return agentsPath + "/" + url.PathEscape(name) + "?version=" + strconv.FormatInt(version, 10)
}

// showAgents serves the list of blueprints.
func (h *Handler) showAgents(w http.ResponseWriter, r *http.Request, v *view) {
	q, after := strings.TrimSpace(r.URL.Query().Get("q")), r.URL.Query().Get("after")
	rows, next, err := h.findAgents(r.Context(), q, after)
	if err != nil {
		h.fail(w, r, v, "listing blueprints", err)
		return
	}
	v.title, v.part = "Agents", partAgents
	v.Put("<div class=\"title\"><h1>Agents</h1>")
	v.PutIf(v.who.Role == wire.Admin, "<a class=\"button\" href=\"%s\">New agent</a>", agentsPath+"/"+newAgent)
	v.Put(`<form class="search" role="search" action="%s"><label class="wide"><span class="hide">Name or description</span>
<input type="search" name="q" value="%s" placeholder="Name or description" autocomplete="off" data-slash></label><button>Search</button></form></div>
<ul class="rows agents">
`, agentsPath, cutText(q, lineLen))
	for _, b := range rows {
		v.Put(`<li><a class="row" data-key href="%s"><span class="what"><b>%s</b> <span class="input">%s</span></span></a>
<span>%s</span><span>v%s %s</span><span class="dim">%s%s</span><a class="runs" href="%s">Runs<span class="hide"> of %s</span></a></li>
`, agentPath(b.Name), cutText(b.Name, lineLen), firstLine(b.Description), string(b.Type), b.Version, formatWhen(b.Updated, v.now),
			cutText(b.By, lineLen), hooksCount(b.Hooks), query{name: b.Name}.address("runs"), cutText(b.Name, lineLen))
	}
	v.Put("</ul>\n")
	switch {
	case len(rows) == 0 && next == "" && q == "" && after == "":
		v.Put("<p>No agent is stored yet.</p>\n")
	case len(rows) == 0:
		v.Put("<p class=\"dim\">No agent matches. <a href=\"%s\">Show all agents</a></p>\n", agentsPath)
	}
	more := agentsPath + "?" + url.Values{"q": {q}, "after": {next}}.Encode()
	v.PutIf(next != "", "<p class=\"more\"><a class=\"button\" href=\"%s\">More agents</a></p>\n", more)
	reply(w, http.StatusOK, v.render())
}

// findAgents returns blueprints after a name whose name or description has a text, and the name after which more may follow.
func (h *Handler) findAgents(ctx context.Context, q, after string) (found []wire.Stored, next string, err error) {
	q = strings.ToLower(q)
	for read := 0; read < agentsRead && len(found) < agentRows; {
		page, err := h.o.Coordinator.ListBlueprints(ctx, after, agentRows)
		if err != nil {
			return nil, "", err
		}
		for _, b := range page {
			after = b.Name
			if strings.Contains(strings.ToLower(b.Name+" "+b.Description), q) {
				if found = append(found, b); len(found) == agentRows {
					return found, after, nil
				}
			}
		}
		if read += len(page); len(page) < agentRows {
			return found, "", nil
		}
	}
	return found, after, nil
}

// hooksCount says how many hooks a blueprint has.
func hooksCount(hooks json.RawMessage) string {
	if n := len(hooksIn(treeOfJSON(hooks), "")); n > 0 {
		return " · " + countOf(n, "hook")
	}
	return ""
}

// treeOfJSON returns the tree of JSON; nil if it cannot be read.
func treeOfJSON(data []byte) tree {
	members, err := parseTree(string(data))
	if err != nil {
		return nil
	}
	return members
}

// hookPoints are the keys of hooks, in the order of a run, and when they are called.
var hookPoints = []option{
	{"on_run_start", "before a runner gets the run"}, {"on_tool_call", "before each tool call"}, {"on_result", "before the result is stored"},
	{"on_error", "after a failed run"}, {"on_timeout", "after a run whose time was over"}, {"on_run_finish", "after the run, however it ended"},
}

// option is a value and what it means.
type option struct{ value, label string }

// hookAt is a hook in a document.
type hookAt struct {
	path, point string
	members     yamlfile.Pairs
}

// hooksIn returns the hooks below a path, in the order of their points.
func hooksIn(hooks tree, path string) (all []hookAt) {
	points, _ := hooks.(yamlfile.Pairs)
	names := lo.Map(hookPoints, func(o option, _ int) string { return o.value })
	order := slices.Clone(points)
	slices.SortStableFunc(order, func(a, b yamlfile.Pair) int {
		return cmp.Compare(uint(slices.Index(names, a.Key)), uint(slices.Index(names, b.Key)))
	})
	for _, p := range order {
		at := path + p.Key
		switch one := p.Value.(type) {
		case yamlfile.Pairs:
			all = append(all, hookAt{at, p.Key, one})
		case []any:
			for i, item := range one {
				if members, ok := item.(yamlfile.Pairs); ok {
					all = append(all, hookAt{fmt.Sprintf("%s.%d", at, i), p.Key, members})
				}
			}
		}
	}
	return all
}

// text returns a member as text on one line; empty if there is none.
func (h hookAt) text(name string) string {
	switch v := memberOf(h.members, name).(type) {
	case gone:
		return ""
	case string:
		return v
	case []any:
		return strings.Join(lo.Map(v, func(one any, _ int) string { return fmt.Sprint(one) }), " ")
	default:
		var short bytes.Buffer
		_ = json.Compact(&short, treeJSON(v)) // it is JSON
		return short.String()
	}
}

// title says what a hook does, in a few words.
func (h hookAt) title() string {
	kind := h.text("type")
	target := cmp.Or(h.text("agent_name"), h.text("url"), h.text("command"), h.text("argv"), h.text("func"))
	if kind == "" {
		kind = cmp.Or(h.text("decision"), h.text("$ref"))
	}
	return strings.TrimSpace(kind + " " + target)
}

// showAgent serves the page of a blueprint.
func (h *Handler) showAgent(w http.ResponseWriter, r *http.Request, v *view) {
	h.showVersion(w, r, v, r.PathValue("name"))
}

func (h *Handler) showVersion(w http.ResponseWriter, r *http.Request, v *view, name string) {
	ctx := r.Context()
	version, _ := strconv.ParseInt(r.URL.Query().Get("version"), 10, 64)
	newest, err := h.o.Coordinator.Blueprint(ctx, name, 0)
	shown := newest
	if err == nil && version > 0 && version != newest.Version {
		shown, err = h.o.Coordinator.Blueprint(ctx, name, version)
	}
	var versions []wire.BlueprintVersion
	if err == nil {
		before, _ := strconv.ParseInt(r.URL.Query().Get("before"), 10, 64)
		versions, err = h.o.Coordinator.ListVersions(ctx, name, max(before, 0), agentVersions)
	}
	var runs wire.RunList
	if err == nil {
		runs, err = h.o.Coordinator.ListRuns(ctx, wire.RunFilter{AgentName: name, Limit: agentRuns})
	}
	var rows []row
	if err == nil {
		rows, err = h.rowsOf(ctx, runs.Runs)
	}
	var before wire.Stored
	if err == nil && shown.Version > 1 {
		before, err = h.o.Coordinator.Blueprint(ctx, name, shown.Version-1)
	}
	if err != nil {
		h.fail(w, r, v, "reading a blueprint", err)
		return
	}
	v.title, v.part = firstLine(name), partAgents
	v.Put("<p class=\"path\"><a href=\"%s\">Agents</a> / <code>%s</code></p>\n<div class=\"title\"><h1>%s</h1><span class=\"dim\">v%s</span>",
		agentsPath, cutText(name, lineLen), cutText(name, lineLen), shown.Version)
	v.PutIf(v.who.Role == wire.Admin, "<a class=\"button\" href=\"%s\">Edit</a>", editPath(name))
	v.PutIf(v.isOperator(), "<a class=\"button\" href=\"%s\">New run</a>", submitPath+"?"+url.Values{"name": {name}}.Encode())
	v.Put("</div>\n")
	v.PutIf(shown.Version != newest.Version, "<p class=\"why asked\">An earlier version: <a href=\"%s\">version %s</a> is the newest.</p>\n",
		agentPath(name), newest.Version)
	v.putDefinition(&shown)
	v.putHooks(&shown)
	v.Put("<section><h2>Newest runs</h2>\n")
	v.PutIf(len(rows) == 0, "<p class=\"dim\">There is no run of it.</p>\n")
	v.putRows(&v.Page, "rows", rows)
	v.PutIf(runs.Next != "", "<p class=\"more\"><a class=\"button\" href=\"%s\">All runs</a></p>\n", query{name: name}.address("runs"))
	v.Put("</section>\n")
	v.putVersions(name, shown, before, versions)
	reply(w, http.StatusOK, v.render())
}

// putDefinition shows what runs of a blueprint do.
func (v *view) putDefinition(s *wire.Stored) {
	v.PutIf(s.Description != "", "<p class=\"text\">%s</p>\n", cutText(s.Description, reasonLen))
	v.Put("<dl class=\"facts\"><div><dt>Type</dt><dd>%s</dd></div><div><dt>Saved</dt><dd>%s</dd></div><div><dt>By</dt><dd>%s</dd></div>",
		cutText(string(s.Type), lineLen), formatWhen(s.Updated, v.now), cutText(s.By, lineLen))
	v.PutIf(len(s.Demands) > 0, "<div><dt>Runners with</dt><dd>%s</dd></div>", cutText(labelsOf(s.Demands), lineLen))
	v.Put("</dl>\n<section><h2>Definition</h2>\n")
	put := func(open bool, name, text string) {
		if text == "" || text == "null" {
			return
		}
		v.Put("<details class=\"card\"")
		v.PutIf(open, " open")
		v.Put("><summary><h3>%s</h3></summary>\n", name)
		putText(&v.Page, text)
		v.Put("</details>\n")
	}
	asText := func(data json.RawMessage) string {
		if len(data) == 0 {
			return ""
		}
		return jsonText(data)
	}
	put(true, "System prompt", s.SystemPrompt)
	put(true, "Agent", asText(s.Agent))
	if s.Command != nil {
		put(true, "Command", strings.Join(s.Command.Argv, " "))
	}
	put(false, "Parameters", asText(s.ParametersSchema))
	put(false, "Output", asText(s.OutputSchema))
	put(false, "All of it", blueprintText(s))
	v.Put("</section>\n")
}

func labelsOf(labels map[string]string) string {
	return strings.Join(lo.Map(slices.Sorted(maps.Keys(labels)), func(name string, _ int) string { return name + "=" + labels[name] }), ", ")
}

// blueprintText returns a blueprint as people edit it.
func blueprintText(s *wire.Stored) string {
	data, _ := json.Marshal(s.Blueprint) //nolint:errchkjson // it was read from JSON
	return jsonText(data)
}

// putHooks shows the hooks of a blueprint, in the order of a run.
func (v *view) putHooks(s *wire.Stored) {
	v.Put("<section id=\"hooks\"><h2>Hooks</h2>\n")
	all := hooksIn(treeOfJSON(s.Hooks), "")
	v.PutIf(len(all) == 0, "<p class=\"dim\">It has no hooks.</p>\n")
	for _, h := range all {
		when, _ := lo.Find(hookPoints, func(o option) bool { return o.value == h.point })
		v.Put("<details class=\"card\"><summary><b>%s</b> %s<span class=\"dim also\">%s", cutText(h.point, lineLen), firstLine(h.title()), when.label)
		for _, name := range []string{"match", "when", "reason", "on_error", "timeout_seconds"} {
			text := h.text(name)
			v.PutIf(text != "", " · %s %s", strings.ReplaceAll(name, "_", " "), firstLine(text))
		}
		v.Put("</span></summary>\n")
		putText(&v.Page, treeText(h.members))
		v.Put("</details>\n")
	}
	if len(s.Definitions) > 0 {
		v.Put("<details class=\"card\"><summary><h3>Definitions</h3></summary>\n")
		putText(&v.Page, jsonText(s.Definitions))
		v.Put("</details>\n")
	}
	v.Put("</section>\n")
}

// putVersions shows how a version differs from the one before, and leads to the others.
func (v *view) putVersions(name string, shown, before wire.Stored, versions []wire.BlueprintVersion) {
	v.Put("<section id=\"versions\"><h2>Versions</h2>\n<h3>What version %s has changed</h3>\n", shown.Version)
	if before.Version == 0 {
		v.Put("<p class=\"dim\">It is the first version.</p>\n")
	} else {
		putTextDiff(&v.Page, blueprintText(&before), blueprintText(&shown))
	}
	v.Put("<ul class=\"rows versions\">\n")
	for _, one := range versions {
		v.Put("<li><a class=\"row\" href=\"%s#versions\"", versionPath(name, one.Version))
		v.PutIf(one.Version == shown.Version, ` aria-current="true"`)
		v.Put("><span class=\"what\">Version %s <span class=\"dim\">by %s</span></span><span class=\"when\">%s</span></a></li>\n",
			one.Version, cutText(one.By, lineLen), formatWhen(one.Updated, v.now))
	}
	v.Put("</ul>\n")
	if n := len(versions); n == agentVersions && versions[n-1].Version > 1 {
		v.Put("<p class=\"more\"><a class=\"button\" href=\"%s&amp;before=%s#versions\">Earlier versions</a></p>\n",
			versionPath(name, shown.Version), versions[n-1].Version)
	}
	v.Put("</section>\n")
}

// diffContext is how many equal lines a diff shows beside changed ones.
const diffContext = 3

// putTextDiff shows how two texts differ, with a few equal lines around each change.
func putTextDiff(out *markup.Page, before, after string) {
	lines := slices.Collect(strings.Lines(approval.Diff(approval.Arguments(before), approval.Arguments(after))))
	if len(lines) == 0 {
		out.Put("<p class=\"dim\">Nothing.</p>\n")
		return
	}
	near := make([]bool, len(lines))
	for i, line := range lines {
		if line[0] != ' ' {
			for k := max(0, i-diffContext); k <= min(len(lines)-1, i+diffContext); k++ {
				near[k] = true
			}
		}
	}
	var b strings.Builder
	for i, line := range lines {
		switch {
		case near[i]:
			b.WriteString(line)
		case i == 0 || near[i-1]:
			b.WriteString("  …\n")
		}
	}
	putLines(out, cutText(b.String(), diffLen))
}
