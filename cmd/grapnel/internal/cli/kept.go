package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/registry"
)

// keptFlags are the flags of a durable run.
type keptFlags struct {
	at     string
	store  string
	noWait bool
}

func (f *keptFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.at, "durable", "", "store the run in this `STORE` while it runs: a SQLite file, sqlite:FILE or a postgres:// URL")
	c.Flags().Lookup("durable").NoOptDefVal = usualStore
	c.Flags().StringVar(&f.store, "store", "", "the same as --durable=STORE")
	c.Flags().BoolVar(&f.noWait, "no-wait", false, "with --durable: park the run when a person is asked, even at a terminal")
}

// resolve reports whether the flags ask for a durable run, and sets its store.
func (f *keptFlags) resolve(c *cobra.Command) (bool, error) {
	durable, store := c.Flags().Changed("durable"), c.Flags().Changed("store")
	switch {
	case durable && !store && f.at == usualStore:
		for _, arg := range c.Flags().Args() {
			if isStoreName(arg) {
				return false, fmt.Errorf("prompt word %q is the name of a store: --durable takes its file with \"=\": --durable=%s", arg, arg)
			}
		}
	case !durable && !store && f.noWait:
		return false, errors.New("--no-wait requires --durable")
	case durable && store && f.at != usualStore && f.at != f.store:
		return false, fmt.Errorf("--durable=%s and --store=%s name two stores: use one of them", f.at, f.store)
	case store:
		f.at = f.store
	}
	return durable || store, nil
}

// isStoreName reports whether a word of a prompt names a store: such a word is meant as the value of --durable.
func isStoreName(word string) bool {
	if strings.ContainsAny(word, " \t\n") {
		return false
	}
	for _, prefix := range []string{"sqlite:", "postgres://", "postgresql://"} {
		if strings.HasPrefix(word, prefix) {
			return true
		}
	}
	return slices.Contains([]string{".db", ".sqlite", ".sqlite3"}, filepath.Ext(word)) || isSQLiteFile(word)
}

// isSQLiteFile reports whether a file begins like a SQLite database.
func isSQLiteFile(path string) bool {
	const magic = "SQLite format 3\x00"
	about, err := os.Stat(path)
	if err != nil || !about.Mode().IsRegular() { // opening another kind of file could block
		return false
	}
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	head := make([]byte, len(magic))
	_, err = io.ReadFull(file, head)
	return err == nil && string(head) == magic
}

// runKept runs the agent once and records the run.
func runKept(ctx context.Context, f keptFlags, o *options, given *cobra.Command, file *registry.File, prompt string, v *view) (err error) {
	model, explicit, err := choose(file.Definition)
	if errors.Is(err, errNoKey) {
		err = &usageError{fmt.Errorf("--durable requires a model: %w", err)}
	}
	if err != nil {
		return err
	}
	file.Model = model.String()
	definition, err := definitionOf(o, given, model)
	if err != nil {
		return err
	}
	k, err := openStore(ctx, f.at, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.close()) }()
	k.waits = f.noWait
	in := newInput(v.std)
	ctx, release := k.suspendable(ctx, v, in.restore)
	defer release()
	m, err := build(ctx, file, watchers{v.observer(), k.approver(in, v), k.keeper, tracesRuns(ctx), o.rules, k.parks(in), k.direct, nil, nil, "", false})
	if err != nil {
		return interruptedOr(ctx, err)
	}
	if prompt == "" && m.recording == nil {
		return errors.Join(errNoPrompt, m.close())
	}
	if !explicit {
		m.notes = append(m.notes, fmt.Sprintf("No model was named: using %s.", &model))
	}
	id := agent.NewRunID()
	m.notes = append(m.notes, fmt.Sprintf("This run is stored as %s in %s%s.", id, k.address, k.address.encrypts()))
	k.running.Store(true)
	final, err := m.turn(ctx, v, prompt, agent.RunSettings{ID: id}, func(s agent.State) agent.State { return definitionKey.In(s, definition) })
	return k.finish(ctx, m, v, final, err)
}
