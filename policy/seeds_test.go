package policy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/policy"
)

// Every example of the documents that hooks in files come from: what it is loaded as, a
// line for each rule, or what it is refused with.
var seeds = map[string][]string{
	"pipeline-00-template.yaml": {"!2:3: a key must be a word"}, // of the form, not an example
	"pipeline-01-shell.yaml": {
		"IterationComplete shell, not awaited, open", "IterationComplete shell, awaited, abort",
	},
	"pipeline-02-webhook.yaml": {
		"StageComplete webhook, awaited, abort, when ${STAGE} == 'plan'", "SessionComplete webhook, not awaited, open",
	},
	"pipeline-03-spawn.yaml": {
		"IterationComplete spawn, awaited, open, when ${ITERATION} % 10 == 0", "IterationComplete spawn, awaited, open",
	},
	"pipeline-04-conditions.yaml": {
		"IterationComplete shell, not awaited, open, when ${ITERATION} == 1",
		"IterationComplete spawn, awaited, open, when ${ITERATION} % 10 == 0",
		"IterationComplete webhook, not awaited, open, when ${STAGE} == 'work' && ${ITERATION} > 5",
	},
	"pipeline-05-per-stage.yaml":       {"IterationComplete shell, not awaited, open"},
	"pipeline-06-per-pipeline.yaml":    {"StageComplete webhook, awaited, abort, when ${STAGE} == 'plan'"},
	"pipeline-07-global.yaml":          {"IterationFailed webhook, not awaited, open", "SessionComplete webhook, not awaited, open"},
	"pipeline-08-disable-global.yaml":  {},
	"pipeline-09-notification.yaml":    {"SessionComplete webhook, not awaited, open"},
	"pipeline-10-approval.yaml":        {"StageComplete webhook, awaited, abort, when ${STAGE} == 'plan'"},
	"pipeline-11-periodic-review.yaml": {"IterationComplete spawn, awaited, open, when ${ITERATION} % 10 == 0"},
	"pipeline-12-quality-gate.yaml": {
		"IterationComplete shell, awaited, open", "IterationComplete webhook, awaited, abort, when ${LAST_HOOK_STATUS} == 'failed'",
	},
	"pipeline-13-backup-metrics.yaml": {
		"IterationComplete shell, not awaited, open", "IterationComplete shell, not awaited, open",
		"IterationComplete webhook, not awaited, open",
	},
	"pipeline-14-review-before-deploy.yaml": {"StageComplete spawn, awaited, open, when ${NEXT_STAGE} == 'deploy'"},

	"blueprint-00-agent-start.json":  {"RunStart agent, awaited, closed"},
	"blueprint-01-both.json":         {"RunStart agent, awaited, closed", "RunFinish agent, awaited, open"},
	"blueprint-02-schema.json":       {"!6:27: this is not JSON"},        // of the form, not an example
	"blueprint-03-chaining.json":     {"RunFinish agent, awaited, open"}, // block: the run is over, nothing is left to block
	"blueprint-04-enrichment.json":   {"RunStart agent, awaited, closed"},
	"blueprint-05-validation.json":   {"RunStart agent, awaited, closed"},
	"blueprint-06-audit.json":        {"RunFinish agent, awaited, open"},
	"blueprint-07-http.json":         {"RunStart http, awaited, open"},
	"blueprint-08-named.json":        {"RunFinish http, awaited, open"}, // the name is repeated
	"blueprint-09-named-by-key.json": {"RunFinish http, awaited, open"},
	"blueprint-10-async.json":        {"RunFinish http, not awaited, open"},
}

func TestSeeds(t *testing.T) {
	files, err := os.ReadDir("testdata/seeds")
	require.NoError(t, err)
	assert.ElementsMatch(t, lo.Keys(seeds), lo.Map(files, func(f os.DirEntry, _ int) string { return f.Name() }))
	for name, want := range seeds {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata", "seeds", name)
			kind := lo.Ternary(strings.HasPrefix(name, "pipeline"), policy.Pipelines, policy.Blueprints)
			p, err := policy.Load([]policy.Layer{{Name: "pipeline", Files: []string{path}, Kind: kind}}, policy.Options{})
			if len(want) == 1 && strings.HasPrefix(want[0], "!") {
				require.Error(t, err)
				assert.Contains(t, err.Error(), path+":"+want[0][1:])
				return
			}
			require.NoError(t, err)
			assert.Equal(t, want, lo.Map(p.Rules(), func(r policy.Rule, _ int) string {
				line := string(r.Point) + " " + r.Action + lo.Ternary(r.Await, ", awaited, ", ", not awaited, ") + r.Failure
				return line + lo.Ternary(r.When == "", "", ", when "+r.When)
			}))
		})
	}
}
