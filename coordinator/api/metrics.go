package api

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
)

// mostQueues is the maximum number of queues with metrics of their own: those with the most runs that are ready.
const mostQueues = 100

// addMetrics adds metrics in the text format of Prometheus, version 0.0.4. They are of the store, and the same in all its coordinators.
func (a *api) addMetrics() {
	o := route(http.MethodGet, "/metrics", "read-metrics", "Read metrics, in the text format of Prometheus", wire.Viewer)
	read := func(ctx context.Context, _ *struct{}) (*huma.StreamResponse, error) {
		text, err := a.metrics(ctx)
		if err != nil {
			return nil, a.problem(ctx, o, err)
		}
		return &huma.StreamResponse{Body: func(h huma.Context) {
			h.SetHeader("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
			_, _ = io.WriteString(h.BodyWriter(), text)
		}}, nil
	}
	a.register(o, func(to huma.API) {
		o := o
		o.Responses = map[string]*huma.Response{"200": {Description: "Metrics", Content: map[string]*huma.MediaType{"text/plain": {}}}}
		huma.Register(to, o, read)
	})
}

// metricsText is text in the format of Prometheus under construction.
type metricsText struct{ strings.Builder }

// begin begins a metric of a type.
func (m *metricsText) begin(name, kind, help string) {
	fmt.Fprintf(m, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// put writes a sample. Labels are names and values in turn.
func (m *metricsText) put(name string, value float64, labels ...string) {
	m.WriteString(name)
	for i := 0; i < len(labels); i += 2 {
		fmt.Fprintf(m, `%s%s="%s"`, lo.Ternary(i == 0, "{", ","), labels[i], labelEscapes.Replace(labels[i+1]))
	}
	fmt.Fprintf(m, "%s %s\n", lo.Ternary(len(labels) > 0, "}", ""), strconv.FormatFloat(value, 'g', -1, 64))
}

// metrics returns the metrics.
func (a *api) metrics(ctx context.Context) (string, error) {
	counts, err := a.Counts(ctx, wire.Token{Role: wire.Viewer})
	if err != nil {
		return "", err
	}
	queues, err := a.ListQueues(ctx)
	if err != nil {
		return "", err
	}
	runners, err := a.ListRunners(ctx)
	if err != nil {
		return "", err
	}
	rules, err := a.store.RuleCounts(ctx, coordinator.SinceDays(1))
	if err != nil {
		return "", err
	}
	m := &metricsText{}
	m.begin("grapnel_runs", "gauge", "Runs that have not ended, at most 1000 of a status.")
	m.put("grapnel_runs", float64(counts.Pending), "status", string(wire.Pending))
	m.put("grapnel_runs", float64(counts.Running), "status", string(wire.Running))
	m.put("grapnel_runs", float64(counts.Waiting), "status", string(wire.Waiting))
	m.begin("grapnel_inbox_questions", "gauge", "Open questions to people, at most 100.")
	m.put("grapnel_inbox_questions", float64(counts.Inbox))
	m.begin("grapnel_inbox_oldest_seconds", "gauge", "How long the oldest question is open.")
	m.put("grapnel_inbox_oldest_seconds", float64(counts.OldestWaitS))
	m.putQueues(queues)
	m.putRunners(runners)
	m.begin("grapnel_hook_decisions_total", "counter", "Decisions of hooks since midnight in UTC.")
	sums := map[durable.Decision]int64{}
	for _, r := range rules {
		for d, n := range r.Decisions {
			sums[d] += n
		}
	}
	for _, d := range durable.Decisions {
		m.put("grapnel_hook_decisions_total", float64(sums[d]), "decision", string(d))
	}
	return m.String(), nil
}

// putQueues writes the queues with the most runs that are ready.
func (m *metricsText) putQueues(all []wire.Queue) {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b wire.Queue) int { return cmp.Compare(b.Backlog, a.Backlog) })
	all = all[:min(len(all), mostQueues)]
	labels := func(q wire.Queue) []string {
		return []string{"kind", string(q.Kind), "name", q.Name, "demands", demandsText(q.Demands)}
	}
	m.begin("grapnel_queue_ready_runs", "gauge", "Runs that are ready and that no runner has.")
	for _, q := range all {
		m.put("grapnel_queue_ready_runs", float64(q.Backlog), labels(q)...)
	}
	m.begin("grapnel_queue_oldest_seconds", "gauge", "How long the oldest of these is ready.")
	for _, q := range all {
		age := 0.0
		if !q.Oldest.IsZero() {
			age = max(0, time.Since(q.Oldest).Seconds())
		}
		m.put("grapnel_queue_oldest_seconds", age, labels(q)...)
	}
	m.begin("grapnel_queue_served", "gauge", "1 if a runner has looked for runs of the queue in the last minute.")
	for _, q := range all {
		m.put("grapnel_queue_served", lo.Ternary(q.Served, 1.0, 0), labels(q)...)
	}
}

// demandsText returns demands on one line, in the order of their names.
func demandsText(demands map[string]string) string {
	names := lo.Keys(demands)
	slices.Sort(names)
	return strings.Join(lo.Map(names, func(name string, _ int) string { return name + "=" + demands[name] }), ",")
}

// putRunners writes how many runners are connected, and how many runs they have and may have.
func (m *metricsText) putRunners(all []wire.Runner) {
	draining, capacity, runs := 0, 0, 0
	for _, r := range all {
		draining += lo.Ternary(r.Draining, 1, 0)
		capacity += r.Capacity
		runs += len(r.Runs)
	}
	m.begin("grapnel_runners", "gauge", "Runners that were connected in the last ten minutes.")
	m.put("grapnel_runners", float64(len(all)-draining), "state", "connected")
	m.put("grapnel_runners", float64(draining), "state", "draining")
	m.begin("grapnel_runner_capacity", "gauge", "How many runs these can have at once.")
	m.put("grapnel_runner_capacity", float64(capacity))
	m.begin("grapnel_runner_runs", "gauge", "How many runs they have.")
	m.put("grapnel_runner_runs", float64(runs))
}
