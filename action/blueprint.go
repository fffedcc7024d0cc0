package action

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// BlueprintRun holds additional facts at the points of a coordinator's run. Its members are at the request's top level.
// Agents and services built for such hooks expect these names.
type BlueprintRun struct {
	Parameters json.RawMessage `json:"parameters,omitzero"`
	AgentName  string          `json:"agent_name,omitempty"`
	SessionID  string          `json:"session_id,omitempty"`
	RunID      string          `json:"run_id,omitempty"`
	ResultText string          `json:"result_text,omitempty"`
	ResultData json.RawMessage `json:"result_data,omitzero"`
}

// encodeForAction returns the JSON that an action receives: the whole request, or only the members about the run.
func (r *Request) encodeForAction() ([]byte, error) {
	if !r.OfRun || r.AgentName == "" {
		return r.json()
	}
	parameters := json.RawMessage(cmp.Or(string(r.Parameters), "{}"))
	var form any = struct {
		Parameters json.RawMessage `json:"parameters"`
		AgentName  string          `json:"agent_name"`
		SessionID  string          `json:"session_id"`
		RunID      string          `json:"run_id"`
	}{parameters, r.AgentName, r.SessionID, r.RunID}
	if r.Point != hooks.RunStart {
		form = struct {
			Parameters json.RawMessage `json:"parameters"`
			ResultText *string         `json:"result_text"`
			ResultData json.RawMessage `json:"result_data"`
			Status     string          `json:"status"`
			Error      *string         `json:"error"`
			SessionID  string          `json:"session_id"`
			RunID      string          `json:"run_id"`
			AgentName  string          `json:"agent_name"`
		}{
			parameters, lo.EmptyableToPtr(r.ResultText), r.ResultData, endOfRun(r.Status), lo.EmptyableToPtr(r.Error),
			r.SessionID, r.RunID, r.AgentName,
		}
	}
	text, err := strictjson.Marshal(form)
	if err != nil {
		return nil, fmt.Errorf("encoding the request: %w", err)
	}
	return []byte(text), nil
}

// endOfRun returns a run's end as blueprint hooks expect it: completed, failed or stopped.
func endOfRun(s agent.Status) string {
	switch s {
	case agent.StatusDone:
		return "completed"
	case agent.StatusStopped, agent.StatusInterrupted, agent.StatusCancelled:
		return "stopped"
	}
	return "failed"
}

// decidesRun reports whether a coordinator's run, or the storing of its result, depends on the answer at a point. There
// an answer without a decision is invalid.
func decidesRun(point hooks.PointName) bool {
	return point == hooks.RunStart || point == hooks.RunResult
}

// refusalAt maps RunStart to the decision that blocks a run, and RunResult to the decision that withholds its result.
var refusalAt = map[hooks.PointName]hooks.Decision{hooks.RunStart: hooks.Deny, hooks.RunResult: hooks.Withhold}

// refusal returns the decision in output that blocks a run or withholds its result. Such output is an object whose
// action is block, or whose decision is deny or withhold, at either point. It returns nil for other output. It ignores the rest of the
// output, including members of wrong types and truncated text. A hook that has said block must not become a failed hook
// that on_error lets pass.
func refusal(point hooks.PointName, output string) *Decision {
	word := refusalAt[point]
	if word == "" {
		return nil
	}
	d := json.NewDecoder(strings.NewReader(strings.TrimPrefix(output, "\uFEFF")))
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return nil
	}
	var refused, blocks bool
	var reason, blockReason string
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			break
		}
		switch name {
		case "action":
			blocks = blocks || isText(value, "block")
		case "decision":
			refused = refused || isText(value, string(hooks.Deny)) || isText(value, string(hooks.Withhold))
		case "block_reason":
			blockReason = reasonOf(value)
		case "reason":
			reason = reasonOf(value)
		}
	}
	switch {
	case blocks:
		return &Decision{Decision: word, Reason: blockReason}
	case refused:
		return &Decision{Decision: word, Reason: reason}
	}
	return nil
}

// isText reports whether a JSON value is the given text.
func isText(value json.RawMessage, text string) bool {
	var is string
	return json.Unmarshal(value, &is) == nil && is == text && string(value) != "null"
}

// reasonOf returns a reason as text. A value of another type becomes JSON, and null becomes empty text.
func reasonOf(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) != nil {
		return string(value)
	}
	return strings.TrimSpace(text)
}

// blueprintDecision reads a decision in the format of hooks made only for blueprints. At RunStart, it is {"action":
// "continue", "parameters": {…}}. At RunResult, result_text or result_data replace parameters. A null member counts as
// missing, and block_reason is ignored. It returns nil for text in another format, and at other points. Call refusal
// first.
func blueprintDecision(point hooks.PointName, text string) (*Decision, error) {
	if !decidesRun(point) || strictjson.CheckObject(text) != nil {
		return nil, nil //nolint:nilerr // another format is no error: the caller reads it
	}
	var in map[string]json.RawMessage
	if err := strictjson.Unmarshal(text, &in); err != nil {
		return nil, fmt.Errorf("invalid decision: %w", err)
	}
	action, given := in["action"]
	if !given {
		return nil, nil
	}
	if !isText(action, "continue") {
		return nil, fmt.Errorf("invalid decision: action is %s: expected continue or block", excerpt(string(action)))
	}
	maps.DeleteFunc(in, func(name string, value json.RawMessage) bool {
		return name == "action" || name == "block_reason" || string(value) == "null"
	})
	changes := changesAt[point]
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if !slices.Contains(changes, name) {
			return nil, fmt.Errorf("invalid decision: %s: continue at %s takes only %s", name, point, strings.Join(changes, " or "))
		}
	}
	if len(in) > 1 {
		return nil, fmt.Errorf("invalid decision: it changes both %s: leave one of them out", strings.Join(changes, " and "))
	}
	for name, value := range in {
		if name == "result_text" {
			var result string
			if err := strictjson.Unmarshal(value, &result); err != nil {
				return nil, fmt.Errorf("invalid decision: result_text: %w", err)
			}
			return &Decision{Decision: hooks.Replace, Result: &result}, nil
		}
		if err := strictjson.CheckObject(string(value)); err != nil {
			return nil, fmt.Errorf("invalid decision: %s: %w", name, err)
		}
		if name == "parameters" {
			return &Decision{Decision: hooks.Rewrite, Arguments: value}, nil
		}
		return &Decision{Decision: hooks.Replace, Result: new(string(value))}, nil
	}
	return &Decision{Decision: hooks.Allow}, nil
}

// changesAt lists the members that may accompany continue.
var changesAt = map[hooks.PointName][]string{hooks.RunStart: {"parameters"}, hooks.RunResult: {"result_text", "result_data"}}

// missingDecision returns the failure of an action that answered without a required decision.
func missingDecision(kind string, point hooks.PointName, output string) error {
	return newFault(kind, FaultAnswer, `invalid decision: %s requires an answer: expected {"action": "continue"} or {"action": "block"}; output: %s`,
		point, excerpt(output))
}
