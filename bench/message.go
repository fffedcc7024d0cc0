package bench

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"iter"
	"slices"
	"strconv"
)

// The roles of messages.
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
)

// Message is a message independent of any framework. Contenders convert their own messages to it after the run, off
// the clock.
type Message struct {
	Role    string
	Content string
	CallID  string // the call that a tool message answers
	Calls   []Call
}

// Call is one tool call, its arguments still raw JSON.
type Call struct{ ID, Name, Arguments string }

// Proof is equal for two runs if, and only if, they did the same work.
type Proof struct {
	ModelCalls, ToolRuns, HookCalls, Sum int
	// Messages is the length of the final transcript, Hash that of its contents.
	Messages int
	Hash     string
}

// Proof reads the transcript and returns the proof of the outcome.
func (o Outcome) Proof() Proof {
	length, sum := digest(o.Transcript)
	return Proof{o.ModelCalls, o.ToolRuns, o.HookCalls, o.Sum, length, sum}
}

// Proof returns the proof that every run of the job must have, computed without a run.
func (j Job) Proof() Proof {
	transcript := append(j.past(), Message{Role: RoleUser, Content: question})
	for i := range j.Steps {
		transcript = append(transcript, exchange(callIDs(i*j.width(), j.width())...)...)
	}
	transcript = append(transcript, Message{Role: RoleAssistant, Content: Answer})
	length, sum := digest(slices.Values(transcript))
	return Proof{
		ModelCalls: j.Steps + 1,
		ToolRuns:   j.Steps * j.width(),
		HookCalls:  2 * j.HookPairs * j.Steps * j.width(),
		Sum:        42 * j.Steps * j.width(),
		Messages:   length,
		Hash:       sum,
	}
}

// InOrder sorts the results after a message in the order of its calls.
func InOrder(transcript iter.Seq[Message]) iter.Seq[Message] {
	return func(yield func(Message) bool) {
		sorted := slices.Collect(transcript)
		for i := range sorted {
			place := make(map[string]int, len(sorted[i].Calls))
			for n, c := range sorted[i].Calls {
				place[c.ID] = n
			}
			results := sorted[i+1 : min(i+1+len(place), len(sorted))]
			slices.SortStableFunc(results, func(a, b Message) int { return place[a.CallID] - place[b.CallID] })
		}
		for _, m := range sorted {
			if !yield(m) {
				return
			}
		}
	}
}

// digest hashes every field after its length, so that two different transcripts never have the same input to the
// hash.
func digest(transcript iter.Seq[Message]) (length int, sum string) {
	h := sha256.New()
	for m := range transcript {
		length++
		writeFields(h, m.Role, m.Content, m.CallID, strconv.Itoa(len(m.Calls)))
		for _, c := range m.Calls {
			writeFields(h, c.ID, c.Name, c.Arguments)
		}
	}
	return length, hex.EncodeToString(h.Sum(nil))
}

func writeFields(h hash.Hash, fields ...string) {
	for _, f := range fields {
		// A hash never fails to write.
		_, _ = io.WriteString(h, strconv.Itoa(len(f)))
		_, _ = io.WriteString(h, ":")
		_, _ = io.WriteString(h, f)
	}
}
