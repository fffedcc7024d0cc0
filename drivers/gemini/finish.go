package gemini

import (
	"slices"

	"github.com/samber/lo"
	"google.golang.org/genai"

	"github.com/grapnel-go/grapnel/agent"
)

// filtered are the finish reasons of replies that the service held back.
var filtered = []genai.FinishReason{
	genai.FinishReasonSafety, genai.FinishReasonRecitation, genai.FinishReasonLanguage, genai.FinishReasonBlocklist,
	genai.FinishReasonProhibitedContent, genai.FinishReasonSPII, genai.FinishReasonImageSafety,
	genai.FinishReasonImageProhibitedContent, genai.FinishReasonImageRecitation, "MODEL_ARMOR",
}

// spoiled are the finish reasons of replies that are of no use, whatever is in them:
// the model meant to call a tool and could not.
var spoiled = []genai.FinishReason{
	genai.FinishReasonMalformedFunctionCall, genai.FinishReasonUnexpectedToolCall, "MALFORMED_RESPONSE",
}

// unsignedCalls is the finish reason where the messages have calls without the
// signature that the model wants to see.
const unsignedCalls genai.FinishReason = "MISSING_THOUGHT_SIGNATURE"

// reason is the finish reason in our words.
func (r *reply) reason() agent.FinishReason {
	switch {
	case r.blocked != "" || slices.Contains(filtered, r.finish):
		return agent.FinishFilter
	case r.finish == genai.FinishReasonMaxTokens, r.finish == genai.FinishReasonContinuation:
		return agent.FinishLength
	case r.finish == genai.FinishReasonStop && len(r.calls) > 0:
		return agent.FinishToolCalls
	case r.finish == genai.FinishReasonStop:
		return agent.FinishStop
	case r.finish == "FUNCTION_CALL": // said by endpoints that are not the vendor's
		return agent.FinishToolCalls
	case r.finish == "":
		return ""
	}
	return agent.FinishError
}

// used is what the reply consumed. What it cost is unknown where no usage was told,
// where the table has not the model, and where there was sound in the request.
func (r *reply) used(model string) agent.Usage {
	u := r.usage
	if u == nil {
		return agent.Usage{}
	}
	count := func(n ...int32) int64 { return lo.SumBy(n, func(n int32) int64 { return int64(max(n, 0)) }) }
	used := agent.Usage{
		InputTokens:     count(u.PromptTokenCount, u.ToolUsePromptTokenCount),
		OutputTokens:    count(u.CandidatesTokenCount, u.ThoughtsTokenCount),
		CacheReadTokens: count(u.CachedContentTokenCount),
		ReasoningTokens: count(u.ThoughtsTokenCount),
	}
	sound := lo.SomeBy(u.PromptTokensDetails, func(m *genai.ModalityTokenCount) bool {
		return m != nil && m.Modality == genai.MediaModalityAudio && m.TokenCount > 0
	})
	if !sound {
		used.Cost = r.d.prices.Cost(bare(model), used)
		if used.Cost.IsAbsent() { // an alias such as gemini-flash-latest, or the version behind it
			used.Cost = r.d.prices.Cost(bare(r.asked), used)
		}
	}
	return used
}
