package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/user"
	"strings"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// runs is the common part of all commands about stored runs.
type runs struct {
	std streams
	at  string // the flag --store
}

func newRuns(std streams) *cobra.Command {
	r := &runs{std: std}
	c := &cobra.Command{
		Use:   "runs",
		Short: "Submit, execute, list, answer, resume and remove stored runs",
		Long: `Runs of "grapnel run --durable" are kept in a store. These commands show their
status, answer their questions, and resume them: in this process, with the agent
that they began with, in the folder that they began in. "grapnel runs submit" stores
runs of agents and commands that a worker executes: "grapnel runs work".

A run's ID may be shortened to any unique prefix.

` + exitHelp,
		Example: `  grapnel runs list --status waiting
  grapnel runs show run_7GHK2MWQ
  grapnel runs approve run_7GHK2MWQ 5f0c8e31ab97
  grapnel runs resume --all
  grapnel runs submit agent fixer "Fix the build"
  grapnel runs work fixer.yaml`,
		Args: unknownCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.SuggestionsMinimumDistance = 2
	registerStore(c, &r.at)
	registerServer(c, &r.at)
	c.AddCommand(
		r.newSubmit(), r.newWork(), r.newList(), r.newShow(), r.newCheck(), r.newWatch(), r.newResume(), r.newApprove(), r.newReject(),
		r.newPause(), r.newTell(), r.newCancel(), r.newExport(), r.newDelete(), r.newPrune(), r.newDenyTools(), r.newSchema(),
	)
	return c
}

// with opens the store and calls do.
func (r *runs) with(ctx context.Context, create bool, do func(k *openedStore) error) (err error) {
	k, err := openStore(ctx, r.at, create)
	if err != nil {
		return err
	}
	defer func() { err = explainError(errors.Join(err, k.close())) }()
	return do(k)
}

// checkKey returns an error when the data of a run cannot be read with the configured keys, so that the executing
// process could not read what this one writes, either.
func (k *openedStore) checkKey(ctx context.Context, about durable.Run) error {
	_, input := k.store.Input(ctx, about.ID)
	_, last := k.store.Entries(ctx, about.ID, max(about.Entries-1, 0))
	return errors.Join(input, last)
}

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

const needsRun = `needs the ID of one run: "grapnel runs list" lists them`

var oneRun = takes(1, 1, needsRun)

// userName returns the default name for answers.
func userName() string {
	if u, err := user.Current(); err == nil {
		return cmp.Or(u.Username, "unknown")
	}
	return "unknown"
}

// identityName returns the verified name of the user: that of the operating system; empty when it is unknown.
func identityName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

// writeJSON writes a value as indented JSON.
func writeJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}
