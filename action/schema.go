package action

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/hooks"
)

// DecisionSchema returns the JSON Schema of a decision, with only the given ones; with all if none is given. ParseDecision is
// stricter where a schema would be hard to read: which member goes with which decision.
func DecisionSchema(can ...hooks.Decision) string {
	names := lo.Map(can, func(d hooks.Decision, _ int) string { return string(d) })
	if len(names) == 0 {
		names = decisionNames()
	}
	takes := func(member string) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			return strings.Contains(" "+decisionKinds[hooks.Decision(name)]+" ", " "+member+" ")
		})
	}
	about := func(kind, text string) map[string]any { return map[string]any{"type": kind, "description": text} }
	members := map[string]any{
		"decision": map[string]any{"type": "string", "enum": names},
		"reason":   about("string", "one sentence that says why"),
	}
	for member, of := range map[string]map[string]any{
		"arguments":  about("object", "with rewrite: what goes in the place of all arguments"),
		"input":      about("string", "with rewrite: what goes in the place of the input"),
		"result":     about("string", "with mock and replace: what goes in the place of the answer"),
		"is_error":   about("boolean", "with mock: the tool is to have failed"),
		"within":     about("number", "with ask: how many seconds a person has"),
		"on_timeout": {"type": "string", "enum": []string{"reject", "reject_and_continue", "approve"}},
	} {
		if takes(member) {
			members[member] = of
		}
	}
	if takes("+") {
		members["context"] = about("string", "what the model is told besides")
		members["metadata"] = about("object", "values that are set in the state of the session")
	}
	text, _ := json.Marshal(map[string]any{ //nolint:errchkjson // strings and maps
		"type": "object", "properties": members, "required": []string{"decision"}, "additionalProperties": false,
	})
	return string(text)
}
