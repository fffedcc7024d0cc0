package action

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/hooks"
)

// The table has a row for each context that can decide. A row has every method whose answer can be expressed as text,
// with effects where the method takes them.
func TestEveryAnswerOfAContextIsInTheTable(t *testing.T) {
	methods := map[hooks.Decision][]string{
		hooks.Allow: {"Allow"}, hooks.Deny: {"Deny"}, hooks.Ask: {"AskAbout"}, hooks.StopRun: {"Stop"}, hooks.Mock: {"Mock"},
		hooks.Rewrite: {"RewriteText", "Rewrite"}, hooks.Replace: {"ReplaceText", "Replace"}, hooks.Withhold: {"Withhold"},
		hooks.Approve: {"Approve"}, hooks.RejectAndEnd: {"RejectAndEnd"}, hooks.Continue: {"Continue"},
	}
	for _, c := range []hooks.Context{
		hooks.InputContext{}, hooks.ExecutionContext{}, hooks.StepContext{}, hooks.InferenceContext{}, hooks.ReplyContext{}, hooks.ToolContext{},
		hooks.PreCompactContext{}, hooks.PostCompactContext{}, hooks.CompactFailedContext{}, hooks.PreSubagentContext{}, hooks.PostSubagentContext{},
		hooks.SubagentFailedContext{}, hooks.InterventionContext{}, hooks.InterventionResolvedContext{}, hooks.ToolFailureContext{},
		hooks.ToolResultContext{}, hooks.StepEndContext{}, hooks.StopContext{}, hooks.InterventionStoppedContext{}, hooks.FailureContext{},
		hooks.EndContext{}, hooks.PipelineContext{}, hooks.PipelineEndContext{}, hooks.RunStartContext{}, hooks.RunResultContext{},
		hooks.RunFailedContext{}, hooks.RunEndContext{},
	} {
		at := reflect.TypeOf(c)
		for decision, names := range methods {
			want := answer{}
			for _, name := range names {
				if m, ok := at.MethodByName(name); ok && m.Type.Out(0) == reflect.TypeFor[hooks.Result]() {
					want = answer{by: answersOf[at][decision].by, adds: m.Type.IsVariadic()}
					possible := decision != hooks.Rewrite || at != reflect.TypeFor[hooks.InferenceContext]() // a text is no request
					assert.Equal(t, possible, want.by != nil, "%s: %s", at, decision)
					want.adds = want.adds && possible
					break
				}
			}
			assert.Equal(t, want.adds, answersOf[at][decision].adds, "%s: %s", at, decision)
			assert.Equal(t, want.by == nil, answersOf[at][decision].by == nil, "%s: %s", at, decision)
		}
	}
}
