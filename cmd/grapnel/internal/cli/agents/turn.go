package agents

import (
	"context"
	"fmt"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/registry"
)

// DrainTime is the maximum time to wait for background work of a run.
const DrainTime = 10 * time.Second

// Turn runs the agent once in a new session, with the prompt, or with the recorded input if the prompt is
// empty. With, when not nil, changes the state at the beginning.
func (m *Built) Turn(
	ctx context.Context, v *View, prompt string, settings agent.RunSettings, with func(agent.State) agent.State,
) (agent.State, error) {
	for _, note := range m.Notes {
		v.Note(note)
	}
	s, input := agent.NewState(), []agent.Message{agent.UserText(prompt)}
	if m.Recording != nil {
		ctx, s = m.Recording.Into(ctx), m.Recording.Start()
		if prompt == "" {
			input = m.Recording.Input(0)
		}
	}
	if with != nil {
		s = with(s)
	}
	var err error
	var final agent.State
	for progress, failed := range m.Agent.StreamWith(ctx, settings, s, input...) {
		if progress.Delta != nil {
			v.Delta(*progress.Delta)
			continue
		}
		final, err = progress.State, failed
	}
	return final, err
}

// Answer returns the final answer; for an answer with a schema, only the JSON.
func (m *Built) Answer(final agent.State) string {
	if m.Agent.Request().Output != nil {
		return registry.TrimFence(final.Answer())
	}
	return final.Answer()
}

// End waits for background work of the agent, closes it, and shows what went wrong.
func (m *Built) End(ctx context.Context, v *View) {
	if !m.drain(ctx) {
		v.Note(fmt.Sprintf("Background work did not finish within %s and is cancelled.", DrainTime))
	}
	if err := m.Close(); err != nil {
		v.Note(err.Error())
	}
}

// Stop waits for background work of the agent, and closes it.
func (m *Built) Stop() error {
	m.drain(context.Background())
	return m.Close()
}

// drain reports whether background work of the agent has ended in time. Otherwise it is cancelled.
func (m *Built) drain(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), DrainTime)
	defer cancel()
	defer m.Agent.Cancel()
	return m.Agent.Drain(ctx) == nil
}

// Finish closes the agent, writes the answer, and returns the exit code.
func (m *Built) Finish(ctx context.Context, v *View, final agent.State, err error) error {
	cause := context.Cause(ctx)
	m.End(ctx, v)
	if v.Show == nil && v.Events == nil && !IsPlainEnd(final) {
		v.Note(timeline.Verdict(final, err))
	}
	if final.Status() == agent.StatusDone {
		if err := v.Answer(m.Answer(final)); err != nil {
			return err
		}
	}
	return console.Exit(console.ExitCode(final, err, cause))
}

// IsPlainEnd reports whether a run ended with an answer and needs no explanation.
func IsPlainEnd(s agent.State) bool {
	return s.Status() == agent.StatusDone && s.StopSignal().Reason == agent.StopCompleted
}
