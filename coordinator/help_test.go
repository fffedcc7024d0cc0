package coordinator_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/api"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/memory"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/parts"
	"github.com/grapnel-go/grapnel/pipeline"
	"github.com/grapnel-go/grapnel/registry"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		if err := embed(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(parts.Tests{M: m})
}

// bench is a coordinator on a store of its own, with workers that the test starts.
type bench struct {
	t     *testing.T
	store durable.Store
	c     *coordinator.Coordinator
	// answers are what agents answer, by the names of their blueprints. The model fails instead of an empty answer.
	answers map[string]func(input string) string
	// replies, where they are set, answer for the whole conversation instead.
	replies map[string]func(s agent.State) string
}

func newBench(t *testing.T, change ...func(o *coordinator.Options)) *bench {
	t.Helper()
	store := memory.New()
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	o := coordinator.Options{Store: store, Host: action.Host{}}
	for _, c := range change {
		c(&o)
	}
	c, err := coordinator.New(o)
	require.NoError(t, err)
	return &bench{t: t, store: store, c: c, answers: map[string]func(string) string{}, replies: map[string]func(agent.State) string{}}
}

// withFuncs gives hooks funcs.
func withFuncs(funcs map[string]action.Body) func(o *coordinator.Options) {
	return func(o *coordinator.Options) { o.Host.Funcs = funcs }
}

// tellHook is a hook that calls the func of withTell.
const tellHook = `{"type": "func", "func": "tell", "on_error": "continue"}`

// withTell gives hooks a func that has no opinion. It calls tell with one request at a time.
func withTell(tell func(r *action.Request)) func(o *coordinator.Options) {
	var mu sync.Mutex
	return withFuncs(map[string]action.Body{"tell": func(_ context.Context, r *action.Request) (*action.Decision, error) {
		mu.Lock()
		defer mu.Unlock()
		tell(r)
		return nil, nil
	}})
}

// jobWith returns a procedural blueprint whose result is its parameters, with hooks: the members of a JSON object.
func jobWith(members string) string {
	return `{"name": "job", "type": "procedural", "command": {"argv": ["cat"]}, "hooks": {` + members + `}}`
}

// startHook returns the blueprint of jobWith with a hook before the run.
func startHook(hook string) string { return jobWith(`"on_run_start": ` + hook) }

// create stores blueprints.
func (b *bench) create(texts ...string) {
	b.t.Helper()
	for _, text := range texts {
		_, err := b.c.CreateBlueprint(b.t.Context(), []byte(text), "ann")
		require.NoError(b.t, err)
	}
}

// submit submits a run and returns its ID.
func (b *bench) submit(name, params string) agent.RunID {
	b.t.Helper()
	r, err := b.c.Submit(b.t.Context(), wire.RunRequest{AgentName: name, Parameters: json.RawMessage(params)}, "ann")
	require.NoError(b.t, err)
	return r.ID
}

// worker returns a worker for hooks and blueprints.
func (b *bench) worker(change ...func(o *durable.WorkerOptions)) *durable.Worker {
	b.t.Helper()
	k := durable.Keep(b.c.RunnerStore(), durable.Options{})
	o := b.runnerOptions(k)
	runners := b.c.Runners(k, o)
	maps.Copy(runners, b.c.HookRunners(k))
	options := durable.WorkerOptions{Runners: runners, Labels: b.c.Labels(o, nil), Poll: 20 * time.Millisecond, Observe: func(e durable.WorkerEvent) {
		if e.Err != nil {
			b.t.Log(e.Err)
		}
	}}
	for _, c := range change {
		c(&options)
	}
	w, err := durable.NewWorker(b.store, options)
	require.NoError(b.t, err)
	return w
}

// runnerOptions returns options for runners whose agents give the answers of the bench.
func (b *bench) runnerOptions(k *durable.Keeper) coordinator.RunnerOptions {
	build := func(name string, rules []hooks.Hook) (*agent.Agent, func() error, error) {
		driver := agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
			reply := b.replies[name]
			if reply == nil {
				reply = func(s agent.State) string { return b.answers[name](s.LastMessage().Text()) }
			}
			text := reply(s)
			if text == "" {
				return agent.Step{}, errors.New("the model is gone")
			}
			return agent.Step{Message: agent.Assistant(text), FinishReason: agent.FinishStop}, nil
		})
		a, err := builder.New().WithName(name).WithDriver(driver).With(capability.UseHooks(rules...), capability.UseDurability{Keeper: k}).Build().Get()
		return a, nil, err
	}
	return coordinator.RunnerOptions{
		Agents: func(_ context.Context, d registry.Definition, rules []hooks.Hook) (*agent.Agent, func() error, error) {
			return build(d.Name, rules)
		},
		Pipelines: &pipeline.Options{Agents: func(_ context.Context, s pipeline.AgentStage) (*agent.Agent, func() error, error) {
			return build(s.Agent, nil)
		}},
	}
}

// work executes what is ready, until a run and the run of its hooks have ended.
func (b *bench) work(id agent.RunID) wire.RunDetail {
	b.t.Helper()
	w := b.worker()
	for range 50 {
		require.NoError(b.t, w.ExecuteReady(b.t.Context()))
		live, err := b.store.List(b.t.Context(), durable.Filter{Status: []durable.Status{
			durable.StatusPending, durable.StatusReady, durable.StatusRunning, durable.StatusWaiting,
		}})
		require.NoError(b.t, err)
		if len(live) == 0 {
			break
		}
	}
	d, err := b.c.Run(b.t.Context(), id)
	require.NoError(b.t, err)
	return d
}

// changeOnce returns a func action that changes the parameters from one value to another, and others not.
func changeOnce(from, to string) action.Body {
	return func(_ context.Context, r *action.Request) (*action.Decision, error) {
		if string(r.Parameters) != from {
			return &action.Decision{Decision: hooks.Allow}, nil
		}
		return &action.Decision{Decision: hooks.Rewrite, Arguments: json.RawMessage(to)}, nil
	}
}

// plain is a runner in another language, or any other program that sends requests.
type plain struct {
	t          *testing.T
	url, token string
}

// ask sends a request as the administrator, and reads the response.
func (b *bench) ask(method, path, body string, out any) {
	b.t.Helper()
	w := request{method, path, body}.ask(b.t.Context(), api.Handler(b.c, api.Options{Token: "secret"}))
	require.Less(b.t, w.Code, 300, "%s", w.Body)
	require.NoError(b.t, json.NewDecoder(w.Body).Decode(out))
}

// newToken makes a token. It is valid until it is revoked, unless some seconds are given.
func (b *bench) newToken(name string, role wire.Role, seconds int) (text string, about wire.Token) {
	b.t.Helper()
	var made struct {
		wire.Token

		Text string `json:"token"`
	}
	b.ask(http.MethodPost, "/tokens", fmt.Sprintf(`{"name": %q, "role": %q, "ttl_seconds": %d}`, name, role, seconds), &made)
	return made.Text, made.Token
}

// audit returns the audit log after an entry.
func (b *bench) audit(after string) []wire.AuditEntry {
	b.t.Helper()
	var log struct {
		Entries []wire.AuditEntry `json:"entries"`
	}
	b.ask(http.MethodGet, "/audit?after="+cmp.Or(after, "0"), "", &log)
	return log.Entries
}

// plain returns a program with a role.
func (b *bench) plain(s *httptest.Server, role wire.Role) plain {
	b.t.Helper()
	token, _ := b.newToken(string(role), role, 0)
	return plain{b.t, s.URL, token}
}

// send sends a request as a runner and returns the status and the body of the response.
func (p plain) send(method, path, runner string, body any) (status int, text []byte) {
	p.t.Helper()
	return p.sendWith(map[string]string{"Grapnel-Runner": runner}, method, path, body)
}

// sendFor sends a request for a media type.
func (p plain) sendFor(media, method, path string, body any) (status int, text []byte) {
	p.t.Helper()
	return p.sendWith(map[string]string{"Accept": media}, method, path, body)
}

func (p plain) sendWith(headers map[string]string, method, path string, body any) (status int, text []byte) {
	p.t.Helper()
	var in io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		require.NoError(p.t, err)
		in = bytes.NewReader(encoded)
	}
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, in)
	require.NoError(p.t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+p.token)
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	require.NoError(p.t, err)
	defer response.Body.Close()
	text, err = io.ReadAll(response.Body)
	require.NoError(p.t, err)
	return response.StatusCode, text
}

// claim asks for signals and runs.
func (p plain) claim(runner string, labels ...string) (c wire.Claim) {
	p.t.Helper()
	query := url.Values{"wait_seconds": {"0"}, "label": labels}
	status, text := p.send(http.MethodGet, "/runner/runs?"+query.Encode(), runner, nil)
	require.Equal(p.t, http.StatusOK, status, string(text))
	require.NoError(p.t, json.Unmarshal(text, &c))
	return c
}

// report reports something about a run.
func (p plain) report(runner string, id agent.RunID, what string, body map[string]any) int {
	p.t.Helper()
	status, _ := p.send(http.MethodPost, "/runner/runs/"+string(id)+"/"+what, runner, body)
	return status
}
