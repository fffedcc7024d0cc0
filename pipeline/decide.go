package pipeline

import (
	"context"
	"encoding/json"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/toolexec"
)

// decideTool is the name of the tool with which an agent decides.
const decideTool = "decide"

// decideInput are the arguments of the tool.
type decideInput struct {
	Decision string `json:"decision"`
	Reason   string `json:"reason"`
}

const decideSchema = `{"type":"object","properties":{` +
	`"decision":{"type":"string","enum":["continue","stop"],"description":"stop when nothing is left to do in this stage, otherwise continue"},` +
	`"reason":{"type":"string","description":"one sentence that says why"}},` +
	`"required":["decision","reason"],"additionalProperties":false}`

// newDecideTool returns the tool with which a stage's agent decides whether the stage goes on.
func newDecideTool() toolexec.Tool {
	tool := toolexec.CallFunc(agent.ToolSpec{
		Name: decideTool, Description: "Decide whether this stage needs another iteration. Call it once, when your work of this iteration is done.",
		Parameters: decideSchema,
	}, func(_ context.Context, _ toolexec.Call, in decideInput) (string, error) {
		return "Recorded: " + in.Decision + ".", nil
	})
	return toolexec.WithPolicy(tool, toolexec.Policy{Doubt: toolexec.DoubtRepeat})
}

// lastDecision returns the last decision of an agent, if its tool ran.
func lastDecision(s agent.State) (decision, why string) {
	for _, step := range s.RunSteps() {
		for _, result := range step.Results() {
			var in decideInput
			if result.Tool() != decideTool || !result.Executed() || result.IsError() ||
				json.Unmarshal([]byte(result.Call().Arguments), &in) != nil {
				continue
			}
			decision, why = in.Decision, in.Reason
		}
	}
	return decision, why
}
