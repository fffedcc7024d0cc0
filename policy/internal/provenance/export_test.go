package provenance

import "github.com/grapnel-go/grapnel/agent"

// TestRun is one run that keeps its index, like a run in progress.
type TestRun struct{ index *index }

// NewTestRun returns an empty run.
func NewTestRun(t *Tracker) TestRun { return TestRun{newIndex(t)} }

// Of returns the trail for a state.
func (r TestRun) Of(s agent.State) Trail { return Trail{r.index, s} }

// Scan and EachField are for fuzzing.
func Scan(text string) (keys int) {
	scanKeys(text, func(key) { keys++ })
	return keys
}

// EachField counts an answer's fields.
func EachField(text string) (fields int) {
	values, _ := fieldsOf(text)
	return len(values)
}
