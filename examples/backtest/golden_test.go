package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// sampled is all runs, or with -short every sixteenth.
func sampled(records []*replay.Record) []*replay.Record {
	return lo.Filter(records, func(_ *replay.Record, i int) bool { return !testing.Short() || i%16 == 0 })
}

// onAllCores calls f for each run.
func onAllCores(records []*replay.Record, f func(*replay.Record)) {
	waiting := make(chan *replay.Record)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for r := range waiting {
				f(r)
			}
		})
	}
	for _, r := range records {
		waiting <- r
	}
	close(waiting)
	wg.Wait()
}

// The golden list says, for 7,036 recorded runs, which calls two reference policies deny. An agent that has a policy
// as a hook denies the same calls and no others, and answers all of them. An agent without one leaves no recording,
// but at calls that cannot run. With -short, every sixteenth run is played.
func TestGoldenDenials(t *testing.T) {
	t.Parallel()
	dir := parts.Recordings(t)
	golden := loadGolden(t, filepath.Join(dir, "golden-denials.jsonl.gz"))
	require.Len(t, golden, 7036)
	f := &folder{name: dir, files: os.DirFS(dir)}
	require.NoError(t, f.loadFacts(""))

	denied := map[string]*atomic.Int64{"deny-writes": {}, "operator-static": {}}
	var runs, calls, notRun atomic.Int64
	for _, suite := range []string{"banking", "slack", "travel", "workspace"} {
		tools, err := f.loadTools("tools/agentdojo-" + suite + ".json")
		require.NoError(t, err)
		guarded := lo.Map(policies, func(p policy, _ int) player {
			rule, err := p.rule(f.facts, suite)
			require.NoError(t, err)
			a, err := newAgent(tools, hook(p.name, rule))
			require.NoError(t, err)
			return player{p.name, a}
		})
		free, err := newAgent(tools)
		require.NoError(t, err)

		records, err := replay.Load(filepath.Join(dir, "agentdojo-"+suite+".jsonl.gz"))
		require.NoError(t, err)
		onAllCores(sampled(records), func(record *replay.Record) {
			runs.Add(1)
			for range record.Calls() {
				calls.Add(1)
			}
			session, err := replay.NewSession(record)
			if !assert.NoError(t, err) {
				return
			}
			for _, p := range guarded {
				got, ok := deniedCalls(t, session, p, record)
				assert.Equal(t, golden[record.ID][p.policy], got, "%s denies other calls of run %q", p.policy, record.ID)
				assert.True(t, ok, record.ID)
				denied[p.policy].Add(int64(len(got)))
			}
			played, err := session.Play(t.Context(), free)
			assert.NoError(t, err)
			for _, d := range played.Departures {
				assert.Equal(t, replay.CallNotRun, d.Kind, "%s: %s", record.ID, d)
				notRun.Add(1)
			}
		})
	}
	if testing.Short() {
		assert.Positive(t, runs.Load())
		return
	}
	assert.EqualValues(t, 7036, runs.Load())
	assert.EqualValues(t, 26389, calls.Load())
	assert.EqualValues(t, 7540, denied["deny-writes"].Load())
	assert.EqualValues(t, 2269, denied["operator-static"].Load())
	assert.EqualValues(t, 588, notRun.Load()) // 587 that break their schema, one of a tool that there is not
}

// deniedCalls plays a run and returns the ids of the calls that the policy denied, in call order, by the results of
// the steps. It is not ok when a call has no answer, or when the departures tell something else.
func deniedCalls(t *testing.T, session *replay.Session, p player, record *replay.Record) (ids []string, ok bool) {
	t.Helper()
	played, err := session.Play(t.Context(), p.agent)
	if !assert.NoError(t, err, record.ID) {
		return nil, false
	}
	ids = []string{}
	var answered []string
	for _, step := range played.State.Steps() {
		for _, r := range step.Results() {
			answered = append(answered, r.CallID())
			if r.Reason == agent.ReasonDenied && r.DecidedBy == p.policy && r.Status == agent.ToolNotExecuted {
				ids = append(ids, r.CallID())
			}
		}
	}
	var asked []string
	for _, call := range record.Calls() {
		asked = append(asked, call.ID)
	}
	told := lo.FilterMap(played.Departures, func(d replay.Departure, _ int) (string, bool) {
		return d.Call, d.Kind == replay.CallDenied
	})
	return ids, assert.Equal(t, asked, answered, record.ID) && assert.ElementsMatch(t, ids, told, record.ID)
}

// loadGolden reads which calls each policy denies, by run and policy.
func loadGolden(t *testing.T, path string) map[string]map[string][]string {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	require.NoError(t, err)

	golden := map[string]map[string][]string{}
	lines := bufio.NewScanner(unpacked)
	for lines.Scan() {
		var line struct {
			ID     string              `json:"id"`
			Denied map[string][]string `json:"denied"`
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line))
		golden[line.ID] = line.Denied
	}
	require.NoError(t, lines.Err())
	return golden
}

// tally is what is counted in plays.
type tally struct{ sessions, runs, calls, malformed int }

// playThrough plays a run and counts; every call must have an answer, and only calls that cannot run may be departures.
func playThrough(t *testing.T, r *replay.Record, a *agent.Agent) tally {
	t.Helper()
	session, err := replay.NewSession(r)
	if !assert.NoError(t, err) {
		return tally{}
	}
	played, err := session.Play(t.Context(), a)
	assert.NoError(t, err)
	for _, d := range played.Departures {
		assert.Equal(t, replay.CallNotRun, d.Kind, "%s: %s", r.ID, d)
	}
	n := tally{sessions: 1, runs: played.Runs}
	for _, step := range played.State.Steps() {
		assert.Equal(t, step.Message().CallCount(), step.ResultCount(), r.ID)
		for _, result := range step.Results() {
			n.calls++
			n.malformed += lo.Ternary(result.Reason == agent.ReasonMalformed, 1, 0)
		}
	}
	return n
}

// Conversations of many runs and shell sessions pass through: every call is answered, and hooks are asked about all
// that can be read. With -short, every sixteenth is played.
func TestOtherRecordingsPass(t *testing.T) {
	t.Parallel()
	dir := parts.Recordings(t)
	f := &folder{name: dir, files: os.DirFS(dir)}
	for file, want := range map[string]tally{
		"tau.jsonl.gz":   {282, 1984, 2395, 66},
		"shell.jsonl.gz": {555, 554, 3399, 0},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			records, err := replay.Load(filepath.Join(dir, file))
			require.NoError(t, err)
			var asked atomic.Int64
			count := hooks.Observe(hooks.AtPreToolUse, "count", func(context.Context, hooks.ToolContext) error {
				asked.Add(1)
				return nil
			})
			agents := map[string]*agent.Agent{}
			for _, r := range lo.UniqBy(records, func(r *replay.Record) string { return r.ToolsRef }) {
				tools, err := f.loadTools(r.ToolsRef)
				require.NoError(t, err)
				agents[r.ToolsRef], err = newAgent(tools, count)
				require.NoError(t, err)
			}
			var mu sync.Mutex
			var got tally
			onAllCores(sampled(records), func(r *replay.Record) {
				n := playThrough(t, r, agents[r.ToolsRef])
				mu.Lock()
				defer mu.Unlock()
				got = tally{got.sessions + n.sessions, got.runs + n.runs, got.calls + n.calls, got.malformed + n.malformed}
			})
			assert.EqualValues(t, got.calls-got.malformed, asked.Load())
			if testing.Short() {
				assert.Positive(t, got.sessions)
				return
			}
			assert.Equal(t, want, got)
		})
	}
}

// The numbers that were handed over with the recordings come out.
func TestTheNumbersReproduce(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the numbers are of all runs: run without -short")
	}
	found, err := find(options{paths: []string{parts.Recordings(t)}}, "")
	require.NoError(t, err)
	done := newBacktest(policies, found, newProgress(silent)).run(t.Context())
	type numbers struct {
		policy                 string
		runs, calls, denied    int
		blocked, broken, twins share
	}
	got := lo.Map(done.Totals, func(r row, _ int) numbers {
		return numbers{r.Policy, r.Runs, r.Calls, r.Denied, r.Blocked, r.Broken, r.Twins}
	})
	assert.Equal(t, []numbers{
		{"deny-writes", 7036, 26389, 7540, share{1015, 1015}, share{262, 436}, share{204, 276}},
		{"operator-static", 7036, 26389, 2269, share{854, 1015}, share{53, 436}, share{177, 276}},
	}, got)
	assert.Equal(t, 7036, done.Runs)
	assert.Zero(t, done.Failed)
	assert.Equal(t, 282+555, lo.SumBy(done.LeftOut, func(l leftOut) int { return l.Runs }))
}
