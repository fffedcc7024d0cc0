package web

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
)

const (
	partRunners = "Runners"
	runnersPath = prefix + "runners"
	// silentAfter is when a runner is late with its sign of life: the longest wait for work is a minute.
	silentAfter = 70 * time.Second
	// heldShown is how many of its runs a runner is listed with, and queuesShown how many queues a page lists.
	heldShown, queuesShown = 20, 200
)

// showRunners serves who is connected, what they run, and the queues.
func (h *Handler) showRunners(w http.ResponseWriter, r *http.Request, v *view) {
	all, err := h.o.Coordinator.ListRunners(r.Context())
	if err != nil {
		h.fail(w, r, v, "listing runners", err)
		return
	}
	queues, err := h.o.Coordinator.ListQueues(r.Context())
	if err != nil {
		h.fail(w, r, v, "listing queues", err)
		return
	}
	v.title, v.part = "Runners", partRunners
	v.Put("<h1>Runners</h1>\n")
	v.putUnserved(queues)
	v.Put("<section><h2>Connected</h2>\n")
	v.PutIf(len(all) == 0, `<p>No runner was connected in the last ten minutes:
<code>grapnel serve</code> is one, and <code>grapnel runner</code> elsewhere.</p>
`)
	v.Put("<ul>\n")
	for _, one := range all {
		v.putRunner(one)
	}
	v.Put("</ul></section>\n")
	v.putQueues(queues)
	reply(w, http.StatusOK, v.render())
}

// putRunner shows a runner.
func (v *view) putRunner(r wire.Runner) {
	v.Put("<li class=\"card\"><div class=\"title\"><h3>%s</h3>", cutText(r.Name, lineLen))
	switch {
	case v.now.Sub(r.LastSeen) > silentAfter:
		v.Put("<span class=\"status s-failed\"><i></i>silent</span>")
	case r.Draining:
		v.Put("<span class=\"status s-waiting\"><i></i>draining</span>")
	default:
		v.Put("<span class=\"status s-completed\"><i></i>connected</span>")
	}
	capacity := ""
	if r.Capacity > 0 {
		capacity = " of " + countOf(r.Capacity, "run")
	}
	v.Put("</div>\n<dl class=\"facts\"><div><dt>Executes</dt><dd>%s%s</dd></div><div><dt>Last seen</dt><dd>%s</dd></div>",
		len(r.Runs), lo.CoalesceOrEmpty(capacity, " runs"), formatWhen(r.LastSeen, v.now))
	kinds := strings.Join(lo.Map(r.Kinds, func(k durable.Kind, _ int) string { return string(k) }), ", ")
	v.PutIf(kinds != "", "<div><dt>Kinds</dt><dd>%s</dd></div>", cutText(kinds, lineLen))
	v.PutIf(len(r.Labels) > 0, "<div><dt>Labels</dt><dd>%s</dd></div>", cutText(labelsOf(r.Labels), lineLen))
	v.PutIf(r.Version != "", "<div><dt>Version</dt><dd>%s</dd></div>", cutText(r.Version, lineLen))
	v.Put("</dl>\n")
	if len(r.Runs) > 0 {
		v.Put("<ul class=\"buttons\">\n")
		for _, run := range r.Runs[:min(len(r.Runs), heldShown)] {
			v.Put("<li><a class=\"button\" href=\"%s\">%s&nbsp;<code>%s</code></a></li>\n",
				runPath(run.RunID), cutText(run.AgentName, lineLen), shortID(run.RunID))
		}
		v.Put("</ul>\n")
		v.PutIf(len(r.Runs) > heldShown, "<p class=\"dim\">and %s more</p>\n", len(r.Runs)-heldShown)
	}
	v.Put("</li>\n")
}

// putUnserved warns of queues with ready runs that no runner looks for.
func (v *view) putUnserved(queues []wire.Queue) {
	unserved := lo.Filter(queues, func(q wire.Queue, _ int) bool { return q.Backlog > 0 && !q.Served })
	if len(unserved) == 0 {
		return
	}
	v.Put("<section class=\"verdict failed\"><div><h2>No runner serves %s</h2><ul>\n", countOf(len(unserved), "queue"))
	for _, q := range unserved[:min(len(unserved), queuesShown)] {
		v.Put("<li>%s: %s, the first became ready %s</li>\n", needsText(q.Needs), countOf(q.Backlog, "run"), formatWhen(q.Oldest, v.now))
	}
	v.Put("</ul></div></section>\n")
}

// needsText says what a queue needs of a runner.
func needsText(n durable.Needs) string {
	demands := maps.Clone(n.Demands)
	maps.DeleteFunc(demands, func(name, _ string) bool { return name == "coordinator.runner" })
	text := strings.TrimSpace(string(n.Kind) + " " + n.Name)
	if len(demands) > 0 {
		text += " with " + labelsOf(demands)
	}
	return cutText(text, reasonLen)
}

// putQueues shows the queues, those with the most ready runs first.
func (v *view) putQueues(queues []wire.Queue) {
	queues = slices.SortedStableFunc(slices.Values(queues), func(a, b wire.Queue) int { return b.Backlog - a.Backlog })
	v.Put("<section><h2>Queues</h2>\n")
	v.PutIf(len(queues) == 0, "<p class=\"dim\">No run is pending or active.</p>\n")
	v.Put("<ul class=\"rows\">\n")
	for _, q := range queues[:min(len(queues), queuesShown)] {
		v.Put("<li class=\"queue\"><span>%s</span><span>%s ready</span><span>", needsText(q.Needs), q.Backlog)
		v.PutIf(q.Backlog > 0, "first %s", formatWhen(q.Oldest, v.now))
		switch {
		case q.Served:
			v.Put("</span><span class=\"dim\">served</span></li>\n")
		case q.Backlog > 0:
			v.Put("</span><span class=\"failed\">not served</span></li>\n")
		default:
			v.Put("</span><span class=\"dim\">no runner looks</span></li>\n")
		}
	}
	v.Put("</ul></section>\n")
}
