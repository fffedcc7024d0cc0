package policy

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/strictjson"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy/internal/file"
	"github.com/grapnel-go/grapnel/policy/internal/points"
)

// compileTask returns the rule's action. Its action is nil if the type is unknown.
func (c *compiler) compileTask() *task {
	t := &task{kind: c.Type, observe: c.Observe || !c.Point.Decides()}
	t.await = c.awaits(t)
	around := c.doc.Kind == Blueprints && c.Point.Source == points.OfRuns
	if c.Has("request") && !around {
		c.wrong(c.At("request").Place(), "%s: request: only a hook around the runs of a blueprint has it (rule: actions)", c.What)
	}
	t.ofRun = around && c.Request != "full"
	words := []string{"abort", "continue", "skip"}
	if t.kind == "gate" {
		words = append(words, "reject", "approve")
	}
	if t.onTimeout = c.Word("on_timeout", words...); t.onTimeout == "skip" {
		t.onTimeout = "continue"
	}
	if t.onTimeout == "" && t.kind == "webhook" && t.await {
		t.onTimeout = "abort"
	}
	if t.action = c.declareAction(t); t.action == nil {
		return t
	}
	if t.onTimeout == "reject" || t.onTimeout == "approve" {
		t.onTimeout = "" // the gate answers
	}
	if _, gate := t.action.(action.Gate); gate && c.Point.Name == hooks.SessionComplete {
		c.wrongKey("type", "a %s that waits for an answer at %s holds nothing up: use on_stage_complete of the last stage (rule: waiting)",
			t.kind, c.PointKey)
	}
	c.noteEnding()
	wrongs := append(action.Fields(t.action.Validate()), action.Fields(c.Point.CheckValues(t.action, t.observe, c.doc.Variables))...)
	for _, wrong := range wrongs {
		c.wrongField(wrong)
	}
	for _, w := range t.action.Lint() {
		_, n := c.field(w.Field)
		place := n.Place()
		if w.Line > 0 {
			place = n.At(offsetOf(n.Raw(), w.Line, w.Column))
		}
		c.note(place, lo.Ternary(t.kind == "shell" || t.kind == "command", "shell", "action"), c.name(), "%s: %s", w.Field, w.Message)
	}
	return t
}

// noteEnding warns about an action at a session's end whose text announces success, because it runs at every end.
func (c *compiler) noteEnding() {
	if c.Point.Name != hooks.SessionComplete || strings.Contains(c.When, "reason") {
		return
	}
	var texts []string
	for _, key := range endingKeys {
		if n := c.At(key); n.Kind() != yamlfile.AbsentNode {
			text, err := strictjson.Marshal(n.Value())
			if err != nil {
				return // other checks report the value
			}
			texts = append(texts, text)
		}
	}
	text := strings.Join(texts, "\n")
	if word := successWord.FindString(text); word != "" && !strings.Contains(text, "reason") {
		c.note(c.Place("type"), "action", c.name(), "the text says %q, and the hook also runs when the session has failed or was aborted: "+
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
func (c *compiler) wrongField(wrong *action.FieldError) {
	key, n := c.field(wrong.Field)
	c.wrong(n.Place(), "%s: %s: %s (rule: actions)", c.What, key, wrong.Message)
}

// field returns the key for a declared action's field and its node; the node is the action itself if the key is missing.
func (c *compiler) field(name string) (key string, at yamlfile.Node) {
	if c.Type == "agent" && name == "agent" {
		name = "agent_name"
	}
	if c.Type == "webhook" {
		name = strings.TrimPrefix(name, "webhook.")
	}
	steps := strings.Split(name, ".")
	if !c.Has(steps[0]) {
		return name, c.Node
	}
	at = c.At(steps[0])
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
func (c *compiler) awaits(t *task) bool {
	await := c.Point.Source != points.OfPipelines || !lo.Contains([]string{"command", "shell", "http", "webhook", "mcp_tool", "func"}, t.kind)
	key, said := "", c.Manner == "sync" || c.Manner == "async"
	switch {
	case c.Await != nil && said:
		c.wrongKey("mode", "mode: %s and await mean the same: remove one of them", c.Manner)
	case c.Await != nil:
		await, key = *c.Await, "await"
	case said:
		await, key = c.Manner == "sync", "mode"
	}
	switch {
	case await:
	case t.kind == "gate":
		c.wrongKey(key, "a gate requires await: true (rule: waiting)")
	case c.Point.Denies() && !t.observe:
		c.wrongKey(key, "at %s the answer of an action may deny, so the rule must wait for it: "+
			"remove this, or set observe: true if the action decides nothing (rule: waiting)", c.PointKey)
	}
	return await
}

// declareAction returns the action that the rule declares, or nil for an unknown type.
func (c *compiler) declareAction(t *task) action.Declared {
	limit := c.timeout()
	waits := t.kind == "gate" || t.kind == "webhook" && t.await // for a person
	switch {
	case limit != 0:
	case t.kind == "shell" && c.Point.Source == points.OfPipelines:
		limit = pipelineShellTimeout
	case c.doc.Kind == Blueprints && c.Point.Source == points.OfRuns && !waits:
		limit = blueprintTimeout
	}
	switch k := c.Keys.(type) {
	case *file.Command:
		return action.Command{Argv: k.Argv, Dir: k.Dir, Env: k.Env, Inherit: k.Inherit, Timeout: limit, MaxBytes: k.MaxBytes}
	case *file.Shell:
		return action.Shell{Text: k.Text, Dir: k.Dir, Env: k.Env, Inherit: k.Inherit, Timeout: limit, MaxBytes: k.MaxBytes}
	case *file.Webhook:
		request := c.request(k.HTTP, limit)
		request.Retries, request.RetryDelay = c.resends(t)
		if !t.await {
			return request
		}
		request.Timeout = 0
		port := cmp.Or(k.CallbackPort, lo.Ternary(c.Point.Source == points.OfPipelines, pipelineCallbackPort, 0))
		return action.Gate{By: action.GateCallback, Webhook: &request, Port: port, Timeout: limit}
	case *file.HTTP:
		request := c.request(*k, limit)
		request.Retries, request.RetryDelay = c.resends(t)
		return request
	case *file.MCPTool:
		return action.MCPTool{Server: k.Server, Tool: k.Tool, Arguments: k.Arguments, Timeout: limit}
	case *file.Agent:
		return action.Agent{Name: k.Name, Input: k.Input, Timeout: limit}
	case *file.Spawn:
		return action.Spawn{Pipeline: k.Pipeline, Inputs: k.Inputs, Timeout: limit}
	case *file.Gate:
		return c.gate(t, k, limit)
	case *file.Prompt:
		return action.Prompt{Rule: k.Rule, Model: k.Model, Timeout: limit, MaxBytes: k.MaxBytes}
	case *file.Func:
		return action.Func{Name: k.Name, Timeout: limit}
	}
	return nil
}

// request returns an HTTP request.
func (c *compiler) request(k file.HTTP, limit time.Duration) action.HTTP {
	env := slices.Concat(k.Env, c.doc.Environment)
	if found := urlVariable.FindStringSubmatch(k.URL); c.doc.Kind == Pipelines && found != nil {
		env = append(env, found[1]) // its value says who gets it
	}
	return action.HTTP{
		URL: k.URL, Method: k.Method, Headers: k.Headers, Body: k.Body, Fields: k.Fields, Env: lo.Uniq(env), Private: k.Private,
		Timeout: limit, MaxBytes: k.MaxBytes,
	}
}

// urlVariable matches a URL whose scheme and host are a variable.
var urlVariable = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)\}(?:[/?]|$)`)

func (c *compiler) gate(t *task, k *file.Gate, limit time.Duration) action.Declared {
	g := action.Gate{
		By: action.GateBy(k.By), Reason: k.Reason, Approvers: k.Approvers, Quorum: k.Quorum, Port: k.Port, File: k.File,
		Existing: k.Existing, Argv: k.Argv, Every: k.Every, Timeout: limit,
	}
	for _, name := range []string{"approvers", "quorum"} {
		if c.Has(name) && (c.Point.Name != hooks.PreToolUse || t.observe) {
			c.wrongKey(name, "%s requires a gate at PreToolUse that decides: elsewhere a gate asks the approver of the program", name)
		}
	}
	if t.onTimeout == "reject" || t.onTimeout == "approve" {
		g.OnTimeout = t.onTimeout
	}
	if c.Has("webhook") {
		var keys file.GateWebhook
		file.MappingOf(k.Webhook).Decode("webhook", nil, &keys)
		request := c.request(keys.HTTP, keys.Timeout)
		g.Webhook = &request
	}
	return g
}

// resends returns how often a web request is resent when the service is unreachable or overloaded, and after which
// delay. With on_failure: retry the whole action is repeated instead, so the request itself is sent once.
func (c *compiler) resends(t *task) (times int, delay time.Duration) {
	word := cmp.Or(c.OnFailure, c.OnError)
	if word == "" && t.decides() {
		word = c.Defaults.OnFailure
	}
	if word == "retry" {
		return 0, 0
	}
	times = lo.Ternary(t.kind == "webhook" && c.Point.Source == points.OfPipelines, defaultRetries, 0)
	return lo.FromPtrOr(c.Retries, times), cmp.Or(c.RetryDelay, defaultRetryDelay)
}
