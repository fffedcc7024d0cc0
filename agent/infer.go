package agent

import (
	"context"

	"github.com/samber/mo"
)

// Stream asks d for the next turn and calls emit with the pieces as they arrive. If the driver cannot stream, Stream
// calls Next, and emit receives the whole reply at the end. Driver wrappers use Stream to support streaming.
func Stream(ctx context.Context, d Driver, s State, emit func(Delta)) mo.Result[Step] {
	if streamer, ok := d.(Streamer); ok {
		return streamer.Stream(ctx, s, emit)
	}
	result := d.Next(ctx, s)
	if step, err := result.Get(); err == nil {
		EmitWhole(step, emit)
	}
	return result
}

// EmitWhole calls emit with a whole reply.
func EmitWhole(step Step, emit func(Delta)) {
	for _, part := range step.Message.Content().Parts() {
		switch part.Kind {
		case PartText:
			emit(Delta{Text: part.Text})
		case PartReasoning:
			if part.Text != "" {
				emit(Delta{Reasoning: part.Text})
			}
		}
	}
	for i, call := range step.Message.Calls() {
		emit(Delta{Call: call, CallIndex: i})
	}
}

// asked is the innermost driver wrapper. After all hooks have run, it tells the observer that the model is being asked.
type asked struct{ driver Driver }

var (
	_ Streamer  = asked{}
	_ Describer = asked{}
)

// Features returns the Features of the driver below.
func (d asked) Features() Features { return FeaturesOf(d.driver) }

func (d asked) Next(ctx context.Context, s State) mo.Result[Step] {
	d.tell(ctx, s)
	return d.driver.Next(ctx, s)
}

func (d asked) Stream(ctx context.Context, s State, emit func(Delta)) mo.Result[Step] {
	d.tell(ctx, s)
	return Stream(ctx, d.driver, s, emit)
}

func (asked) tell(ctx context.Context, s State) {
	if s.read().live.watched() {
		s.read().live.asked.Store(true)
		s.read().live.tell(ctx, InferenceStarted{
			Run: s.Run(), Step: s.RunStepCount(), Inference: Checkpoint(s).InferenceID(), State: s,
		})
	}
}
