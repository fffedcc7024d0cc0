package loops

import (
	"hash/maphash"
	"slices"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// made is a call that was made.
type made struct {
	call      uint64
	result    uint64
	anyResult bool // it is the same as any other
	tool      string
}

func (m made) sameAs(n made) bool {
	return m.call == n.call && (m.result == n.result || m.anyResult || n.anyResult)
}

// rounds is how far the last calls repeat those before them, for each length of a round.
type rounds struct {
	of []agreement // by the length of the round, less one
	n  int         // calls so far
}

// agreement is how many of the last calls are the same as the ones a round before; and a slot of the ring in which the
// last calls stand.
type agreement struct {
	streak int
	last   made
}

func newRounds(longest int) rounds { return rounds{of: make([]agreement, longest)} }

func (r *rounds) clone() rounds { return rounds{slices.Clone(r.of), r.n} }

// back returns the call that was made so many calls ago; the last one is 1.
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

// find looks for the shortest round that was made so often, not counting some of the last calls, and says how often that is
// and how many calls it has; zero if there is none.
func (r *rounds) find(times, without int) (made, length int) {
	for i, a := range r.of {
		length := i + 1
		if made := (a.streak - without + length) / length; a.streak > 0 && made >= times {
			return made, length
		}
	}
	return 0, 0
}

// tools returns the tools of the last calls, oldest first.
func (r *rounds) tools(calls int) []string {
	var names []string
	for i := calls; i > 0; i-- {
		names = append(names, r.back(i).tool)
	}
	return names
}

var seed = maphash.MakeSeed()

// keyOf tells calls apart.
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

// resultOf tells results apart.
func resultOf(r *agent.ToolResult) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	maphash.WriteComparable(&h, r.IsError())
	for _, p := range r.Content.Parts() {
		maphash.WriteComparable(&h, p)
	}
	return h.Sum64()
}
