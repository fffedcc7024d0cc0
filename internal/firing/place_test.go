package firing_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/internal/firing"
)

// A gate's answer is valid when the repeated firing asks the same question, even in another process with another
// file, and for nothing else.
func TestAnAnswerIsForTheSameGate(t *testing.T) {
	t.Parallel()
	now := time.Now()
	asked := agent.Question{
		Kind: agent.QuestionGate, By: "wait", Reason: "may <it> go on?", Within: time.Hour,
		Gate: &agent.Gate{Kind: "file", Host: "one", Data: json.RawMessage(`{ "path": "a<b" }`), Seen: json.RawMessage(`{"size": 1}`)},
	}
	for name, tc := range map[string]struct {
		change func(q *agent.Question)
		counts bool
	}{
		"the same":       {func(*agent.Question) {}, true},
		"another file":   {func(q *agent.Question) { q.Gate.Host, q.Gate.Seen = "two", json.RawMessage(`{"size": 2}`) }, true},
		"another event":  {func(q *agent.Question) { q.Gate.Data = json.RawMessage(`{"path": "c"}`) }, false},
		"another reason": {func(q *agent.Question) { q.Reason = "THE ACCOUNT WAS REPORTED AS STOLEN" }, false},
		"a person": {func(q *agent.Question) {
			q.Kind, q.Gate, q.Approvers = agent.QuestionOrdinary, nil, []string{"cfo"}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := func(waits ...durable.Wait) *firing.Place {
				_, cancel := context.WithCancelCause(t.Context())
				return &firing.Place{Run: agent.Run{ID: "run"}, Waits: waits, Now: now, Cancel: cancel}
			}
			first := place()
			_, err := first.Park(t.Context(), "key", asked)
			require.ErrorIs(t, err, firing.ErrParked)
			require.Len(t, first.Parked, 1)
			w := first.Parked[0]
			i, err := durable.InterventionOf(w)
			require.NoError(t, err)
			q, ok := durable.GateOf(w, i)
			require.True(t, ok)
			data, err := json.Marshal(agent.Approval{Verdict: agent.Approve, Author: agent.AuthorEvent, Covers: []string{q.ID()}, By: "wait"})
			require.NoError(t, err)
			w.Answer = &durable.Answer{Wait: w.ID, Data: data}

			again, gate := asked, *asked.Gate
			again.Gate = &gate
			tc.change(&again)
			second := place(w)
			answer, err := second.Park(t.Context(), "key", again)
			if tc.counts {
				require.NoError(t, err)
				assert.Equal(t, agent.Approve, answer.Verdict)
				return
			}
			require.ErrorIs(t, err, firing.ErrParked)
			require.Len(t, second.Parked, 1)
			assert.NotEqual(t, w.ID, second.Parked[0].ID, "it asks again")
		})
	}
}
