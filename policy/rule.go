package policy

import (
	"slices"
	"time"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy/internal/condition"
	"github.com/grapnel-go/grapnel/policy/internal/file"
	"github.com/grapnel-go/grapnel/policy/internal/points"
	"github.com/grapnel-go/grapnel/policy/library"
)

// rule is one rule or action in a policy. It does not change.
type rule struct {
	location

	point *points.Point
	order int // position among the rules at its point, from one
	match match
	when  *condition.Condition // nil if the rule applies to everything that it matches

	decision *decision // nil for an action
	task     *task     // nil for a rule with a decision
	failure  failure

	priority int
	shadow   bool
	waiver   *Waiver
}

// location is the name of a rule, and where it is written.
type location struct {
	doc         *document
	library     string // the library policy that contains it; empty for a user's rule
	id          string
	suffix      string // added to the name of its hook
	description string
	place       yamlfile.Place
}

// decision is a rule's decision, with the words that go with it.
type decision struct {
	word     string // such as deny
	reason   template
	context  template
	metadata map[string]*condition.Expression

	question agent.Question                   // for ask
	set      map[string]*condition.Expression // for rewrite
	remove   []string                         // for rewrite
	result   template                         // for mock and replace
	isError  bool                             // for mock
	scrub    *scrubber                        // for redact
}

// task is the action that a rule performs.
type task struct {
	kind      string // its type in the file
	action    action.Declared
	await     bool
	observe   bool
	ofRun     bool // it receives only what is about a coordinator's run
	onTimeout string
}

// decides reports whether the task's answer counts.
func (t *task) decides() bool { return t.await && !t.observe }

// sends reports whether the task is a web request, which can be resent without asking the rule again.
func (t *task) sends() bool { return t.kind == "http" || t.kind == "webhook" }

// failure says what happens when a rule fails to decide, or takes too long.
type failure struct {
	policy  hooks.FailurePolicy
	word    string        // for policy in the file; empty for the default
	timeout time.Duration // as the file has it; zero for the default
	retries int           // with on_failure: retry
	delay   time.Duration // between retries
}

// Waiver puts a rule in shadow until a day.
type Waiver struct {
	// Owner is the person responsible for the waiver, and Reason its reason.
	Owner  string `json:"owner"`
	Reason string `json:"reason"`
	// Expires is the time at which the rule is enforced again.
	Expires time.Time `json:"expires"`
}

// over reports whether the waiver has ended.
func (w *Waiver) over() bool { return !time.Now().Before(w.Expires) }

// name returns the hook's name.
func (l location) name() string { return l.policyName() + "/" + l.id + l.suffix }

// policyName returns the policy in the rule's name: its own, or the library's.
func (l location) policyName() string {
	if l.library != "" {
		return library.Prefix + l.library
	}
	return l.doc.Name
}

// version returns the version of the policy that policyName names.
func (l location) version() string {
	if l.library != "" {
		return l.doc.Versions[l.library]
	}
	return l.doc.Version
}

// kind returns the decision, or the action's type.
func (r *rule) kind() string {
	if r.task != nil {
		return r.task.kind
	}
	return r.decision.word
}

// judges reports whether the rule's answer counts.
func (r *rule) judges() bool { return r.task == nil || r.task.decides() }

// turn returns the rule's position in calling order, in which observers come last.
func (r *rule) turn() int {
	if r.task != nil && r.task.observe {
		return maxRules + r.order
	}
	return r.order
}

// timeLimit returns the hook's time limit; zero for the default.
func (r *rule) timeLimit() time.Duration {
	switch {
	case r.task == nil:
		return r.failure.timeout
	case r.task.await:
		return r.task.action.Limit()
	}
	return 0
}

// mode returns the rule's current mode.
func (r *rule) mode() string {
	switch {
	case !r.judges():
		return "observe"
	case r.shadow:
		return "shadow"
	case r.waiver != nil && !r.waiver.over():
		return "waived"
	}
	return "enforce"
}

// origin describes the rule in hooks and events.
func (r *rule) origin() *hooks.Origin {
	o := &hooks.Origin{
		Policy: r.policyName(), Version: r.version(), Hash: r.doc.Hash, Rule: r.id, Required: r.doc.Required, Layer: r.doc.Layer,
		OnFailure: r.failure.word, File: r.place.File(), Line: r.place.Line,
	}
	if r.task != nil {
		o.Action, o.Target = r.task.kind, action.TargetOf(r.task.action)
	}
	return o
}

// looksBack reports whether the rule uses the results of earlier actions.
func (r *rule) looksBack() bool {
	back := []string{"actions", "LAST_HOOK_STATUS", "HOOK_RESPONSE", "SPAWN_OUTPUT"}
	if r.when != nil && slices.ContainsFunc(back, r.when.Uses) {
		return true
	}
	return r.decision != nil && r.decision.uses(back)
}

// uses reports whether the decision's values contain one of the names.
func (d *decision) uses(names []string) bool {
	for _, values := range []map[string]*condition.Expression{d.metadata, d.set, d.reason.values, d.context.values, d.result.values} {
		for _, e := range values {
			if slices.ContainsFunc(names, e.Uses) {
				return true
			}
		}
	}
	return false
}

// public describes the rule.
func (r *rule) public() Rule {
	out := Rule{
		Policy: r.policyName(), ID: r.id, Description: r.description, Layer: file.Layers[r.doc.Layer],
		File: r.place.File(), Line: r.place.Line, Column: r.place.Column, Point: r.point.Name, Order: r.order, Match: r.match.text,
		Await: r.task == nil || r.task.await, Mode: r.mode(), Waiver: r.waiver, Priority: r.priority, Failure: r.failure.policy.String(),
		OnFailure: r.failure.word, Timeout: r.failure.timeout,
	}
	if r.when != nil {
		out.When = r.when.String()
	}
	if r.task == nil {
		out.Decision, out.Approvers, out.Quorum = r.decision.word, slices.Clone(r.decision.question.Approvers), r.decision.question.Quorum
		return out
	}
	out.Action = r.task.kind
	if gate, ok := r.task.action.(action.Gate); ok {
		out.Approvers, out.Quorum, out.CallbackPort = slices.Clone(gate.Approvers), gate.Quorum, gate.Port
	}
	return out
}
