package bench_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/bench"
	"github.com/grapnel-go/grapnel/bench/contenders"
)

func TestEveryContenderDoesTheSameWork(t *testing.T) {
	for name, job := range map[string]bench.Job{
		"an answer at once": {},
		"one step":          {Steps: 1},
		"many steps":        {Steps: 137},
		"hooks":             {Steps: 9, HookPairs: 10},
		"a short history":   {Steps: 3, History: 2},
		"a long history":    {Steps: 20, History: 1000, HookPairs: 1},
	} {
		for _, c := range contenders.All() {
			t.Run(name+"/"+c.Name, func(t *testing.T) {
				run, err := c.Prepare(job)
				require.NoError(t, err)
				for range 2 { // the second run finds nothing of the first
					outcome, err := run(t.Context())
					require.NoError(t, err)
					assert.Equal(t, job.Proof(), outcome.Proof())
				}
			})
		}
	}
}

func TestProofTellsJobsApart(t *testing.T) {
	base := bench.Job{Steps: 5, History: 4, HookPairs: 1}.Proof()
	for name, other := range map[string]bench.Job{
		"steps":   {Steps: 6, History: 4, HookPairs: 1},
		"history": {Steps: 5, History: 6, HookPairs: 1},
		"hooks":   {Steps: 5, History: 4, HookPairs: 2},
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

func TestJobsThatMakeNoSenseAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		job  bench.Job
		want string
	}{
		"steps":            {bench.Job{Steps: -1}, "-1 steps"},
		"hook pairs":       {bench.Job{HookPairs: -1}, "-1 hook pairs"},
		"an odd history":   {bench.Job{History: 3}, "a history of 3 messages: want an even number"},
		"negative history": {bench.Job{History: -2}, "a history of -2 messages"},
	} {
		for _, c := range contenders.All() {
			_, err := c.Prepare(tc.job)
			require.Error(t, err, "%s: %s", c.Name, name)
			assert.ErrorContains(t, err, tc.want)
		}
	}
}
