package policy

import (
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// actionTypes are the types of actions.
var actionTypes = []string{"command", "shell", "http", "webhook", "mcp_tool", "agent", "spawn", "gate", "prompt", "func"}

var processKeys = []key{
	{"dir", textForm, "Where it runs."},
	{"env", newMapping(textForm), "Further variables of its environment."},
	{"inherit", textsForm, "Variables that it gets from the environment of this program besides the usual ones; a pattern such as AWS_* will do."},
	{"max_bytes", wholeForm(1, 64<<20), "How much of its output is kept."},
}

var httpKeys = []key{
	{"url", textForm, "Where to: https, or http on the loopback. ${NAME} stands for a variable behind the host, or for a listed environment variable."},
	{"method", textForm, "The method; POST if left out."},
	{"headers", newMapping(textForm), "Headers to send along; ${NAME} as in the URL."},
	{"body", anyForm, "What is sent, as JSON; ${NAME} in its strings stands for a value. Left out, it is the request."},
	{"fields", textsForm, "The members of the request that are sent, where there is no body."},
	{"env", textsForm, "Environment variables that the URL and the headers may name, besides those of the policy."},
	{"private", textsForm, "Private addresses that may be reached, such as 10.1.0.0/16."},
	{"max_bytes", wholeForm(1, 64<<20), "How long the body may be, and the answer."},
}

// actionKeys are those that belong to one type of action.
var actionKeys = map[string][]key{
	"command": append([]key{{"argv", list(textForm), "The program and its arguments; no shell reads them."}}, processKeys...),
	"shell":   append([]key{{"command", textForm, "What bash runs, word for word; values are in its environment, as \"$NAME\"."}}, processKeys...),
	"http":    httpKeys,
	"webhook": append([]key{{
		"callback_port", wholeForm(1, 65535),
		"Where to listen for the callback, with await. If left out, 8765 at the points of pipelines, elsewhere any port.",
	}}, httpKeys...),
	"mcp_tool": {
		{"server", textForm, "The MCP server's name."},
		{"tool", textForm, "The tool's name."},
		{"arguments", form{"type": "object"}, "What it is called with; the request if left out."},
	},
	"agent": {
		{"agent_name", textForm, "The agent's name."},
		{"input", form{"type": "object"}, "What it is told; the request if left out."},
	},
	"spawn": {
		{"pipeline", textForm, "The pipeline's name."},
		{"inputs", form{"type": "object"}, "What it is given, and nothing else."},
	},
	"gate": {
		{"by", oneOf("person", "callback", "file", "command"), "Who opens it."},
		{"webhook", form{"type": "object"}, "By callback: the request that tells a person, with ${CALLBACK_URL}; keys as of an http action."},
		{"port", wholeForm(1, 65535), "By callback: where to listen; any port if left out."},
		{"file", textForm, "By file: the file that must appear, or change."},
		{"existing", flagForm, "By file: one that is there already counts."},
		{"argv", list(textForm), "By command: what is asked again and again; 0 is yes, 1 not yet."},
		{"every", timeForm, "How long between two looks."},
		{"reason", textForm, "A sentence for the person who is asked; ${NAME} stands for a value."},
	},
	"prompt": {
		{"rule", textForm, "What is allowed and what is not, for the model that judges."},
		{"model", textForm, "The model; the driver's default if left out."},
		{"max_bytes", wholeForm(1, 64<<20), "How much the model is shown."},
	},
	"func": {{"func", textForm, "The name of a Go func that the program has registered."}},
}

// action reads an action.
func (l *loader) action(r *rule, e *entry) {
	r.kind = e.oneOf("type", actionTypes...)
	r.observe = e.flag("observe", false) || !r.point.decides()
	r.await = l.awaited(r, e)
	r.timeout = l.timeoutOf(e)
	onTimeout := e.oneOf("on_timeout", lo.Ternary(r.kind == "gate",
		[]string{"abort", "continue", "skip", "reject", "approve"}, []string{"abort", "continue", "skip"})...)
	r.onTimeout = lo.Ternary(onTimeout == "skip", "continue", onTimeout)
	if r.onTimeout == "" && r.kind == "webhook" && r.await {
		r.onTimeout = "abort"
	}
	declared := l.declareAction(r, e)
	if declared == nil {
		return
	}
	r.act = declared
	wrongs := append(action.Fields(declared.Validate()), action.Fields(r.point.checkValues(declared, r.observe, e.doc.variables))...)
	for _, wrong := range wrongs {
		n := e.field(r.kind, wrong.Field)
		n.Wrong("%s: %s: %s (rule: actions)", e.what, wrong.Field, wrong.Message)
	}
	for _, w := range declared.Lint() {
		n := e.field(r.kind, w.Field)
		place := n.Place()
		if w.Line > 0 {
			place = n.At(offsetOf(n.Raw(), w.Line, w.Column))
		}
		l.note(place, lo.Ternary(r.kind == "shell" || r.kind == "command", "shell", "action"), r.name(), "%s: %s", w.Field, w.Message)
	}
	r.timeout = declared.Limit()
}

// offsetOf returns the byte of a text at a line and column, which count from one.
func offsetOf(text string, line, column int) int {
	offset := 0
	for ; line > 1; line-- {
		next := strings.IndexByte(text[offset:], '\n')
		if next < 0 {
			return len(text)
		}
		offset += next + 1
	}
	return min(offset+max(column-1, 0), len(text))
}

// field returns where a field of a declared action stands; the action itself for one that
// is not there.
func (e *entry) field(kind, name string) yamlfile.Node {
	if kind == "agent" && name == "agent" {
		name = "agent_name"
	}
	if kind == "webhook" {
		name = strings.TrimPrefix(name, "webhook.")
	}
	name, rest, _ := strings.Cut(name, ".")
	n, there := e.of[name]
	if !there {
		return e.node
	}
	if inside := n.Value.Find(rest); rest != "" && inside.Kind() != yamlfile.AbsentNode {
		return inside
	}
	return n.Value
}

// awaited reads whether the action is waited for.
func (l *loader) awaited(r *rule, e *entry) bool {
	await := r.point.source != ofPipelines || !lo.Contains([]string{"command", "shell", "http", "webhook", "mcp_tool", "func"}, r.kind)
	key := ""
	switch {
	case e.has("await") && (e.text("mode") == "sync" || e.text("mode") == "async"):
		e.place("mode").Wrong("%s: mode: %s and await are two words for one thing: one of them has to go", e.what, e.text("mode"))
	case e.has("await"):
		await, key = e.flag("await", await), "await"
	case e.has("mode") && e.text("mode") == "async":
		await, key = false, "mode"
	case e.has("mode") && e.text("mode") == "sync":
		await = true
	}
	switch {
	case await:
	case r.kind == "gate":
		e.place(key).Wrong("%s: a gate without await holds nothing up (rule: waiting)", e.what)
	case r.point.denies() && !r.observe:
		e.place(key).Wrong("%s: at %s the answer of an action may deny, and one that is not waited for comes too late: "+
			"leave it away, or say observe: true if it is only told (rule: waiting)", e.what, r.point.name)
	}
	return await
}

// declareAction returns the action as it is declared; nil for one whose type is not known.
func (l *loader) declareAction(r *rule, e *entry) action.Declared {
	f, limit := e.fields, r.timeout
	if limit == 0 && r.kind == "shell" && r.point.source == ofPipelines {
		limit = pipelineShellTimeout
	}
	switch r.kind {
	case "command":
		return action.Command{
			Argv: f.argv(), Dir: f.text("dir"), Env: f.stringsOf("env"), Inherit: f.texts("inherit"),
			Timeout: limit, MaxBytes: f.number("max_bytes", 1, 64<<20, 0),
		}
	case "shell":
		return action.Shell{
			Text: f.text("command"), Dir: f.text("dir"), Env: f.stringsOf("env"), Inherit: f.texts("inherit"),
			Timeout: limit, MaxBytes: f.number("max_bytes", 1, 64<<20, 0),
		}
	case "webhook":
		request := l.request(e.doc, f, 0)
		request.Retries, request.RetryDelay = e.resends(r)
		if r.await {
			port := lo.Ternary(r.point.source == ofPipelines, pipelineCallbackPort, 0)
			return action.Gate{
				By: action.GateCallback, Webhook: &request, Port: f.number("callback_port", 1, 65535, port), Timeout: limit,
			}
		}
		request.Timeout = limit
		return request
	case "http":
		request := l.request(e.doc, f, limit)
		request.Retries, request.RetryDelay = e.resends(r)
		return request
	case "mcp_tool":
		return action.MCPTool{Server: f.text("server"), Tool: f.text("tool"), Arguments: f.object("arguments"), Timeout: limit}
	case "agent":
		return action.Agent{Name: f.text("agent_name"), Input: f.object("input"), Timeout: limit}
	case "spawn":
		return action.Spawn{Pipeline: f.text("pipeline"), Inputs: f.object("inputs"), Timeout: limit}
	case "gate":
		return l.gate(r, e, limit)
	case "prompt":
		return action.Prompt{Rule: f.text("rule"), Model: f.text("model"), Timeout: limit, MaxBytes: f.number("max_bytes", 1, 64<<20, 0)}
	case "func":
		return action.Func{Name: f.text("func"), Timeout: limit}
	}
	return nil
}

// request returns an HTTP request.
func (l *loader) request(d *document, f fields, limit time.Duration) action.HTTP {
	h := action.HTTP{
		URL: f.text("url"), Method: f.text("method"), Headers: f.stringsOf("headers"), Fields: f.texts("fields"),
		Private: f.texts("private"), Timeout: limit, MaxBytes: f.number("max_bytes", 1, 64<<20, 0),
		Env: append(f.texts("env"), d.environment...),
	}
	if f.has("body") {
		h.Body = f.at("body").Value()
	}
	if d.kind != Policies { // these files have no list: what they name is meant
		for _, text := range append(lo.Values(h.Headers), h.URL) {
			h.Env = append(h.Env, lo.Without(textOf(text).placeholderNames(), action.VariableNames()...)...)
		}
	}
	h.Env = lo.Uniq(h.Env)
	return h
}

func (l *loader) gate(r *rule, e *entry, limit time.Duration) action.Declared {
	f := e.fields
	g := action.Gate{
		By: action.GateBy(f.oneOf("by", "person", "callback", "file", "command")), Reason: f.text("reason"),
		Port: f.number("port", 1, 65535, 0), File: f.text("file"), Existing: f.flag("existing", false),
		Argv: f.argv(), Every: f.duration("every"), Timeout: limit,
	}
	if r.onTimeout == "reject" || r.onTimeout == "approve" {
		g.OnTimeout, r.onTimeout = r.onTimeout, ""
	}
	if f.has("webhook") {
		hook := fieldsOf(f.at("webhook"))
		hook.only("webhook", keyNames(httpKeys, []key{{"timeout", timeForm, ""}}), nil)
		request := l.request(e.doc, hook, hook.duration("timeout"))
		g.Webhook = &request
	}
	return g
}

// object returns a mapping as a value; nil where there is none.
func (f fields) object(key string) map[string]any {
	n := f.at(key)
	if n.Kind() == yamlfile.AbsentNode {
		return nil
	}
	value, ok := n.Value().(map[string]any)
	if !ok {
		n.Wrong("%s: expected keys with values, got %s", key, n)
	}
	return value
}
