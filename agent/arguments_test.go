package agent_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
)

func TestArgumentsErrorTextIsBounded(t *testing.T) {
	problems := make([]agent.ArgumentProblem, 1000)
	for i := range problems {
		problems[i] = agent.ArgumentProblem{Path: fmt.Sprintf("/items/%d", i), Message: strings.Repeat("é", 1000)}
	}
	text := (&agent.ArgumentsError{Problems: problems}).Error()
	assert.Less(t, len(text), 4000)
	assert.True(t, utf8.ValidString(text), "a rune was cut in two")
	assert.Contains(t, text, "1000 problems: ")
	assert.Contains(t, text, "/items/9: ")
	assert.NotContains(t, text, "/items/10: ")
	assert.Contains(t, text, "; and 990 more")
}

func TestArgumentsErrorSaysItsKindAndReason(t *testing.T) {
	invalid := &agent.ArgumentsError{Problems: []agent.ArgumentProblem{{Path: "/n", Message: "is missing"}}}
	malformed := &agent.ArgumentsError{Malformed: true, Problems: []agent.ArgumentProblem{{Message: "the text is empty"}}}
	assert.Equal(t, agent.KindInvalid, agent.KindOf(fmt.Errorf("tool %q: %w", "add", invalid)))
	assert.Equal(t, agent.ReasonInvalid, invalid.Reason())
	assert.Equal(t, agent.ReasonMalformed, malformed.Reason())
	assert.EqualError(t, malformed, "reading arguments: the text is empty")
	assert.EqualError(t, &agent.ArgumentsError{}, "checking arguments: no details")
}

func TestArgumentsErrorSurvivesJSON(t *testing.T) {
	sent := agent.ArgumentsError{Malformed: true, Problems: []agent.ArgumentProblem{{Path: "/a~1b", Message: "is given twice"}}}
	text, err := json.Marshal(sent)
	require.NoError(t, err)
	assert.JSONEq(t, `{"malformed":true,"problems":[{"path":"/a~1b","message":"is given twice"}]}`, string(text))
	var got agent.ArgumentsError
	require.NoError(t, json.Unmarshal(text, &got))
	assert.Equal(t, sent, got)
}

func ExampleArgumentsError() {
	var err error = &agent.ArgumentsError{Problems: []agent.ArgumentProblem{
		{Path: "/citty", Message: `is not known; did you mean "city"?`},
		{Path: "/days", Message: `expected integer, got string "three"`},
	}}
	err = fmt.Errorf("tool %q: %w", "weather", err)
	fmt.Println(err)
	if wrong, ok := errors.AsType[*agent.ArgumentsError](err); ok {
		fmt.Println(wrong.Reason(), len(wrong.Problems))
	}
	// Output:
	// tool "weather": checking arguments: 2 problems: /citty: is not known; did you mean "city"?; /days: expected integer, got string "three"
	// invalid_arguments 2
}
