package policy

import (
	"context"
	"slices"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/policy/internal/condition"
	"github.com/grapnel-go/grapnel/policy/internal/provenance"
)

// Judgement is the result of evaluating a rule's condition.
type Judgement struct {
	// Value is the condition's value: true if the rule applies. It is false if Err is not nil.
	Value bool
	Err   error
	// Facts are the parts of the condition that were evaluated, with the values in them.
	Facts []hooks.Fact
	// Origins are the origins of the call's arguments by name; nil if the condition does not check provenance.
	Origins map[string]provenance.Origin
}

// reportJudgement passes the result of the rule's condition to the watcher.
func (u boundRule) reportJudgement(ctx context.Context, in condition.Input, value bool, err error) {
	if watch := u.policy.options.Watch; watch != nil {
		watch(u.public(), Judgement{Value: value && err == nil, Err: err, Facts: u.when.Explain(ctx, in), Origins: u.origins(in)})
	}
}

// origins returns the origins of the arguments if the condition checks provenance.
func (u boundRule) origins(in condition.Input) map[string]provenance.Origin {
	c, ok := in.Context().(interface{ Call() hooks.Call })
	asks := u.doc.tracker != nil && slices.ContainsFunc(u.doc.tracker.Functions(), func(f condition.Function) bool { return u.when.Uses(f.Name) })
	if !ok || !asks {
		return nil
	}
	var arguments map[string]any
	call := c.Call()
	if call.Decode(&arguments) != nil {
		return nil
	}
	trail := u.doc.tracker.Of(in.State())
	out := map[string]provenance.Origin{}
	for name, v := range arguments {
		out[name] = trail.Origin(v)
	}
	return out
}
