// Package stores has the command "grapnel store", which takes care of a store as a whole.
package stores

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/durable/sqlite"
)

// stores are the commands.
type stores struct{ storage.Command }

// New returns the command store.
func New(std console.Streams) *cobra.Command {
	r := &stores{storage.Command{Std: std}}
	c := &cobra.Command{
		Use:   "store",
		Short: "Back up a store, and restore it",
		Long: `Back up a store, and restore it. PostgreSQL has its own tools for that: docs/durability.md shows how.
Encrypted data stays encrypted: keep the key apart from the backup.`,
		Args: console.UnknownCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	storage.RegisterStore(c, &r.At)
	c.AddCommand(r.newBackup(), r.newRestore())
	return c
}

func (r *stores) newBackup() *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Write all that a store holds to a new file, while runs go on",
		Long: `Write all that a SQLite store holds to a new file that only you can read, as it is at one moment.
Runs go on meanwhile. The file is a store: "grapnel runs check --store FILE" finds contradictions in it.`,
		Example: "  grapnel store backup friday.db",
		Args:    console.Takes(1, 1, "needs the name of a new file"),
		RunE: func(c *cobra.Command, args []string) error {
			if _, err := r.file("pg_dump --format=custom --schema=grapnel --file=FILE URL"); err != nil {
				return err
			}
			return r.WithDirect(c.Context(), false, func(k *storage.Store) error {
				s, ok := k.Direct.(interface {
					Backup(ctx context.Context, path string) error
				})
				if !ok {
					return fmt.Errorf("the store %s cannot be backed up", k.Address)
				}
				if err := s.Backup(c.Context(), args[0]); err != nil {
					return err
				}
				fmt.Fprintf(r.Std.Err, "The backup of %s is %s.\n", k.Address, args[0])
				return nil
			})
		},
	}
}

func (r *stores) newRestore() *cobra.Command {
	return &cobra.Command{
		Use:   "restore FILE",
		Short: "Put a backup in the place of a store that no process has open",
		Long: `Put a copy of a backup in the place of a SQLite store. Stop every process that has the store open before.
The old store is kept in a file beside it. Runs continue from the backup, and do again what they did since, under the same idempotency keys.`,
		Example: "  grapnel store restore friday.db --store runs.db",
		Args:    console.Takes(1, 1, "needs the file of a backup"),
		RunE: func(c *cobra.Command, args []string) error {
			path, err := r.file("pg_restore --clean --if-exists --dbname=URL FILE")
			if err != nil {
				return err
			}
			kept, err := sqlite.Restore(c.Context(), args[0], path)
			if err != nil {
				return err
			}
			fmt.Fprintf(r.Std.Err, "%s is restored from %s.\n", path, args[0])
			if kept != "" {
				fmt.Fprintf(r.Std.Err, "What it was before is in %s.\n", kept)
			}
			return nil
		},
	}
}

// file returns the file of a SQLite store. For others the error names the tool that does the same.
func (r *stores) file(other string) (string, error) {
	p, err := storage.AddressOf(r.At)
	if err != nil {
		return "", err
	}
	path, ok := p.File()
	if !ok {
		return "", console.Usagef("%s is no SQLite store: for PostgreSQL use its own tool, such as %s", p, other)
	}
	return path, nil
}
