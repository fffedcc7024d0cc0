package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// page is the number of runs that are read at a time.
const page = 1000

// mostCandidates is the maximum number of runs with the same prefix in an error.
const mostCandidates = 10

// find returns the run with an id, or with a prefix of it.
func (k *openedStore) find(ctx context.Context, id string) (durable.Run, error) {
	about, err := k.store.Run(ctx, agent.RunID(id))
	if !errors.Is(err, durable.ErrNotFound) {
		return about, err
	}
	var found []durable.Run
	for f := (durable.Filter{Limit: page}); ; {
		list, err := k.store.List(ctx, f)
		if err != nil {
			return about, err
		}
		for _, candidate := range list {
			if name := string(candidate.ID); strings.HasPrefix(name, id) || strings.HasPrefix(name, "run_"+strings.ToUpper(id)) {
				found = append(found, candidate)
			}
		}
		if len(list) < page {
			break
		}
		f.Before = list[len(list)-1].ID
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0:
		return about, &usageError{fmt.Errorf(`no run %q in %s: "grapnel runs list%s" lists them`, id, k.address, k.address.flag())}
	}
	lines := lo.Map(found[:min(len(found), mostCandidates)], func(r durable.Run, _ int) string {
		return fmt.Sprintf("  %s  %s  %s", r.ID, r.Status, r.Created.UTC().Format("2006-01-02 15:04"))
	})
	if more := len(found) - mostCandidates; more > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", more))
	}
	return about, &usageError{fmt.Errorf("%q is a prefix of %d runs:\n%s", id, len(found), strings.Join(lines, "\n"))}
}

// checkKey returns an error when the data of a run cannot be read with the configured keys, so that the executing
// process could not read what this one writes, either.
func (k *openedStore) checkKey(ctx context.Context, about durable.Run) error {
	_, input := k.store.Input(ctx, about.ID)
	_, last := k.store.Entries(ctx, about.ID, max(about.Entries-1, 0))
	return errors.Join(input, last)
}
