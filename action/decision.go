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

// Decision is what an action decided, whatever its type: the one form in which commands, web services, agents, tools,
// pipelines and models answer. Its JSON form is read by ParseDecision.
type Decision struct {
	// Decision is one of allow, deny, ask, stop, rewrite, mock, replace, withhold, approve, reject, continue. Not each of
	// them can be at each point: see Decisions.
	Decision hooks.Decision `json:"decision"`
	// Reason says why, for people and models.
	Reason string `json:"reason,omitempty"`
	// Arguments, with rewrite at the points of a tool call, is the JSON object that goes in the place of all arguments.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Input, with rewrite at the other points, is the text that goes in the place of the input or the instruction.
	Input *string `json:"input,omitempty"`
	// Result, with mock and replace, is the text that goes in the place of the answer. IsError, with mock, makes it one
	// of a tool that failed.
	Result  *string `json:"result,omitempty"`
	IsError bool    `json:"is_error,omitempty"`
	// Context is told to the model, Metadata is set in the state, for the session.
	Context  string                     `json:"context,omitempty"`
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
	// Within and OnTimeout, with ask, are how many seconds a person has, and what counts as said after that: reject,
	// reject_and_continue or approve.
	Within    float64 `json:"within,omitempty"`
	OnTimeout string  `json:"on_timeout,omitempty"`
}

// decisionKinds are the decisions, and which members they take besides reason; + stands for context and metadata.
var decisionKinds = map[hooks.Decision]string{
	hooks.Allow:        "+",
	hooks.Deny:         "+",
	hooks.Ask:          "+ within on_timeout",
	hooks.StopRun:      "+",
	hooks.Rewrite:      "+ arguments input",
	hooks.Mock:         "+ result is_error",
	hooks.Replace:      "+ result",
	hooks.Withhold:     "+",
	hooks.Approve:      "",
	hooks.RejectAndEnd: "",
	hooks.Continue:     "",
}

// ParseDecision reads a decision. Text that is empty, and {}, are no opinion: nil. Everything else must be one JSON object
// with a decision and what belongs to it: a member that is unknown, given twice or of another type, null, and one that
// the decision has no use for are errors. So is what only looks like a decision.
func ParseDecision(text []byte) (*Decision, error) {
	trimmed := strings.TrimSpace(string(text))
	if trimmed == "" {
		return nil, nil
	}
	if err := strictjson.CheckObject(trimmed); err != nil {
		return nil, fmt.Errorf("this is no decision: %w", err)
	}
	var members map[string]json.RawMessage
	if err := strictjson.Unmarshal(trimmed, &members); err != nil {
		return nil, fmt.Errorf("this is no decision: %w", err)
	}
	if len(members) == 0 {
		return nil, nil
	}
	for name, raw := range members {
		if string(raw) == "null" {
			return nil, fmt.Errorf("this is no decision: %q is null: leave it out", name)
		}
	}
	d := &Decision{}
	if err := strictjson.UnmarshalStrict(trimmed, d); err != nil {
		return nil, fmt.Errorf("this is no decision: %w", err)
	}
	if _, ok := members["decision"]; !ok {
		return nil, errors.New(`this is no decision: it has no member "decision"`)
	}
	return d, d.check(func(name string) bool { _, ok := members[name]; return ok })
}

// Validate finds what is wrong with a decision that was not read but made.
func (d *Decision) Validate() error {
	has := map[string]bool{
		"arguments": d.Arguments != nil, "input": d.Input != nil, "result": d.Result != nil, "is_error": d.IsError,
		"context": d.Context != "", "metadata": len(d.Metadata) > 0, "within": d.Within != 0, "on_timeout": d.OnTimeout != "",
	}
	return d.check(func(name string) bool { return has[name] })
}

// check finds members that the decision has no use for, and those that it lacks.
func (d *Decision) check(has func(name string) bool) error {
	takes, known := decisionKinds[d.Decision]
	if !known {
		return fmt.Errorf("this is no decision: %q is unknown: it is one of %s", d.Decision, strings.Join(decisionNames(), ", "))
	}
	takes = " decision reason " + strings.Replace(takes, "+", "context metadata", 1) + " "
	for _, name := range []string{"arguments", "input", "result", "is_error", "context", "metadata", "within", "on_timeout"} {
		if has(name) && !strings.Contains(takes, " "+name+" ") {
			return fmt.Errorf("this is no decision: %s has no use for %q", d.Decision, name)
		}
	}
	switch d.Decision {
	case hooks.Rewrite:
		if has("arguments") == has("input") {
			return errors.New("this is no decision: rewrite needs arguments, or input, and not both")
		}
		if has("arguments") {
			if err := strictjson.CheckObject(string(d.Arguments)); err != nil {
				return fmt.Errorf("this is no decision: arguments: %w", err)
			}
		}
	case hooks.Mock, hooks.Replace:
		if !has("result") {
			return fmt.Errorf("this is no decision: %s needs a result", d.Decision)
		}
	case hooks.Ask:
		if d.Within < 0 || d.Within > maxTimeout.Seconds() {
			return fmt.Errorf("this is no decision: within is %v seconds", d.Within)
		}
		if _, err := d.question(); err != nil {
			return err
		}
	}
	return nil
}

// question returns what a person is asked.
func (d *Decision) question() (agent.Question, error) {
	q := agent.Question{Reason: d.Reason, Within: time.Duration(d.Within * float64(time.Second))}
	if d.OnTimeout == "" {
		return q, nil
	}
	if err := q.OnTimeout.UnmarshalText([]byte(d.OnTimeout)); err != nil {
		return q, fmt.Errorf("this is no decision: on_timeout: %w", err)
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
