package pipeline

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// The time in which a session waits for gates counts for no limit.
func TestTimeAtGatesDoesNotCount(t *testing.T) {
	now := time.Now()
	m := &machine{about: durable.Run{}, waits: []durable.Wait{
		{ID: "run_1", Subject: iterationWait, Kind: durable.WaitChild, Asked: now.Add(-5 * time.Hour)},
		{ID: "gate-1", Kind: durable.WaitApproval, Asked: now.Add(-time.Hour)},
	}}
	for range 2 { // it counts once
		require.NoError(t, m.countWaits(t.Context()))
		assert.InDelta(t, time.Hour, m.at.Waited, float64(time.Minute))
	}

	m = &machine{session: &session{
		Pipeline: &Pipeline{Definition: Definition{Stages: []Stage{{MaxTime: 30 * time.Minute}}}}, limits: agent.Limits{Time: time.Hour},
	}}
	m.at.Began, m.at.Before.At = now.Add(-3*time.Hour), now.Add(-3*time.Hour)
	m.at.Waited = 170 * time.Minute
	m.recordTimeOver()
	assert.Empty(t, m.limitReached())
	assert.Empty(t, m.stageOver())
	assert.InDelta(t, 20*time.Minute, m.limitsLeft().Time, float64(time.Minute), "the remaining time of the stage")
	m.at.Before.Waited = 30 * time.Minute // an earlier stage waited for it
	m.recordTimeOver()
	assert.Equal(t, "the stage has used its maximum time of 30m0s", m.stageOver())
	m.at.Waited = 100 * time.Minute
	m.recordTimeOver()
	assert.Equal(t, "the time limit of 1h0m0s is reached", m.limitReached())
}

// A limit that is used up is not taken for no limit.
func TestUsedUpLimitsStayLimits(t *testing.T) {
	m := &machine{session: &session{
		Pipeline: &Pipeline{Definition: Definition{Stages: []Stage{{MaxCost: 2}}}}, limits: agent.Limits{Steps: 3, Tokens: 10, Cost: 5, Time: time.Hour},
	}}
	m.at.Began, m.at.Before.At = time.Now(), time.Now()
	m.at.Spent = spending{Steps: 1, Tokens: 4, Cost: 0.5}
	left := m.limitsLeft()
	assert.Equal(t, []any{2, int64(6), 1.5}, []any{left.Steps, left.Tokens, left.Cost})
	m.at.Spent = spending{Steps: 3, Tokens: 12, Cost: 6}
	left = m.limitsLeft()
	assert.Equal(t, []any{1, int64(1), leastCost}, []any{left.Steps, left.Tokens, left.Cost})
	m.limits, m.Stages[0].MaxCost = agent.Limits{}, 0
	assert.Zero(t, m.limitsLeft())
}

// partStore has the ended runs of the stages of a parallel block.
type partStore struct {
	durable.Store

	runs   map[agent.RunID]durable.Run
	inputs map[agent.RunID][]byte
	at     map[agent.RunID]position
}

func (s *partStore) Run(_ context.Context, id agent.RunID) (durable.Run, error) {
	return s.runs[id], nil
}

func (s *partStore) Input(_ context.Context, id agent.RunID) ([]byte, error) {
	return s.inputs[id], nil
}

func (*partStore) Waits(context.Context, agent.RunID) ([]durable.Wait, error) { return nil, nil }

func (s *partStore) Entries(_ context.Context, id agent.RunID, _ int64) ([]durable.Entry, error) {
	data, err := json.Marshal(s.at[id])
	return []durable.Entry{{Seq: 1, Kind: entryPosition, Data: data}}, err
}

// The time in which stages of a parallel block wait for gates counts for no limit of the session. The stages wait at the same time.
func TestTimeAtGatesOfPartsDoesNotCount(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
name: p
stages:
  - name: both
    parallel:
      - {name: left, command: {argv: ["true"]}, termination: {type: fixed, iterations: 1}}
      - {name: right, command: {argv: ["true"]}, termination: {type: fixed, iterations: 1}}
  - {name: last, command: {argv: ["true"]}, termination: {type: fixed, iterations: 1}}
`), 0o600))
	p, err := Load(file, LoadOptions{})
	require.NoError(t, err)
	store := &partStore{runs: map[agent.RunID]durable.Run{}, inputs: map[agent.RunID][]byte{}, at: map[agent.RunID]position{}}
	m := &machine{
		session: &session{Pipeline: p, limits: agent.Limits{Time: time.Hour}}, store: store, events: &eventLog{},
		at: position{cursor: cursor{Phase: phaseParallel}, usage: usage{Waited: time.Minute}, Began: time.Now().Add(-3 * time.Hour)},
	}
	for part, waited := range map[string]time.Duration{"left": 100 * time.Minute, "right": 170 * time.Minute} {
		job, err := p.Job(SessionOptions{Name: "s", Dir: t.TempDir(), only: part})
		require.NoError(t, err)
		id := agent.RunID(part)
		store.runs[id] = durable.Run{ID: id, Kind: durable.KindPipeline, Status: durable.StatusCompleted}
		store.inputs[id] = job.Input
		store.at[id] = position{cursor: cursor{Phase: phaseEnd}, usage: usage{Waited: waited}, End: &ending{Reason: Completed}}
		m.at.Children = append(m.at.Children, id)
	}
	wait, err := m.observeParallel(t.Context())
	require.NoError(t, err)
	assert.False(t, wait)
	assert.Equal(t, 171*time.Minute, m.at.Waited, "the longest wait counts")
	assert.Empty(t, m.limitReached())
	assert.Equal(t, 1, m.at.Stage, "the next stage begins")
}
