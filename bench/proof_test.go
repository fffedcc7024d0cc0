package bench_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/bench"
	"github.com/grapnel-go/grapnel/bench/bare"
	"github.com/grapnel-go/grapnel/bench/benchtest"
)

func TestBareDoesTheWork(t *testing.T) { benchtest.Prove(t, bare.Contender()) }

func TestProofTellsJobsApart(t *testing.T) {
	base := bench.Job{Steps: 5, History: 4, HookPairs: 1}.Proof()
	for name, other := range map[string]bench.Job{
		"steps":   {Steps: 6, History: 4, HookPairs: 1},
		"history": {Steps: 5, History: 6, HookPairs: 1},
		"hooks":   {Steps: 5, History: 4, HookPairs: 2},
		"calls":   {Steps: 5, History: 4, HookPairs: 1, Calls: 2},
	} {
		assert.NotEqual(t, base, other.Proof(), name)
	}
}

func TestProofReadsEveryFieldOfAMessage(t *testing.T) {
	whole := bench.Message{
		Role: "assistant", Content: "x", CallID: "1",
		Calls: []bench.Call{{ID: "2", Name: "add", Arguments: "{}"}},
	}
	hash := func(m bench.Message) string {
		return bench.Outcome{Transcript: func(yield func(bench.Message) bool) { yield(m) }}.Proof().Hash
	}
	for name, change := range map[string]func(*bench.Message){
		"role":      func(m *bench.Message) { m.Role = bench.RoleUser },
		"content":   func(m *bench.Message) { m.Content = "" },
		"call id":   func(m *bench.Message) { m.CallID = "" },
		"no calls":  func(m *bench.Message) { m.Calls = nil },
		"id":        func(m *bench.Message) { m.Calls = []bench.Call{{ID: "3", Name: "add", Arguments: "{}"}} },
		"name":      func(m *bench.Message) { m.Calls = []bench.Call{{ID: "2", Name: "sub", Arguments: "{}"}} },
		"arguments": func(m *bench.Message) { m.Calls = []bench.Call{{ID: "2", Name: "add", Arguments: "[]"}} },
		"a shifted border between fields": func(m *bench.Message) {
			m.Content, m.CallID = "x1", ""
		},
	} {
		changed := whole
		change(&changed)
		assert.NotEqual(t, hash(whole), hash(changed), name)
	}
}

func TestResultsAreSortedWithinTheirStepAlone(t *testing.T) {
	calls := func(ids ...string) bench.Message {
		m := bench.Message{Role: bench.RoleAssistant}
		for _, id := range ids {
			m.Calls = append(m.Calls, bench.Call{ID: id})
		}
		return m
	}
	answer := func(id string) bench.Message { return bench.Message{Role: bench.RoleTool, CallID: id} }
	asked := bench.Message{Role: bench.RoleUser}
	got := slices.Collect(bench.InOrder(slices.Values([]bench.Message{
		asked, calls("b", "a", "c"), answer("c"), answer("a"), answer("b"), calls("d", "e"), answer("e"), answer("d"), calls("f"),
	})))
	assert.Equal(t, []bench.Message{
		asked, calls("b", "a", "c"), answer("b"), answer("a"), answer("c"), calls("d", "e"), answer("d"), answer("e"), calls("f"),
	}, got)
}
