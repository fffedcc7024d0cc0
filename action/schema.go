package action

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/hooks"
)

// DecisionSchema returns the JSON Schema of the given decisions. Without arguments it covers all decisions.
// ParseDecision is stricter: it also checks which member belongs to which decision, which would make the schema hard to
// read.
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
		"reason":   about("string", "the reason, in one sentence"),
	}
	for member, of := range map[string]map[string]any{
		"arguments":  about("object", "with rewrite: the new arguments, complete"),
		"input":      about("string", "with rewrite: the new input"),
		"result":     about("string", "with mock and replace: the new result"),
		"is_error":   about("boolean", "with mock: report the result as a failure of the tool"),
		"within":     about("number", "with ask: the time limit for the person, in seconds"),
		"on_timeout": {"type": "string", "enum": []string{"reject", "reject_and_continue", "approve"}},
	} {
		if takes(member) {
			members[member] = of
		}
	}
	if takes("+") {
		members["context"] = about("string", "additional context for the model")
		members["metadata"] = about("object", "values to set in the state of the session")
	}
	text, _ := json.Marshal(map[string]any{ //nolint:errchkjson // strings and maps
		"type": "object", "properties": members, "required": []string{"decision"}, "additionalProperties": false,
	})
	return string(text)
}
