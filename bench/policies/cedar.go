package policies

import (
	"context"
	"fmt"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"
)

func cedarText() []byte {
	return write("@id(\"all\")\npermit (principal, action, resource);\n", func(id, tool string, i int) string {
		return fmt.Sprintf(`
@id(%q)
forbid (principal, action == Action::%q, resource)
when { context.n == %d && context.path like "/etc*" || context.n > %d };
`, id, tool, i, limit)
	})
}

// byID is a set of Cedar policies that are identified by their annotations.
type byID struct{ policies *cedar.PolicySet }

func loadCedar(_ context.Context, text []byte) (Decider, error) {
	list, err := cedar.NewPolicyListFromBytes("hundred.cedar", text)
	if err != nil {
		return nil, err
	}
	set := cedar.NewPolicySet()
	for _, p := range list {
		set.Add(cedar.PolicyID(p.Annotations()["id"]), p)
	}
	return byID{set}, nil
}

func (d byID) Decide(_ context.Context, c Call) (string, error) {
	r, err := d.request(c)
	if err != nil {
		return "", err
	}
	return d.judge(r), nil
}

func (d byID) Read(c Call) (func(context.Context) (string, error), error) {
	r, err := d.request(c)
	return func(context.Context) (string, error) { return d.judge(r), nil }, err
}

func (byID) request(c Call) (cedar.Request, error) {
	var args types.Record
	if err := args.UnmarshalJSON([]byte(c.Arguments)); err != nil {
		return cedar.Request{}, err
	}
	return cedar.Request{
		Principal: cedar.NewEntityUID("Agent", "a"),
		Action:    cedar.NewEntityUID("Action", types.String(c.Tool)),
		Resource:  cedar.NewEntityUID("Run", "r"),
		Context:   args,
	}, nil
}

// judge returns the first of the policies that forbid a request. Cedar returns them in no particular order.
func (d byID) judge(r cedar.Request) string {
	decision, why := cedar.Authorize(d.policies, nil, r)
	if decision == cedar.Allow {
		return ""
	}
	first := why.Reasons[0].PolicyID
	for _, reason := range why.Reasons {
		first = min(first, reason.PolicyID)
	}
	return string(first)
}
