package agent

import (
	"fmt"
	"slices"
	"strings"
)

// finishWords are the services' words for the finish reasons, in lower case.
var finishWords = map[FinishReason][]string{
	FinishStop: {
		"stop", "end_turn", "end_of_turn", "eos", "eos_token", "stop_sequence", "stop_token", "stop_criteria_met", "complete", "completed",
		"finish", "finished", "done",
	},
	FinishLength: {
		"length", "max_tokens", "max_output_tokens", "max_length", "model_length", "model_context_window_exceeded",
	},
	FinishToolCalls: {"tool_calls", "tool_call", "tool_use", "function_call", "function_calls"},
	FinishPause:     {"pause_turn", "pause"},
	FinishFilter: {
		"content_filter", "content_filtered", "refusal", "refused", "safety", "blocked", "blocklist", "prohibited_content", "recitation", "spii",
		"sensitive", "guardrail_intervened", "moderation",
	},
	FinishError: {
		"error", "failed", "failure", "network_error", "server_error", "internal_error", "abort", "aborted", "cancelled", "canceled", "timeout",
		"insufficient_system_resource", "malformed_function_call", "malformed_tool_use", "malformed_model_output", "malformed_response",
		"unexpected_tool_call",
	},
}

// FinishReasonOf returns the finish reason for a service's own word, such as "max_tokens" or "SAFETY". Unknown words
// are returned as they are.
func FinishReasonOf(word string) FinishReason {
	plain := strings.NewReplacer("-", "_", " ", "_").Replace(strings.ToLower(strings.TrimSpace(word)))
	for reason, words := range finishWords {
		if slices.Contains(words, plain) {
			return reason
		}
	}
	return FinishReason(word)
}

// refuseCall returns the answer to call i if the call must not run, and nil if it may. No call runs if the service
// withheld the reply, or ended it because of an error or for an unknown reason. In a reply that was cut, the last call
// may lack arguments, although the text that arrived can be parsed.
func refuseCall(reply *Step, i int) *ToolResult {
	if reply.FinishReason == FinishToolCalls { // as in most replies with calls
		return nil
	}
	var why string
	switch reason := FinishReasonOf(string(reply.FinishReason)); reason {
	case "", FinishStop, FinishToolCalls, FinishPause:
		return nil
	case FinishLength:
		if i < reply.Message.CallCount()-1 {
			return nil
		}
		why = finishTexts[reason] + ", so the call may be incomplete: make it again, shorter"
	case FinishFilter, FinishError:
		why = finishTexts[reason]
	default:
		why = fmt.Sprintf("the model service ended the reply for the unknown reason %q", reply.FinishReason)
	}
	return NotExecuted(&reply.Message.list()[i], ReasonUnfinishedReply, "", "not executed: "+why)
}

// maxPauses is the number of paused replies in a row after which the run ends. It stops a run whose service always
// pauses.
const maxPauses = 16

// paused reports whether the service paused the model's turn. The next step continues it.
func (b *stepBody) paused() bool {
	return b.failure == nil && b.finish == FinishPause && len(b.message.list()) == 0
}

// pausesAgain reports whether the last step was paused, and the run may continue its turn.
func (s State) pausesAgain() bool {
	n := 0
	for _, r := range s.RunStepsBackward() {
		if !r.read().paused() {
			break
		}
		n++
	}
	return n > 0 && n < maxPauses
}
