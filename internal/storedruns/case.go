package storedruns

import (
	"cmp"
	"context"
	"fmt"
	"path"

	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy/policytest"
	"github.com/grapnel-go/grapnel/policy/recorded"
)

// Expected says which decision about a call a test case expects.
type Expected struct {
	// Call is the ID of the call, and Point where hooks were asked about it; empty means PreToolUse.
	Call  string
	Point hooks.PointName
	// Decision is a word of expect.decision in files of cases, such as deny. Rule, unless empty, is the ID of the rule that decides, and
	// Reason its reason.
	Decision, Rule, Reason string
	// Shadow says that the rule is in shadow: the case expects its answer, not the decision.
	Shadow bool
	// Policy is the file of the policy, such as mail.yaml or library:assistant; empty if it is not known.
	Policy string
}

// pass is the decision of rules without an opinion.
const pass = "pass"

// Case returns a file with a test case, as "grapnel hooks test" reads it: a call in a stored run, with everything before it, and what is expected.
func Case(ctx context.Context, store durable.Reader, r durable.Run, e Expected) ([]byte, error) {
	if e.Point = cmp.Or(e.Point, hooks.PreToolUse); e.Point != hooks.PreToolUse && e.Point != hooks.PostToolUse {
		return nil, fmt.Errorf("a test case can be made of a decision before or after a tool call, not of one at %s", e.Point)
	}
	if r.Kind != durable.KindAgent {
		return nil, fmt.Errorf("run %s is of kind %s: %w", r.ID, r.Kind, ErrKind)
	}
	record, err := Record(ctx, store, r)
	if err != nil {
		return nil, err
	}
	event, err := policytest.FromRecording(record, e.Call)
	if err != nil {
		return nil, err
	}
	if e.Point == hooks.PostToolUse {
		event.Point, event.Result = policytest.Point(e.Point), resultOf(record, e.Call)
	}
	event.Agent = r.Name
	expect := yamlfile.Pairs{{Key: "decision", Value: e.Decision}}
	switch {
	case e.Shadow:
		expect = yamlfile.Pairs{{Key: "rules", Value: yamlfile.Pairs{{Key: e.Rule, Value: "shadow " + e.Decision}}}}
	case e.Rule != "" && e.Decision != pass:
		expect = append(expect, yamlfile.Pair{Key: "rule", Value: e.Rule})
	}
	if e.Reason != "" && !e.Shadow && e.Decision != pass {
		expect = append(expect, yamlfile.Pair{Key: "reason", Value: e.Reason})
	}
	file := yamlfile.Pairs{{Key: "cases", Value: []any{yamlfile.Pairs{
		{Key: "name", Value: fmt.Sprintf("%s of call %s in run %s", event.Tool, e.Call, r.ID)},
		{Key: "event", Value: *event},
		{Key: "expect", Value: expect},
	}}}}
	if e.Policy != "" {
		file = append(yamlfile.Pairs{{Key: "policy", Value: e.Policy}}, file...)
	}
	return yamlfile.Encode("case.yaml", file)
}

// CaseName returns the name of the file with a test case for a policy.
func CaseName(policy string) string {
	name := path.Base(policy)
	if name == "." || name == "/" {
		name = "policy"
	}
	return name[:len(name)-len(path.Ext(name))] + policytest.Suffix + ".yaml"
}

// resultOf returns the recorded answer to a call.
func resultOf(r *recorded.Run, call string) *policytest.ToolResult {
	for _, m := range r.Messages {
		if m.Role == replay.RoleTool && m.ToolCallID == call {
			return &policytest.ToolResult{Text: m.Content.Text, IsError: m.Error}
		}
	}
	return nil
}
