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

// ReplyRetry asks the model again when its final reply is empty, or was cut at its token limit. The zero
// ReplyRetry asks twice in all.
//
// It looks at replies without tool calls alone, so no tool runs twice, and at none that a service withheld or
// that a hook stopped the run with. A reply that is dropped is no step and not in the transcript; what it used
// counts for the run. The model is asked the same again; after a reply that was cut, with twice the
// Request.MaxOutputTokens where there is such a limit. The last attempt counts, whatever it brought: the stop
// signal says how it looked.
//
// No attempt is made that a limit of tokens, cost or time does not leave room for. Each is told as a
// processor.Retrying event, whose Err is ErrEmptyReply or ErrCutReply. Pieces of a reply that is dropped have been
// streamed by then; what comes behind the event belongs to the next one.
type ReplyRetry struct {
	// Attempts is how often the model is asked in all. Zero means 2.
	Attempts int
}

// defaultReplies is how often a ReplyRetry asks in all where nothing is said.
const defaultReplies = 2

// Why a ReplyRetry asks again.
var (
	// ErrEmptyReply is told when a reply has neither text nor calls: see agent.Step.Empty.
	ErrEmptyReply = errors.New("the reply is empty")
	// ErrCutReply is told when a reply ended at its token limit.
	ErrCutReply = errors.New("the reply was cut at its token limit")
)

// Name returns "reply-retry".
func (ReplyRetry) Name() string { return "reply-retry" }

// Install puts the retry around each step, inside of the hooks.
func (r ReplyRetry) Install(p capability.Plan) mo.Result[capability.Plan] {
	if r.Attempts < 0 {
		return mo.Err[capability.Plan](fmt.Errorf("attempts are %d: give how often the model is asked in all, zero means %d", r.Attempts, defaultReplies))
	}
	r.Attempts = cmp.Or(r.Attempts, defaultReplies)
	return mo.Ok(p.AroundStep(capability.Inside, r.Name(), agent.ProcessorFunc(r.process)))
}

// process takes the step, and takes it again while its final reply is of no use.
func (r ReplyRetry) process(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
	asked := s
	var kept mo.Option[agent.State] // what the attempt before came to
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
		kept = mo.Some(taken)
		if errors.Is(useless, ErrCutReply) {
			asked = withMoreTokens(asked)
		}
	}
}

// uselessReply returns why the reply of the last step is of no use; nil when it is.
func uselessReply(s agent.State) error {
	last, _ := s.LastStep().Get()
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

// stoppedAfter returns the state of a step that was not taken again because something stopped the run before: the
// reply of the attempt before, if there was one, with that stop.
func stoppedAfter(kept mo.Option[agent.State], stopped agent.State) agent.State {
	before, ok := kept.Get()
	signal, hasSignal := stopped.StopSignal().Get()
	if !ok || !hasSignal {
		return stopped
	}
	return before.WithStop(signal)
}

// withMoreTokens returns s with twice the room for the reply, where the request limits it.
func withMoreTokens(s agent.State) agent.State {
	request := s.Request()
	if request.MaxOutputTokens <= 0 {
		return s
	}
	const most = 1 << 30
	request.MaxOutputTokens = min(2*request.MaxOutputTokens, max(most, request.MaxOutputTokens))
	return s.WithRequest(request)
}
