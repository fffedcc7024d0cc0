//go:build unix

package main

import (
	"encoding/json"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/sqlite"
)

// Through a coordinator, an answer until Friday covers like calls of later runs, in its process and in a runner, until it is revoked. A
// blocked run is tried again, and let past the hook that has blocked it.
func TestVerbsOfACoordinator(t *testing.T) {
	t.Parallel()
	f, at, model := newExplained(t)
	env := []string{"OPENAI_API_KEY=sk-1", "OPENAI_BASE_URL=" + model}
	f.start(&daemon{
		args: []string{"serve", "--store", at, "--listen", f.address, "--model", "openai/test-model"}, env: append(env, "GRAPNEL_TOKEN="+f.token),
	})
	var runners string
	f.persist(func() (err error) {
		runners, err = f.api.NewToken(t.Context(), "runners", wire.RunnerRole, 0)
		return err
	})
	f.start(&daemon{
		args: []string{"runner", "--server", "http://" + f.address, "--label", "zone=eu", "--model", "openai/test-model"}, env: append(env, "GRAPNEL_TOKEN="+runners),
	})
	grapnel := func(args ...string) string {
		t.Helper()
		p := command(t, nil, append(args, "--server", "http://"+f.address)...)
		p.cmd.Env = append(p.cmd.Env, "GRAPNEL_TOKEN="+f.token)
		code := p.run()
		require.Zero(t, code, "%v: %s", args, p.written())
		return p.written()
	}
	for _, text := range []string{
		`{"name": "asks", "type": "autonomous", ` + shellAgent + `, "hooks": {"on_tool_call": ` + answering(`{"decision": "ask", "reason": "it writes"}`, "block") + `}}`,
		`{"name": "closed", "type": "procedural", ` + catCommand + `, "hooks": {"on_run_start": ` + answering(`{"action": "block", "block_reason": "May is closed"}`, "block") + `}}`,
	} {
		_, err := f.api.CreateBlueprint(t.Context(), json.RawMessage(text))
		require.NoError(t, err)
	}
	submit := func(prompt string, demands map[string]string) agent.RunID {
		t.Helper()
		params, _ := json.Marshal(map[string]string{"prompt": prompt})
		s, err := f.api.Submit(t.Context(), wire.RunRequest{AgentName: "asks", Parameters: params, Demands: demands})
		require.NoError(t, err)
		return s.RunID
	}
	until := func(id agent.RunID, want wire.Status) {
		t.Helper()
		require.Eventually(t, func() bool {
			d, err := f.api.Run(t.Context(), id)
			return err == nil && d.Status == want
		}, patience, 20*time.Millisecond, "%s", want)
	}
	card := func(id agent.RunID) string {
		t.Helper()
		waits, err := f.store.OpenWaits(t.Context(), durable.WaitFilter{Run: id})
		require.NoError(t, err)
		require.Len(t, waits, 1)
		return waits[0].ID
	}
	first := submit("echo one", nil)
	until(first, wire.Waiting)
	said := grapnel("approvals", "answer", string(first), card(first), "--approve", "--until", "friday", "--dry-run")
	assert.Contains(t, said, "In the last 30 days, people answered no question about this tool.")
	until(first, wire.Waiting)
	said = grapnel("approvals", "answer", string(first), card(first), "--approve", "--until", "friday", "--reason", "known")
	waiver := regexp.MustCompile(`wvr_\w+`).FindString(said)
	require.NotEmpty(t, waiver, said)
	until(first, wire.Completed)
	for _, demands := range []map[string]string{nil, {"zone": "eu"}} {
		until(submit("echo one", demands), wire.Completed)
		other := submit("echo two", demands)
		until(other, wire.Waiting)
		require.NoError(t, f.api.Stop(t.Context(), other, ""))
	}
	assert.Contains(t, grapnel("approvals", "waivers"), waiver)
	grapnel("approvals", "revoke", waiver)
	again := submit("echo one", nil)
	until(again, wire.Waiting)
	require.NoError(t, f.api.Stop(t.Context(), again, ""))

	closed, err := f.api.Submit(t.Context(), wire.RunRequest{AgentName: "closed", Parameters: []byte(`{"month": "May"}`)})
	require.NoError(t, err)
	until(closed.RunID, wire.Failed)
	retried := agent.RunID(strings.TrimSpace(grapnel("runs", "retry", string(closed.RunID))))
	until(retried, wire.Failed)
	d, err := f.api.Run(t.Context(), retried)
	require.NoError(t, err)
	require.True(t, d.Blocked)
	assert.Equal(t, closed.RunID, d.RetryOf)
	said = grapnel("runs", "retry", string(retried), "--past", d.Hooks[0].Hook, "--reason", "it is open", "--wait")
	assert.Contains(t, said, `{"month":"May"}`)
	said = grapnel("runs", "show", string(retried))
	assert.Contains(t, said, "retry of "+string(closed.RunID))
	passed := regexp.MustCompile(`tried again as (run_\w+)`).FindStringSubmatch(said)
	require.Len(t, passed, 2, said)
	assert.Contains(t, grapnel("runs", "show", passed[1]), "past the hook "+d.Hooks[0].Hook+": it is open")
	assert.Equal(t, "http://"+f.address+"/ui/runs/"+string(closed.RunID)+"\n", grapnel("runs", "show", string(closed.RunID), "--web"))
}

// "grapnel runs show --web" serves the page of a run in a store until it is interrupted: the address signs in once, to read.
func TestShowWeb(t *testing.T) {
	t.Parallel()
	p := command(t, modelOf(t, `{"text": "Hi."}`), "run", "--durable", "--tool", "shell", "go")
	require.Zero(t, p.run(), p.written())
	var list []struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(p.outputOf("runs", "list", "--json")), &list))
	require.Len(t, list, 1)
	web := p.next("runs", "show", list[0].ID[:12], "--web")
	web.start()
	web.expect("/ui/sign-in?")
	at, err := url.Parse(strings.TrimSpace(web.written()))
	require.NoError(t, err)
	assert.Equal(t, "127.0.0.1", at.Hostname())
	base := "http://" + at.Host
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer browser.CloseIdleConnections()
	send := func(method, path string, form url.Values, cookies ...*http.Cookie) (code int, location string, got []*http.Cookie) {
		t.Helper()
		in, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(form.Encode()))
		require.NoError(t, err)
		in.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for _, c := range cookies {
			in.AddCookie(c)
		}
		out, err := browser.Do(in)
		require.NoError(t, err)
		require.NoError(t, out.Body.Close())
		return out.StatusCode, out.Header.Get("Location"), out.Cookies()
	}
	form := url.Values{"secret": {at.Query().Get("code")}, "back": {at.Query().Get("back")}}
	_, page, cookies := send(http.MethodPost, at.Path, form)
	require.Equal(t, "/ui/runs/"+list[0].ID, page)
	for _, c := range []struct {
		method, path string
		form         url.Values
		cookies      []*http.Cookie
		want         int
	}{
		{http.MethodPost, at.Path, form, nil, http.StatusUnauthorized}, // the code counts once
		{http.MethodGet, page, nil, nil, http.StatusSeeOther},          // not signed in
		{http.MethodGet, page, nil, cookies, http.StatusOK},
		{http.MethodPost, page + "/stop", nil, cookies, http.StatusForbidden},
	} {
		code, _, _ := send(c.method, c.path, c.form, c.cookies...)
		assert.Equal(t, c.want, code, "%s %s", c.method, c.path)
	}
	web.signal(syscall.SIGINT)
	web.code()
	store, err := sqlite.Open(t.Context(), filepath.Join(p.cmd.Dir, ".local", "state", "grapnel", "runs.db"), sqlite.Options{})
	require.NoError(t, err)
	defer store.Close()
	sessions, err := store.ListDocuments(t.Context(), "session", "", 10)
	require.NoError(t, err)
	assert.Empty(t, sessions, "nothing is written")
}
