package coordinator_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
)

// Of changes that begin with the same version, one is stored. The others say who has saved which version meanwhile, and when.
func TestChangesOfOneVersion(t *testing.T) {
	b := newBench(t)
	b.create(`{"name": "job", "type": "procedural"}`)
	const people = 8
	failed := make([]error, people)
	var all sync.WaitGroup
	for i := range people {
		all.Go(func() {
			_, failed[i] = b.c.UpdateBlueprint(t.Context(), "job", fmt.Appendf(nil, `{"description": "%d"}`, i), 1, fmt.Sprint("person", i))
		})
	}
	all.Wait()
	now, err := b.c.Blueprint(t.Context(), "job", 0)
	require.NoError(t, err)
	assert.Equal(t, int64(2), now.Version)
	for i, err := range failed {
		if now.By == fmt.Sprint("person", i) {
			assert.NoError(t, err)
			assert.Equal(t, fmt.Sprint(i), now.Description)
			continue
		}
		var changed *coordinator.ChangedError
		require.ErrorAs(t, err, &changed)
		require.ErrorIs(t, err, durable.ErrConflict)
		assert.Equal(t, wire.BlueprintVersion{Version: 2, Updated: now.Updated, By: now.By}, changed.Now)
		assert.Equal(t, int64(1), changed.Read)
	}
	again := fmt.Appendf(nil, `{"description": %q}`, now.Description)
	for _, after := range []int64{0, 1, 2} {
		s, err := b.c.UpdateBlueprint(t.Context(), "job", again, after, now.By)
		require.NoError(t, err, "a repeated request")
		assert.Equal(t, now, s, "is not a second version")
	}
	_, err = b.c.UpdateBlueprint(t.Context(), "job", again, 1, "other")
	require.ErrorIs(t, err, durable.ErrConflict, "another person has saved it")
	_, err = b.c.UpdateBlueprint(t.Context(), "job", []byte(`{"description": "new"}`), 2, "bob")
	require.NoError(t, err)
	_, err = b.c.UpdateBlueprint(t.Context(), "job", again, 1, now.By)
	require.ErrorIs(t, err, durable.ErrConflict, "a late repetition")
	_, err = b.c.CreateBlueprint(t.Context(), []byte(`{"name": "job", "type": "procedural"}`), "ann")
	require.ErrorContains(t, err, `version 3 was saved by "bob"`)
	require.ErrorIs(t, b.c.DeleteBlueprint(t.Context(), "job", 2), durable.ErrConflict)

	versions, err := b.c.ListVersions(t.Context(), "job", 0, 2)
	require.NoError(t, err)
	numbers := func(all []wire.BlueprintVersion) []string {
		return lo.Map(all, func(v wire.BlueprintVersion, _ int) string { return fmt.Sprint(v.Version, " ", v.By) })
	}
	assert.Equal(t, []string{"3 bob", "2 " + now.By}, numbers(versions))
	versions, err = b.c.ListVersions(t.Context(), "job", 2, 2)
	require.NoError(t, err)
	assert.Equal(t, []string{"1 ann"}, numbers(versions))
	require.NoError(t, b.c.DeleteBlueprint(t.Context(), "job", 3))
	_, err = b.c.ListVersions(t.Context(), "job", 0, 2)
	require.ErrorIs(t, err, durable.ErrNotFound)
}

// The API has the version in ETag and If-Match, and checks changes without storing or recording them.
func TestVersionsOfTheAPI(t *testing.T) {
	b := newBench(t)
	s := b.serve()
	token, _ := b.newToken("ann", wire.Admin, 0)
	send := func(method, path, match, body string) (status int, tag, text string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		if match != "" {
			r.Header.Set("If-Match", match)
		}
		out, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer out.Body.Close()
		all, err := io.ReadAll(out.Body)
		require.NoError(t, err)
		return out.StatusCode, out.Header.Get("ETag"), string(all)
	}
	before := len(b.audit(""))
	for _, one := range []struct {
		method, path, match, body string
		status                    int
		tag, want                 string
		records                   int
	}{
		{"POST", "/blueprints?dry_run=true", "", `{"name": "job", "type": "procedural"}`, 200, "", `"name":"job"`, 0},
		{"POST", "/blueprints?dry_run=true", "", `{"name": "job", "type": "x", "colour": "red"}`, 422, "", `body.colour`, 0},
		{"GET", "/blueprints/job", "", "", 404, "", "", 0},
		{"POST", "/blueprints", "", `{"name": "job", "type": "procedural"}`, 201, `"1"`, `"version":1`, 1},
		{"POST", "/blueprints?dry_run=true", "", `{"name": "job", "type": "procedural"}`, 409, "", `version 1 was saved by`, 0},
		{"POST", "/blueprints?dry_run=true&with=job", "", `{"name": "job", "type": "procedural"}`, 200, "", "", 0},
		{"PATCH", "/blueprints/job?dry_run=true", `"1"`, `{"description": "d"}`, 200, "", `"description":"d"`, 0},
		{"PATCH", "/blueprints/job?dry_run=true", "", `{"description": 1}`, 422, "", "body.description", 0},
		{"PATCH", "/blueprints/job?dry_run=true", `"7"`, `{"description": "d"}`, 412, "", "", 0},
		{"GET", "/blueprints/job", "", "", 200, `"1"`, `"version":1`, 0},
		{"PATCH", "/blueprints/job", `"1"`, `{"description": "d"}`, 200, `"2"`, `"version":2`, 1},
		{"PATCH", "/blueprints/job", `W/"1"`, `{"description": "d"}`, 200, `"2"`, `"version":2`, 1}, // repeated
		{"PATCH", "/blueprints/job", `"1"`, `{"description": "e"}`, 412, "", `version 2 was saved by \"ann\" at `, 1},
		{"PATCH", "/blueprints/job", `x`, `{"description": "e"}`, 422, "", `header.If-Match`, 1},
		{"PATCH", "/blueprints/job", `*`, `{"description": "e"}`, 200, `"3"`, "", 1},
		{"GET", "/blueprints/job?version=2", "", "", 200, `"2"`, `"description":"d"`, 0},
		{"GET", "/blueprints/job/versions?limit=2", "", "", 200, "", `{"versions":[{"version":3,`, 0},
		{"GET", "/blueprints/job/versions?before=2", "", "", 200, "", `{"versions":[{"version":1,`, 0},
		{"GET", "/blueprints/nothing/versions", "", "", 404, "", "", 0},
		{"DELETE", "/blueprints/job", `"2"`, "", 412, "", `version 3 was saved by`, 1},
		{"DELETE", "/blueprints/job", `"3"`, "", 204, "", "", 1},
		{"PATCH", "/blueprints/job", `"3"`, `{"description": "d"}`, 404, "", "", 1},
	} {
		status, tag, text := send(one.method, one.path, one.match, one.body)
		about := one.method + " " + one.path + " " + one.match
		assert.Equal(t, one.status, status, "%s: %s", about, text)
		assert.Equal(t, one.tag, tag, about)
		assert.Contains(t, text, one.want, about)
		assert.Len(t, b.audit(""), before+one.records, about)
		before += one.records
	}
	admin := b.client(s, wire.Admin)
	b.create(`{"name": "job", "type": "procedural"}`)
	now, err := admin.Blueprint(t.Context(), "job", 0)
	require.NoError(t, err)
	_, err = admin.UpdateBlueprint(t.Context(), "job", json.RawMessage(`{"description": "d"}`), now.Version-1)
	require.ErrorIs(t, err, durable.ErrConflict)
	require.ErrorContains(t, err, now.Updated.UTC().Format(time.RFC3339))
	versions, err := admin.BlueprintVersions(t.Context(), "job", 0, 1)
	require.NoError(t, err)
	assert.Equal(t, []wire.BlueprintVersion{{Version: now.Version, Updated: now.Updated, By: now.By}}, versions)
	require.ErrorIs(t, admin.DeleteBlueprint(t.Context(), "job", now.Version-1), durable.ErrConflict)
	require.NoError(t, admin.DeleteBlueprint(t.Context(), "job", now.Version))
}
