package loops

import (
	"hash/maphash"
	"slices"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// made is a call by the model, reduced to the data that loops compare.
type made struct {
	call      uint64
	result    uint64
	anyResult bool // its result counts as equal to any other
	tool      string
}

func (m made) sameAs(n made) bool {
	return m.call == n.call && (m.result == n.result || m.anyResult || n.anyResult)
}

// rounds counts, for each round length, the last calls that repeat the calls one round earlier.
type rounds struct {
	of []agreement // index: round length minus one
	n  int         // calls so far
}

// agreement counts the last calls that equal the call one round earlier. It also holds one slot in the ring buffer of
// last calls.
type agreement struct {
	streak int
	last   made
}

func newRounds(longest int) rounds { return rounds{of: make([]agreement, longest)} }

func (r *rounds) clone() rounds { return rounds{slices.Clone(r.of), r.n} }

// back returns an earlier call; back(1) is the last one.
func (r *rounds) back(calls int) made { return r.of[(r.n-calls)%len(r.of)].last }

func (r *rounds) add(m made) {
	for i := range r.of {
		if length := i + 1; r.n >= length && m.sameAs(r.back(length)) {
			r.of[i].streak++
		} else {
			r.of[i].streak = 0
		}
	}
	r.of[r.n%len(r.of)].last = m
	r.n++
}

// find returns the shortest round that was made at least the given number of times, ignoring the last without calls.
// made is how often it was made, and length its number of calls. Both are zero if there is none.
func (r *rounds) find(times, without int) (made, length int) {
	for i, a := range r.of {
		length := i + 1
		if made := (a.streak - without + length) / length; a.streak > 0 && made >= times {
			return made, length
		}
	}
	return 0, 0
}

// tools returns the last calls' tool names, the oldest first.
func (r *rounds) tools(calls int) []string {
	var names []string
	for i := calls; i > 0; i-- {
		names = append(names, r.back(i).tool)
	}
	return names
}

var seed = maphash.MakeSeed()

// keyOf returns a hash that identifies a call.
func keyOf(c agent.ToolCall) uint64 {
	arguments := c.Arguments
	if arguments == "" {
		arguments = "{}"
	}
	if canonical, err := strictjson.Canonical(arguments); err == nil {
		arguments = canonical
	}
	return maphash.Comparable(seed, [2]string{c.Name, arguments})
}

// resultOf returns a hash that identifies a result.
func resultOf(r *agent.ToolResult) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	maphash.WriteComparable(&h, r.IsError())
	for i, p := range r.Content.Parts() {
		if i == 0 && r.Rewritten() && p.Name != "" { // the note about changed arguments
			continue
		}
		maphash.WriteComparable(&h, p)
	}
	return h.Sum64()
}
