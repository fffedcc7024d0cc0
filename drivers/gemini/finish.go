package gemini

import (
	"slices"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
)

// filtered lists the finish reasons for replies that the service held back.
var filtered = []finishReason{
	"SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST",
	"PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY",
	"IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "MODEL_ARMOR",
}

// spoiled lists the finish reasons for replies that are always unusable, because the model failed to write a tool call.
var spoiled = []finishReason{
	"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE",
}

// unsignedCalls is the finish reason when calls in the messages lack the signature that the model requires.
const unsignedCalls finishReason = "MISSING_THOUGHT_SIGNATURE"

// reason returns the finish reason as an agent.FinishReason.
func (r *reply) reason() agent.FinishReason {
	switch {
	case r.blocked != "" || slices.Contains(filtered, r.finish):
		return agent.FinishFilter
	case r.finish == "MAX_TOKENS", r.finish == "CONTINUATION":
		return agent.FinishLength
	case r.finish == "STOP" && len(r.calls) > 0:
		return agent.FinishToolCalls
	case r.finish == "STOP":
		return agent.FinishStop
	case r.finish == "FUNCTION_CALL": // sent by endpoints of other vendors
		return agent.FinishToolCalls
	case r.finish == "":
		return ""
	}
	return agent.FinishError
}

// used returns the reply's usage. The cost is unknown when the service did not report the usage, when the model is not
// in the table, and when the request contained sound.
func (r *reply) used(model string) agent.Usage {
	u := r.usage
	if u == nil {
		return agent.Usage{}
	}
	count := func(n ...int64) int64 { return lo.SumBy(n, func(n int64) int64 { return max(n, 0) }) }
	used := agent.Usage{
		InputTokens:     count(u.Prompt, u.ToolUsePrompt),
		OutputTokens:    count(u.Candidates, u.Thoughts),
		CacheReadTokens: count(u.Cached),
		ReasoningTokens: count(u.Thoughts),
	}
	sound := false
	for _, m := range u.PromptDetails {
		sound = sound || m != nil && m.Modality == "AUDIO" && m.Tokens > 0
	}
	if !sound {
		used.Cost = r.d.prices.Cost(bareModel(model), used)
		if used.Cost.IsAbsent() { // an alias such as gemini-flash-latest, or its version
			used.Cost = r.d.prices.Cost(bareModel(r.asked), used)
		}
	}
	return used
}
