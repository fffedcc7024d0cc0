package events

import (
	"reflect"
	"testing"

	"github.com/grapnel-go/grapnel/internal/upgrade"
)

// TestStoredForms fails when the form of an event changes: its head, or its members after that.
func TestStoredForms(t *testing.T) {
	var lines []string
	for _, event := range []any{
		head{}, fallback{}, runStarted{}, stepStarted{}, inferenceStarted{}, delta{}, inferenceCompleted{}, retrying{}, toolCallStarted{},
		approvalRequested{}, approvalCompleted{}, toolCallCompleted{}, progress{}, stepCompleted{}, judged{}, hook{}, runCompleted{}, runParked{},
		runResumed{}, notifyFailed{}, compacted{}, compactFailed{}, subagent{}, fellBack{}, contextEdited{}, toolsSelected{},
	} {
		of := reflect.TypeOf(event)
		for _, line := range upgrade.Fields(of) {
			lines = append(lines, of.Name()+line)
		}
	}
	upgrade.CheckForm(t, "events", lines)
}
