package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/near"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy/internal/condition"
	"github.com/grapnel-go/grapnel/policy/internal/points"
)

// entry is one rule or action in a file.
type entry struct {
	fields

	doc   *document
	part  *part
	point *point
	key   string // the point's name in the file
	id    string
	what  string // its name in errors
	lost  bool   // it refers to an unknown definition
}

// entries returns the rules and actions in a part, merged with the definitions that they use.
func (d *document) entries(p *part) (all []*entry) {
	for _, e := range entriesOf(p.fields, "hooks") {
		name := e.Key.Raw()
		at := pointNamed(d.kind, name)
		if at == nil {
			e.Key.Wrong("%s (rule: points)", unknownPoint(d.kind, name))
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
			all = append(all, d.entry(p, at, name, n))
		}
	}
	return all
}

func unknownPoint(kind Kind, name string) string {
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
func (d *document) entry(p *part, at *point, key string, n yamlfile.Node) *entry {
	e := &entry{fields: fieldsOf(n), doc: d, part: p, point: at, key: key}
	e.mergeDefinition(p.library, nil)
	count := scoped{p.library, string(at.Name)}
	d.counts[count]++
	e.id = e.name("id")
	e.what = fmt.Sprintf("rule %q", e.id)
	if e.id == "" {
		e.id = fmt.Sprintf("%s-%d", at.Name, d.counts[count])
		e.what = fmt.Sprintf("%s, entry %d", key, d.counts[count])
	}
	return e
}

// mergeDefinition adds the keys of the definition in $ref, unless the entry sets them itself. In is the library policy that contains the
// reference; it is empty for a user's file.
func (e *entry) mergeDefinition(in string, above []string) {
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
	e.mergeDefinition(from.library, append(above, from.String()))
}

// withoutName returns the keys of a blueprint's definition without its name, which may be repeated in it.
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

// location returns the rule's name and place.
func (e *entry) location() location {
	return location{doc: e.doc, library: e.part.library, id: e.id, description: e.text("description"), place: e.place("id")}
}

// readRule reads an entry. It returns nil if the entry has no decision and no known type of action.
func (l *loader) readRule(e *entry) *rule {
	r := &rule{location: e.location(), point: e.point}
	switch hasDecision, hasType := e.has("decision"), e.has("type"); {
	case hasDecision && hasType:
		e.node.Wrong("%s: decision and action are mutually exclusive: remove one of them (rule: one thing)", e.what)
		return nil
	case e.lost && !hasDecision && !hasType:
		return nil
	case !hasDecision && !hasType:
		if key, meant, ok := e.misspelt(); ok {
			key.Wrong("%s: unknown key %q (did you mean %q?)", e.what, key.Raw(), meant)
		} else {
			e.node.Wrong("%s: decision or type is missing: add a decision, or an action by its type (rule: one thing)", e.what)
		}
		return nil
	case hasDecision:
		if !e.has("id") {
			e.place("decision").Wrong("%s: the key %q is missing: events and denials identify the rule by it (rule: names)", e.what, "id")
		}
		e.only(e.what, keyNames(commonKeys, decisionCommon, decisionKeys()[e.text("decision")]), entryAdvice)
		r.decision = l.readDecision(e)
	default:
		e.only(e.what, keyNames(commonKeys, actionCommon, actionKeys[e.text("type")]), entryAdvice)
		r.task = l.readTask(e)
	}
	r.match, r.when = matchOf(e.at("match"), e.point), l.readCondition(e)
	r.failure = e.failure(r)
	r.priority = lo.FromPtr(lo.CoalesceOrEmpty(priorityOf(e.fields), e.part.defaults.priority))
	r.shadow, r.waiver = e.isShadow(r), e.waiver(r)
	if r.task != nil && r.task.action == nil {
		return nil // an unknown type
	}
	if l.options.Check != nil {
		for _, wrong := range action.Fields(l.options.Check(r.public(), lo.FromPtr(r.task).action)) {
			e.wrongField(r.kind(), wrong)
		}
	}
	return r
}

// misspelt returns an unknown key that was probably meant to be decision or type.
func (e *entry) misspelt() (key yamlfile.Node, meant string, ok bool) {
	known := keyNames(slices.Concat(commonKeys, decisionCommon, actionCommon),
		slices.Concat(lo.Values(decisionKeys())...), slices.Concat(lo.Values(actionKeys)...))
	for _, name := range e.keys {
		meant, _ = near.Name(name, known)
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

// readCondition reads a rule's when.
func (l *loader) readCondition(e *entry) *condition.Condition {
	text := e.plain("when")
	if !e.has("when") || e.doc.language == nil {
		return nil
	}
	compiled, err := e.doc.language.Compile(text, e.point.Name)
	if err != nil {
		l.wrongCondition(e.at("when"), "when", err)
		return nil
	}
	return compiled
}

// isShadow reports whether the rule is in shadow.
func (e *entry) isShadow(r *rule) bool {
	word := ""
	if e.has("mode") {
		word = e.oneOf("mode", lo.Ternary(r.task == nil, []string{"enforce", "shadow"}, []string{"enforce", "shadow", "sync", "async"})...)
	}
	if word == "shadow" && !r.judges() {
		e.place("mode").Wrong("%s: mode: shadow requires a rule that decides (rule: shadow)", e.what)
	}
	return r.judges() && (word == "shadow" || word != "enforce" && e.part.defaults.shadow)
}

// waiver reads the rule's waiver; nil if it has none.
func (e *entry) waiver(r *rule) *Waiver {
	if !e.has("waiver") {
		return nil
	}
	if !r.judges() {
		e.place("waiver").Wrong("%s: waiver requires a rule that decides (rule: shadow)", e.what)
		return nil
	}
	f := fieldsOf(e.at("waiver"))
	f.only("waiver", keyNames(waiverKeys), nil)
	w := &Waiver{Owner: f.text("owner"), Reason: f.text("reason")}
	for _, key := range keyNames(waiverKeys) {
		if f.at(key).Raw() == "" {
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
	return w
}

// failure reads the failure policy and the time limit.
func (e *entry) failure(r *rule) failure {
	if e.has("on_failure") && e.has("on_error") {
		e.place("on_error").Wrong("%s: on_error is another name for on_failure: remove one of them", e.what)
	}
	f, key := e.fields, lo.Ternary(e.has("on_error"), "on_error", "on_failure")
	if !e.has(key) && e.part.defaults.has("on_failure") && r.judges() {
		f, key = e.part.defaults.fields, "on_failure"
	}
	word := f.oneOf(key, failureWords...)
	for _, needs := range []string{"retries", "retry_delay", "then"} {
		if e.has(needs) && word != "retry" && (needs == "then" || r.task == nil || !r.task.sends()) {
			e.place(needs).Wrong("%s: %s requires on_failure: retry (rule: failure)", e.what, needs)
		}
	}
	for _, own := range []string{"retries", "retry_delay", "then"} {
		if e.has(own) {
			f = f.with(e.of[own])
		}
	}
	out := failure{word: word, timeout: e.timeout()}
	if word != "retry" {
		out.policy = e.failurePolicy(r, f, key, word)
		return out
	}
	out.delay = defaultRetryDelay
	if f.has("retry_delay") {
		out.delay = f.duration("retry_delay")
	}
	out.retries = f.number("retries", 0, 100, r.defaultRetries())
	out.policy = hooks.Open
	if then := e.failurePolicy(r, f, "then", f.oneOf("then", "closed", "open", "abort")); r.task == nil || r.task.await {
		out.policy = hooks.Retry(out.retries, out.delay, then)
	}
	return out
}

// failurePolicy returns the failure policy that a key names.
func (e *entry) failurePolicy(r *rule, f fields, key, word string) hooks.FailurePolicy {
	control, waits := r.judges(), r.task == nil || r.task.await
	switch word {
	case "closed", "block":
		if !control && (e.point.Source == points.OfAgents || key == "then") {
			f.place(key).Wrong("%q: a rule at %s cannot deny, so it cannot fail closed: remove it, or use abort (rule: failure)", word, e.key)
		}
		return lo.Ternary(control, hooks.Closed, hooks.Open)
	case "open", "continue", "ignore":
		return hooks.Open
	case "abort":
		if !waits && key != "then" {
			f.place(key).Wrong("%q: its failure has no effect unless the rule waits for it: set await: true (rule: waiting)", word)
		}
		if e.point.Name == hooks.ExecutionEnd || e.point.Name == hooks.InterventionStopped {
			f.place(key).Wrong(`"abort": the run has ended at %s, so its failure cannot abort it: use open (rule: failure)`, e.key)
		}
		return hooks.Abort
	}
	if _, gate := lo.FromPtr(r.task).action.(action.Gate); gate && control && e.point.Source == points.OfPipelines {
		return hooks.Abort // a gate without an answer stays closed
	}
	return lo.Ternary(control && e.point.Source != points.OfPipelines, hooks.Closed, hooks.Open)
}

// timeout returns the time limit in the file; zero for the default.
func (e *entry) timeout() time.Duration {
	if e.has("timeout") && e.has("timeout_seconds") {
		e.place("timeout_seconds").Wrong("%s: timeout_seconds is another name for timeout: remove one of them", e.what)
	}
	if e.has("timeout_seconds") {
		return e.duration("timeout_seconds")
	}
	if e.has("timeout") {
		return e.duration("timeout")
	}
	return e.part.defaults.duration("timeout")
}

var failureWords = []string{"closed", "open", "abort", "retry", "continue", "block", "ignore"}

// The defaults for retries and, at pipeline points, for a shell action's time limit and a callback's port. In blueprints,
// hooks of every type around runs have the same time limit.
const (
	defaultRetries       = 3
	defaultRetryDelay    = 5 * time.Second
	pipelineShellTimeout = 300 * time.Second
	blueprintTimeout     = 300 * time.Second
	pipelineCallbackPort = 8765
)

// defaultRetries returns the default number of retries with on_failure: retry. At pipeline points, a failed pipeline is
// not started again.
func (r *rule) defaultRetries() int {
	if r.kind() == "spawn" && r.point.Source == points.OfPipelines {
		return 0
	}
	return defaultRetries
}

// resends returns how often a web request is resent when the service is unreachable or overloaded, and after which
// delay. With on_failure: retry the whole action is repeated instead, so the request itself is sent once.
func (e *entry) resends(t *task) (times int, delay time.Duration) {
	word := e.at("on_failure").Raw() + e.at("on_error").Raw()
	if word == "" && t.decides() {
		word = e.part.defaults.at("on_failure").Raw()
	}
	if word == "retry" {
		return 0, 0
	}
	otherwise := 0
	if t.kind == "webhook" && e.point.Source == points.OfPipelines {
		otherwise = defaultRetries
	}
	delay = defaultRetryDelay
	if e.has("retry_delay") {
		delay = e.duration("retry_delay")
	}
	return e.number("retries", 0, 100, otherwise), delay
}
