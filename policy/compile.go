package policy

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy/internal/condition"
	"github.com/grapnel-go/grapnel/policy/internal/file"
	"github.com/grapnel-go/grapnel/policy/internal/points"
	"github.com/grapnel-go/grapnel/policy/internal/provenance"
	"github.com/grapnel-go/grapnel/policy/tools"
)

// findings are what compiling a document has found.
type findings struct {
	mistakes []mistake
	warnings []Warning
}

// mistake is an error at a place in a file.
type mistake struct {
	at  yamlfile.Place
	err error
}

// wrong adds a mistake.
func (f *findings) wrong(at yamlfile.Place, format string, args ...any) {
	f.mistakes = append(f.mistakes, mistake{at, fmt.Errorf(format, args...)})
}

// note adds a warning.
func (f *findings) note(at yamlfile.Place, code, rule, format string, args ...any) {
	f.warnings = append(f.warnings, warningAt(at, code, rule, format, args...))
}

// document is a policy with its compiled rules.
type document struct {
	*file.Document

	rules    []*rule
	tracker  *provenance.Tracker
	language *condition.Language // nil if it is invalid
}

// compile compiles a document's rules.
func compile(d *file.Document, o Options) (*document, findings) {
	out, found := &document{Document: d}, findings{}
	out.readLanguage(o.Dir, &found)
	for _, r := range d.Rules {
		if o.Points != nil && !slices.Contains(o.Points, r.Point.Name) {
			continue
		}
		c := &compiler{r, &found, location{out, r.Library, r.ID, "", r.Description, r.Place("id")}}
		if compiled := c.compile(o); compiled != nil {
			out.rules = append(out.rules, compiled)
		}
	}
	return out, found
}

// readLanguage sets the language for the document's conditions, and the tracker whose functions it has.
func (d *document) readLanguage(dir string, found *findings) {
	var sources provenance.Sources
	for _, n := range d.Sources {
		var more provenance.Sources
		if !n.Decode(&more) {
			continue
		}
		if err := more.Validate(); err != nil {
			found.wrong(n.Place(), "sources: %w", err)
			continue
		}
		sources = sources.With(more)
	}
	var table tools.Table
	for _, n := range slices.Backward(d.Tools) { // the file that includes others wins
		var more tools.Table
		if !n.Decode(&more) {
			continue
		}
		if err := more.Validate(); err != nil {
			found.wrong(n.Place(), "tools: %w", err)
			continue
		}
		table = table.With(more)
	}
	var err error
	if d.tracker, err = provenance.New(provenance.Options{Sources: sources, Tools: table}); err != nil {
		found.wrong(d.Place, "%w", err)
		return
	}
	actions := lo.FilterMap(d.Rules, func(r *file.Rule, _ int) (string, bool) {
		return r.ID, r.Type != "" && r.Library == "" // rules of the library have no actions
	})
	d.language, err = condition.New(condition.Options{
		Variables: d.Variables, Actions: actions, Workspace: dir, Functions: d.tracker.Functions(),
	})
	if err != nil {
		found.wrong(d.Place, "%w", err)
	}
}

// compiler compiles one rule.
type compiler struct {
	*file.Rule
	*findings
	location
}

// wrongKey adds a mistake at a key, or at the rule if it does not have the key.
func (c *compiler) wrongKey(key, format string, args ...any) {
	c.wrong(c.Place(key), "%s: %w", c.What, fmt.Errorf(format, args...))
}

// compile returns the rule; nil if its type of action is unknown.
func (c *compiler) compile(o Options) *rule {
	r := &rule{location: c.location, point: c.Point}
	if c.Has("decision") {
		r.decision = c.compileDecision()
	} else {
		r.task = c.compileTask()
	}
	r.match = c.compileMatch()
	if c.Has("when") && c.doc.language != nil {
		var err error
		if r.when, err = c.doc.language.Compile(c.When, c.Point.Name); err != nil {
			c.wrongCondition(c.At("when"), "when", err)
		}
	}
	r.failure = c.compileFailure(r)
	r.priority = lo.FromPtr(cmp.Or(c.Priority, c.Defaults.Priority))
	r.shadow, r.waiver = c.isShadow(r), c.compileWaiver(r)
	if r.task != nil && r.task.action == nil {
		return nil
	}
	if o.Check != nil {
		for _, wrong := range action.Fields(o.Check(r.public(), lo.FromPtr(r.task).action)) {
			c.wrongField(wrong)
		}
	}
	return r
}

// isShadow reports whether the rule is in shadow.
func (c *compiler) isShadow(r *rule) bool {
	word := c.Enforced + c.Manner
	if word == "shadow" && !r.judges() {
		c.wrongKey("mode", "mode: shadow requires a rule that decides (rule: shadow)")
	}
	return r.judges() && (word == "shadow" || word != "enforce" && c.Defaults.Mode == "shadow")
}

// compileWaiver returns the rule's waiver; nil if it has none.
func (c *compiler) compileWaiver(r *rule) *Waiver {
	switch {
	case !c.Has("waiver"):
		return nil
	case !r.judges():
		c.wrongKey("waiver", "waiver requires a rule that decides (rule: shadow)")
		return nil
	}
	var keys file.Waiver
	m := file.MappingOf(c.Waiver)
	m.Decode("waiver", nil, &keys)
	for _, key := range []string{"owner", "reason", "expires"} {
		if m.At(key).Raw() == "" {
			c.wrong(m.Node.Place(), "waiver: the key %q is missing: a waiver requires an owner, a reason and an expiry date (rule: waivers)", key)
		}
	}
	w := &Waiver{Owner: keys.Owner, Reason: keys.Reason}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if expires, err := time.Parse(layout, keys.Expires); err == nil {
			w.Expires = expires
		}
	}
	if n := m.At("expires"); keys.Expires != "" && w.Expires.IsZero() {
		c.wrong(n.Place(), "expires: expected a day such as 2026-12-31, or a time such as 2026-12-31T12:00:00Z, got %s", n)
	}
	return w
}

// compileFailure returns what happens when the rule fails, and its time limit.
func (c *compiler) compileFailure(r *rule) failure {
	word, place, retries, delay := c.OnFailure, c.Place("on_failure"), c.Retries, c.RetryDelay
	then, thenPlace := c.Then, c.Place("then")
	switch d := c.Defaults; {
	case c.Has("on_failure") && c.Has("on_error"):
		c.wrongKey("on_error", "on_error is another name for on_failure: remove one of them")
	case c.Has("on_error"):
		word, place = c.OnError, c.Place("on_error")
	case !c.Has("on_failure") && d.Has("on_failure") && r.judges():
		word, place = d.OnFailure, d.Place("on_failure")
		retries, delay = cmp.Or(retries, d.Retries), cmp.Or(delay, d.RetryDelay)
		if !c.Has("then") {
			then, thenPlace = d.Then, d.Place("then")
		}
	}
	for _, key := range []string{"retries", "retry_delay", "then"} {
		if c.Has(key) && word != "retry" && (key == "then" || r.task == nil || !r.task.sends()) {
			c.wrongKey(key, "%s requires on_failure: retry (rule: failure)", key)
		}
	}
	out := failure{word: word, timeout: c.timeout()}
	if word != "retry" {
		out.policy = c.failurePolicy(r, word, place, false)
		return out
	}
	out.delay, out.retries = cmp.Or(delay, defaultRetryDelay), lo.FromPtrOr(retries, r.defaultRetries())
	out.policy = hooks.Open
	if last := c.failurePolicy(r, then, thenPlace, true); r.task == nil || r.task.await {
		out.policy = hooks.Retry(out.retries, out.delay, last)
	}
	return out
}

// failurePolicy returns the failure policy that a word names: at first, or after the last retry.
func (c *compiler) failurePolicy(r *rule, word string, at yamlfile.Place, last bool) hooks.FailurePolicy {
	control := r.judges()
	switch word {
	case "closed", "block":
		if !control && (c.Point.Source == points.OfAgents || last) {
			c.wrong(at, "%q: a rule at %s cannot deny, so it cannot fail closed: remove it, or use abort (rule: failure)", word, c.PointKey)
		}
		return lo.Ternary(control, hooks.Closed, hooks.Open)
	case "open", "continue", "ignore":
		return hooks.Open
	case "abort":
		if r.task != nil && !r.task.await && !last {
			c.wrong(at, "%q: its failure has no effect unless the rule waits for it: set await: true (rule: waiting)", word)
		}
		if c.Point.Name == hooks.ExecutionEnd || c.Point.Name == hooks.InterventionStopped {
			c.wrong(at, `"abort": the run has ended at %s, so its failure cannot abort it: use open (rule: failure)`, c.PointKey)
		}
		return hooks.Abort
	}
	if _, gate := lo.FromPtr(r.task).action.(action.Gate); gate && control && c.Point.Source == points.OfPipelines {
		return hooks.Abort // a gate without an answer stays closed
	}
	return lo.Ternary(control && c.Point.Source != points.OfPipelines, hooks.Closed, hooks.Open)
}

// timeout returns the time limit in the file; zero for the default.
func (c *compiler) timeout() time.Duration {
	if c.Has("timeout") && c.Has("timeout_seconds") {
		c.wrongKey("timeout_seconds", "timeout_seconds is another name for timeout: remove one of them")
	}
	return cmp.Or(c.TimeLimit, c.Timeout, c.Defaults.Timeout)
}

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
