package kit

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/processor"
)

// ReplyRetry asks the model again when its final reply is empty, or was cut at its token limit. The zero ReplyRetry
// asks up to twice.
//
// It checks only replies without tool calls, so no tool runs twice. It ignores replies that a service withheld or with
// which a hook stopped the run. A dropped reply is not recorded as a step and is not in the transcript, but its usage
// counts for the run. The model gets the same request again. After a cut reply, the request has twice the
// Request.MaxOutputTokens, if there is such a limit. The last attempt's reply is used even if it is empty or cut, and
// the stop signal describes it.
//
// Another attempt is made only if the token, cost and time limits allow it. Each attempt is a processor.Retrying event,
// whose Err is ErrEmptyReply or ErrCutReply. Pieces of a dropped reply have already been streamed. Pieces after the
// event belong to the next reply.
type ReplyRetry struct {
	// Attempts is the total number of times that the model is asked. Zero means 2.
	Attempts int
}

// defaultReplies is the default of ReplyRetry.Attempts.
const defaultReplies = 2

// The reasons for which a ReplyRetry asks again.
var (
	// ErrEmptyReply is reported when a reply has neither text nor calls: see agent.Step.Empty.
	ErrEmptyReply = errors.New("the reply is empty")
	// ErrCutReply is reported when a reply ended at its token limit.
	ErrCutReply = errors.New("the reply was cut at its token limit")
)

// Name returns "reply-retry".
func (ReplyRetry) Name() string { return "reply-retry" }

// Install puts the retry around each step, inside the hooks.
func (r ReplyRetry) Install(p capability.Plan) mo.Result[capability.Plan] {
	if r.Attempts < 0 {
		return mo.Err[capability.Plan](fmt.Errorf("attempts are %d: it must not be negative, and zero means %d attempts in total", r.Attempts, defaultReplies))
	}
	r.Attempts = cmp.Or(r.Attempts, defaultReplies)
	return mo.Ok(p.AroundStep(capability.Inside, r.Name(), agent.ProcessorFunc(r.process)))
}

// process takes the step, and repeats it while its final reply is empty or cut.
func (r ReplyRetry) process(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
	asked := s
	var kept *agent.State // the state after the previous attempt
	for attempt := 1; ; attempt++ {
		out := next(ctx, asked)
		taken, err := out.Get()
		if err != nil {
			return out
		}
		if taken.RunStepCount() <= s.RunStepCount() {
			return mo.Ok(stoppedAfter(kept, taken))
		}
		useless := uselessReply(taken)
		if useless == nil || attempt >= r.Attempts || ctx.Err() != nil || !taken.MayAskAgain() {
			return out
		}
		s.Emit(ctx, processor.Retrying{Run: s.Run(), Step: s.RunStepCount(), Attempt: attempt, Err: useless})
		kept = &taken
		if errors.Is(useless, ErrCutReply) {
			asked = withMoreTokens(asked)
		}
	}
}

// uselessReply returns the reason why the last step's reply is not usable, or nil when it is usable.
func uselessReply(s agent.State) error {
	last := s.LastStep()
	reply := last.Reply()
	switch {
	case last.Kind() != agent.StepFinalResponse, s.Stopped(), reply.FinishReason == agent.FinishFilter:
		return nil
	case reply.FinishReason == agent.FinishLength:
		return ErrCutReply
	case reply.Empty():
		return ErrEmptyReply
	}
	return nil
}

// stoppedAfter returns the state of a step that was not repeated because the run was stopped first. It has the previous
// attempt's reply, if any, and the stop signal.
func stoppedAfter(kept *agent.State, stopped agent.State) agent.State {
	if kept == nil || !stopped.Stopped() {
		return stopped
	}
	return kept.WithStop(stopped.StopSignal())
}

// withMoreTokens returns s with twice the output tokens, if the request limits them.
func withMoreTokens(s agent.State) agent.State {
	request := s.Request()
	if request.MaxOutputTokens <= 0 {
		return s
	}
	const most = 1 << 30
	request.MaxOutputTokens = min(2*request.MaxOutputTokens, max(most, request.MaxOutputTokens))
	return s.WithRequest(request)
}
