package policy

import (
	"context"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/policy/condition"
)

// Judgement is what the condition of a rule came to.
type Judgement struct {
	// Value is what it says: the rule applies. It is false where Err is not nil.
	Value bool
	Err   error
	// Facts are the parts of the condition that counted, with the values in them.
	Facts []hooks.Fact
	// Input is what was judged. It must not be kept.
	Input condition.Input
}

// watched tells whoever watches what the rule's condition came to.
func (u *use) watched(ctx context.Context, in condition.Input, value bool, err error) {
	if u.watch == nil {
		return
	}
	u.watch(u.told(), Judgement{Value: value && err == nil, Err: err, Facts: u.when.Explain(ctx, in), Input: in})
}
