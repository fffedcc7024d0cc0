//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/approval"
	"github.com/grapnel-go/grapnel/durable/sqlite"
)

// requestAt sends a request to an address, and returns the status and the body.
func requestAt(t *testing.T, method, address, token, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}

// LH-67, X-14: the whole way of a call that two people must approve: a run is submitted and waits, it is listed and shown, one person
// answers with the command and the other over HTTP, and a worker executes the call. Who submitted the run does not count, one
// person counts once, and a person who was removed from the file is refused from then on.
func TestTwoPeopleApprove(t *testing.T) {
	t.Parallel()
	me, err := user.Current()
	require.NoError(t, err)
	token, sum := approval.NewToken()
	first, _, _ := strings.Cut(asking, "\n")
	p := command(t, modelOf(t, first+"\n"+asking), "runs", "work", "clerk.yaml", "--poll", "50ms") // each of two runs asks for the call
	p.write("clerk.yaml", "tools: [shell]\npolicies: [two.yaml]\n")
	p.write("two.yaml", "policy: two\nhooks:\n  PreToolUse: [{id: pay, match: {tool: bash}, decision: ask, approvers: [finance], quorum: 2, reason: it pays}]\n")
	self := fmt.Sprintf("people:\n  - {name: %q, roles: [finance]}\n", me.Username)
	p.write("people.yaml", self+fmt.Sprintf("  - {name: ann of finance, roles: [finance], token: %q}\n", sum))
	own := p.outputOf("runs", "submit", "agent", "clerk", "go", "--file", "clerk.yaml")

	store, err := sqlite.Open(t.Context(), filepath.Join(p.cmd.Dir, ".local", "state", "grapnel", "runs.db"), sqlite.Options{})
	require.NoError(t, err)
	job, err := durable.AgentJob("clerk", agent.NewState(), agent.UserText("go"))
	require.NoError(t, err)
	job.By = "carol"
	submitted, err := store.Submit(t.Context(), job)
	require.NoError(t, err)
	require.NoError(t, store.Close())
	id := string(submitted[0].ID)

	p.start()
	p.waitForRun(own, `"status": "waiting"`)
	p.waitForRun(id, `"status": "waiting"`)
	assert.Regexp(t, `call_1 +approval +bash +clerk .* touch made.txt +it pays \(0 of 2 approvals\)`, p.outputOf("approvals", "list"))
	shown := p.outputOf("approvals", "show", id)
	for _, want := range []string{"call_1: approval of bash, open", "0 of 2", `"command": "touch made.txt"`, "it needs 2 approvals by finance"} {
		assert.Contains(t, shown, want)
	}
	q := p.next("approvals", "answer", own, p.card(own), "--approve", "--people", "people.yaml")
	assert.Equal(t, 1, q.run())
	assert.Contains(t, strings.Join(strings.Fields(q.written()), " "), me.Username+" has submitted the run and cannot approve it")
	card := p.card(id)
	assert.Contains(t, p.outputOf("approvals", "answer", id, card, "--approve", "--by", "ann", "--people", "people.yaml"),
		"It needs 1 more approval")
	q = p.next("approvals", "answer", id, card, "--approve", "--by", "another", "--people", "people.yaml")
	assert.Equal(t, 1, q.run(), "the name beside the identity does not count")
	assert.Contains(t, strings.Join(strings.Fields(q.written()), " "), "the question is already answered")

	server := p.next("approvals", "serve", "--people", "people.yaml")
	server.cmd.Env = append(server.cmd.Env, "OTEL_METRICS_EXPORTER=console")
	server.start()
	server.expect("/ui/sign-in?code=")
	inbox := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(server.written()) + "/approvals/"
	var waits []struct{ Wait string }
	require.NoError(t, json.Unmarshal([]byte(p.outputOf("approvals", "show", id, "--json")), &waits))
	wait := inbox + "wait?" + url.Values{"run": {id}, "wait": {waits[0].Wait}}.Encode()
	status, body := requestAt(t, http.MethodGet, wait, token, "")
	require.Equal(t, http.StatusOK, status, body)
	var told struct {
		Question struct {
			Wait      string
			Questions []approval.MessageQuestion
			Answers   []approval.Decision
		}
	}
	require.NoError(t, json.Unmarshal([]byte(body), &told))
	require.Len(t, told.Question.Answers, 1)
	assert.Equal(t, "ann", told.Question.Answers[0].By)
	assert.Equal(t, me.Username, told.Question.Answers[0].Identity)
	answer := fmt.Sprintf(`{"verdict": "approve", "reason": "checked", "wait": %q, "questions": [%q]}`, told.Question.Wait, told.Question.Questions[0].ID)
	for with, want := range map[string]int{"": http.StatusUnauthorized, token + "x": http.StatusUnauthorized} {
		status, body = requestAt(t, http.MethodPost, wait, with, answer)
		assert.Equal(t, want, status, body)
	}
	assert.NoFileExists(t, filepath.Join(p.cmd.Dir, "made.txt"))
	status, body = requestAt(t, http.MethodPost, wait, token, answer)
	require.Equal(t, http.StatusOK, status, body)
	assert.Contains(t, body, "Decided.")
	p.waitForRun(id, `"status": "completed"`)
	assert.FileExists(t, filepath.Join(p.cmd.Dir, "made.txt"))
	status, body = requestAt(t, http.MethodPost, wait, token, answer)
	assert.Equal(t, http.StatusConflict, status, body)
	assert.Contains(t, body, "approve by ann of finance")

	shown = p.outputOf("runs", "show", id)
	assert.Regexp(t, `approve by ann, 20.* \(verified as `+regexp.QuoteMeta(me.Username)+`\)`, shown)
	assert.Regexp(t, `made.txt: approve by ann of finance, 20.* \(verified\): checked`, shown)
	events := p.outputOf("runs", "watch", id, "--json")
	assert.Regexp(t, `"type":"approval.completed".*"answers":\[\{"verdict":"approve","by":"ann","identity":"`+regexp.QuoteMeta(me.Username)+
		`","at":"20[^"]*"\},\{"verdict":"approve","by":"ann of finance","identity":"ann of finance","reason":"checked","at":"20`, events)

	status, _ = requestAt(t, http.MethodGet, inbox, token, "")
	require.Equal(t, http.StatusOK, status)
	p.write("people.yaml", self)
	status, _ = requestAt(t, http.MethodGet, inbox, token, "")
	assert.Equal(t, http.StatusUnauthorized, status, "the person was removed")
	server.signal(syscall.SIGTERM)
	server.code()
	assert.NotContains(t, server.written(), token)
	assert.Contains(t, server.written(), "approval: refused")
	assert.Contains(t, server.written(), "grapnel.approval.age", "operators are told while no person answers")
	p.signal(syscall.SIGTERM)
	assert.Equal(t, 0, p.code(), p.written())
}

// the person at the terminal answers as the user of the operating system, also while the run is in memory.
func TestTheIdentityAtATerminal(t *testing.T) {
	t.Parallel()
	me, err := user.Current()
	require.NoError(t, err)
	p := atTerminal(t, modelOf(t, asking), "run", "--durable", "--agent", "ask.yaml", "go")
	p.expect("or say why not: ")
	p.press("y\r")
	require.Equal(t, 0, p.code(), p.written())
	assert.Regexp(t, `approve by the user, 20.* \(verified as `+regexp.QuoteMeta(me.Username)+`\)`, p.outputOf("runs", "show", "run_"))
	assert.Regexp(t, `"decisions": \[(?s:.*)"identity": "`+regexp.QuoteMeta(me.Username)+`"`, p.outputOf("runs", "show", "run_", "--json"))
	assert.Regexp(t, `"type":"approval.completed".*"identity":"`+regexp.QuoteMeta(me.Username)+`"`, p.outputOf("runs", "watch", "run_", "--json"))
}
