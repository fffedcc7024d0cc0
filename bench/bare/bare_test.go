package bare

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// replies is a model that says one thing after the other.
type replies []message

func (r *replies) Chat(context.Context, []message) (message, error) {
	if len(*r) == 0 {
		return message{}, errors.New("nothing left to say")
	}
	next := (*r)[0]
	*r = (*r)[1:]
	return next, nil
}

func asks(name, arguments string) message {
	return message{Role: "assistant", ToolCalls: []toolCall{{ID: "1", Function: function{name, arguments}}}}
}

func TestWhatGoesWrongInAToolIsNewsForTheModel(t *testing.T) {
	tools := map[string]tool{
		"break": func(context.Context, json.RawMessage) (string, error) { return "", errors.New("it broke") },
	}
	for name, tc := range map[string]struct{ tool, want string }{
		"an error":     {"break", "it broke"},
		"unknown tool": {"brake", `run tool "brake": unknown tool`},
	} {
		t.Run(name, func(t *testing.T) {
			a := agent{model: &replies{asks(tc.tool, "{}"), {Role: "assistant", Content: "I see."}}, tools: tools}
			transcript, err := a.run(t.Context(), nil)
			require.NoError(t, err)
			require.Len(t, transcript, 3)
			assert.Equal(t, message{Role: "tool", Content: tc.want, ToolCallID: "1"}, transcript[1])
		})
	}
}

func TestARunEndsWithItsModelOrItsContext(t *testing.T) {
	a := agent{model: &replies{}}
	_, err := a.run(t.Context(), nil)
	require.ErrorContains(t, err, "ask model: nothing left to say")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = a.run(ctx, nil)
	require.ErrorIs(t, err, context.Canceled)
}
