package action_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
	"github.com/grapnel-go/grapnel/toolexec"
)

// opened is a gate that waits, and where it is answered.
type opened struct {
	url  string
	done chan mo.Result[*action.Answer]
}

// open does a gate by callback until it has told where it is answered.
func open(t testing.TB, g action.Gate, h action.Host, r *action.Request) opened {
	t.Helper()
	told := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body struct{ URL string }
		_ = json.NewDecoder(r.Body).Decode(&body)
		told <- body.URL
	}))
	t.Cleanup(server.Close)
	g.By, g.Webhook = action.GateCallback, &action.HTTP{URL: server.URL, Body: map[string]any{"url": "${CALLBACK_URL}", "text": "may ${SESSION} go on?"}}
	a := ready(t, g, h)
	o := opened{done: make(chan mo.Result[*action.Answer], 1)}
	go func() { o.done <- mo.TupleToResult(a.Do(t.Context(), r)) }()
	select {
	case o.url = <-told:
	case early := <-o.done:
		require.FailNow(t, "the gate did not wait", "%v", early)
	}
	return o
}

// send sends something to a gate, and gives the status and the page.
func send(t testing.TB, method, to, media, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, to, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", media)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}

const (
	asJSON = "application/json"
	asForm = "application/x-www-form-urlencoded"
)

// AP-28, AP-29, AP-30, AP-31, AP-36, AP-37
func TestCallback(t *testing.T) {
	host := action.Host{Callbacks: &action.Callbacks{}}
	first, second := open(t, action.Gate{Reason: "May <it> go on?"}, host, guarded(t)), open(t, action.Gate{}, host, guarded(t))
	assert.Regexp(t, `^http://127\.0\.0\.1:\d+/callback/[A-Z2-7]{26,}$`, first.url)
	at, err := url.Parse(first.url)
	require.NoError(t, err)
	assert.NotEqual(t, first.url, second.url)
	assert.Equal(t, at.Host, strings.TrimPrefix(strings.Split(second.url, "/callback")[0], "http://"), "two gates share a listener")

	// A caller without the token is refused, and reading decides nothing.
	base, _, _ := strings.Cut(first.url, "/callback")
	for _, wrong := range []string{"/", "/callback", "/callback/", "/callback/WRONG", at.Path + "x", strings.TrimSuffix(at.Path, at.Path[len(at.Path)-1:]), "/callback?token=" + at.Path[10:]} {
		status, _ := send(t, http.MethodPost, base+wrong, asJSON, `{"action":"approve"}`)
		assert.Equal(t, http.StatusNotFound, status, wrong)
	}
	status, page := send(t, http.MethodGet, first.url+"?action=approve", "", "")
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, page, "May &lt;it&gt; go on?")
	assert.Contains(t, page, "policy/rule")
	status, _ = send(t, http.MethodHead, first.url, "", "")
	assert.Equal(t, http.StatusOK, status)
	status, _ = send(t, http.MethodPut, first.url, asJSON, `{"action":"approve"}`)
	assert.Equal(t, http.StatusMethodNotAllowed, status)
	for body, media := range map[string]string{
		``: asJSON, `{`: asJSON, `{"action":5}`: asJSON, `{"action":"maybe"}`: asJSON, `{"action":"approve","action":"reject"}`: asJSON, `null`: asJSON,
		`{"action":"approve","message":5}`: asJSON, `action=approve&action=reject`: asForm, `action=%zz`: asForm, `action=maybe`: asForm,
		`{"Action":"approve"}`: asJSON,
	} {
		status, page = send(t, http.MethodPost, first.url, media, body)
		assert.Equal(t, http.StatusBadRequest, status, body)
		assert.Contains(t, page, "Nothing was decided")
	}
	status, _ = send(t, http.MethodPost, first.url+"?action=reject", asJSON, `{"action":"approve"}`)
	assert.Equal(t, http.StatusBadRequest, status, "it says two things")
	status, _ = send(t, http.MethodPost, first.url, asJSON, strings.Repeat(" ", 65_537))
	assert.Equal(t, http.StatusRequestEntityTooLarge, status)

	// One of them is answered; the other waits on.
	status, _ = send(t, http.MethodPost, first.url, asJSON, `{"action":"reject","message":"not yet","who":"ann"}`)
	assert.Equal(t, http.StatusOK, status)
	answer := (<-first.done).MustGet()
	assert.JSONEq(t, `{"action":"reject","message":"not yet","who":"ann"}`, answer.Output)
	assert.Equal(t, &action.Decision{Decision: hooks.Deny, Reason: "not yet"}, answer.Decision)
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		status, _ = send(t, method, first.url, asJSON, `{"action":"approve"}`)
		assert.Equal(t, http.StatusConflict, status)
	}
	status, _ = send(t, http.MethodPost, second.url, asForm, "action=approve&message=go")
	assert.Equal(t, http.StatusOK, status)
	answer = (<-second.done).MustGet()
	assert.JSONEq(t, `{"action":"approve","message":"go"}`, answer.Output)
	assert.Equal(t, hooks.Allow, answer.Decision.Decision)

	// When the last one is answered, the server no longer listens.
	_, err = (&net.Dialer{Timeout: 5 * time.Second}).DialContext(t.Context(), "tcp", at.Host)
	assert.Error(t, err)
}

// AP-32, AP-33: what may be said, and how.
func TestWhatMayBeSaid(t *testing.T) {
	for name, tc := range map[string]struct {
		query, media, body string
		yes                bool
	}{
		"JSON":     {"", asJSON, `{"action":"approve","message":"Looks good, proceed"}`, true},
		"a word":   {"", "text/plain", "continue", true},
		"no":       {"", asJSON, `{"action":"abort"}`, false},
		"a form":   {"", asForm, "action=reject", false},
		"a link":   {"?action=approve", "", "", true},
		"both":     {"?action=approve", asForm, "action=approve", true},
		"from GET": {"?action=reject", asForm, "message=no", false},
	} {
		t.Run(name, func(t *testing.T) {
			o := open(t, action.Gate{}, action.Host{}, asked(t, hookstest.StepEnd("x")))
			status, page := send(t, http.MethodPost, o.url+tc.query, tc.media, tc.body)
			require.Equal(t, http.StatusOK, status, page)
			answer := (<-o.done).MustGet()
			want := hooks.Allow
			if !tc.yes {
				want = hooks.StopRun
			}
			assert.Equal(t, want, answer.Decision.Decision)
			assert.Contains(t, answer.Output, "a")
		})
	}
}

// AP-35: gates on one port, of agents that know nothing of one another.
func TestTwoGatesOnOnePort(t *testing.T) {
	free, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := free.Addr().(*net.TCPAddr).Port
	require.NoError(t, free.Close())
	one, two := open(t, action.Gate{Port: port}, action.Host{}, guarded(t)), open(t, action.Gate{Port: port}, action.Host{}, guarded(t))
	for _, o := range []opened{two, one} {
		status, _ := send(t, http.MethodPost, o.url, "text/plain", "approve")
		assert.Equal(t, http.StatusOK, status)
		assert.Equal(t, hooks.Allow, (<-o.done).MustGet().Decision.Decision)
	}
	three := open(t, action.Gate{Port: port}, action.Host{}, guarded(t)) // at once on the same port
	status, _ := send(t, http.MethodPost, three.url, "text/plain", "reject")
	assert.Equal(t, http.StatusOK, status)
	assert.Equal(t, hooks.Deny, (<-three.done).MustGet().Decision.Decision)
}

// The address of a proxy stands in the place of ours.
func TestCallbackBase(t *testing.T) {
	o := open(t, action.Gate{Timeout: 200 * time.Millisecond}, action.Host{Callbacks: &action.Callbacks{Base: "https://desk.example.com/x/"}}, guarded(t))
	assert.Regexp(t, `^https://desk\.example\.com/x/callback/\w+$`, o.url)
	assert.Equal(t, action.FaultTimeout, faultOf(t, (<-o.done).Error()))
}

// AP-34
func TestGateOnTimeout(t *testing.T) {
	for word, want := range map[string]hooks.Decision{"": "", "reject": hooks.Deny, "abort": hooks.Deny, "approve": hooks.Allow, "continue": hooks.Allow} {
		g := action.Gate{By: action.GateFile, File: "never", Every: time.Millisecond, Timeout: 20 * time.Millisecond, OnTimeout: word}
		answer, err := ready(t, g, action.Host{Dir: t.TempDir()}).Do(t.Context(), guarded(t))
		if want == "" {
			assert.Equal(t, action.FaultTimeout, faultOf(t, err))
			assert.ErrorContains(t, err, "no answer in never within 20ms")
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, want, answer.Decision.Decision)
		assert.Equal(t, "no answer in never within 20ms", answer.Decision.Reason)
	}
	// A run that is cancelled meanwhile has not waited too long.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := ready(t, action.Gate{By: action.GateFile, File: "never", OnTimeout: "approve"}, action.Host{}).Do(ctx, guarded(t))
	assert.Equal(t, action.FaultCancelled, faultOf(t, err))
}

// AP-64
func TestGateFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "answer")
	require.NoError(t, os.WriteFile(file, []byte("approve"), 0o600)) // of another time
	a := ready(t, action.Gate{By: action.GateFile, File: "answer", Every: time.Millisecond}, action.Host{Dir: dir})
	done := make(chan mo.Result[*action.Answer], 1)
	r := guarded(t)
	looked := make(chan struct{})
	go func() {
		close(looked)
		done <- mo.TupleToResult(a.Do(t.Context(), r))
	}()
	<-looked
	bad := filepath.Join(dir, "bad")
	require.NoError(t, os.WriteFile(bad, []byte("perhaps"), 0o600))
	_, err := ready(t, action.Gate{By: action.GateFile, File: "bad", Existing: true, Every: time.Millisecond}, action.Host{Dir: dir}).Do(t.Context(), guarded(t))
	assert.ErrorContains(t, err, bad)
	require.Eventually(t, func() bool { // whenever it begins to look, the file changes after that
		require.NoError(t, os.WriteFile(file, []byte(`{"action":"reject","message":"`+strings.Repeat("n", time.Now().Nanosecond()%100+1)+`"}`), 0o600))
		select {
		case result := <-done:
			answer := result.MustGet()
			assert.Equal(t, hooks.Deny, answer.Decision.Decision)
			assert.Contains(t, answer.Decision.Reason, "n")
			return true
		default:
			return false
		}
	}, 20*time.Second, 20*time.Millisecond)
}

// AP-65
func TestGateCommand(t *testing.T) {
	bash(t)
	for text, want := range map[string]struct {
		decision hooks.Decision
		fault    action.Fault
	}{
		`[ -e asked ] || { touch asked; exit 1; }`:  {hooks.Allow, ""},
		`echo '{"action":"reject","message":"no"}'`: {hooks.Deny, ""},
		`echo approve`: {hooks.Allow, ""},
		`echo perhaps`: {"", action.FaultAnswer},
		`exit 2`:       {"", action.FaultExit},
		`test "$SESSION" = "it's me" && grep -q '"tool":"bash"' && echo reject`: {hooks.Deny, ""},
	} {
		t.Run(text, func(t *testing.T) {
			r := guarded(t)
			r.Variables.Session = "it's me"
			g := action.Gate{By: action.GateCommand, Argv: []string{"bash", "-c", text}, Every: time.Millisecond}
			answer, err := ready(t, g, action.Host{Dir: t.TempDir()}).Do(t.Context(), r)
			if want.fault != "" {
				assert.Equal(t, want.fault, faultOf(t, err))
				return
			}
			require.NoError(t, err)
			assert.Equal(t, want.decision, answer.Decision.Decision)
		})
	}
}

// At PreToolUse a person is asked as any hook asks, so that the run can park; elsewhere at once.
func TestGatePerson(t *testing.T) {
	var about []*agent.Prepared
	answer := agent.Approval{Verdict: agent.Approve, By: "ann", Reason: "fine"}
	approver := agent.ApproverFunc(func(_ context.Context, _ agent.State, p *agent.Prepared) (agent.Approval, error) {
		about = append(about, p)
		return answer, nil
	})
	a := ready(t, action.Gate{By: action.GatePerson, Reason: "May ${STAGE} end?", Timeout: time.Minute, OnTimeout: "reject"}, action.Host{Approver: approver})
	for verdict, want := range map[agent.ApprovalVerdict]hooks.Decision{agent.Approve: hooks.Allow, agent.RejectAndEnd: hooks.StopRun, agent.RejectAndContinue: hooks.StopRun} {
		answer.Verdict = verdict
		f := fire(t, a, hookstest.StepEnd("done").WithRun(agent.Run{Stage: "plan"}))
		assert.Equal(t, want, f.Decision)
		last := about[len(about)-1]
		assert.Equal(t, "May plan end?", last.Questions().Reason())
		assert.JSONEq(t, `{"hook":"policy/rule","point":"StepEnd","question":"May plan end?"}`, last.Call.Arguments)
	}
	for verdict, want := range map[agent.ApprovalVerdict]string{agent.Park: "the approver postponed the answer", agent.NobodyToAsk: "no person can be asked"} {
		answer.Verdict = verdict
		assert.ErrorContains(t, fire(t, a, hookstest.StepEnd("done")).Err, want)
	}

	asks := hooks.On(hooks.AtPreToolUse, "rule", func(ctx context.Context, c hooks.ToolContext) hooks.Result {
		return action.Apply(ctx, c, a, action.NewRequest(c, "policy/rule"))
	})
	ran := false
	tool := toolexec.Func("deploy", "Deploys.", func(context.Context, struct{}) (string, error) { ran = true; return "done", nil })
	parks := builder.New().WithDriver(agenttest.Script(agenttest.Call("deploy", `{}`), agenttest.Say("done"))).
		With(capability.UseTools(tool), capability.UseHooks(asks), capability.UseApproval(agent.ParkApprover)).Build().MustGet()
	state := parks.Run(t.Context(), agent.NewState(), agent.UserText("deploy")).MustGet()
	require.True(t, state.Parked())
	assert.False(t, ran)
}

func TestGateIsChecked(t *testing.T) {
	for want, g := range map[string]action.Gate{
		`by: unknown gate ""`:                   {},
		"webhook: missing":                      {By: action.GateCallback},
		"file: missing":                         {By: action.GateFile},
		"argv: missing":                         {By: action.GateCommand},
		"file: not allowed in a gate by person": {By: action.GatePerson, File: "x"},
		"approvers: an empty text names no":     {By: action.GatePerson, Approvers: []string{"ann", " "}},
		"port: 70000 is not a port":             {By: action.GateCallback, Webhook: &action.HTTP{URL: "https://example.com"}, Port: 70000},
		"webhook.url: http is allowed only for loopback addresses": {By: action.GateCallback, Webhook: &action.HTTP{URL: "http://example.com"}},
		`on_timeout: unknown value "skip"`:                         {By: action.GateFile, File: "x", OnTimeout: "skip"},
		"by: no approver configured: set Host.Appr":                {By: action.GatePerson},
	} {
		assert.ErrorContains(t, lo.T2(g.Action(action.Host{})).B, want)
	}
	silent := action.Gate{By: action.GateCallback, Webhook: &action.HTTP{URL: "https://example.com", Body: map[string]any{"text": "hello"}}}
	require.Len(t, silent.Lint(), 1)
	assert.Contains(t, silent.Lint()[0].Message, "the message does not tell where to answer")
}

// A webhook that fails ends the waiting, and the listener.
func TestGateWhoseWebhookFails(t *testing.T) {
	x := receive(t, say(500, ""))
	desks := &action.Callbacks{}
	g := action.Gate{By: action.GateCallback, Webhook: &action.HTTP{URL: x.URL, Retries: 2}}
	_, err := ready(t, g, action.Host{Callbacks: desks}).Do(t.Context(), guarded(t))
	assert.Equal(t, action.FaultStatus, faultOf(t, err))
	assert.Equal(t, 3, x.count())
	var failed *action.Error
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, "gate", failed.Type)
}
