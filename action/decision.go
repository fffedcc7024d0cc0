package action

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// Decision is an action's decision. Actions of every type answer in this form: commands, web services, agents, tools,
// pipelines and models. ParseDecision reads its JSON form.
type Decision struct {
	// Decision is one of allow, deny, ask, stop, rewrite, mock, replace, withhold, approve, reject, continue. Each
	// point supports some of them: see Decisions.
	Decision hooks.Decision `json:"decision"`
	// Reason says why, for people and models.
	Reason string `json:"reason,omitempty"`
	// Arguments, with rewrite at a tool call's points, is the JSON object that replaces all arguments.
	Arguments json.RawMessage `json:"arguments,omitzero"`
	// Input, with rewrite at other points, is the text that replaces the input or the instruction.
	Input *string `json:"input,omitempty"`
	// Result, with mock and replace, is the text that replaces the tool's result. IsError, with mock, marks it as the
	// result of a failed tool.
	Result  *string `json:"result,omitempty"`
	IsError bool    `json:"is_error,omitempty"`
	// Context is added for the model. Metadata is set in the session state.
	Context  string                     `json:"context,omitempty"`
	Metadata map[string]json.RawMessage `json:"metadata,omitzero"`
	// Within and OnTimeout are used with ask. Within is the number of seconds that a person has to answer. OnTimeout is
	// the verdict after that time: reject, reject_and_continue or approve.
	Within    float64 `json:"within,omitempty"`
	OnTimeout string  `json:"on_timeout,omitempty"`
	// Approvers, Quorum and Gate are used with ask; agent.Question documents them. The answer from a process, service
	// or model cannot set them.
	Approvers []string    `json:"-"`
	Quorum    int         `json:"-"`
	Gate      *agent.Gate `json:"-"`
}

// decisionKinds maps decisions to the members that they take in addition to reason. + stands for context and metadata.
var decisionKinds = map[hooks.Decision]string{
	hooks.Allow:        "+",
	hooks.Deny:         "+",
	hooks.Ask:          "+ within on_timeout approvers quorum gate",
	hooks.StopRun:      "+",
	hooks.Rewrite:      "+ arguments input",
	hooks.Mock:         "+ result is_error",
	hooks.Replace:      "+ result",
	hooks.Withhold:     "+",
	hooks.Approve:      "",
	hooks.RejectAndEnd: "",
	hooks.Continue:     "",
}

// ParseDecision reads a decision. Empty text and {} mean no opinion: nil. Other text must be one JSON object with a
// decision and its members. It is an error if a member is null, unknown, duplicate, of the wrong type, or not used by
// the decision.
func ParseDecision(text []byte) (*Decision, error) {
	trimmed := strings.TrimSpace(string(text))
	if trimmed == "" {
		return nil, nil
	}
	if err := strictjson.CheckObject(trimmed); err != nil {
		return nil, fmt.Errorf("invalid decision: %w", err)
	}
	var members map[string]json.RawMessage
	if err := strictjson.Unmarshal(trimmed, &members); err != nil {
		return nil, fmt.Errorf("invalid decision: %w", err)
	}
	if len(members) == 0 {
		return nil, nil
	}
	for name, raw := range members {
		if string(raw) == "null" {
			return nil, fmt.Errorf("invalid decision: %q is null: omit it", name)
		}
	}
	d := &Decision{}
	if err := strictjson.UnmarshalStrict(trimmed, d); err != nil {
		return nil, fmt.Errorf("invalid decision: %w", err)
	}
	if _, ok := members["decision"]; !ok {
		return nil, errors.New(`invalid decision: it has no member "decision"`)
	}
	return d, d.checkMembers(func(name string) bool { _, ok := members[name]; return ok })
}

// Validate checks a decision that was built in Go, not read by ParseDecision.
func (d *Decision) Validate() error {
	has := map[string]bool{
		"arguments": d.Arguments != nil, "input": d.Input != nil, "result": d.Result != nil, "is_error": d.IsError,
		"context": d.Context != "", "metadata": len(d.Metadata) > 0, "within": d.Within != 0, "on_timeout": d.OnTimeout != "",
		"approvers": len(d.Approvers) > 0, "quorum": d.Quorum != 0, "gate": d.Gate != nil,
	}
	return d.checkMembers(func(name string) bool { return has[name] })
}

// checkMembers reports missing members and members that the decision does not use.
func (d *Decision) checkMembers(has func(name string) bool) error {
	takes, known := decisionKinds[d.Decision]
	if !known {
		return fmt.Errorf("invalid decision: unknown decision %q: expected one of %s", d.Decision, strings.Join(decisionNames(), ", "))
	}
	takes = " decision reason " + strings.Replace(takes, "+", "context metadata", 1) + " "
	for _, name := range []string{"arguments", "input", "result", "is_error", "context", "metadata", "within", "on_timeout", "approvers", "quorum", "gate"} {
		if has(name) && !strings.Contains(takes, " "+name+" ") {
			return fmt.Errorf("invalid decision: %s does not take %q", d.Decision, name)
		}
	}
	switch d.Decision {
	case hooks.Rewrite:
		if has("arguments") == has("input") {
			return errors.New("invalid decision: rewrite needs either arguments or input")
		}
		if has("arguments") {
			if err := strictjson.CheckObject(string(d.Arguments)); err != nil {
				return fmt.Errorf("invalid decision: arguments: %w", err)
			}
		}
	case hooks.Mock, hooks.Replace:
		if !has("result") {
			return fmt.Errorf("invalid decision: %s requires a result", d.Decision)
		}
	case hooks.Ask:
		if d.Within < 0 || d.Within > maxTimeout.Seconds() {
			return fmt.Errorf("invalid decision: within is %v seconds: expected 0 to %.0f", d.Within, maxTimeout.Seconds())
		}
		if _, err := d.question(); err != nil {
			return err
		}
	}
	return nil
}

// question returns the question for a person.
func (d *Decision) question() (agent.Question, error) {
	q := agent.Question{
		Reason: d.Reason, Within: time.Duration(d.Within * float64(time.Second)), Approvers: d.Approvers, Quorum: d.Quorum, Gate: d.Gate,
	}
	if q.Gate != nil {
		q.Kind = agent.QuestionGate
	}
	if d.OnTimeout == "" {
		return q, nil
	}
	if err := q.OnTimeout.UnmarshalText([]byte(d.OnTimeout)); err != nil {
		return q, fmt.Errorf("invalid decision: on_timeout: %w", err)
	}
	return q, nil
}

func decisionNames() []string {
	names := make([]string, 0, len(decisionKinds))
	for kind := range decisionKinds {
		names = append(names, string(kind))
	}
	slices.Sort(names)
	return names
}
