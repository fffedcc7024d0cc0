package agents

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/agentfile"
	"github.com/grapnel-go/grapnel/drivers/replay"
)

// The recording that is played when no model is available, and its agent file, whose hooks are active while
// it plays.
var (
	//go:embed shipped/session.jsonl
	shippedSession []byte
	//go:embed shipped/agent.yaml
	shippedAgent []byte
)

// NewShippedAgent builds the agent that plays the shipped recording.
func NewShippedAgent(ctx context.Context, w Watchers) (*Built, error) {
	file, err := NewRegistry().Parse("the shipped agent file", shippedAgent)
	if err != nil {
		return nil, err
	}
	session, schemas, err := firstRun(replay.NewReader(bytes.NewReader(shippedSession)))
	if err != nil {
		return nil, fmt.Errorf("the shipped recording: %w", err)
	}
	file.Model = agentfile.Replay + ":shipped"
	m := &Built{Recording: session}
	more := []capability.Capability{capability.UseCriteria(replay.GoOn)}
	return m, m.buildComplete(ctx, &Parts{}, file, w, replay.Tools(schemas.list...), more)
}

// Fallback shows that a recording is played, why, and what to do about it.
func (v *View) Fallback(why error, more string) {
	reason := why.Error()
	advice := "To use a model, set one of these keys, or name a model with --model."
	if offline, ok := errors.AsType[*OfflineError](why); ok {
		reason = "the model service cannot be reached: " + offline.Error()
		advice = "To use a model, check the network, or name another model with --model and --base-url."
	}
	if v.Events != nil {
		v.Events.Fallback(reason)
	}
	v.Note("No model is used: " + reason + ".\nInstead you see a recording that ships with grapnel, played through a real agent with its hooks. " +
		more + "\n" + advice)
}
