package action

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// BlueprintRun holds additional facts at the points of a coordinator's run. Its members are at the top level of the
// request, under the names that agents and services built for such hooks expect.
type BlueprintRun struct {
	Parameters json.RawMessage `json:"parameters,omitempty"`
	AgentName  string          `json:"agent_name,omitempty"`
	SessionID  string          `json:"session_id,omitempty"`
	RunID      string          `json:"run_id,omitempty"`
	ResultText string          `json:"result_text,omitempty"`
	ResultData json.RawMessage `json:"result_data,omitempty"`
}

// encodeForAction returns what an action receives: the JSON form of the request, or what is about the run.
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

// endOfRun returns the end of a run as hooks of a blueprint expect it: completed, failed or stopped.
func endOfRun(s agent.Status) string {
	switch s {
	case agent.StatusDone:
		return "completed"
	case agent.StatusStopped, agent.StatusInterrupted, agent.StatusCancelled:
		return "stopped"
	}
	return "failed"
}

// blueprintDecision reads a decision in the format of hooks made for blueprints alone. At RunStart, it is {"action": "continue",
// "parameters": {…}} or {"action": "block", "block_reason": "…"}; at RunResult, result_text or result_data are in the place of parameters,
// and block withholds the result. It is nil for a text in another format, and at other points.
func blueprintDecision(point hooks.PointName, text string) (*Decision, error) {
	if point != hooks.RunStart && point != hooks.RunResult || strictjson.CheckObject(text) != nil {
		return nil, nil //nolint:nilerr // another format is no error: the caller reads it
	}
	if _, ok := strictjson.Lookup(text, "/action"); !ok {
		return nil, nil
	}
	var in struct {
		Action      string          `json:"action"`
		Parameters  json.RawMessage `json:"parameters"`
		ResultText  *string         `json:"result_text"`
		ResultData  json.RawMessage `json:"result_data"`
		BlockReason *string         `json:"block_reason"`
	}
	if err := strictjson.UnmarshalStrict(text, &in); err != nil {
		return nil, fmt.Errorf("invalid decision: %w", err)
	}
	replaces := in.Parameters != nil || in.ResultText != nil || in.ResultData != nil
	switch {
	case in.Action == "block" && !replaces && point == hooks.RunStart:
		return &Decision{Decision: hooks.Deny, Reason: lo.FromPtr(in.BlockReason)}, nil
	case in.Action == "block" && !replaces:
		return &Decision{Decision: hooks.Withhold, Reason: lo.FromPtr(in.BlockReason)}, nil
	case in.Action != "continue" || in.BlockReason != nil:
		return nil, fmt.Errorf("invalid decision: expected action continue (%s optional) or block (block_reason optional)",
			lo.Ternary(point == hooks.RunStart, "parameters", "result_text or result_data"))
	case !replaces:
		return &Decision{Decision: hooks.Allow}, nil
	case point == hooks.RunStart && in.ResultText == nil && in.ResultData == nil:
		if err := strictjson.CheckObject(string(in.Parameters)); err != nil {
			return nil, fmt.Errorf("invalid decision: parameters: %w", err)
		}
		return &Decision{Decision: hooks.Rewrite, Arguments: in.Parameters}, nil
	case point == hooks.RunResult && in.Parameters == nil && in.ResultData == nil:
		return &Decision{Decision: hooks.Replace, Result: in.ResultText}, nil
	case point == hooks.RunResult && in.Parameters == nil && in.ResultText == nil:
		if err := strictjson.CheckObject(string(in.ResultData)); err != nil {
			return nil, fmt.Errorf("invalid decision: result_data: %w", err)
		}
		return &Decision{Decision: hooks.Replace, Result: new(string(in.ResultData))}, nil
	}
	return nil, fmt.Errorf("invalid decision: %s cannot change %s", point,
		lo.Ternary(point == hooks.RunStart, "the result: leave out result_text and result_data",
			"the parameters, and it changes either result_text or result_data"))
}
