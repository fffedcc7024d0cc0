package modeltest_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/internal/modeltest"
)

func TestModelOverTheMockServer(t *testing.T) {
	mock := modeltest.StartMock(t)
	agenttest.TestModel(t, agenttest.Model{New: func(t *testing.T, turns ...agent.Step) agent.Driver {
		return chat{url: mock.Play(t, turns...).URL + "/v1", key: modeltest.Key, client: http.DefaultClient}
	}})
}

func TestMockKeepsWhatWasAsked(t *testing.T) {
	mock := modeltest.Mock(t, agent.Step{Message: agent.Assistant("hi"), FinishReason: agent.FinishStop})
	d := chat{url: mock.URL + "/v1", key: modeltest.Key, client: http.DefaultClient}
	step, err := d.Next(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
	require.NoError(t, err)
	assert.Equal(t, "hi", step.Message.Text())

	<-mock.Asked()
	require.Len(t, mock.Requests(), 1)
	r := mock.Requests()[0]
	assert.Equal(t, "POST /v1/chat/completions", r.Method+" "+r.Path)
	assert.Equal(t, "Bearer "+modeltest.Key, r.Header.Get("Authorization"))
	assert.Equal(t, "small", r.JSON(t)["model"])
	<-r.Gone()
}
