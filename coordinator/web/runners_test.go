package web_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/coordinator/wire"
)

// The page of runners has those in this process and those elsewhere, with the runs that they have, and the queues that no runner serves.
func TestRunners(t *testing.T) {
	r := newRoom(t, nil)
	r.signIn(r.token(wire.Viewer))
	assert.Contains(t, text(r.get("/ui/runners").body), "No runner was connected")
	for _, blueprint := range []string{
		`{"name": "far", "type": "procedural", "command": {"argv": ["cat"]}, "demands": {"zone": "moon"}}`,
		`{"name": "near", "type": "procedural", "command": {"argv": ["cat"]}, "demands": {"zone": "eu"}}`,
	} {
		_, err := r.c.CreateBlueprint(t.Context(), []byte(blueprint), "ann")
		require.NoError(t, err)
	}
	r.submit(wire.RunRequest{AgentName: "far"})
	id := r.submit(wire.RunRequest{AgentName: "near"})
	claim := wire.ClaimRequest{Labels: []string{"zone=eu"}, Types: []string{"procedural"}, LeaseSeconds: 60, Limit: 1, Capacity: 3, Version: "v9"}
	got, err := r.c.RemoteRunner("ci/machine-1").Claim(t.Context(), claim)
	require.NoError(t, err)
	require.Len(t, got.Runs, 1)
	page := r.get("/ui/runners")
	shown := text(page.body)
	for _, want := range []string{"ci/machine-1 connected", "Executes 1 of 3 runs", "Kinds command", "Labels zone=eu", "Version v9", "Last seen just now",
		"No runner serves 1 queue", "command far with zone=moon: 1 run, the first became ready just now", "command near with zone=eu 0 ready served"} {
		assert.Contains(t, shown, want)
	}
	assert.Contains(t, page.body, `href="/ui/runs/`+string(id)+`"`)
	_, err = r.c.RemoteRunner("ci/machine-1").Claim(t.Context(), wire.ClaimRequest{Draining: true})
	require.NoError(t, err)
	assert.Contains(t, text(r.get("/ui/runners").body), "ci/machine-1 draining Executes 1 of 3 runs")

	r.work()
	viewer := r.token(wire.Viewer)
	var out struct{ Runners []wire.Runner }
	require.Eventually(t, func() bool {
		got := r.do(http.MethodGet, "/runners", nil, "Authorization", "Bearer "+viewer)
		require.NoError(t, json.Unmarshal([]byte(got.body), &out))
		return len(out.Runners) == 2
	}, time.Minute, 20*time.Millisecond, "a worker in this process")
	kinds := map[string]bool{}
	for _, one := range out.Runners {
		for _, k := range one.Kinds {
			kinds[string(k)] = true
		}
		assert.NotContains(t, one.Labels, "coordinator.runner")
	}
	assert.Equal(t, map[string]bool{"agent": true, "command": true, "pipeline": true, "run_callback": true, "run_hooks": true}, kinds)
}
