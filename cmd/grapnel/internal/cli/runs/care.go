package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/agents"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/postgres"
)

func (r *runs) newCancel() *cobra.Command {
	var o approving
	var reason string
	c := &cobra.Command{
		Use:   "cancel ID",
		Short: "Cancel a run",
		Long: `Cancel a run. A process that holds it notices that within a second. A run
that no process holds is ended at once, unless --no-resume leaves that to another process.`,
		Args: oneRun,
		RunE: func(c *cobra.Command, args []string) error {
			return r.resuming(c.Context(), &o.resuming, func(ctx context.Context, k *storage.Store, v *agents.View) error {
				return cancel(ctx, k, &o, v, args[0], reason)
			})
		},
	}
	o.register(c)
	c.Flags().StringVar(&reason, "reason", "", "why, as `text`")
	return c
}

func cancel(ctx context.Context, k *storage.Store, o *approving, v *agents.View, id, reason string) error {
	about, err := k.Find(ctx, id)
	if err != nil {
		return err
	}
	if about.Status.Ended() {
		return fmt.Errorf("run %s has already ended with status %s", about.ID, about.Status)
	}
	if reason == "" {
		reason = "by " + o.By
	} else {
		reason += ", by " + o.By
	}
	if err := k.Control.Signal(ctx, about.ID, durable.Signal{Kind: durable.SignalCancel, Text: reason, By: o.By}); err != nil {
		return err
	}
	if about, err = k.Store.Run(ctx, about.ID); err != nil {
		return err
	}
	if about.Status.Ended() { // it had never started
		v.Note(storage.Short(about.ID) + " is cancelled.")
		return nil
	}
	if k.Served() {
		v.Note(storage.Short(about.ID) + " will be cancelled: the coordinator ends it.")
		return nil
	}
	if o.noResume {
		v.Note(storage.Short(about.ID) + " will be cancelled by the process that holds or resumes it.")
		return nil
	}
	err = resume(ctx, k, &o.resuming, v, about)
	if held, ok := errors.AsType[*durable.HeldError](err); ok {
		v.Note(fmt.Sprintf("%s is held by %s, which ends it within a second.", storage.Short(about.ID), held.Owner))
		return nil
	}
	if errors.Is(err, errForeign) {
		v.Note(fmt.Sprintf("%s is cancelled by the next worker that serves %s.", storage.Short(about.ID), about.Needs()))
		return nil
	}
	if ended, ok := errors.AsType[*console.ExitError](err); ok && ended.Code == console.ExitInterrupted {
		v.Note(storage.Short(about.ID) + " is cancelled.")
		return nil
	} else if err != nil && !ok {
		return fmt.Errorf("run %s will be cancelled, but could not be ended here: %w", about.ID, err)
	}
	return err
}

func (r *runs) newExport() *cobra.Command {
	var journal bool
	var keyFile string
	c := &cobra.Command{
		Use:   "export ID [FILE]",
		Short: "Write a run to a file: its state as JSON, or its journal as JSON Lines",
		Long: `Write a run to a new file that only you can read, or to standard output: its state in the
JSON form of agent.State, from which a Go program can continue it, or with --journal the
entries of its journal as JSON Lines. The exported file is not encrypted.

Anyone who can edit a plain JSON state can answer its questions and remove its guards.
With --seal-key, it is sealed with a key from a file of at least 32 random bytes: a program
that reads it with agent.Seal and the same bytes detects every change.`,
		Args: console.Takes(1, 2, needsRun),
		RunE: func(c *cobra.Command, args []string) error {
			write := func(s agent.State) ([]byte, error) { return json.Marshal(s) }
			if journal && keyFile != "" {
				return console.Usagef("--seal-key seals the state, not the journal: leave out --journal or --seal-key")
			}
			if keyFile != "" {
				seal, err := readSeal(keyFile)
				if err != nil {
					return console.Usage(err)
				}
				write = seal.Marshal
			}
			return r.WithRun(c.Context(), args[0], func(k *storage.Store, about durable.Run) error {
				if len(args) == 1 || args[1] == "-" {
					return export(c.Context(), k, r.Std.Out, about.ID, journal, write)
				}
				f, err := os.OpenFile(args[1], os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
				if err != nil {
					return console.Usagef("exporting run %s: %w", about.ID, err)
				}
				if err := errors.Join(export(c.Context(), k, f, about.ID, journal, write), f.Close()); err != nil {
					return errors.Join(err, os.Remove(args[1]))
				}
				return nil
			})
		},
	}
	c.Flags().BoolVar(&journal, "journal", false, "the journal instead of the state")
	c.Flags().StringVar(&keyFile, "seal-key", "", "seal the state with the bytes of this file as the key")
	return c
}

// readSeal returns a seal whose key is the content of a file.
func readSeal(path string) (agent.Seal, error) {
	key, err := os.ReadFile(path)
	if err != nil {
		return agent.Seal{}, fmt.Errorf("--seal-key: %w", err)
	}
	seal, err := agent.NewSeal(key)
	if err != nil {
		return agent.Seal{}, fmt.Errorf("--seal-key: %s: %w", path, err)
	}
	return seal, nil
}

func export(ctx context.Context, k *storage.Store, w io.Writer, id agent.RunID, journal bool, write func(agent.State) ([]byte, error)) error {
	if !journal {
		s, err := durable.Load(ctx, k.Store, id)
		if err != nil {
			return err
		}
		text, err := write(s)
		if err != nil {
			return fmt.Errorf("exporting run %s: %w", id, err)
		}
		if _, err := w.Write(append(text, '\n')); err != nil {
			return fmt.Errorf("exporting run %s: %w", id, err)
		}
		return nil
	}
	entries, err := k.Store.Entries(ctx, id, 0)
	if err != nil {
		return err
	}
	lines := json.NewEncoder(w)
	lines.SetEscapeHTML(false)
	for _, e := range entries {
		if err := lines.Encode(shownEntry(e)); err != nil {
			return fmt.Errorf("exporting run %s: %w", id, err)
		}
	}
	return nil
}

func (r *runs) newDelete() *cobra.Command {
	return &cobra.Command{
		Use:   "delete ID",
		Short: "Remove a run and all its data, even if it has not ended",
		Args:  oneRun,
		RunE: func(c *cobra.Command, args []string) error {
			return r.WithDirect(c.Context(), false, func(k *storage.Store) error {
				about, err := k.Find(c.Context(), args[0])
				if err != nil {
					return err
				}
				if err := k.Direct.Delete(c.Context(), about.ID); err != nil {
					return err
				}
				fmt.Fprintf(r.Std.Err, "Removed %s.\n", about.ID)
				return nil
			})
		},
	}
}

func (r *runs) newPrune() *cobra.Command {
	var older string
	c := &cobra.Command{
		Use:     "prune --older-than TIME",
		Short:   "Remove old runs that have ended",
		Long:    "Remove old runs that have ended, with all their data. A coordinator (--server) needs a token with the role admin for that.",
		Example: "  grapnel runs prune --older-than 30d",
		Args:    console.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			before, err := console.InstantOf("--older-than", older, time.Now(), -1)
			if err != nil {
				return console.Usage(err)
			}
			return r.With(c.Context(), false, func(k *storage.Store) error {
				n, err := k.Prune(c.Context(), before)
				if n > 0 || err == nil {
					fmt.Fprintf(r.Std.Err, "Runs removed: %d.\n", n)
				}
				return err
			})
		},
	}
	c.Flags().StringVar(&older, "older-than", "", "remove runs that ended longer ago than this `time`, such as 30d or 12h, or before an RFC 3339 time")
	return c
}

func (r *runs) newSchema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Write the SQL that creates the PostgreSQL schema",
		Long: `Write the SQL that creates the PostgreSQL schema. The other commands create it
automatically; use the SQL if their role may not create tables. That role needs USAGE
on the schema, and SELECT, INSERT, UPDATE and DELETE on its tables.`,
		Example: `  grapnel runs schema | psql "$OWNER_URL"`,
		Args:    console.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := io.WriteString(r.Std.Out, postgres.SchemaSQL(postgres.Options{}))
			return err
		},
	}
}
