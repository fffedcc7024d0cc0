package provenance

import "github.com/grapnel-go/grapnel/agent"

// TestRun is one run whose index is kept, as in a run that is under way.
type TestRun struct{ index *index }

// NewTestRun returns a run of nothing yet.
func NewTestRun(t *Tracker) TestRun { return TestRun{newIndex(t)} }

// Of returns the trail of a state of the run.
func (r TestRun) Of(s agent.State) Trail { return Trail{r.index, s} }

// Scan and EachField are for fuzzing.
func Scan(text string) (keys int) {
	scanKeys(text, func(key) { keys++ })
	return keys
}

// EachField counts the fields of an answer.
func EachField(text string) (fields int) {
	values, _ := fieldsOf(text)
	return len(values)
}
