package policy

import (
	"context"
	"slices"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/policy/condition"
	"github.com/grapnel-go/grapnel/policy/provenance"
)

// Judgement is what the condition of a rule came to.
type Judgement struct {
	// Value is what it says: the rule applies. It is false where Err is not nil.
	Value bool
	Err   error
	// Facts are the parts of the condition that counted, with the values in them.
	Facts []hooks.Fact
	// Origins say where the arguments of the call come from, by their names; nil for a
	// condition that does not ask who brought a value in.
	Origins map[string]provenance.Origin
}

// reportJudgement tells the watcher what the rule's condition came to.
func (u *use) reportJudgement(ctx context.Context, in condition.Input, value bool, err error) {
	if u.watch == nil {
		return
	}
	u.watch(u.publicRule(), Judgement{Value: value && err == nil, Err: err, Facts: u.when.Explain(ctx, in), Origins: u.origins(in)})
}

// origins returns where the arguments come from, where the condition asks for that.
func (u *use) origins(in condition.Input) map[string]provenance.Origin {
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
