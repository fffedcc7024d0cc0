package serve

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/coordinator/wire"
)

// NewTokens returns the command tokens.
func NewTokens(std console.Streams) *cobra.Command {
	r := &services{storage.Command{Std: std}}
	return r.AddFlags(console.Group(&cobra.Command{
		Use:   "tokens",
		Short: "Make, list and revoke the tokens of a coordinator",
		Long: `Programs and people use the API of a coordinator with tokens, each with a name and a role (docs/coordinator.md). The
store has only their hashes. These commands need a token with the role admin in ` + storage.TokenVariable + `, or the store.`,
		Example: `  grapnel tokens create ci --role operator --ttl 30d --server http://127.0.0.1:8420
  grapnel tokens create runners --role runner --store runs.db`,
	}, r.newCreateToken(), r.newListTokens(), r.newRevokeToken()))
}

func (r *services) newCreateToken() *cobra.Command {
	var role, ttl string
	c := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a token and write it",
		Long: `Make a token and write it to standard output. It cannot be read again. Changes and answers are recorded under its
name.`,
		Example: "  grapnel tokens create ci --role operator --ttl 30d --server http://127.0.0.1:8420",
		Args:    console.Takes(1, 1, "needs the name of one token"),
		RunE: func(c *cobra.Command, args []string) error {
			var valid time.Duration
			if ttl != "" {
				var err error
				if valid, err = console.DurationOf(ttl); err != nil || valid < time.Second {
					return console.Usagef("--ttl %q: expected a time such as 12h or 30d", ttl)
				}
			}
			if role == "" {
				return console.Usagef("--role is missing: viewer, operator, runner or admin")
			}
			return r.WithCoordinator(c.Context(), func(k *storage.Store) error {
				token, err := k.Client.NewToken(c.Context(), args[0], wire.Role(role), valid)
				if err == nil {
					_, err = fmt.Fprintln(r.Std.Out, timeline.Clean(token))
				}
				return err
			})
		},
	}
	c.Flags().StringVar(&role, "role", "", "what it allows: viewer, operator, runner or admin")
	c.Flags().StringVar(&ttl, "ttl", "", "how long it is valid: a `time` such as 12h or 30d (default: until it is revoked)")
	return c
}

func (r *services) newListTokens() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "list",
		Short:   "List valid tokens, without the tokens themselves",
		Example: "  grapnel tokens list --server http://127.0.0.1:8420",
		Args:    console.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return r.WithCoordinator(c.Context(), func(k *storage.Store) error {
				all, err := k.Client.Tokens(c.Context())
				if err != nil {
					return err
				}
				if asJSON {
					return console.WriteJSON(r.Std.Out, all)
				}
				table := console.NewTable(r.Std.Out, "ID", "NAME", "ROLE", "CREATED", "EXPIRES")
				for _, t := range all {
					expires := "never"
					if !t.Expires.IsZero() {
						expires = console.LocalTime(t.Expires)
					}
					table.Row(t.ID, t.Name, t.Role, t.Created, expires)
				}
				return table.Flush()
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write them as a JSON array")
	return c
}

func (r *services) newRevokeToken() *cobra.Command {
	return &cobra.Command{
		Use:     "revoke ID",
		Short:   "Revoke a token: requests with it are refused from now on",
		Example: "  grapnel tokens revoke 3f9a1c2b --server http://127.0.0.1:8420",
		Args:    console.Takes(1, 1, `needs the ID of one token: "grapnel tokens list" lists them`),
		RunE: func(c *cobra.Command, args []string) error {
			return r.WithCoordinator(c.Context(), func(k *storage.Store) error {
				err := k.Client.RevokeToken(c.Context(), strings.TrimSpace(args[0]))
				if err == nil {
					_, err = fmt.Fprintf(r.Std.Out, "%s: revoked\n", args[0])
				}
				return storage.Missing(err, `no token %q: "grapnel tokens list" lists them`, args[0])
			})
		},
	}
}
