package coordinator_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
)

// Rules say how often each hook was asked, what it decided and what people made of that; hits lead to the runs.
func TestRules(t *testing.T) {
	b := newBench(t, withFuncs(map[string]action.Body{"judge": func(_ context.Context, r *action.Request) (*action.Decision, error) {
		switch p := string(r.Parameters); {
		case strings.Contains(p, "May"):
			return &action.Decision{Decision: hooks.Deny, Reason: "it is closed"}, nil
		case strings.Contains(p, "panic"):
			panic("broken")
		}
		return &action.Decision{Decision: hooks.Allow}, nil
	}}))
	b.create(startHook(`{"type": "func", "func": "judge", "on_error": "continue"}`))
	read := func(query string) []wire.Rule {
		t.Helper()
		var list wire.RuleList
		b.ask(http.MethodGet, "/rules"+query, "", &list)
		return list.Rules
	}
	rules := read("")
	require.Len(t, rules, 1)
	assert.Equal(t, wire.Rule{
		Hook: rules[0].Hook, AgentName: "job", Point: "RunStart", Type: "func", Mode: "enforce", Path: "hooks.on_run_start", Notice: wire.RuleUnused,
	}, rules[0])
	hook := rules[0].Hook

	b.work(b.submit("job", `{"month": "June"}`))
	assert.Equal(t, wire.RuleNever, read("?days=1")[0].Notice)
	blocked := b.submit("job", `{"month": "May"}`)
	b.work(blocked)
	b.work(b.submit("job", `{"month": "panic"}`))
	_, err := b.c.Retry(t.Context(), blocked, wire.RetryRequest{PastHook: hook, Reason: "it is open"}, "ann")
	require.NoError(t, err)
	rule := read("?agent_name=job")[0]
	assert.Equal(t, []int64{3, 1, 1, 1, 0, 0}, []int64{rule.Asked, rule.Hits, rule.Overridden, rule.Failed, rule.Timeouts, rule.ShadowHits})
	assert.Equal(t, map[durable.Decision]int64{durable.DecisionBlocked: 1, durable.DecisionOverridden: 1, durable.DecisionFailed: 1}, rule.Decisions)
	assert.Positive(t, rule.P95MS)
	assert.False(t, rule.LastHit.IsZero())
	assert.Empty(t, rule.Notice)
	assert.Empty(t, read("?agent_name=other"))

	var hits wire.HitList
	b.ask(http.MethodGet, "/rules/"+url.PathEscape(hook)+"/hits?decision=blocked&agent_name=job", "", &hits)
	require.Len(t, hits.Runs, 1)
	assert.Equal(t, blocked, hits.Runs[0].Run.RunID)
	require.Len(t, hits.Runs[0].Hits, 1)
	hit := hits.Runs[0].Hits[0]
	assert.Equal(t, []string{"block", "blocked", "it is closed", "on_run_start"}, []string{hit.Decision, hit.Outcome, hit.Reason, hit.Point})
	var ids []agent.RunID
	for before := ""; len(ids) < 9; {
		var page wire.HitList
		b.ask(http.MethodGet, "/rules/"+url.PathEscape(hook)+"/hits?limit=1&before="+before, "", &page)
		for _, r := range page.Runs {
			ids = append(ids, r.Run.RunID)
		}
		if before = page.Next; before == "" {
			break
		}
	}
	assert.Len(t, ids, 2, "the failure and the block")
	b.ask(http.MethodGet, "/rules/other/hits", "", &hits)
	assert.Empty(t, hits.Runs)
}
