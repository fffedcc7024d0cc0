package api

import (
	"context"
	"net/http"

	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/wire"
)

// addRules adds how often rules were called, and what they have decided.
func (a *api) addRules() {
	add(a, route(http.MethodGet, "/rules", "list-rules", "List rules with what they have decided, those with most hits first", wire.Viewer),
		func(ctx context.Context, in *wire.RuleFilter) (wire.RuleList, error) { return a.Rules(ctx, *in) })

	type hitsInput struct {
		Hook string `path:"hook" doc:"The name of the hook, with / as %2F."`
		wire.HitFilter
	}
	add(a, route(http.MethodGet, "/rules/{hook}/hits", "list-rule-hits", "List what a rule has decided, by run, newest first", wire.Viewer),
		func(ctx context.Context, in *hitsInput) (wire.HitList, error) {
			return a.readHits(ctx, in.Hook, in.HitFilter)
		})
}

// How many events of a run are read for its hits, and how many of these are listed.
const (
	hitEvents = 2000
	hitsOfRun = 20
)

// readHits returns what a hook has decided.
func (a *api) readHits(ctx context.Context, hook string, f wire.HitFilter) (wire.HitList, error) {
	list, err := a.HitRuns(ctx, hook, f)
	if err != nil {
		return wire.HitList{}, err
	}
	out := wire.HitList{Runs: make([]wire.RunHits, len(list.Runs)), Next: list.Next}
	for i, r := range list.Runs {
		events, err := a.eventViews(ctx, r.RunID, 0, hitEvents)
		if err != nil {
			return wire.HitList{}, err
		}
		hits, more := coordinator.HitsIn(events, r, hook, hitsOfRun)
		out.Runs[i] = wire.RunHits{Run: r, Hits: listOf(hits), More: more || len(events) == hitEvents}
	}
	return out, nil
}

// RuleHits returns what a hook has decided, by run, newest first.
func (l Local) RuleHits(ctx context.Context, hook string, f wire.HitFilter) (wire.HitList, error) {
	return (&api{Coordinator: l.Coordinator, store: l.Store()}).readHits(ctx, hook, f)
}
