package pipeline_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/gate"
	"github.com/grapnel-go/grapnel/internal/answertest"
	"github.com/grapnel-go/grapnel/pipeline"
)

// crashForm is the size of the pipeline of the crash test: the iterations of each stage, and of each stage in its block.
type crashForm struct{ iterations, inBlock int }

// counts returns the iterations of each stage, in the order of the stages.
func (f crashForm) counts() (names []string, of map[string]int) {
	return []string{"plan", "left", "right", "work", "pack"},
		map[string]int{"plan": f.iterations, "left": f.inBlock, "right": f.inBlock, "work": f.iterations, "pack": f.iterations}
}

// crashBench is a bench with a receiver of actions.
type crashBench struct {
	*bench

	form     crashForm
	receiver *keyReceiver
	actions  *httptest.Server // gives requests to the receiver
	answers  *httptest.Server // where gates are answered
}

func newCrashBench(t *testing.T, b *bench, form crashForm) *crashBench {
	t.Helper()
	c := &crashBench{bench: b, form: form, receiver: &keyReceiver{seen: map[string][]string{}}}
	c.actions = httptest.NewServer(c.receiver)
	t.Cleanup(c.actions.Close)
	c.answers = httptest.NewServer(gate.Handler(b.store, gate.HandlerOptions{}))
	t.Cleanup(c.answers.Close)
	b.write("child.yaml", "name: child\nstages: [{name: child, command: {argv: [sh, -c, '"+noteCommand("child")+"']}, termination: {type: fixed, iterations: 2}}]")
	return c
}

// noteCommand returns a command that notes the key and the iteration.
func noteCommand(stage string) string {
	return `echo "$GRAPNEL_IDEMPOTENCY_KEY ` + stage + ` $ITERATION" >> log; echo "made ` + stage + ` $ITERATION"`
}

// text returns the pipeline. Every action tells a receiver its key: the file "log", or the web service. What commands leave does
// not depend on how often they have begun.
func (c *crashBench) text() string {
	return strings.NewReplacer("RECEIVER", c.actions.URL, "NOTE ", `echo "$GRAPNEL_IDEMPOTENCY_KEY `, "; END", `" >> log`,
		"MANY", fmt.Sprint(c.form.iterations), "LAST", fmt.Sprint(c.form.iterations-1), "SOME", fmt.Sprint(c.form.inBlock),
	).Replace(`
name: p
stages:
  - name: plan
    command: {argv: [sh, -c, '` + noteCommand("plan") + `']}
    termination: {type: fixed, iterations: MANY}
  - name: both
    parallel:
      - name: left
        command: {argv: [sh, -c, '` + noteCommand("left") + `']}
        termination: {type: fixed, iterations: SOME}
      - name: right
        command: {argv: [sh, -c, '` + noteCommand("right") + `']}
        termination: {type: fixed, iterations: SOME}
  - name: work
    command: {argv: [sh, -c, '` + noteCommand("work") + `; [ $ITERATION -lt LAST ] || { echo "{\"decision\":\"stop\"}" > "$STATUS.$$"; mv "$STATUS.$$" "$STATUS"; }']}
    termination: {type: judgment, confirmations: 2}
  - name: pack
    command: {argv: [sh, -c, '` + noteCommand("pack") + `']}
    termination: {type: queue, command: [sh, -c, '[ $ITERATION -ge MANY ] || echo more']}
hooks:
  on_session_start: {type: shell, await: true, command: 'NOTE session_start; END'}
  on_iteration_start: {type: shell, await: true, command: 'NOTE start $STAGE $ITERATION; END'}
  on_iteration_complete:
    - {type: shell, await: true, command: 'NOTE complete $STAGE $ITERATION; END; sleep 0.02'}
    - {type: http, await: true, url: RECEIVER, body: {what: "http ${STAGE} ${ITERATION}"}}
    - {type: shell, command: 'sleep 0.05; NOTE detached $STAGE $ITERATION; END'}
  on_stage_complete:
    - {type: shell, await: true, command: 'NOTE stage $STAGE; END'}
    - {type: webhook, url: RECEIVER, body: {what: "webhook ${STAGE}"}}
    - {type: webhook, url: RECEIVER, body: {what: gate, answer: "${CALLBACK_URL}"}, await: true, when: '${STAGE} == "plan" || ${STAGE} == "pack"'}
    - {id: the-child, type: spawn, pipeline: child, on_failure: abort, when: '${STAGE} == "plan"'}
    - {type: shell, await: true, command: 'NOTE spawned $(echo $SPAWN_OUTPUT); END', when: '${STAGE} == "plan"'}
  on_session_complete: {type: shell, await: true, command: 'NOTE session_complete; END'}
`)
}

// expected returns what receivers see, and the outputs of the iterations.
func (c *crashBench) expected() (actions, outputs []string) {
	actions = []string{"session_start", "session_complete", "gate", "gate", "spawned made child 2", "child 1", "child 2"}
	outputs = []string{"made child 1", "made child 2"}
	names, counts := c.form.counts()
	for _, stage := range names {
		actions = append(actions, "stage "+stage, "webhook "+stage)
		for i := range counts[stage] {
			what := fmt.Sprintf("%s %d", stage, i+1)
			actions = append(actions, what, "start "+what, "complete "+what, "http "+what, "detached "+what)
			outputs = append(outputs, "made "+what)
		}
	}
	return actions, outputs
}

// expectedEvents returns the events in the session and the sessions below it, by the stage that only they run; empty for the
// pipeline's session.
func (c *crashBench) expectedEvents() map[string][]string {
	_, counts := c.form.counts()
	stage := func(events []string, name string, n int, decisions func(i int) string) []string {
		for i := range n {
			events = append(events, fmt.Sprintf("iteration_start %s %d", name, i+1), fmt.Sprintf("iteration_complete %s %d%s", name, i+1, decisions(i+1)))
		}
		return events
	}
	none := func(int) string { return "" }
	alone := func(name string, n int, ends ...string) []string {
		return append(stage(nil, name, n, none), append([]string{fmt.Sprintf("stage_complete %s %d", name, n)}, ends...)...)
	}
	n := c.form.iterations
	events := stage([]string{"session_start  0"}, "plan", n, none)
	events = append(events, fmt.Sprintf("waiting plan %d", n), fmt.Sprintf("spawned plan %d", n), fmt.Sprintf("stage_complete plan %d", n),
		"stage_start left 0", "stage_start right 0", "stage_complete both 0")
	events = stage(events, "work", n, func(i int) string {
		if i < n-1 {
			return ""
		}
		return " stop"
	})
	events = append(stage(append(events, fmt.Sprintf("stage_complete work %d", n)), "pack", n, none),
		fmt.Sprintf("waiting pack %d", n), fmt.Sprintf("stage_complete pack %d", n), fmt.Sprintf("session_complete pack %d completed", n))
	all := map[string][]string{"": events, "child": append([]string{"session_start  0"}, alone("child", 2, "session_complete child 2 completed")...)}
	for _, part := range []string{"left", "right"} {
		all[part] = alone(part, counts[part], fmt.Sprintf("session_complete %s %d completed", part, counts[part]))
	}
	return all
}

// keyReceiver is a web service that notes what was done under each key.
type keyReceiver struct {
	mu      sync.Mutex
	seen    map[string][]string // by key
	gate    string              // the first address of the gate that waits; empty when none does
	decided []string            // the addresses of the gates that were answered
}

func (r *keyReceiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var body struct{ What, Answer string }
	if err := json.NewDecoder(request.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	key := request.Header.Get("Idempotency-Key")
	r.mu.Lock()
	defer r.mu.Unlock()
	if body.Answer != "" && len(r.seen[key]) == 0 {
		r.gate = body.Answer
	}
	r.seen[key] = append(r.seen[key], body.What)
}

func (r *keyReceiver) count() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, what := range r.seen {
		n += len(what)
	}
	return n
}

// waiting returns the address where the gate is answered while it waits; empty when it does not.
func (r *keyReceiver) waiting() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gate
}

// answer opens the gate with one of two equal answers, after late answers to earlier gates. If the store is busy, the gate goes on waiting.
func (r *keyReceiver) answer(t *testing.T, url string) {
	t.Helper()
	r.repeat(t)
	var codes [2]int
	var sending sync.WaitGroup
	for i := range codes {
		sending.Go(func() { codes[i] = post(t, url, "approve") })
	}
	sending.Wait()
	slices.Sort(codes[:])
	if codes[0] == http.StatusServiceUnavailable {
		return
	}
	assert.Equal(t, http.StatusOK, codes[0], "the first address of a gate opens it, also when another watcher has announced it since")
	assert.Contains(t, used, codes[1])
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gate, r.decided = "", append(r.decided, url)
}

// used are the statuses of responses to repeated answers. The store may be busy.
var used = []int{http.StatusConflict, http.StatusServiceUnavailable}

// repeat posts the answers to earlier gates again, and the opposite: none counts.
func (r *keyReceiver) repeat(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	decided := slices.Clone(r.decided)
	r.mu.Unlock()
	for _, url := range decided {
		for _, action := range []string{"approve", "approve", "reject"} {
			assert.Contains(t, used, post(t, url, action))
		}
	}
}

// post posts an answer to a gate and returns the status of the response.
func post(t *testing.T, url, action string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"?action="+action, http.NoBody)
	if !assert.NoError(t, err) {
		return 0
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Logf("answering the gate: %v", err)
		return http.StatusServiceUnavailable
	}
	_ = response.Body.Close() // it was not read
	return response.StatusCode
}

// runs returns all runs of the store.
func (c *crashBench) runs() []durable.Run {
	c.t.Helper()
	runs, err := c.store.List(c.t.Context(), durable.Filter{Limit: 1000})
	require.NoError(c.t, err)
	require.Less(c.t, len(runs), 1000)
	return runs
}

// record is a journal's data about an action.
type record struct {
	name         string
	starts, ends int
}

// records returns the journals' data about all actions by key.
func (c *crashBench) records() map[string]*record {
	c.t.Helper()
	all := map[string]*record{}
	for _, run := range c.runs() {
		entries, err := c.store.Entries(c.t.Context(), run.ID, 0)
		require.NoError(c.t, err)
		for _, e := range entries {
			text := string(run.ID) + "/once/" + e.Key
			sum := sha256.Sum256([]byte(text))
			key := hex.EncodeToString(sum[:16]) // as actions get it
			if run.Kind == durable.KindCommand {
				key = string(run.ID) + "/command"
				text = key
			}
			r := all[key]
			if r == nil {
				r = &record{name: text}
			}
			switch e.Kind {
			case durable.EntryOnce, durable.EntryCall:
				assert.Zero(c.t, r.ends, "%s starts after its end", text)
				r.starts++
			case durable.EntryDone, durable.EntryResult:
				r.ends++
			default:
				continue
			}
			all[key] = r
		}
	}
	return all
}

// seen returns what receivers have seen, by key.
func (c *crashBench) seen() map[string][]string {
	c.t.Helper()
	all := map[string][]string{}
	for _, line := range c.lines("log") {
		key, what, _ := strings.Cut(line, " ")
		all[key] = append(all[key], what)
	}
	c.receiver.mu.Lock()
	defer c.receiver.mu.Unlock()
	for key, what := range c.receiver.seen {
		assert.NotContains(c.t, all, key)
		all[key] = slices.Clone(what)
	}
	return all
}

// check compares a session's work with its journals and with the expected work.
func (c *crashBench) check(run durable.Run) (f crashFigures) {
	c.t.Helper()
	s := c.status(run.ID)
	require.Equal(c.t, pipeline.Completed, s.Reason, s.Error)
	result, err := durable.ResultOf(c.t.Context(), c.store, run.ID)
	require.NoError(c.t, err)
	assert.Equal(c.t, fmt.Sprintf("made pack %d\n", c.form.iterations), result.Text)
	actions, outputs := c.expected()
	assert.ElementsMatch(c.t, outputs, c.outputs())
	c.checkEvents(run)

	assert.NoError(c.t, answertest.Repeat(c.t.Context(), c.store, run.ID))

	records, seen := c.records(), c.seen()
	var done []string
	for key, what := range seen {
		r := records[key]
		if !assert.NotNil(c.t, r, "%q has the key %s, and no journal has its start", what, key) {
			continue
		}
		done = append(done, what[0])
		assert.Len(c.t, slices.Compact(slices.Clone(what)), 1, "one key for several actions")
		switch {
		case what[0] == "gate": // its watchers announce it until it is answered
			if len(what) > 1 {
				f.announced++
			}
			assert.Greater(c.t, r.starts, 1, "the gate has waited")
		case len(what) > 1:
			assert.LessOrEqual(c.t, len(what), r.starts, "%q was done again, and the journal has no start without an end", what)
			f.again++
		}
	}
	assert.ElementsMatch(c.t, actions, done, "each action was seen, under one key")
	for key, r := range records {
		assert.Equal(c.t, 1, r.ends, "ends of %s", r.name)
		f.open += max(r.starts-r.ends, 0)
		isAction := r.starts > 0 && !strings.Contains(r.name, "/once/queue ") && !strings.Contains(r.name, "the-child")
		assert.Equal(c.t, isAction, len(seen[key]) > 0, "whether receivers have seen %s", r.name)
	}
	return f
}

// outputs returns the outputs of all iterations.
func (c *crashBench) outputs() (all []string) {
	c.t.Helper()
	require.NoError(c.t, filepath.WalkDir(c.path("sessions"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "output.txt" {
			return err
		}
		text, err := os.ReadFile(path)
		all = append(all, strings.TrimSuffix(string(text), "\n"))
		return err
	}))
	return all
}

// checkEvents checks the events in a session and the sessions below it: each iteration begins once and completes once.
func (c *crashBench) checkEvents(run durable.Run) {
	c.t.Helper()
	want := c.expectedEvents()
	got := map[string][]string{}
	iterations := 0
	for _, r := range c.runs() {
		if r.Kind != durable.KindPipeline {
			iterations++
			continue
		}
		name := r.Labels[durable.LabelStage]
		if name == "" && r.ID != run.ID {
			name = r.Name
		}
		assert.NotContains(c.t, got, name, "a session below runs once")
		events, err := c.store.Events(c.t.Context(), r.ID, 0, 1000)
		require.NoError(c.t, err)
		for _, e := range events {
			var d struct {
				Stage, Decision, Reason string
				Iteration               int
			}
			require.NoError(c.t, json.Unmarshal(e.Data, &d))
			text := fmt.Sprintf("%s %s %d %s%s", strings.TrimPrefix(e.Name, "pipeline."), d.Stage, d.Iteration, d.Decision, d.Reason)
			got[name] = append(got[name], strings.TrimSpace(text))
		}
	}
	assert.Equal(c.t, want, got)
	_, outputs := c.expected()
	assert.Len(c.t, outputs, iterations, "each iteration is one run")
}
