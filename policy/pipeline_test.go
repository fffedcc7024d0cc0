package policy_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
	"github.com/grapnel-go/grapnel/policy"
)

// diary is what actions did, in order.
type diary struct {
	mu    sync.Mutex
	began time.Time
	lines []string
}

func (d *diary) add(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf("%s at %s", line, time.Since(d.began)))
}

// all returns the lines so far.
func (d *diary) all() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lines)
}

// host has funcs that note that they were called: ok, slow, which takes half a minute, and
// fails, which fails as often as it is told.
func (d *diary) host(failures int) action.Host {
	d.began = time.Now()
	left := failures
	return action.Host{Funcs: map[string]action.Body{
		"ok": func(_ context.Context, r *action.Request) (*action.Decision, error) {
			d.add(r.Hook[strings.LastIndex(r.Hook, "/")+1:])
			return nil, nil
		},
		"slow": func(ctx context.Context, _ *action.Request) (*action.Decision, error) {
			select {
			case <-time.After(30 * time.Second):
				d.add("slow")
			case <-ctx.Done():
			}
			return nil, nil
		},
		"fails": func(_ context.Context, r *action.Request) (*action.Decision, error) {
			d.add(fmt.Sprintf("try %d", r.Attempt))
			if left--; left >= 0 {
				return nil, errors.New("not yet")
			}
			return nil, nil
		},
	}}
}

// AP-07, AP-08, AP-10, AP-11, AP-12, AP-13, AP-16, AP-17: actions of a pipeline run from
// top to bottom, are waited for where that is said, and fail as they are told to.
func TestActionsOfAPipeline(t *testing.T) {
	for name, tc := range map[string]struct {
		failures int
		entries  string
		want     []string
		aborts   bool
		// unordered: two things happen at once
		unordered bool
	}{
		"top to bottom, awaited": {0, `[{id: a, type: func, func: ok, await: true}, {type: func, func: slow, await: true}, {id: b, type: func, func: ok, await: true}]`,
			[]string{"a at 0s", "slow at 30s", "b at 30s"}, false, false},
		"not awaited": {0, `[{type: func, func: slow}, {id: b, type: func, func: ok, await: true}]`, []string{"b at 0s", "slow at 30s"}, false, false},
		"abort":       {1, `[{type: func, func: fails, await: true, on_failure: abort}, {id: b, type: func, func: ok, await: true}]`, []string{"try 1 at 0s"}, true, false},
		"continue":    {1, `[{type: func, func: fails, await: true, on_failure: continue}, {id: b, type: func, func: ok, await: true}]`, []string{"try 1 at 0s", "b at 0s"}, false, false},
		"nothing said": {1, `[{type: func, func: fails, await: true}, {id: b, type: func, func: ok, await: true, when: 'LAST_HOOK_STATUS == "failed"'}]`,
			[]string{"try 1 at 0s", "b at 0s"}, false, false},
		"passed over": {1, `[{type: func, func: fails, await: true}, {id: no, type: func, func: ok, await: true, when: 'false'},
			{id: b, type: func, func: ok, await: true, when: 'LAST_HOOK_STATUS == "failed"'}]`, []string{"try 1 at 0s", "b at 0s"}, false, false},
		"retry that helps": {2, `[{type: func, func: fails, await: true, on_failure: retry, retries: 5, retry_delay: 2}, {id: b, type: func, func: ok, await: true}]`,
			[]string{"try 1 at 0s", "try 2 at 2s", "try 3 at 4s", "b at 4s"}, false, false},
		"retry that does not": {9, `[{type: func, func: fails, await: true, on_failure: retry, retries: 2}, {id: b, type: func, func: ok, await: true}]`,
			[]string{"try 1 at 0s", "try 2 at 5s", "try 3 at 10s", "b at 10s"}, false, false},
		"retry without a waiting caller": {1, `[{type: func, func: fails, on_failure: retry, retry_delay: 1}, {id: b, type: func, func: ok, await: true}]`,
			[]string{"b at 0s", "try 1 at 0s", "try 2 at 1s"}, false, true},
		"late": {0, `[{type: func, func: slow, await: true, timeout: 10}, {id: b, type: func, func: ok, await: true}]`, []string{"b at 10s"}, false, false},
		"a condition that fails": {0, `[{id: a, type: func, func: ok, await: true, when: '1 % MAX_ITERATIONS == 0'}, {id: b, type: func, func: ok, await: true}]`,
			[]string{"b at 0s"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &diary{}
				p, err := policy.ParseKind(policy.Pipelines, "pipeline.yaml", []byte("hooks:\n  on_iteration_complete: "+tc.entries),
					policy.Options{Host: d.host(tc.failures)})
				require.NoError(t, err)
				f := fire(t, p, hookstest.Pipeline(hooks.IterationComplete, hooks.Pipeline{}).WithRun(agent.Run{Iteration: 1}))
				assert.Equal(t, tc.aborts, f.RunErr != nil, "%s", f)
				if tc.unordered {
					assert.ElementsMatch(t, tc.want, d.all())
					return
				}
				assert.Equal(t, tc.want, d.all())
			})
		})
	}
}

// on_timeout says what becomes of an action that is late.
func TestLateActions(t *testing.T) {
	for word, want := range map[string]hooks.Decision{"": hooks.Pass, "continue": hooks.Pass, "skip": hooks.Pass, "abort": hooks.StopRun} {
		synctest.Test(t, func(t *testing.T) {
			rule := "{type: func, func: slow, await: true, timeout: 10s" + map[bool]string{true: ", on_timeout: " + word}[word != ""] + "}"
			p, err := policy.ParseKind(policy.Pipelines, "pipeline.yaml", []byte("hooks: {on_stage_complete: "+rule+"}"), policy.Options{Host: (&diary{}).host(0)})
			require.NoError(t, err)
			f := fire(t, p, hookstest.Pipeline(hooks.StageComplete, hooks.Pipeline{}))
			assert.Equal(t, want, f.Decision, "%q: %s", word, f)
			assert.Equal(t, word == "", f.Err != nil, "only what no rule mentions is a failure: %s", f)
		})
	}
}

// The results of actions are known within their policy and firing, also to observers, which come after all rules that
// decide.
func TestResultsOfActions(t *testing.T) {
	d := &diary{}
	p := load(t, `
policy: p
hooks:
  PreToolUse:
    - {id: told, type: func, func: ok, observe: true, when: 'actions.first.status == "success" && actions.last.status == "success"'}
    - {id: told-too, type: func, func: ok, observe: true, when: 'actions.told.status == "success"'}
    - {id: first, type: func, func: ok}
    - {id: last, type: func, func: ok, when: 'actions.first.status == "success"'}
`, policy.Options{Host: d.host(0)})
	d.began = time.Now().Add(time.Hour) // times do not matter here
	f := fire(t, p, hookstest.ToolCall("t", `{}`))
	require.NoError(t, f.Err)
	names := []string{}
	for _, line := range d.all() {
		name, _, _ := strings.Cut(line, " ")
		names = append(names, name)
	}
	assert.Equal(t, []string{"first", "last", "told", "told-too"}, names)
}
