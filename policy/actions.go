package policy

import (
	"regexp"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/strictjson"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy/internal/points"
)

// actionTypes are the types of actions.
var actionTypes = []string{"command", "shell", "http", "webhook", "mcp_tool", "agent", "spawn", "gate", "prompt", "func"}

var processKeys = []key{
	{"dir", textForm, "The working directory."},
	{"env", newMapping(textForm), "Further variables of its environment."},
	{"inherit", textsForm, "More environment variables of this program to pass on, in addition to the usual ones; a pattern such as AWS_* is possible."},
	{"max_bytes", wholeForm(1, 64<<20), "The most bytes of output to keep."},
}

var httpKeys = []key{
	{"url", textForm, "The URL: https, or http on the loopback interface. ${NAME} stands for a variable after the host, or for a listed environment variable."},
	{"method", textForm, "The method; the default is POST."},
	{"headers", newMapping(textForm), "Headers to send along; ${NAME} as in the URL."},
	{"body", anyForm, "The body, as JSON; ${NAME} in its strings stands for a value. The default is the request."},
	{"fields", textsForm, "The members of the request to send if there is no body."},
	{"env", textsForm, "Environment variables that the URL and the headers may name, in addition to those of the policy."},
	{"private", textsForm, "Private addresses that may be reached, such as 10.1.0.0/16."},
	{"max_bytes", wholeForm(1, 64<<20), "The maximum size of the body and of the answer."},
}

// actionKeys holds the keys for each type of action.
var actionKeys = map[string][]key{
	"command": append([]key{{"argv", list(textForm), "The program and its arguments, without a shell."}}, processKeys...),
	"shell":   append([]key{{"command", textForm, "The command for bash, unchanged; values are in its environment, as \"$NAME\"."}}, processKeys...),
	"http":    httpKeys,
	"webhook": append([]key{{
		"callback_port", wholeForm(1, 65535),
		"The port for the callback, with await. The default is 8765 at the points of pipelines, and any port elsewhere.",
	}}, httpKeys...),
	"mcp_tool": {
		{"server", textForm, "The MCP server's name."},
		{"tool", textForm, "The tool's name."},
		{"arguments", form{"type": "object"}, "The arguments of the call; the default is the request."},
	},
	"agent": {
		{"agent_name", textForm, "The agent's name."},
		{"input", form{"type": "object"}, "The input; the default is the request."},
	},
	"spawn": {
		{"pipeline", textForm, "The pipeline's name."},
		{"inputs", form{"type": "object"}, "The inputs; nothing else is passed."},
	},
	"gate": {
		{"by", oneOf("person", "callback", "file", "command"), "Who opens it."},
		{"webhook", form{"type": "object"}, "By callback: the request that tells a person, with ${CALLBACK_URL}; keys as of an http action."},
		{"port", wholeForm(1, 65535), "By callback: the port to listen on; the default is any port."},
		{"file", textForm, "By file: the file that must appear, or change."},
		{"existing", flagForm, "By file: a file that exists already counts."},
		{"argv", list(textForm), "By command: the program to run repeatedly; exit code 0 opens the gate, 1 means not yet."},
		{"every", timeForm, "The time between two checks."},
		{"reason", textForm, "A sentence for the person who must approve; ${NAME} stands for a value."},
		approversKey, quorumKey,
	},
	"prompt": {
		{"rule", textForm, "The rule by which the model judges."},
		{"model", textForm, "The model; the default is that of the driver."},
		{"max_bytes", wholeForm(1, 64<<20), "The most bytes to show the model."},
	},
	"func": {{"func", textForm, "The name of a Go func that the program has registered."}},
}

// readTask reads an action.
func (l *loader) readTask(e *entry) *task {
	t := &task{kind: e.oneOf("type", actionTypes...), observe: e.flag("observe", false) || !e.point.decides()}
	t.await = e.awaits(t)
	around := e.doc.kind == Blueprints && e.point.Source == points.OfRuns
	if n, given := e.of["request"]; given && !around {
		n.Value.Wrong("%s: request: only a hook around the runs of a blueprint has it (rule: actions)", e.what)
	}
	t.ofRun = around && e.oneOf("request", "run", "full") != "full"
	onTimeout := e.oneOf("on_timeout", lo.Ternary(t.kind == "gate",
		[]string{"abort", "continue", "skip", "reject", "approve"}, []string{"abort", "continue", "skip"})...)
	t.onTimeout = lo.Ternary(onTimeout == "skip", "continue", onTimeout)
	if t.onTimeout == "" && t.kind == "webhook" && t.await {
		t.onTimeout = "abort"
	}
	if t.action = l.declareAction(t, e); t.action == nil {
		return t
	}
	if t.onTimeout == "reject" || t.onTimeout == "approve" {
		t.onTimeout = "" // the gate answers
	}
	_, gate := t.action.(action.Gate)
	if gate && e.point.Name == hooks.SessionComplete {
		e.place("type").Wrong("%s: a %s that waits for an answer at %s holds nothing up: use on_stage_complete of the last stage (rule: waiting)",
			e.what, t.kind, e.key)
	}
	l.noteEnding(e)
	wrongs := append(action.Fields(t.action.Validate()), action.Fields(e.point.CheckValues(t.action, t.observe, e.doc.variables))...)
	for _, wrong := range wrongs {
		e.wrongField(t.kind, wrong)
	}
	for _, w := range t.action.Lint() {
		_, n := e.field(t.kind, w.Field)
		place := n.Place()
		if w.Line > 0 {
			place = n.At(offsetOf(n.Raw(), w.Line, w.Column))
		}
		l.note(place, lo.Ternary(t.kind == "shell" || t.kind == "command", "shell", "action"), e.location().name(), "%s: %s", w.Field, w.Message)
	}
	return t
}

// noteEnding warns about an action at a session's end whose text announces success, because it runs at every end.
func (l *loader) noteEnding(e *entry) {
	if e.point.Name != hooks.SessionComplete || strings.Contains(e.text("when"), "reason") {
		return
	}
	var texts []string
	for _, key := range endingKeys {
		if n := e.at(key); n.Kind() != yamlfile.AbsentNode {
			text, err := strictjson.Marshal(n.Value())
			if err != nil {
				return // other checks report the value
			}
			texts = append(texts, text)
		}
	}
	text := strings.Join(texts, "\n")
	if word := successWord.FindString(text); word != "" && !strings.Contains(text, "reason") {
		l.note(e.place("type"), "action", e.location().name(), "the text says %q, and the hook also runs when the session has failed or was aborted: "+
			"add ${pipeline.reason} to the text, or when: pipeline.reason in ['completed', 'max_iterations']", word)
	}
}

// endingKeys are the keys with texts for a reader, and successWord matches what they say about a success.
var (
	endingKeys  = []string{"command", "argv", "body", "inputs", "input", "arguments"}
	successWord = regexp.MustCompile(`(?i)\b(?:completed?|succeeded|successful(?:ly)?|success|passed)\b|:white_check_mark:|✅`)
)

// offsetOf converts a line and a column, which count from one, to a byte offset.
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

// wrongField reports a mistake in a field of a declared action.
func (e *entry) wrongField(kind string, wrong *action.FieldError) {
	key, n := e.field(kind, wrong.Field)
	n.Wrong("%s: %s: %s (rule: actions)", e.what, key, wrong.Message)
}

// field returns the key for a declared action's field and its node; the node is the action itself if the key is missing.
func (e *entry) field(kind, name string) (key string, at yamlfile.Node) {
	if kind == "agent" && name == "agent" {
		name = "agent_name"
	}
	if kind == "webhook" {
		name = strings.TrimPrefix(name, "webhook.")
	}
	steps := strings.Split(name, ".")
	n, there := e.of[steps[0]]
	if !there {
		return name, e.node
	}
	at = n.Value
	for _, step := range steps[1:] {
		inside := at.Find(step)
		if inside.Kind() == yamlfile.AbsentNode {
			break
		}
		at = inside
	}
	return name, at
}

// awaits reports whether the rule waits for its action.
func (e *entry) awaits(t *task) bool {
	await := e.point.Source != points.OfPipelines || !lo.Contains([]string{"command", "shell", "http", "webhook", "mcp_tool", "func"}, t.kind)
	key := ""
	switch {
	case e.has("await") && (e.text("mode") == "sync" || e.text("mode") == "async"):
		e.place("mode").Wrong("%s: mode: %s and await mean the same: remove one of them", e.what, e.text("mode"))
	case e.has("await"):
		await, key = e.flag("await", await), "await"
	case e.has("mode") && e.text("mode") == "async":
		await, key = false, "mode"
	case e.has("mode") && e.text("mode") == "sync":
		await = true
	}
	switch {
	case await:
	case t.kind == "gate":
		e.place(key).Wrong("%s: a gate requires await: true (rule: waiting)", e.what)
	case e.point.denies() && !t.observe:
		e.place(key).Wrong("%s: at %s the answer of an action may deny, so the rule must wait for it: "+
			"remove this, or set observe: true if the action decides nothing (rule: waiting)", e.what, e.key)
	}
	return await
}

// declareAction returns the action that the rule declares, or nil for an unknown type.
func (l *loader) declareAction(t *task, e *entry) action.Declared {
	f, limit := e.fields, e.timeout()
	waits := t.kind == "gate" || t.kind == "webhook" && t.await // for a person
	switch {
	case limit != 0:
	case t.kind == "shell" && e.point.Source == points.OfPipelines:
		limit = pipelineShellTimeout
	case e.doc.kind == Blueprints && e.point.Source == points.OfRuns && !waits:
		limit = blueprintTimeout
	}
	switch t.kind {
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
		request.Retries, request.RetryDelay = e.resends(t)
		if t.await {
			port := lo.Ternary(e.point.Source == points.OfPipelines, pipelineCallbackPort, 0)
			return action.Gate{
				By: action.GateCallback, Webhook: &request, Port: f.number("callback_port", 1, 65535, port), Timeout: limit,
			}
		}
		request.Timeout = limit
		return request
	case "http":
		request := l.request(e.doc, f, limit)
		request.Retries, request.RetryDelay = e.resends(t)
		return request
	case "mcp_tool":
		return action.MCPTool{Server: f.text("server"), Tool: f.text("tool"), Arguments: f.object("arguments"), Timeout: limit}
	case "agent":
		return action.Agent{Name: f.text("agent_name"), Input: f.object("input"), Timeout: limit}
	case "spawn":
		return action.Spawn{Pipeline: f.text("pipeline"), Inputs: f.object("inputs"), Timeout: limit}
	case "gate":
		return l.gate(t, e, limit)
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
	if found := urlVariable.FindStringSubmatch(h.URL); d.kind == Pipelines && found != nil {
		h.Env = append(h.Env, found[1]) // its value says who gets it
	}
	h.Env = lo.Uniq(h.Env)
	return h
}

// urlVariable matches a URL whose scheme and host are a variable.
var urlVariable = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)\}(?:[/?]|$)`)

func (l *loader) gate(t *task, e *entry, limit time.Duration) action.Declared {
	f := e.fields
	g := action.Gate{
		By: action.GateBy(f.oneOf("by", "person", "callback", "file", "command")), Reason: f.text("reason"),
		Port: f.number("port", 1, 65535, 0), File: f.text("file"), Existing: f.flag("existing", false),
		Argv: f.argv(), Every: f.duration("every"), Timeout: limit,
	}
	g.Approvers, g.Quorum = f.approvers()
	for _, name := range []string{approversKey.name, quorumKey.name} {
		if f.has(name) && (e.point.Name != hooks.PreToolUse || t.observe) {
			e.place(name).Wrong("%s: %s requires a gate at PreToolUse that decides: elsewhere a gate asks the approver of the program", e.what, name)
		}
	}
	if t.onTimeout == "reject" || t.onTimeout == "approve" {
		g.OnTimeout = t.onTimeout
	}
	if f.has("webhook") {
		hook := fieldsOf(f.at("webhook"))
		hook.only("webhook", keyNames(httpKeys, []key{{"timeout", timeForm, ""}}), nil)
		request := l.request(e.doc, hook, hook.duration("timeout"))
		g.Webhook = &request
	}
	return g
}

// object returns a mapping as a value; nil if the key is missing.
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
