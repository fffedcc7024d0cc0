package policy_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/policy"
)

func deniesWith(reason string) string {
	return "policy: live\nhooks: {PreToolUse: [{id: no, match: {tool: pay}, decision: deny, reason: " + reason + "}]}\n"
}

// A run keeps the version that it began with; the next one has the new one; one that is
// wrong is told of, once, and changes nothing. LH-54: without a good version to begin
// with there is no policy, and no agent that would go without.
func TestLive(t *testing.T) {
	dir := write(t, map[string]string{"p.yaml": "include: rules.yaml\npolicy: live\n", "rules.yaml": "polcy: live"})
	path, rules := filepath.Join(dir, "p.yaml"), filepath.Join(dir, "rules.yaml")
	seen := &agenttest.Recorder{}
	follow := func() (*policy.Live, error) {
		return policy.Follow(t.Context(), func() (*policy.Policy, error) { return policy.LoadFiles(path) },
			policy.LiveOptions{Every: -1, Observer: seen})
	}
	_, err := follow()
	require.ErrorContains(t, err, `unknown key "polcy"`)

	put := func(text string) { require.NoError(t, os.WriteFile(rules, []byte(text), 0o600)) }
	put(deniesWith("one"))
	live, err := follow()
	require.NoError(t, err)

	var during func()
	a, _ := made(t, []string{"pay", "wait"}, []agenttest.Turn{
		agenttest.Call("pay", `{}`),
		agenttest.Play(func(context.Context, agent.State) (agent.Step, error) {
			during()
			return agent.Step{Message: agent.Assistant("", agent.ToolCall{ID: "2", Name: "pay"})}, nil
		}),
		agenttest.Say("done"),
	})
	reasons := func() (out []string) {
		final, err := a.RunWith(t.Context(), agent.RunSettings{Hooks: live.Hooks()}, agent.NewState(), agent.UserText("go")).Get()
		require.NoError(t, err)
		for _, m := range final.Messages() {
			if m.Role() == agent.RoleTool {
				out = append(out, m.Text())
			}
		}
		return out
	}
	told := `tool "pay": denied by live/no: `
	during = func() {
		put(deniesWith("two"))
		require.NoError(t, live.Reload(t.Context()))
	}
	assert.Equal(t, []string{told + "one", told + "one"}, reasons())
	during = func() {
		put("hooks: {PreToolUze: []}")
		require.ErrorContains(t, live.Reload(t.Context()), "PreToolUze")
		require.Error(t, live.Reload(t.Context()))
	}
	assert.Equal(t, []string{told + "two", told + "two"}, reasons())
	during = func() {}
	assert.Equal(t, []string{told + "two", told + "two"}, reasons(), "the last good version is in force")

	events := agenttest.Of[policy.Reloaded](seen)
	require.Len(t, events, 2)
	assert.Equal(t, "policy.reloaded", events[0].EventName())
	assert.NotEqual(t, events[0].From, events[0].To)
	assert.Equal(t, live.Policy().Hash(), events[0].To)
	assert.Equal(t, "policy.refused", events[1].EventName())
	assert.ErrorContains(t, events[1].Err, "PreToolUze")
	require.NoError(t, live.Close())
}

// Files are looked at again and again, also those that were not there.
func TestLiveFollowsItsFiles(t *testing.T) {
	dir := write(t, map[string]string{"p.yaml": deniesWith("one")})
	told := make(chan policy.Reloaded, 10)
	live, err := policy.Follow(t.Context(), func() (*policy.Policy, error) {
		return policy.Load([]policy.Layer{
			{Name: "global", Files: []string{filepath.Join(dir, "global.yaml")}, Optional: true},
			{Name: "run", Files: []string{filepath.Join(dir, "p.yaml")}},
		}, policy.Options{})
	}, policy.LiveOptions{Every: 5 * time.Millisecond, Observer: agent.ObserverFunc(func(_ context.Context, e agent.Event) {
		if r, ok := e.(policy.Reloaded); ok {
			told <- r
		}
	})})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "p.yaml"), []byte(deniesWith("another")), 0o600))
	assert.NoError(t, (<-told).Err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tmp"), []byte(file("global")), 0o600))
	require.NoError(t, os.Rename(filepath.Join(dir, "tmp"), filepath.Join(dir, "global.yaml")))
	assert.Equal(t, []string{"live", "global"}, (<-told).Policies)
	require.NoError(t, live.Close())
	require.NoError(t, live.Close(), "twice is once")
}

// A file that Also names and that comes to be makes the policy be loaded again.
func TestLiveLooksAtOtherFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "later.yaml")
	load := func() (*policy.Policy, error) {
		if _, err := os.Stat(path); err != nil {
			return policy.Load(nil, policy.Options{})
		}
		return policy.LoadFiles(path)
	}
	told := make(chan policy.Reloaded, 10)
	live, err := policy.Follow(t.Context(), load, policy.LiveOptions{
		Every: 5 * time.Millisecond, Also: []string{path},
		Observer: agent.ObserverFunc(func(_ context.Context, e agent.Event) { told <- e.(policy.Reloaded) }),
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tmp"), []byte(deniesWith("one")), 0o600))
	require.NoError(t, os.Rename(filepath.Join(dir, "tmp"), path))
	assert.Equal(t, []string{"live"}, (<-told).Policies)
	require.NoError(t, live.Close())
}
