package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy/condition"
)

// entry is one rule or action of a file.
type entry struct {
	fields

	doc  *document
	part *part
	at   *point
	key  string // the point's name in the file
	id   string
	what string // its name in errors
	lost bool   // it refers to an unknown definition
}

// loadHooks reads the entries of a part. Their content is read after the whole document, because conditions may name the
// results of actions by id.
func (l *loader) loadHooks(d *document, p *part) {
	for _, e := range entriesOf(p.fields, "hooks") {
		name := e.Key.Raw()
		at := pointNamed(d.kind, name)
		if at == nil {
			e.Key.Wrong("%s (rule: points)", l.unknownPoint(d.kind, name))
			continue
		}
		items := []yamlfile.Node{e.Value}
		if e.Value.Kind() != yamlfile.MappingNode {
			items = e.Value.Items()
		}
		for _, n := range items {
			if n.Kind() != yamlfile.MappingNode {
				n.Wrong("expected a rule or an action, written as keys with values, got %s", n)
				continue
			}
			l.entries = append(l.entries, l.entry(d, p, at, name, n))
		}
	}
}

func (l *loader) unknownPoint(kind Kind, name string) string {
	if name == "on_error" || name == "onError" && kind != Policies {
		return fmt.Sprintf("%q is ambiguous: use AgentFailed, IterationFailed (of a pipeline) or RunFailed (of the coordinator)", name)
	}
	if name == "SessionEnd" {
		return fmt.Sprintf("%q is unknown: use ConversationEnd, or SessionComplete (of a pipeline)", name)
	}
	if at, ok := hooks.PointNamed(name); ok && !kind.fires(at) {
		return fmt.Sprintf("%s does not fire in a %s: put its rules in a policy of the agent", at, kind)
	}
	return yamlfile.Unknown("point of a "+kind.String(), name, pointNames(kind))
}

// entry returns the entry at a point, merged with the definition that it refers to. Key is the point's name in the file.
func (l *loader) entry(d *document, p *part, at *point, key string, n yamlfile.Node) *entry {
	e := &entry{fields: fieldsOf(n), doc: d, part: p, at: at, key: key}
	l.define(e, p.library, nil)
	count := scoped{p.library, string(at.name)}
	d.counts[count]++
	e.id = e.name("id")
	e.what = fmt.Sprintf("rule %q", e.id)
	if e.id == "" {
		e.id = fmt.Sprintf("%s-%d", at.name, d.counts[count])
		e.what = fmt.Sprintf("%s, entry %d", key, d.counts[count])
	}
	return e
}

// define adds the keys of a definition that the entry does not set itself. In is the library policy that contains the
// reference; it is empty for a user's file.
func (l *loader) define(e *entry, in string, above []string) {
	key := e.of["$ref"]
	if key.Value.Kind() == yamlfile.AbsentNode {
		return
	}
	delete(e.of, "$ref")
	e.keys = lo.Without(e.keys, "$ref")
	name, ok := key.Value.Text()
	if !ok {
		return
	}
	from := scoped{in, name}
	if in == "" {
		from = scopedName(name)
	}
	definition, known := e.doc.definitions[from]
	switch {
	case !known:
		key.Value.Wrong("$ref: %s (rule: definitions)", unknownDefinition(e.doc, name))
		e.lost = true
		return
	case slices.Contains(above, from.String()):
		e.lost = true
		key.Value.Wrong("$ref: the definitions form a cycle: %s (rule: definitions)", strings.Join(append(above, from.String()), " > "))
		return
	}
	of := fieldsOf(definition)
	if e.doc.kind == Blueprints {
		of = of.withoutName(name)
	}
	for _, key := range e.keys {
		of = of.put(e.of[key])
	}
	of.node = e.node
	e.fields = of
	l.define(e, from.library, append(above, from.String()))
}

// withoutName returns the keys of a definition of a blueprint without its name, which may be repeated in it.
func (f fields) withoutName(name string) fields {
	key, ok := f.of["name"]
	if !ok {
		return f
	}
	if key.Value.Raw() != name {
		key.Value.Wrong("definitions: %q has the name %s in it: remove one of the two names, or make them equal (rule: names)", name, key.Value)
	}
	delete(f.of, "name")
	f.keys = lo.Without(f.keys, "name")
	return f
}

// unknownDefinition returns the error for an unknown definition. It suggests a definition of the library with that short
// name.
func unknownDefinition(d *document, name string) string {
	known := lo.Map(lo.Keys(d.definitions), func(s scoped, _ int) string { return s.String() })
	slices.Sort(known)
	if full, ok := lo.Find(known, func(one string) bool { return strings.HasSuffix(one, "/"+name) }); ok {
		return fmt.Sprintf("unknown definition %q (did you mean %q?)", name, full)
	}
	return yamlfile.Unknown("definition", name, known)
}

// rule reads an entry.
func (l *loader) rule(e *entry, language *condition.Language) {
	r := &rule{
		doc: e.doc, library: e.part.library, id: e.id, point: e.at, pointKey: e.key, place: e.place("id"), description: e.text("description"), language: language,
		watch: l.options.Watch, now: l.options.Now,
	}
	switch hasDecision, hasType := e.has("decision"), e.has("type"); {
	case hasDecision && hasType:
		e.node.Wrong("%s: decision and action are mutually exclusive: remove one of them (rule: one thing)", e.what)
		return
	case e.lost && !hasDecision && !hasType:
		return
	case !hasDecision && !hasType:
		if key, meant, ok := e.misspelt(); ok {
			key.Wrong("%s: unknown key %q (did you mean %q?)", e.what, key.Raw(), meant)
		} else {
			e.node.Wrong("%s: decision or type is missing: add a decision, or an action by its type (rule: one thing)", e.what)
		}
		return
	case hasDecision:
		e.only(e.what, keyNames(commonKeys, decisionCommon, decisionKeys()[e.text("decision")]), entryAdvice)
		l.decision(r, e)
	default:
		e.only(e.what, keyNames(commonKeys, actionCommon, actionKeys[e.text("type")]), entryAdvice)
		l.action(r, e)
	}
	r.match = matchOf(e.fields.at("match"), e.at)
	r.when = l.condition(e, language)
	l.settings(r, e)
	l.checkFurther(r, e)
	e.doc.rules = append(e.doc.rules, r)
}

// checkFurther reports what Options.Check finds.
func (l *loader) checkFurther(r *rule, e *entry) {
	if l.options.Check == nil {
		return
	}
	for _, wrong := range action.Fields(l.options.Check(r.publicRule(), r.act)) {
		e.wrongField(r.kind, wrong)
	}
}

// misspelt returns an unknown key that was probably meant to be decision or type.
func (e *entry) misspelt() (key yamlfile.Node, meant string, ok bool) {
	known := keyNames(slices.Concat(commonKeys, decisionCommon, actionCommon),
		slices.Concat(lo.Values(decisionKeys())...), slices.Concat(lo.Values(actionKeys)...))
	for _, name := range e.keys {
		meant, _ = yamlfile.Nearest(name, known)
		if !slices.Contains(known, name) && (meant == "decision" || meant == "type") {
			return e.of[name].Key, meant, true
		}
	}
	return yamlfile.Node{}, "", false
}

// entryAdvice returns a hint for keys that belong elsewhere.
func entryAdvice(key string) string {
	for _, d := range decisionNames {
		if lo.Contains(keyNames(decisionKeys()[d]), key) {
			return fmt.Sprintf("%q belongs to decision: %s", key, d)
		}
	}
	if lo.Contains(keyNames(decisionCommon), key) {
		return fmt.Sprintf("%q belongs to decisions: an action decides by its answer", key)
	}
	if lo.Contains(keyNames(actionCommon), key) {
		return fmt.Sprintf("%q belongs to actions, not to decisions", key)
	}
	for _, t := range actionTypes {
		if lo.Contains(keyNames(actionKeys[t]), key) {
			return fmt.Sprintf("%q belongs to type: %s", key, t)
		}
	}
	switch key {
	case "tool", "args":
		return fmt.Sprintf("put %q under match", key)
	case "name":
		return `the name of a rule is its "id", and the name of a definition is its key (rule: names)`
	case "if", "condition":
		return `use "when" for a condition`
	}
	return ""
}

// condition reads a rule's when.
func (l *loader) condition(e *entry, language *condition.Language) *condition.Condition {
	text := e.plain("when")
	if !e.has("when") || language == nil {
		return nil
	}
	compiled, err := language.Compile(text, e.at.name)
	if err != nil {
		l.wrongCondition(e.fields.at("when"), "when", err)
		return nil
	}
	return compiled
}

// settings reads the settings that all rules have: order, time, failure, mode.
func (l *loader) settings(r *rule, e *entry) {
	r.priority = lo.FromPtr(lo.CoalesceOrEmpty(priorityOf(e.fields), e.part.defaults.priority))
	l.mode(r, e)
	l.failure(r, e)
}

// mode reads whether the rule is enforced or in shadow.
func (l *loader) mode(r *rule, e *entry) {
	word := ""
	if e.has("mode") {
		word = e.oneOf("mode", lo.Ternary(r.act == nil, []string{"enforce", "shadow"}, []string{"enforce", "shadow", "sync", "async"})...)
	}
	switch {
	case r.judges():
		r.shadow = word == "shadow" || word != "enforce" && e.part.defaults.shadow
	case word == "shadow":
		e.place("mode").Wrong("%s: mode: shadow requires a rule that decides (rule: shadow)", e.what)
	}
	if !e.has("waiver") {
		return
	}
	if !r.judges() {
		e.place("waiver").Wrong("%s: waiver requires a rule that decides (rule: shadow)", e.what)
		return
	}
	f := fieldsOf(e.fields.at("waiver"))
	f.only("waiver", keyNames(waiverKeys), nil)
	w := &Waiver{Owner: f.text("owner"), Reason: f.text("reason")}
	for key, value := range map[string]string{"owner": w.Owner, "reason": w.Reason, "expires": f.plain("expires")} {
		if value == "" {
			f.node.Wrong("waiver: the key %q is missing: a waiver requires an owner, a reason and an expiry date (rule: waivers)", key)
		}
	}
	if text := f.plain("expires"); text != "" {
		var err error
		if w.Expires, err = time.Parse(time.DateOnly, text); err != nil {
			if w.Expires, err = time.Parse(time.RFC3339, text); err != nil {
				f.at("expires").Wrong("expires: expected a day such as 2026-12-31, or a time such as 2026-12-31T12:00:00Z, got %s", f.at("expires"))
			}
		}
	}
	r.waiver = w
}

// failure reads the failure policy and the time limit.
func (l *loader) failure(r *rule, e *entry) {
	if e.has("on_failure") && e.has("on_error") {
		e.place("on_error").Wrong("%s: on_error is another name for on_failure: remove one of them", e.what)
	}
	f, key := e.fields, lo.Ternary(e.has("on_error"), "on_error", "on_failure")
	if !e.has(key) && e.part.defaults.onFailure.has("on_failure") && r.judges() {
		f, key = e.part.defaults.onFailure, "on_failure"
	}
	word := f.oneOf(key, failureWords...)
	for _, needs := range []string{"retries", "retry_delay", "then"} {
		if e.has(needs) && word != "retry" && (needs == "then" || !r.sends()) {
			e.place(needs).Wrong("%s: %s requires on_failure: retry (rule: failure)", e.what, needs)
		}
	}
	for _, own := range []string{"retries", "retry_delay", "then"} {
		if e.has(own) {
			f = f.with(e.of[own])
		}
	}
	r.failure, r.onFailure = l.policyOf(r, f, key, word), word
	if r.timeout == 0 {
		r.timeout = l.timeoutOf(e)
	}
}

func (l *loader) timeoutOf(e *entry) time.Duration {
	if e.has("timeout") && e.has("timeout_seconds") {
		e.place("timeout_seconds").Wrong("%s: timeout_seconds is another name for timeout: remove one of them", e.what)
	}
	if e.has("timeout_seconds") {
		return e.duration("timeout_seconds")
	}
	if e.has("timeout") {
		return e.duration("timeout")
	}
	return e.part.defaults.timeout.duration("timeout")
}

var failureWords = []string{"closed", "open", "abort", "retry", "continue", "block", "ignore"}

// checkAbort reports a rule that could abort a run only after its end.
func (*loader) checkAbort(r *rule, f fields, key string) {
	if r.point.name == hooks.ExecutionEnd || r.point.name == hooks.InterventionStopped {
		f.place(key).Wrong(`"abort": the run has ended at %s, so its failure cannot abort it: use open (rule: failure)`, r.pointKey)
	}
}

// policyOf returns the failure policy for a word.
func (l *loader) policyOf(r *rule, f fields, key, word string) hooks.FailurePolicy {
	control := r.judges()
	otherwise := lo.Ternary(control && r.point.source != ofPipelines, hooks.Closed, hooks.Open)
	if _, isGate := r.act.(action.Gate); isGate && r.await && control && r.point.source == ofPipelines {
		otherwise = hooks.Abort // a gate without an answer stays closed
	}
	switch word {
	case "closed", "block":
		switch {
		case control:
			return hooks.Closed
		case r.point.source == ofAgents:
			f.place(key).Wrong("%q: a rule at %s cannot deny, so it cannot fail closed: remove it, or use abort (rule: failure)",
				word, r.pointKey)
		}
		return hooks.Open
	case "open", "continue", "ignore":
		return hooks.Open
	case "abort":
		if r.act != nil && !r.await {
			f.place(key).Wrong("%q: its failure has no effect unless the rule waits for it: set await: true (rule: waiting)", word)
		}
		l.checkAbort(r, f, key)
		return hooks.Abort
	case "retry":
		delay := defaultRetryDelay
		if f.has("retry_delay") {
			delay = f.duration("retry_delay")
		}
		r.tries = f.number("retries", 0, 100, r.defaultRetries())
		r.delay = delay
		policies := map[string]hooks.FailurePolicy{"closed": hooks.Closed, "open": hooks.Open, "abort": hooks.Abort, "": otherwise}
		then := policies[f.oneOf("then", "closed", "open", "abort")]
		if f.plain("then") == "abort" {
			l.checkAbort(r, f, "then")
		}
		if !control && f.plain("then") == "closed" {
			f.place("then").Wrong(`"closed": a rule at %s cannot deny, so it cannot fail closed (rule: failure)`, r.pointKey)
		}
		if r.act != nil && !r.await {
			return hooks.Open
		}
		return hooks.Retry(r.tries, delay, then)
	}
	return otherwise
}

// The default number and delay of retries and, at the points of pipelines, the default time limit of a shell action
// and the default port of a callback. In blueprints, the time limit of hooks around runs does not depend on their type.
const (
	defaultRetries       = 3
	defaultRetryDelay    = 5 * time.Second
	pipelineShellTimeout = 300 * time.Second
	blueprintTimeout     = 300 * time.Second
	pipelineCallbackPort = 8765
)

// defaultRetries returns the default number of retries with on_failure: retry. At the points of pipelines a failed
// pipeline is not started again.
func (r *rule) defaultRetries() int {
	if r.kind == "spawn" && r.point.source == ofPipelines {
		return 0
	}
	return defaultRetries
}

// sends reports whether the rule is a web request, which can be resent without asking the rule again.
func (r *rule) sends() bool { return r.kind == "http" || r.kind == "webhook" }

// resends returns how often a web request is resent when the service is unreachable or overloaded, and after which
// delay. With on_failure: retry the whole action is repeated instead, so the request itself is sent once.
func (e *entry) resends(r *rule) (times int, delay time.Duration) {
	word := e.fields.at("on_failure").Raw() + e.fields.at("on_error").Raw()
	if word == "" && r.await && !r.observe {
		word = e.part.defaults.onFailure.at("on_failure").Raw()
	}
	if word == "retry" {
		return 0, 0
	}
	otherwise := 0
	if r.kind == "webhook" && r.point.source == ofPipelines {
		otherwise = defaultRetries
	}
	delay = defaultRetryDelay
	if e.has("retry_delay") {
		delay = e.duration("retry_delay")
	}
	return e.number("retries", 0, 100, otherwise), delay
}
