package engine_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/api"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
)

// server is a program that sends requests to a server on this machine.
type server struct {
	m      *measuring
	url    string
	client *http.Client
}

func newWeb(m *measuring, h http.Handler) server {
	m.Helper()
	s := httptest.NewServer(h)
	m.Cleanup(s.Close)
	transport := &http.Transport{MaxIdleConnsPerHost: 4096}
	m.Cleanup(transport.CloseIdleConnections)
	return server{m, s.URL, &http.Client{Transport: transport}}
}

// open sends a request as a runner. The caller closes the body of the response.
func (w server) open(ctx context.Context, method, path, runner string, body any) (*http.Response, error) {
	in := io.Reader(http.NoBody)
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		in = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, w.url+path, in)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer secret")
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Grapnel-Runner", runner)
	return w.client.Do(r)
}

// send sends a request as a runner, and reads the response into out unless that is nil.
func (w server) send(ctx context.Context, method, path, runner string, body, out any) error {
	response, err := w.open(ctx, method, path, runner, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return err
	case response.StatusCode/100 != 2:
		return fmt.Errorf("%s %s: %d: %s", method, path, response.StatusCode, text)
	case out == nil:
		return nil
	}
	return json.Unmarshal(text, out)
}

// claimed is a run as a runner gets it, from either side.
type claimed struct {
	Runs []struct {
		RunID agent.RunID `json:"run_id"`
		Epoch int64       `json:"epoch"`
	} `json:"runs"`
}

// serveCoordinator returns a coordinator with two blueprints: one without hooks, and one with a hook before its runs and one after.
func serveCoordinator(m *measuring, p benchStore) (*coordinator.Coordinator, server) {
	m.Helper()
	allow := func(context.Context, *action.Request) (*action.Decision, error) {
		return &action.Decision{Decision: hooks.Allow}, nil
	}
	c, err := coordinator.New(coordinator.Options{Store: p.Store, Host: action.Host{Funcs: map[string]action.Body{"allow": allow}}})
	require.NoError(m, err)
	hook := `{"type": "func", "func": "allow", "on_error": "block"}`
	for _, text := range []string{
		`{"name": "hooks0", "type": "procedural", "command": {"argv": ["true"]}}`,
		`{"name": "hooks2", "type": "procedural", "command": {"argv": ["true"]}, "hooks": {"on_run_start": ` + hook + `, "on_run_finish": ` + hook + `}}`,
	} {
		_, err := c.CreateBlueprint(m.Context(), []byte(text), "bench")
		require.NoError(m, err)
	}
	return c, newWeb(m, api.Handler(c, api.Options{Token: "secret"}))
}

// bareHooks is the kind of the runs for which the bare server calls hooks.
const bareHooks durable.Kind = "bare_hooks"

// serveBare returns a server with the requests of a coordinator that makes the same transactions and nothing else: no checks, no
// tokens, no blueprints.
func serveBare(p benchStore) http.Handler {
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, value any, err error) {
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(value) // the client has gone
	}
	mux.HandleFunc("POST /runs", func(w http.ResponseWriter, r *http.Request) {
		var in wire.RunRequest
		err := json.NewDecoder(r.Body).Decode(&in)
		jobs := []durable.Job{{ID: agent.NewRunID(), Kind: durable.KindCommand, Name: "bare", Input: in.Parameters}}
		if in.AgentName == "hooks2" {
			jobs[0].Phase = bareHooks
			jobs = append(jobs, durable.Job{ID: agent.NewRunID(), Kind: bareHooks, Name: "bare", Parent: jobs[0].ID, Root: jobs[0].ID, After: jobs[0].ID})
		}
		if err == nil {
			_, err = p.Submit(r.Context(), jobs...)
		}
		answer(w, map[string]any{"run_id": jobs[0].ID}, err)
	})
	mux.HandleFunc("GET /runner/runs", func(w http.ResponseWriter, r *http.Request) {
		runs, err := p.Claim(r.Context(), r.Header.Get("Grapnel-Runner"), time.Minute, 1, durable.Needs{Kind: durable.KindCommand, Name: "bare"}.Key())
		all := []map[string]any{}
		for _, c := range runs {
			input, failed := p.Input(r.Context(), c.ID)
			if failed != nil {
				err = failed
			}
			all = append(all, map[string]any{"run_id": c.ID, "epoch": c.Epoch, "parameters": json.RawMessage(input)})
		}
		answer(w, map[string]any{"runs": all}, err)
	})
	commit := func(path string, change func(l durable.Lease) durable.Commit) {
		mux.HandleFunc("POST /runner/runs/{id}/"+path, func(w http.ResponseWriter, r *http.Request) {
			var in struct{ Epoch int64 }
			err := json.NewDecoder(r.Body).Decode(&in)
			l := durable.Lease{Run: agent.RunID(r.PathValue("id")), Owner: r.Header.Get("Grapnel-Runner"), Epoch: in.Epoch}
			if err == nil {
				err = p.Commit(r.Context(), l, change(l))
			}
			answer(w, map[string]any{}, err)
		})
	}
	commit("started", func(durable.Lease) durable.Commit {
		return durable.Commit{Events: []durable.Event{{At: time.Now(), Name: "run_start"}}}
	})
	commit("completed", func(durable.Lease) durable.Commit {
		return durable.Commit{Update: durable.Update{Status: durable.StatusCompleted, Result: []byte(`{}`)}}
	})
	return mux
}

// callBareHooks makes the transactions of hooks until ctx is done, for as many runs at once as the workers of the coordinator.
func callBareHooks(ctx context.Context, p benchStore) error {
	keys := []durable.Key{durable.Needs{Kind: bareHooks}.Key(), durable.Needs{Kind: bareHooks, Name: "bare"}.Key()}
	var group errgroup.Group
	group.SetLimit(hookCapacity)
	for ctx.Err() == nil {
		runs, err := p.Claim(ctx, "hooks", time.Minute, 1, keys...)
		if err != nil && ctx.Err() == nil {
			return err
		}
		for _, r := range runs {
			group.Go(func() error {
				if err := callBareHook(ctx, p, r); err != nil && ctx.Err() == nil {
					return err
				}
				return nil
			})
		}
		if len(runs) == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	return group.Wait()
}

// hookCapacity is how many runs a worker calls hooks for at the same time.
const hookCapacity = 8

// callBareHook makes the transactions of a hook: what is known, the event of the beginning, the call, the answer, and the end.
func callBareHook(ctx context.Context, p benchStore, r durable.Run) error {
	seq := r.Entries
	for _, event := range []string{"", "hook_start", "", ""} {
		var c durable.Commit
		if event != "" {
			c.Events = []durable.Event{{At: time.Now(), Name: event, Data: []byte(`{}`)}}
		} else {
			seq++
			c.Entries = []durable.Entry{{Seq: seq, Kind: durable.EntryOnce, Key: "hook", At: time.Now(), Data: []byte(`{}`)}}
		}
		if err := p.Commit(ctx, r.Lease(), c); err != nil {
			return err
		}
	}
	end := durable.Commit{Events: []durable.Event{{At: time.Now(), Name: "hook_complete", Data: []byte(`{}`)}}}
	if end.Update.Status = durable.StatusCompleted; r.Phase == bareHooks {
		end.Update = durable.Update{Pass: &durable.Pass{}}
	}
	return p.Commit(ctx, r.Lease(), end)
}

// passRuns lets programs submit runs and runners execute them, and returns how long it takes until all have ended, their hooks included.
func passRuns(m *measuring, p benchStore, w server, name string, n, atOnce int) time.Duration {
	m.Helper()
	ctx, stop := context.WithTimeout(m.Context(), 2*time.Minute) // a run that fails in its hooks is never claimed
	defer stop()
	var group sync.WaitGroup
	var submitted, ended atomic.Int64
	began := time.Now()
	for i := range atOnce {
		group.Go(func() {
			for submitted.Add(1) <= int64(n) {
				assert.NoError(m, w.send(ctx, http.MethodPost, "/runs", "", map[string]any{"agent_name": name, "parameters": map[string]any{"n": 1}}, nil))
			}
		})
		group.Go(func() {
			runner := fmt.Sprint("r", i)
			for ended.Load() < int64(n) {
				var c claimed
				if !assert.NoError(m, w.send(ctx, http.MethodGet, "/runner/runs?wait_seconds=0", runner, nil, &c)) {
					return
				}
				for _, r := range c.Runs {
					for _, what := range []string{"started", "completed"} {
						assert.NoError(m, w.send(ctx, http.MethodPost, "/runner/runs/"+string(r.RunID)+"/"+what, runner, map[string]any{"epoch": r.Epoch}, nil))
					}
					ended.Add(1)
				}
			}
		})
	}
	group.Wait()
	if m.Failed() {
		m.FailNow()
	}
	for { // until the hooks have been called
		open, err := p.List(m.Context(), durable.Filter{Status: []durable.Status{
			durable.StatusPending, durable.StatusReady, durable.StatusRunning, durable.StatusWaiting,
		}, Limit: 1})
		require.NoError(m, err)
		if len(open) == 0 {
			return time.Since(began)
		}
		time.Sleep(time.Millisecond)
	}
}

// measureRuns measures runs a second, end to end over HTTP, beside the bare server.
func measureRuns(m *measuring) {
	for _, hooks := range []int{0, 2} {
		name := fmt.Sprint("hooks", hooks)
		p, q := m.backend.open(m.T), m.backend.open(m.T)
		c, w := serveCoordinator(m, p)
		bare := newWeb(m, serveBare(q))
		ctx, stop := context.WithCancel(m.Context())
		var group sync.WaitGroup
		keeper := durable.Keep(p.Store, durable.Options{})
		worker, err := durable.NewWorker(p.Store, durable.WorkerOptions{Runners: c.HookRunners(keeper), Capacity: hookCapacity})
		require.NoError(m, err)
		if hooks > 0 {
			group.Go(func() { assert.NoError(m, worker.Run(ctx)) })
			group.Go(func() { assert.NoError(m, callBareHooks(ctx, q)) })
		}
		all := compared{}
		for range m.passRounds {
			all["bare"] = append(all["bare"], passRuns(m, q, bare, name, m.passed, m.together))
			all["grapnel"] = append(all["grapnel"], passRuns(m, p, w, name, m.passed, m.together))
		}
		stop()
		group.Wait()
		m.report.rounds(m, "coordinator-runs/hooks="+fmt.Sprint(hooks), all)
		ours, theirs := quantile(all["grapnel"], 50), quantile(all["bare"], 50)
		share := float64(theirs) / float64(ours)
		m.row(fmt.Sprintf("coordinator: runs with %d hooks ÷ a bare server", hooks), "≥ 40 %", share >= 0.4,
			"**%.0f %%** (%.0f of %.0f runs a second)", 100*share, float64(m.passed)/ours.Seconds(), float64(m.passed)/theirs.Seconds())
	}
}

// measureClaims measures the time from the submission of a run until one of many polling runners has it, and what the runners cost.
func measureClaims(m *measuring) {
	p := m.backend.open(m.T)
	_, w := serveCoordinator(m, p)
	before := heapInUse()
	ctx, stop := context.WithCancel(m.Context())
	type got struct {
		run agent.RunID
		at  time.Time
	}
	starts := make(chan got, m.workers)
	var group sync.WaitGroup
	for i := range m.workers {
		group.Go(func() {
			for ctx.Err() == nil {
				var c claimed
				if err := w.send(ctx, http.MethodGet, "/runner/runs?wait_seconds=25", fmt.Sprint("r", i), nil, &c); err != nil {
					if ctx.Err() == nil {
						assert.NoError(m, err)
					}
					continue
				}
				for _, r := range c.Runs {
					starts <- got{r.RunID, time.Now()}
					assert.NoError(m, w.send(m.Context(), http.MethodPost, "/runner/runs/"+string(r.RunID)+"/completed", fmt.Sprint("r", i), map[string]any{"epoch": r.Epoch}, nil))
				}
			}
		})
	}
	var took []time.Duration
	pace := time.NewTicker(m.pace)
	defer pace.Stop()
	const warm = 5
	for range m.jobs + warm {
		<-pace.C
		began := time.Now()
		var submitted struct {
			RunID agent.RunID `json:"run_id"`
		}
		require.NoError(m, w.send(ctx, http.MethodPost, "/runs", "", map[string]any{"agent_name": "hooks0"}, &submitted))
		g := <-starts
		require.Equal(m, submitted.RunID, g.run)
		took = append(took, g.at.Sub(began))
	}
	memory := heapInUse() - before
	stop()
	group.Wait()
	took = took[warm:]
	m.report.each(m, "coordinator-claims", took)
	m.row(fmt.Sprintf("coordinator: claim, %s polling runners", thousands(m.workers)), "p99 100 ms", quantile(took, 99) <= 100*time.Millisecond,
		"p50 %s, **p99 %s**; %s", milliseconds(quantile(took, 50)), milliseconds(quantile(took, 99)), perRunner(memory, m.workers))
}

// perRunner says how much memory a runner takes, with its client. With few runners, what other parts of the process free or use is more.
func perRunner(memory int64, runners int) string {
	if runners < 1000 {
		return "too few runners to say what one takes"
	}
	return fmt.Sprintf("%.0f KiB a runner", float64(memory)/1024/float64(runners))
}

// heapInUse returns the bytes that the process uses.
func heapInUse() int64 {
	debug.FreeOSMemory()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc + s.StackInuse)
}

// measureStreams measures how long after an event each of several subscribers receives it over HTTP. The events happen evenly.
func measureStreams(m *measuring) {
	for _, rate := range m.rates {
		p := m.backend.open(m.T)
		_, w := serveCoordinator(m, p)
		require.NoError(m, w.send(m.Context(), http.MethodPost, "/runs", "", map[string]any{"agent_name": "hooks0"}, nil))
		var c claimed
		require.NoError(m, w.send(m.Context(), http.MethodGet, "/runner/runs?lease_seconds=600", "r1", nil, &c))
		require.Len(m, c.Runs, 1)
		run, epoch := "/runner/runs/"+string(c.Runs[0].RunID), c.Runs[0].Epoch
		total := int64(m.watchFor.Seconds() * float64(rate.events))
		lags := make([][]time.Duration, rate.watchers)
		var group, open sync.WaitGroup
		open.Add(rate.watchers)
		for i := range lags {
			group.Go(func() {
				response, err := w.open(m.Context(), http.MethodGet, "/runs/"+string(c.Runs[0].RunID)+"/stream", "", nil)
				open.Done()
				if assert.NoError(m, err) {
					lags[i] = readLags(m, response, total)
				}
			})
		}
		open.Wait()
		batch := time.NewTicker(eventBatch)
		for began, seq := time.Now(), int64(0); seq < total; {
			<-batch.C
			var events []map[string]any
			for until := min(int64(time.Since(began).Seconds()*float64(rate.events)), total); seq < until && len(events) < 1000; {
				at := began.Add(time.Duration(seq) * time.Second / time.Duration(rate.events))
				seq++
				events = append(events, map[string]any{"event_type": "tick", "time": at, "data": map[string]any{"seq": seq, "at": at.UnixNano()}})
			}
			require.NoError(m, w.send(m.Context(), http.MethodPost, run+"/events", "r1", map[string]any{"epoch": epoch, "events": events}, nil))
		}
		batch.Stop()
		require.NoError(m, w.send(m.Context(), http.MethodPost, run+"/completed", "r1", map[string]any{"epoch": epoch}, nil))
		group.Wait()
		all := slices.Concat(lags...)
		require.Len(m, all, int(total)*rate.watchers)
		m.report.each(m, fmt.Sprintf("coordinator-events/rate=%d/watchers=%d", rate.events, rate.watchers), all)
		m.row(fmt.Sprintf("coordinator: %s events a second to %d streams", thousands(rate.events), rate.watchers), "p99 250 ms",
			quantile(all, 99) <= 250*time.Millisecond, "none lost; p50 %s, **p99 %s**", milliseconds(quantile(all, 50)), milliseconds(quantile(all, 99)))
	}
}

// readLags reads a stream to its end, and returns how late each event was.
func readLags(m *measuring, response *http.Response, total int64) (lags []time.Duration) {
	defer response.Body.Close()
	in := bufio.NewScanner(response.Body)
	last := int64(0)
	for in.Scan() {
		data, ok := strings.CutPrefix(in.Text(), `data: {"at":`)
		if !ok {
			continue
		}
		var at, seq int64
		_, err := fmt.Sscanf(data, `%d,"seq":%d}`, &at, &seq)
		lags = append(lags, time.Since(time.Unix(0, at)))
		if last++; err != nil || seq != last {
			assert.Equal(m, last, seq, "an event is lost or out of order: %s", data)
			return lags
		}
	}
	assert.NoError(m, in.Err())
	assert.Equal(m, total, last)
	return lags
}

const apiListGoal = 100 * time.Millisecond

// measureAPILists measures a page of 100 runs of the API for each of its filters.
func measureAPILists(m *measuring) {
	p := m.backend.open(m.T)
	_, w := serveCoordinator(m, p)
	fillRuns(m, p, m.listed, durable.Job{ID: "first", Version: "1", Demands: map[string]string{"coordinator.runner": "yes"}})
	middle := fmt.Sprint("run", m.listed/2)
	r, err := p.Run(m.Context(), agent.RunID(middle))
	require.NoError(m, err)
	filters := map[string]string{
		"none": "", "definition": "agent_name=agent+7", "session": fmt.Sprint("session_id=session+", m.listed/10), "parent": fmt.Sprint("parent_run_id=run", m.listed/2-1),
		"common label": "label=site%3Dsite+1", "rare label": "label=team%3Dteam+7", "blocked": "blocked=true", "hooks": "has_hooks=true",
		"since": "since=" + url.QueryEscape(r.Created.UTC().Format(time.RFC3339Nano)), "until": "until=" + url.QueryEscape(r.Created.UTC().Format(time.RFC3339Nano)),
	}
	for _, status := range []wire.Status{
		wire.Pending, wire.Hooking, wire.Running, wire.Waiting, wire.Completed, wire.Failed, wire.Stopped,
	} {
		filters["status "+string(status)] = "status=" + string(status)
		filters[string(status)+" with definition"] = "agent_name=agent+11&status=" + string(status)
		filters[string(status)+" with label"] = "label=team%3Dteam+12&status=" + string(status)
	}
	var (
		all     []time.Duration
		slowest time.Duration
		slow    string
	)
	for name, query := range filters {
		for _, before := range []string{"", "&before=" + middle} {
			var took []time.Duration
			for until := time.Now().Add(2 * time.Second); len(took) < m.looks && (len(took) < 3 || time.Now().Before(until)); {
				took = append(took, timed(func() {
					var list wire.RunList
					require.NoError(m, w.send(m.Context(), http.MethodGet, "/runs?limit=100&"+query+before, "", nil, &list), name)
				}))
			}
			all = append(all, took...)
			m.report.each(m, "coordinator-lists/filter="+strings.ReplaceAll(name, " ", "-")+map[bool]string{true: "/page=first", false: "/page=middle"}[before == ""], took)
			if p50 := quantile(took, 50); p50 > slowest {
				slowest, slow = p50, name
			}
			if p50 := quantile(took, 50); p50 >= apiListGoal {
				m.Logf("missed the goal: %s%s: %s", name, before, milliseconds(p50))
			}
		}
	}
	m.row(fmt.Sprintf("coordinator: list over %s runs", thousands(m.listed)), "< 100 ms", slowest < apiListGoal,
		"slowest filter **%s** (%s), all p50 %s, p99 %s", milliseconds(slowest), slow, milliseconds(quantile(all, 50)), milliseconds(quantile(all, 99)))
}
