package telemetry_test

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.yaml.in/yaml/v4"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
)

// series is what was measured as Prometheus keeps it: by the name of a series, its
// labels with the values that they had.
type series map[string]map[string][]string

// add takes in a metric, under the names that Prometheus makes of it: points are
// underscores, the unit is behind the name unless it is one in braces, and so are
// _total of a counter, and _bucket, _sum and _count of a histogram.
func (s series) add(m metricdata.Metrics) {
	name := strings.ReplaceAll(m.Name, ".", "_")
	if m.Unit == "s" {
		name += "_seconds"
	}
	labels := func(set attribute.Set, more ...string) map[string][]string {
		out := map[string][]string{"job": nil} // service.name
		for _, kv := range set.ToSlice() {
			out[strings.ReplaceAll(string(kv.Key), ".", "_")] = []string{kv.Value.String()}
		}
		for _, l := range more {
			out[l] = nil
		}
		return out
	}
	put := func(name string, labels map[string][]string) {
		if s[name] == nil {
			s[name] = map[string][]string{}
		}
		for label, values := range labels {
			s[name][label] = append(s[name][label], values...)
		}
	}
	histogram := func(set attribute.Set) {
		put(name+"_bucket", labels(set, "le"))
		put(name+"_sum", labels(set))
		put(name+"_count", labels(set))
	}
	switch d := m.Data.(type) {
	case metricdata.Histogram[float64]:
		lo.ForEach(d.DataPoints, func(p metricdata.HistogramDataPoint[float64], _ int) { histogram(p.Attributes) })
	case metricdata.Histogram[int64]:
		lo.ForEach(d.DataPoints, func(p metricdata.HistogramDataPoint[int64], _ int) { histogram(p.Attributes) })
	case metricdata.Gauge[float64]:
		lo.ForEach(d.DataPoints, func(p metricdata.DataPoint[float64], _ int) { put(name, labels(p.Attributes)) })
	case metricdata.Gauge[int64]:
		lo.ForEach(d.DataPoints, func(p metricdata.DataPoint[int64], _ int) { put(name, labels(p.Attributes)) })
	case metricdata.Sum[int64]:
		lo.ForEach(d.DataPoints, func(p metricdata.DataPoint[int64], _ int) { put(name+"_total", labels(p.Attributes)) })
	}
}

// everythingMeasured returns the measurements that agents make in a day.
func everythingMeasured(t *testing.T) series {
	t.Helper()
	s := newSink(t)
	runEventful(t, s.use())
	denies := func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Deny("no") }
	broken := func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Fail(errors.New("broken")) }
	ann := agent.ApproverFunc(func(context.Context, agent.State, *agent.Prepared) (agent.Approval, error) {
		return agent.Approval{Verdict: agent.Approve, By: "ann"}, nil
	})
	a := build(t, agenttest.Script(agenttest.Call("a", `{}`), agenttest.Say("hi")), s.use(), capability.UseTools(says("a", "a", nil)),
		capability.UseApproval(ann), capability.UseHooks(
			hooks.On(hooks.AtPreToolUse, "tried", denies).InShadow(),
			hooks.On(hooks.AtPreToolUse, "open", broken).WithFailure(hooks.Open),
			hooks.Observe(hooks.AtPreToolUse, "looks", func(context.Context, hooks.ToolContext) error { return errors.New("broken") }).Detach(),
			hooks.On(hooks.AtPreToolUse, "asks", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Ask("sure?") }),
			hooks.On(hooks.AtPostToolUse, "keeps", func(_ context.Context, c hooks.ToolResultContext) hooks.Result { return c.Withhold("no") })))
	run(t, a)
	require.NoError(t, a.Drain(t.Context()))
	slow := builder.New().WithName("helper").WithDriver(slowly{}).With(s.use()).Build().MustGet()
	for _, err := range slow.Stream(t.Context(), agent.NewState(), agent.UserText("go")) {
		require.NoError(t, err)
	}
	require.Error(t, build(t, agenttest.Script(agenttest.Fail(context.DeadlineExceeded)), s.use()).
		Run(t.Context(), agent.NewState(), agent.UserText("go")).Error())
	var all metricdata.ResourceMetrics
	require.NoError(t, s.reader.Collect(t.Context(), &all))
	out := series{}
	for _, scope := range all.ScopeMetrics {
		lo.ForEach(scope.Metrics, func(m metricdata.Metrics, _ int) { out.add(m) })
	}
	return out
}

// expressions returns every PromQL expression of dashboard, alerts and page, by where it
// stands, and the labels that are shown of what it gives.
func expressions(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	shown := regexp.MustCompile(`\{\{ ?(?:\$labels\.)?([a-z_]+) ?\}\}`)
	of := func(text string) []string {
		return lo.Map(shown.FindAllStringSubmatch(text, -1), func(m []string, _ int) string { return m[1] })
	}
	var dashboard struct {
		Panels []struct {
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(doc(t, "observability/dashboard.json")), &dashboard))
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			out[target.Expr] = of(target.LegendFormat)
		}
	}
	var alerts struct {
		Groups []struct {
			Rules []struct {
				Expr        string
				Annotations map[string]string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(doc(t, "observability/alerts.yaml")), &alerts))
	for _, r := range alerts.Groups[0].Rules {
		out[r.Expr] = of(r.Annotations["summary"])
	}
	page := doc(t, "observability.md")
	_, page, _ = strings.Cut(page, "PromQL, with the names")
	_, page, _ = strings.Cut(page, "```\n")
	page, _, _ = strings.Cut(page, "```")
	for block := range strings.SplitSeq(page, "# ") {
		if _, expr, ok := strings.Cut(block, "\n"); ok {
			out[expr] = nil
		}
	}
	return out
}

// Dashboards, alerts and queries ask for series that are measured, by labels that these
// have, and for values that occur.
func TestQueriesFindSomething(t *testing.T) {
	var measured series
	synctest.Test(t, func(t *testing.T) { measured = everythingMeasured(t) })
	measured.addWorker(t)
	queries := expressions(t)
	require.Greater(t, len(queries), 25)
	selector := regexp.MustCompile(`\b((?:gen_ai|grapnel)_[a-z_]+)(?:\{([^}]*)\})?[\[\s)]`)
	matcher := regexp.MustCompile(`([a-z_]+)(=~|!~|!=|=)"([^"]*)"`)
	by := regexp.MustCompile(`\bby ?\(([^)]*)\)`)
	for query, shown := range queries {
		known := []string{}
		plain := by.ReplaceAllString(query, "by ") // what stands there are labels
		found := selector.FindAllStringSubmatch(plain, -1)
		assert.NotEmpty(t, found, query)
		for _, m := range found {
			labels, there := measured[m[1]]
			if !assert.True(t, there, "there is no series %s: %s", m[1], query) {
				continue
			}
			known = append(known, lo.Keys(labels)...)
			for _, want := range matcher.FindAllStringSubmatch(m[2], -1) {
				label, op, value := want[1], want[2], want[3]
				values, there := labels[label]
				assert.True(t, there, "%s has no label %s: %s", m[1], label, query)
				if op == "=" || op == "=~" && value != "$service" {
					is := regexp.MustCompile("^(?:" + value + ")$")
					assert.True(t, slices.ContainsFunc(values, is.MatchString), "%s of %s is never %s: %s", label, m[1], value, query)
				}
			}
		}
		grouped := []string{}
		for _, m := range by.FindAllStringSubmatch(query, -1) {
			for label := range strings.SplitSeq(m[1], ",") {
				grouped = append(grouped, strings.TrimSpace(label))
			}
		}
		assert.Subset(t, known, grouped, query)
		assert.Subset(t, grouped, shown, "what is shown of %s", query)
	}
}

// A hook in shadow denies nothing, one that is detached does not hold up the run, and an
// observer guards nothing: metrics tell them apart, and alerts look at that.
func TestAlertsKnowWhatCounts(t *testing.T) {
	s := newSink(t)
	fails := func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Fail(errors.New("broken")) }
	a := build(t, agenttest.Script(agenttest.Call("a", `{}`), agenttest.Say("hi")), s.use(), capability.UseTools(says("a", "a", nil)),
		capability.UseHooks(
			hooks.On(hooks.AtPreToolUse, "tried", fails).InShadow(),
			hooks.On(hooks.AtPreToolUse, "open", fails).WithFailure(hooks.Open),
			hooks.Observe(hooks.AtPreToolUse, "looks", func(context.Context, hooks.ToolContext) error { return errors.New("broken") }).
				Detach().WithTimeout(time.Minute)))
	run(t, a)
	require.NoError(t, a.Drain(t.Context()))
	for _, want := range []string{
		"grapnel.hook.errors [{error}] {type=error fail_mode=open mode=shadow name=tried point=PreToolUse type=control} 1",
		"grapnel.hook.errors [{error}] {type=error fail_mode=open name=open point=PreToolUse type=control} 1",
		"grapnel.hook.errors [{error}] {type=error fail_mode=open mode=detached name=looks point=PreToolUse type=observer} 1",
		"grapnel.hook.duration [s] {mode=detached name=looks outcome=failed point=PreToolUse} 1",
	} {
		assert.Contains(t, s.metrics(t), want)
	}
	for _, name := range []string{"dashboard.json", "alerts.yaml"} {
		for line := range strings.Lines(doc(t, "observability/"+name)) {
			if strings.Contains(line, "grapnel_hook_decisions_total{") {
				assert.Contains(t, line, "grapnel_hook_mode!=", "denials in shadow are none: %s", name)
			}
		}
	}
}

// TraceQL has comments that begin with //, and attributes of spans by their own names.
func TestTraceQueries(t *testing.T) {
	page := doc(t, "observability.md")
	_, page, _ = strings.Cut(page, "TraceQL (Grafana Tempo):")
	_, page, _ = strings.Cut(page, "```\n")
	page, _, _ = strings.Cut(page, "```")
	asked := regexp.MustCompile(`\bspan\.([a-z_.]+)`).FindAllStringSubmatch(page, -1)
	require.Greater(t, len(asked), 6)
	for _, m := range asked {
		assert.Contains(t, names(t), m[1])
	}
	for line := range strings.Lines(page) {
		query, _, _ := strings.Cut(line, "//")
		assert.NotContains(t, query, "#", line)
	}
}
