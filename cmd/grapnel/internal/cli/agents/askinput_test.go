package agents

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/inputform"
)

const signUpForm = `{"type":"object","properties":{"name":{"type":"string","title":"Your name"},"news":{"type":"boolean"},
	"plan":{"type":"string","enum":["a","b"],"enumNames":["Plan A","Plan B"],"default":"a"},
	"tags":{"type":"array","items":{"type":"string","enum":["x","y"]}}},"required":["name"]}`

func asksForInput(r agent.InputRequest) agent.Intervention {
	return agent.Intervention{Questions: agent.Questions{{Kind: agent.QuestionInput, Input: &r}}}
}

func TestReadInput(t *testing.T) {
	t.Parallel()
	i := asksForInput(agent.InputRequest{Schema: signUpForm})
	for want, values := range map[string][]string{
		"":               nil,
		`{"name":"Ann"}`: {`{"name":"Ann"}`},
		`{"name":"A=B","news":true,"tags":["x","y"]}`: {"name=A=B", "news=yes", "tags=x", "tags=y"},
	} {
		got, err := ReadInput(i, values)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	for want, values := range map[string][]string{
		"or name=value":        {"name"},
		"it is not asked for":  {"name=Ann", "admin=yes"},
		"given more than once": {"name=Ann", "name=Bob"},
	} {
		_, err := ReadInput(i, values)
		assert.ErrorContains(t, err, want)
	}
	_, err := ReadInput(agent.Intervention{}, []string{"name=Ann"})
	require.ErrorContains(t, err, "asks for no input")
	_, err = ReadInput(asksForInput(agent.InputRequest{}), []string{"name=Ann"})
	require.ErrorContains(t, err, "only an approval or a rejection")
}

func TestInputOfAPersonAtTheTerminal(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "\"Who?\"\nto visit: https://example.com\nname (text; required; Your name)\nnews (boolean)\nplan (choice; a = Plan A, b = Plan B)\ntags (choices; x, y)",
		DescribeInput(&agent.InputRequest{Message: "Who?", URL: "https://example.com", Schema: signUpForm}))
	form, err := inputform.Parse(signUpForm)
	require.NoError(t, err)
	plan, tags := form.Fields[2], form.Fields[3]
	assert.Equal(t, []string{"a"}, fieldTexts(plan, "", plan.Initial()))
	assert.Equal(t, []string{"b"}, fieldTexts(plan, "plan b", nil))
	assert.Equal(t, []string{"b"}, fieldTexts(plan, "2", nil))
	assert.Equal(t, []string{"x", "z"}, fieldTexts(tags, "1, z", nil))
	assert.Contains(t, problemOf(form, tags, map[string][]string{"tags": {"z"}}), "is not one of")
	assert.Empty(t, problemOf(form, tags, map[string][]string{"tags": {"x"}}))
	assert.Equal(t, "it is required", problemOf(form, form.Fields[0], nil))
}
