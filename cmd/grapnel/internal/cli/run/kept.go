package run

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
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/agents"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
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
	c.Flags().Lookup("durable").NoOptDefVal = storage.UsualStore
	c.Flags().StringVar(&f.store, "store", "", "the same as --durable=STORE")
	c.Flags().BoolVar(&f.noWait, "no-wait", false, "with --durable: park the run when a person is asked, even at a terminal")
}

// resolve reports whether the flags ask for a durable run, and sets its store.
func (f *keptFlags) resolve(c *cobra.Command) (bool, error) {
	durable, store := c.Flags().Changed("durable"), c.Flags().Changed("store")
	switch {
	case durable && !store && f.at == storage.UsualStore:
		for _, arg := range c.Flags().Args() {
			if isStoreName(arg) {
				return false, fmt.Errorf("prompt word %q is the name of a store: --durable takes its file with \"=\": --durable=%s", arg, arg)
			}
		}
	case !durable && !store && f.noWait:
		return false, errors.New("--no-wait requires --durable")
	case durable && store && f.at != storage.UsualStore && f.at != f.store:
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
func runKept(ctx context.Context, f keptFlags, o *agents.Options, given *cobra.Command, file *registry.File, prompt string, v *agents.View) (err error) {
	model, explicit, err := agents.Choose(file.Definition)
	if errors.Is(err, agents.ErrNoKey) {
		err = console.Usagef("--durable requires a model: %w", err)
	}
	if err != nil {
		return err
	}
	file.Model = model.String()
	definition, err := agents.DefinitionOf(o, given, model)
	if err != nil {
		return err
	}
	k, err := storage.Open(ctx, f.at, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.Close()) }()
	if err := k.RequireDirect(); err != nil {
		return err
	}
	k.Waits = f.noWait
	in := agents.NewInput(v.Std)
	ctx, release := k.Suspendable(ctx, v, in.Restore)
	defer release()
	m, err := agents.Build(ctx, file, agents.Watchers{
		Observer: v.Observer(), Approver: k.Approver(in, v), Keeper: k.Keeper, Rules: o.Rules,
		Parks: k.Parks(in), Waivers: k.Direct, Note: v.Note,
	})
	if err != nil {
		return console.InterruptedOr(ctx, err)
	}
	if prompt == "" && m.Recording == nil {
		return errors.Join(errNoPrompt, m.Close())
	}
	if !explicit {
		m.Notes = append(m.Notes, fmt.Sprintf("No model was named: using %s.", &model))
	}
	id := agent.NewRunID()
	m.Notes = append(m.Notes, fmt.Sprintf("This run is stored as %s in %s%s.", id, k.Address, k.Address.Encrypts()))
	k.Running.Store(true)
	final, err := m.Turn(ctx, v, prompt, agent.RunSettings{ID: id}, func(s agent.State) agent.State { return agents.DefinitionKey.In(s, definition) })
	return k.Finish(ctx, m, v, final, err)
}
