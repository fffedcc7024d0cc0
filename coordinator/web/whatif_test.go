package web_test

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/api"
	"github.com/grapnel-go/grapnel/coordinator/web"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/policy/policytest"
)

const (
	strict = "policy: mail\nhooks:\n  PreToolUse:\n    - id: amounts\n      match: {tool: pay}\n      when: args.amount > 1\n      decision: deny\n      reason: too much\n"
	loose  = "policy: mail\nhooks:\n  PreToolUse:\n    - id: amounts\n      match: {tool: pay}\n      when: args.amount > 100000\n      decision: deny\n      reason: too much\n"
)

// A policy author changes a rule, sees what it would have done, and takes a patch and a test case home. Nothing in force changes.
func TestWhatIfPage(t *testing.T) {
	r := newRoom(t, nil)
	a := r.ask(agent.Question{Reason: "much"}, "", carol)
	var err error
	r.c, err = coordinator.New(coordinator.Options{Store: r.store, AllRuns: true})
	require.NoError(t, err)
	local := api.Local{Coordinator: r.c}
	r.serve(api.Handler(r.c, api.Options{Token: secret, Pages: web.New(web.Options{Coordinator: local, Store: r.store, Token: secret})}))
	r.signIn(r.token(wire.Viewer))
	form := r.get("/ui/whatif")
	require.Equal(t, http.StatusOK, form.StatusCode)
	assert.Contains(t, text(form.body), "The rules to try")
	got := r.do(http.MethodPost, "/ui/whatif", url.Values{"before": {loose}, "policy": {strict}, "file": {"mail.yaml"}, "days": {"7"}})
	require.Equal(t, http.StatusOK, got.StatusCode, got.body)
	page := text(got.body)
	assert.Contains(t, page, "Newly denied 1")
	assert.Contains(t, page, "allowed → denied : 1 call in 1 run of pay")
	assert.Contains(t, page, "Stored runs do not have")
	assert.Contains(t, got.body, "</html>")
	assert.NotContains(t, got.body, `rel="expect"`)

	patch := r.do(http.MethodPost, "/ui/whatif/patch", url.Values{"before": {loose}, "policy": {strict}, "file": {"mail.yaml"}})
	assert.Contains(t, patch.Header.Get("Content-Disposition"), "mail.patch")
	assert.Contains(t, patch.body, "--- a/mail.yaml\n+++ b/mail.yaml\n")
	assert.Contains(t, patch.body, "-      when: args.amount > 100000\n+      when: args.amount > 1\n")

	link := regexp.MustCompile(`href="(/ui/runs/[^"]+/case\?[^"]+)"`).FindStringSubmatch(got.body)
	require.Len(t, link, 2)
	assert.Contains(t, link[1], string(a.run))
	test := r.get(strings.ReplaceAll(link[1], "&amp;", "&"))
	require.Equal(t, http.StatusOK, test.StatusCode, test.body)
	assert.Contains(t, test.Header.Get("Content-Disposition"), "mail.test.yaml")
	dir := t.TempDir()
	for rules, failed := range map[string]int{strict: 0, loose: 1} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "mail.yaml"), []byte(rules), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "mail.test.yaml"), []byte(test.body), 0o600))
		suite, err := policytest.Open(filepath.Join(dir, "mail.test.yaml"))
		require.NoError(t, err, test.body)
		result, err := suite.Run(t.Context(), policytest.Options{})
		require.NoError(t, err)
		assert.Equal(t, failed, result.FailedCases())
	}

	for name, c := range map[string]struct {
		form   url.Values
		status int
		want   string
	}{
		"a mistake":        {url.Values{"policy": {"policy: x\nhooks:\n  PreToolUse:\n    - {id: a, when: 'args.', decision: deny}\n"}}, http.StatusUnprocessableEntity, "policy: line 4, column"},
		"no rules":         {url.Values{}, http.StatusUnprocessableEntity, "missing: add the rules to try"},
		"an unknown run":   {url.Values{"policy": {strict}, "run": {"run_x"}}, http.StatusNotFound, "there is no such run"},
		"another run":      {url.Values{"policy": {strict}, "run": {string(r.submit(wire.RunRequest{AgentName: "plain"}))}}, http.StatusUnprocessableEntity, "only runs of agents"},
		"a file elsewhere": {url.Values{"policy": {"policy: x\ninclude: [/etc/passwd]\n"}}, http.StatusUnprocessableEntity, "only the text of the rules is read here"},
	} {
		got := r.do(http.MethodPost, "/ui/whatif", c.form)
		assert.Equal(t, c.status, got.StatusCode, name)
		assert.Contains(t, text(got.body), c.want, name)
		assert.Contains(t, got.body, "<form", name)
	}
	for path, status := range map[string]int{
		"/ui/runs/" + string(a.run) + "/case?d=99": http.StatusUnprocessableEntity, "/ui/runs/" + string(a.run) + "/case": http.StatusUnprocessableEntity,
		"/ui/runs/run_x/case?d=1": http.StatusNotFound, "/ui/whatif?run=run_x": http.StatusOK, "/ui/whatif?file=library:nothing": http.StatusOK,
	} {
		assert.Equal(t, status, r.get(path).StatusCode, path)
	}
	assert.Contains(t, r.get("/ui/whatif?file=library:secrets").body, "policy: secrets")
	assert.Contains(t, r.get("/ui/whatif?hook=library:secrets/files").body, "policy: secrets")
	assert.Contains(t, text(r.get("/ui/whatif?hook=mail/amounts&agent=clerk").body), "The rules of mail/amounts are in a file of its program")
	assert.Contains(t, r.get("/ui/whatif?hook=agent.gated/RunStart-1&agent=gated").body, "on_run_start")
	for _, e := range r.audit() {
		assert.NotEqual(t, "my-viewer", e.By)
	}
}
