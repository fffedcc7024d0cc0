package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/registry"
)

// drainTime is the maximum time to wait for background work of a run.
const drainTime = 10 * time.Second

// turn runs the agent once in a new session, with the prompt, or with the recorded input if the prompt is
// empty. With, when not nil, changes the state at the beginning.
func (m *made) turn(
	ctx context.Context, v *view, prompt string, settings agent.RunSettings, with func(agent.State) agent.State,
) (agent.State, error) {
	for _, note := range m.notes {
		v.note(note)
	}
	s, input := agent.NewState(), []agent.Message{agent.UserText(prompt)}
	if m.recording != nil {
		ctx, s = m.recording.Into(ctx), m.recording.Start()
		if prompt == "" {
			input = m.recording.Input(0)
		}
	}
	if with != nil {
		s = with(s)
	}
	var err error
	var final agent.State
	for progress, failed := range m.agent.StreamWith(ctx, settings, s, input...) {
		if progress.Delta != nil {
			v.delta(*progress.Delta)
			continue
		}
		final, err = progress.State, failed
	}
	return final, err
}

// answer returns the final answer; for an answer with a schema, only the JSON.
func (m *made) answer(final agent.State) string {
	if m.agent.Request().Output != nil {
		return registry.TrimFence(final.Answer())
	}
	return final.Answer()
}

// finish closes the agent, writes the answer, and returns the exit code.
func (m *made) finish(ctx context.Context, v *view, final agent.State, err error) error {
	cause := context.Cause(ctx)
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	if waiting := m.agent.Drain(draining); waiting != nil {
		v.note(fmt.Sprintf("Background work did not finish within %s and is cancelled.", drainTime))
	}
	m.agent.Cancel()
	if closing := m.close(); closing != nil {
		v.note(closing.Error())
	}
	if v.show == nil && v.events == nil && !isPlainEnd(final) {
		v.note(timeline.Verdict(final, err))
	}
	if final.Status() == agent.StatusDone {
		if err := v.answer(m.answer(final)); err != nil {
			return err
		}
	}
	if code := exitCode(final, err, cause); code != exitDone {
		return &exitError{code}
	}
	return nil
}

// isPlainEnd reports whether a run ended with an answer and needs no explanation.
func isPlainEnd(s agent.State) bool {
	return s.Status() == agent.StatusDone && s.StopSignal().OrEmpty().Reason == agent.StopCompleted
}
