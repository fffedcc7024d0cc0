package web_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/coordinator/wire"
)

// files define a pipeline: its second iteration fails, and a hook asks a person before the second stage.
var files = map[string]string{
	"pipeline.yaml": `
name: report
limits: {steps: 100}
stages:
  - name: draft
    command: {argv: [./draft.sh]}
    on_failure: continue
    termination: {type: fixed, iterations: 3}
    hooks:
      on_iteration_complete:
        - {id: look, type: shell, command: "exit 3", await: true, on_failure: continue}
  - name: finish
    command: {argv: [echo, done]}
    termination: {type: fixed, iterations: 1}
hooks:
  on_stage_complete:
    - {id: plan, type: gate, by: person, reason: "Is the draft good?", await: true, when: "${STAGE} == 'draft'"}
`,
	"draft.sh": "#!/bin/sh\necho \"draft $ITERATION\"\n[ \"$ITERATION\" != 2 ] || exit 7\n",
}

// The page of a pipeline has its stages and iterations, what it waits for, its hooks in order and what it has used; operators pause it, and resume
// it with words for the next iteration.
func TestPipelinePage(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the stages are commands of a POSIX system")
	}
	r := newRoom(t, nil)
	blueprint, err := json.Marshal(map[string]any{"name": "weekly", "type": "pipeline", "pipeline": map[string]any{"files": files}})
	require.NoError(t, err)
	_, err = r.c.CreateBlueprint(t.Context(), blueprint, "ann")
	require.NoError(t, err)
	id := r.submit(wire.RunRequest{AgentName: "weekly"})
	at := "/ui/runs/" + string(id)
	r.signIn(r.token(wire.Operator))
	page := text(r.get(at).body)
	assert.Contains(t, page, "draft pending ends: 3 iterations")
	require.Equal(t, http.StatusSeeOther, r.do(http.MethodPost, at+"/pause", url.Values{"text": {"until noon"}}).StatusCode)
	assert.Contains(t, r.get(at).body, `action="`+at+`/resume"`)
	require.Equal(t, http.StatusSeeOther, r.do(http.MethodPost, at+"/resume", url.Values{"text": {"go on"}}).StatusCode)
	assert.Contains(t, r.get(at).body, `action="`+at+`/pause"`)
	r.work()
	require.Eventually(t, func() bool { return strings.Contains(text(r.get(at).body), "Is the draft good?") }, time.Minute, 20*time.Millisecond)

	body := r.get("/ui/pipelines/" + string(id)).body
	page = text(body)
	for _, want := range []string{
		"0 of at most 100 steps", "draft running iteration 3 of at most 3", "Iteration 2 failed", "Iteration 3 completed", "finish pending", "draft 3",
		"iteration 1 of stage draft began", "iteration 2 of stage draft failed: ", "look", "after an iteration", "the pipeline waits: Is the draft good?",
	} {
		assert.Contains(t, page, want)
	}
	assert.Less(t, strings.Index(page, "iteration 1 of stage draft began"), strings.Index(page, "iteration 3 of stage draft began"))
	link := regexp.MustCompile(`<a href="(/ui/runs/[^"]+)">Iteration 3</a>`).FindStringSubmatch(body)
	require.Len(t, link, 2)
	iteration := r.get(link[1])
	require.Equal(t, http.StatusOK, iteration.StatusCode)
	assert.Contains(t, text(iteration.body), "Stage draft Iteration 3")
	assert.NotContains(t, iteration.body, `class="verb"`)
	assert.Contains(t, iteration.body, `href="`+at+`"`)
	assert.Equal(t, http.StatusNotFound, r.get("/ui/pipelines/"+strings.TrimPrefix(link[1], "/ui/runs/")).StatusCode)
	assert.Equal(t, http.StatusNotFound, r.get("/ui/pipelines/nothing").StatusCode)

	signals := map[string]string{}
	for _, e := range r.audit() {
		if e.Operation == "send-signal" {
			signals[e.Path] = e.Detail
		}
	}
	assert.Equal(t, map[string]string{at + "/pause": "pause until noon", at + "/resume": "resume go on"}, signals)

	d, err := r.c.Run(t.Context(), id)
	require.NoError(t, err)
	require.Len(t, d.WaitsFor, 1)
	require.Equal(t, http.StatusSeeOther, r.do(http.MethodPost, at+"/stop", url.Values{"reason": {"enough"}}).StatusCode)
	require.Eventually(t, func() bool { return strings.Contains(r.get(at).body, "s-stopped") }, time.Minute, 20*time.Millisecond)
	assert.NotContains(t, text(r.get(at).body), "running")
}
