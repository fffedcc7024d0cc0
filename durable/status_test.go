package durable_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

func TestStatusOf(t *testing.T) {
	for was, want := range map[agent.Status]struct {
		status  durable.Status
		reason  agent.StopReason
		blocked bool
	}{
		agent.StatusNew:         {status: durable.StatusReady},
		agent.StatusRunning:     {status: durable.StatusRunning},
		agent.StatusParked:      {status: durable.StatusWaiting},
		agent.StatusDone:        {status: durable.StatusCompleted, reason: agent.StopCompleted},
		agent.StatusStopped:     {status: durable.StatusStopped, reason: agent.StopStepsLimit},
		agent.StatusInterrupted: {status: durable.StatusStopped, reason: agent.StopRejected},
		agent.StatusFailed:      {status: durable.StatusFailed, reason: agent.StopError},
		agent.StatusDenied:      {status: durable.StatusFailed, reason: agent.StopDenied, blocked: true},
		agent.StatusCancelled:   {status: durable.StatusCancelled, reason: agent.StopUser},
	} {
		status, blocked := durable.StatusOf(was)
		assert.Equal(t, want.status, status, was)
		assert.Equal(t, want.blocked, blocked, was)
		assert.Equal(t, was.Terminal(), status.Ended(), was)
		assert.Equal(t, was, durable.Run{Status: status, Blocked: blocked, Reason: want.reason}.AgentStatus(), "and back")
	}
	assert.Equal(t, agent.StatusRunning, durable.Run{Status: durable.StatusReady, Attempts: 1}.AgentStatus(), "a run that was begun")
	assert.Equal(t, agent.StatusNew, durable.Run{Status: durable.StatusPending}.AgentStatus())
	assert.False(t, durable.Status("").Ended())
	assert.Len(t, durable.Statuses, 8)
}
