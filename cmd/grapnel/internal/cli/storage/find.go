package storage

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/durable"
)

// Page is the number of runs that are read at a time.
const Page = 1000

// Runs returns all runs of a filter, the newest first.
func (k *Store) Runs(ctx context.Context, f durable.Filter) iter.Seq2[durable.Run, error] {
	f.Limit = Page
	return func(yield func(durable.Run, error) bool) {
		for {
			list, err := k.Store.List(ctx, f)
			if err != nil {
				yield(durable.Run{}, err)
				return
			}
			for _, about := range list {
				if !yield(about, nil) {
					return
				}
			}
			if len(list) < Page {
				return
			}
			f.Before = list[len(list)-1].ID
		}
	}
}

// Events returns the events that a run has so far.
func (k *Store) Events(ctx context.Context, run agent.RunID) iter.Seq2[durable.Event, error] {
	return func(yield func(durable.Event, error) bool) {
		for after := int64(0); ; {
			list, err := k.Store.Events(ctx, run, after, Page)
			if err != nil {
				yield(durable.Event{}, err)
				return
			}
			for _, e := range list {
				if after = e.Seq; !yield(e, nil) {
					return
				}
			}
			if len(list) == 0 {
				return
			}
		}
	}
}

// mostCandidates is the maximum number of runs with the same prefix in an error.
const mostCandidates = 10

// Find returns the run with an id, or with a prefix of it.
func (k *Store) Find(ctx context.Context, id string) (durable.Run, error) {
	about, err := k.Store.Run(ctx, agent.RunID(id))
	if !errors.Is(err, durable.ErrNotFound) {
		return about, err
	}
	var found []durable.Run
	for candidate, err := range k.Runs(ctx, durable.Filter{}) {
		if err != nil {
			return about, err
		}
		if name := string(candidate.ID); strings.HasPrefix(name, id) || strings.HasPrefix(name, "run_"+strings.ToUpper(id)) {
			found = append(found, candidate)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0:
		return about, console.Usagef(`no run %q in %s: "grapnel runs list%s" lists them`, id, k.Address, k.Address.Flag())
	}
	lines := lo.Map(found[:min(len(found), mostCandidates)], func(r durable.Run, _ int) string {
		return fmt.Sprintf("  %s  %s  %s", r.ID, r.Status, r.Created.UTC().Format("2006-01-02 15:04"))
	})
	if more := len(found) - mostCandidates; more > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", more))
	}
	return about, console.Usagef("%q is a prefix of %d runs:\n%s", id, len(found), strings.Join(lines, "\n"))
}

// CheckKey returns an error when the data of a run cannot be read with the configured keys, so that the executing
// process could not read what this one writes, either.
func (k *Store) CheckKey(ctx context.Context, about durable.Run) error {
	_, input := k.Store.Input(ctx, about.ID)
	_, last := k.Store.Entries(ctx, about.ID, max(about.Entries-1, 0))
	return errors.Join(input, last)
}
