package pipeline_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/durable/gate"
	"github.com/grapnel-go/grapnel/pipeline"
)

// receiver receives webhooks, and answers gates with the action of the link that decide names.
type receiver struct {
	t      *testing.T
	decide string // empty answers no gate

	mu    sync.Mutex
	texts []string
	said  []map[string]any
}

func (r *receiver) ServeHTTP(_ http.ResponseWriter, request *http.Request) {
	text, err := io.ReadAll(request.Body)
	if !assert.NoError(r.t, err) {
		return
	}
	var body map[string]any
	if !assert.NoError(r.t, json.Unmarshal(text, &body)) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	message, _ := body["text"].(string)
	r.texts, r.said = append(r.texts, message), append(r.said, body)
	for _, word := range strings.FieldsFunc(string(text), func(c rune) bool { return c == '"' }) {
		if r.decide != "" && strings.HasSuffix(word, "?action="+r.decide) {
			answer, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, word, nil)
			if !assert.NoError(r.t, err) {
				return
			}
			response, err := http.DefaultClient.Do(answer)
			if assert.NoError(r.t, err) {
				assert.NoError(r.t, response.Body.Close())
			}
		}
	}
}

// pattern runs a pipeline with the hooks from a pattern in the source document, unchanged.
func (b *bench) pattern(name, stages string, r *receiver) pipeline.Status {
	b.t.Helper()
	hooks, err := os.ReadFile(filepath.Join("..", "policy", "testdata", "seeds", name))
	require.NoError(b.t, err)
	server := httptest.NewServer(r)
	b.t.Cleanup(server.Close)
	for _, variable := range []string{"SLACK_WEBHOOK", "METRICS_ENDPOINT", "PAGERDUTY_WEBHOOK"} {
		b.t.Setenv(variable, server.URL)
	}
	answers := httptest.NewServer(gate.Handler(b.store, gate.HandlerOptions{}))
	b.t.Cleanup(answers.Close)
	require.NoError(b.t, os.MkdirAll(b.path("work", "scripts"), 0o700))
	p, err := pipeline.Load(b.write("pipeline.yaml", "name: p\nstages:\n"+stages+string(hooks)), pipeline.LoadOptions{Host: parkingHost})
	require.NoError(b.t, err)
	job, err := p.Job(pipeline.SessionOptions{Name: "demo", Dir: b.path("sessions", "demo"), Workspace: b.path("work")})
	require.NoError(b.t, err)
	runs, err := b.store.Submit(b.t.Context(), job)
	require.NoError(b.t, err)
	return b.finish(runs[0].ID, gate.Options{Callbacks: answers.URL})
}

// script writes a script of a pattern.
func (b *bench) script(name, text string) {
	b.t.Helper()
	require.NoError(b.t, os.MkdirAll(b.path("work", "scripts"), 0o700))
	require.NoError(b.t, os.WriteFile(b.path("work", "scripts", name), []byte("#!/bin/sh\n"+text+"\n"), 0o700))
}

// The six patterns of the source document do what it says.
func TestPatterns(t *testing.T) {
	t.Run("1: notification on complete", func(t *testing.T) {
		b, r := newBench(t), &receiver{t: t}
		s := b.pattern("pipeline-09-notification.yaml", counted("work", 3), r)
		require.Equal(t, pipeline.Completed, s.Reason, s.Error)
		assert.Equal(t, []string{":white_check_mark: demo completed in 3 iterations"}, r.texts)
	})
	for action, want := range map[string]pipeline.Reason{"approve": pipeline.Completed, "reject": pipeline.Aborted} {
		t.Run("2: human approval gate: "+action, func(t *testing.T) {
			b, r := newBench(t), &receiver{t: t, decide: action}
			s := b.pattern("pipeline-10-approval.yaml", counted("plan", 1)+counted("work", 1), r)
			assert.Equal(t, want, s.Reason, s.Error)
			assert.Equal(t, []string{"Plan ready for demo"}, r.texts)
			assert.Len(t, b.lines("log"), map[string]int{"approve": 2, "reject": 1}[action])
		})
	}
	t.Run("3: periodic code review", func(t *testing.T) {
		b := newBench(t)
		b.write("code-review.yaml", "name: child\nstages: [{name: review, command: {argv: [sh, -c, 'cat >> reviews; echo >> reviews']}, termination: {type: fixed, iterations: 1}}]")
		s := b.pattern("pipeline-11-periodic-review.yaml", counted("work", 20), &receiver{t: t})
		require.Equal(t, pipeline.Completed, s.Reason, s.Error)
		assert.Len(t, b.children(s.Run), 2, "after the iterations 10 and 20")
		assert.Contains(t, b.lines("reviews")[0], `"inputs":{"files":"log"}`)
	})
	for action, want := range map[string]pipeline.Reason{"continue": pipeline.Completed, "abort": pipeline.Aborted} {
		t.Run("4: quality gate with fallback: "+action, func(t *testing.T) {
			b, r := newBench(t), &receiver{t: t, decide: action}
			b.script("run-tests.sh", `[ "$ITERATION" != 2 ]`)
			s := b.pattern("pipeline-12-quality-gate.yaml", counted("work", 3), r)
			assert.Equal(t, want, s.Reason, s.Error)
			assert.Equal(t, []string{"Tests failed - manual review needed"}, r.texts, "only the second iteration failed")
			assert.Len(t, b.lines("log"), map[string]int{"continue": 3, "abort": 2}[action])
		})
	}
	t.Run("5: backup, metrics and notification", func(t *testing.T) {
		b, r := newBench(t), &receiver{t: t}
		b.script("backup-progress.sh", `echo "backup $ITERATION" >> backups`)
		b.script("collect-metrics.sh", `echo "metrics $ITERATION" >> metrics`)
		s := b.pattern("pipeline-13-backup-metrics.yaml", counted("work", 2), r)
		require.Equal(t, pipeline.Completed, s.Reason, s.Error)
		assert.ElementsMatch(t, []string{"backup 1", "backup 2"}, b.lines("backups"))
		assert.ElementsMatch(t, []string{"metrics 1", "metrics 2"}, b.lines("metrics"))
		require.Len(t, r.said, 2)
		assert.Equal(t, "demo", r.said[0]["session"])
		assert.Regexp(t, `^\d{4}-\d\d-\d\dT`, r.said[0]["timestamp"])
	})
	t.Run("6: review before the final stage", func(t *testing.T) {
		b := newBench(t)
		b.write("comprehensive-review.yaml", "name: child\nstages: [{name: review, command: {argv: [sh, -c, 'cat > review; echo reviewed >> log']}, termination: {type: fixed, iterations: 1}}]")
		s := b.pattern("pipeline-14-review-before-deploy.yaml", counted("plan", 1)+counted("work", 1)+counted("deploy", 1), &receiver{t: t})
		require.Equal(t, pipeline.Completed, s.Reason, s.Error)
		assert.Equal(t, []string{"plan 1", "work 1", "reviewed", "deploy 1"}, b.lines("log"))
		assert.Contains(t, b.lines("review")[0], filepath.Join("02-work", "iterations", "0001", "output.txt"))
	})
}
