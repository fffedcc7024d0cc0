package coordinator_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/coordinator/wire"
)

// The metrics are text that Prometheus reads, whatever the names of blueprints, and for viewers.
func TestMetrics(t *testing.T) {
	b := newBench(t)
	s := b.serve()
	b.create(`{"name": "job", "type": "procedural", "command": {"argv": ["cat"]}}`)
	b.submit("job", `{}`)
	b.submit("job", `{}`)
	status, text := b.plain(s, wire.Viewer).send(http.MethodGet, "/metrics", "", nil)
	require.Equal(t, http.StatusOK, status)
	line := regexp.MustCompile(`^[a-z_]+(\{[a-z_]+="([^"\\\n]|\\["\\n])*"(,[a-z_]+="([^"\\\n]|\\["\\n])*")*\})? -?[0-9.e+]+$`)
	helped := map[string]bool{}
	for one := range strings.SplitSeq(strings.TrimSuffix(string(text), "\n"), "\n") {
		if rest, ok := strings.CutPrefix(one, "# TYPE "); ok {
			name, kind, _ := strings.Cut(rest, " ")
			assert.False(t, helped[name], "%s is described twice", name)
			assert.Contains(t, []string{"gauge", "counter"}, kind)
			helped[name] = true
			continue
		}
		if strings.HasPrefix(one, "# HELP ") {
			continue
		}
		assert.Regexp(t, line, one)
		name, _, _ := strings.Cut(strings.ReplaceAll(one, "{", " "), " ")
		assert.True(t, helped[name], "%s has no type", name)
	}
	for _, want := range []string{
		`grapnel_runs{status="pending"} 2`, `grapnel_inbox_questions 0`, `name="job"`, `grapnel_hook_decisions_total{decision="denied"} 0`, `grapnel_runners{state="connected"} `,
	} {
		assert.Contains(t, string(text), want)
	}
	status, _ = b.plain(s, wire.RunnerRole).send(http.MethodGet, "/metrics", "", nil)
	assert.Equal(t, http.StatusForbidden, status)
}
