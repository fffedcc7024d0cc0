package blueprints

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/client"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// blueprints are the commands about blueprints.
type blueprints struct{ storage.Command }

// New returns the command blueprints.
func New(std console.Streams) *cobra.Command {
	r := &blueprints{storage.Command{Std: std}}
	return r.AddFlags(console.Group(&cobra.Command{
		Use:   "blueprints",
		Short: "Store, show and remove the blueprints of a coordinator",
		Long: `A blueprint says what the runs of its name do: an agent, a command or a pipeline, with hooks around it
(docs/coordinator.md). These commands take blueprints from files to a coordinator ("grapnel serve") or its
store, and back. "grapnel runs submit blueprint" submits runs.`,
		Example: `  grapnel blueprints apply report.yaml --server http://127.0.0.1:8420
  grapnel blueprints list --store runs.db`,
	}, r.newApplyBlueprints(), r.newListBlueprints(), r.newShowBlueprint(), r.newListVersions(), r.newDeleteBlueprint()))
}

func (r *blueprints) newApplyBlueprints() *cobra.Command {
	return &cobra.Command{
		Use:   "apply FILE...",
		Short: "Store blueprints from files",
		Long: `Store the blueprints of files, in YAML or JSON with the members that the API has (docs/coordinator.md). A blueprint
that exists gets what its file says, as a new version; an unchanged one is left alone, and one that another person
changes meanwhile is refused. All files are checked before the first blueprint is stored, and may name each other in
hooks. All mistakes are listed, with their places.

Two members may name files, relative to that of the blueprint: agent, an agent file; and pipeline.files, a list of
files and patterns such as agents/*.yaml in the folder pipeline.dir.`,
		Example: `  grapnel blueprints apply report.yaml check.yaml --server http://127.0.0.1:8420`,
		Args:    console.Takes(1, console.Unlimited, "needs the file of a blueprint"),
		RunE: func(c *cobra.Command, args []string) error {
			return r.WithCoordinator(c.Context(), func(k *storage.Store) error {
				all, err := checkBlueprints(c.Context(), k.Client, args)
				if err != nil {
					return err
				}
				return r.apply(c.Context(), k.Client, all)
			})
		},
	}
}

// checkBlueprints reads blueprints from files. The error has all mistakes of all files.
func checkBlueprints(ctx context.Context, c *client.Client, paths []string) (all []*File, err error) {
	var wrong []error
	for _, path := range paths {
		b, err := Read(path)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		all = append(all, b)
	}
	names := lo.Map(all, func(b *File, _ int) string { return b.Name })
	for _, b := range all {
		found, err := b.check(ctx, c, names)
		if err != nil {
			return nil, err
		}
		wrong = append(wrong, found)
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, console.Usage(err)
	}
	return all, nil
}

// apply stores blueprints. One that is refused is tried again after others, because its hooks may name them.
func (r *blueprints) apply(ctx context.Context, c *client.Client, all []*File) error {
	for len(all) > 0 {
		var later []*File
		var wrong []error
		for _, b := range all {
			done, err := b.apply(ctx, c)
			if refused, ok := errors.AsType[*client.Error](err); ok && len(refused.Errors) > 0 {
				later, wrong = append(later, b), append(wrong, b.explain(refused))
				continue
			}
			if err != nil {
				return err
			}
			fmt.Fprintln(r.Std.Out, timeline.Clean(done))
		}
		if len(later) == len(all) {
			return console.Usage(errors.Join(wrong...))
		}
		all = later
	}
	return nil
}

// apply stores the blueprint, and returns a sentence that says what was done.
func (b *File) apply(ctx context.Context, c *client.Client) (string, error) {
	now, err := c.Blueprint(ctx, b.Name, 0)
	if errors.Is(err, durable.ErrNotFound) {
		if now, err = c.CreateBlueprint(ctx, b.Text); err != nil {
			return "", err
		}
		return fmt.Sprintf("%s: stored as version %d", now.Name, now.Version), nil
	}
	if err != nil {
		return "", err
	}
	changes, err := b.Changes(&now.Blueprint)
	if err != nil {
		return "", err
	}
	if len(changes) == 0 {
		return fmt.Sprintf("%s: unchanged, version %d", now.Name, now.Version), nil
	}
	text, err := json.Marshal(changes)
	if err != nil {
		return "", err
	}
	if now, err = c.UpdateBlueprint(ctx, b.Name, text, now.Version); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s: stored as version %d", now.Name, now.Version), nil
}

// Changes returns the members in which the file differs from a stored blueprint; null for those that it has not.
func (b *File) Changes(stored *wire.Blueprint) (map[string]json.RawMessage, error) {
	parsed, err := coordinator.ParseBlueprint(b.Text)
	if err != nil {
		return nil, err
	}
	own, err := membersOf(parsed)
	if err != nil {
		return nil, err
	}
	old, err := membersOf(stored)
	if err != nil {
		return nil, err
	}
	changes := map[string]json.RawMessage{}
	for name := range old {
		if _, ok := own[name]; !ok {
			changes[name] = json.RawMessage("null")
		}
	}
	for name, value := range own {
		same := old[name] != nil
		if same {
			if same, err = equalJSON(value, old[name]); err != nil {
				return nil, err
			}
		}
		if !same {
			changes[name] = value
		}
	}
	return changes, nil
}

// equalJSON reports whether two JSON texts have the same value.
func equalJSON(a, b json.RawMessage) (bool, error) {
	one, err := strictjson.Canonical(`{"value":` + string(a) + `}`)
	if err != nil {
		return false, err
	}
	other, err := strictjson.Canonical(`{"value":` + string(b) + `}`)
	return one == other, err
}

// membersOf returns the members of a blueprint as JSON.
func membersOf(b *wire.Blueprint) (all map[string]json.RawMessage, err error) {
	text, err := json.Marshal(b)
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	return all, err
}

func (r *blueprints) newListBlueprints() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "list",
		Short:   "List blueprints",
		Example: "  grapnel blueprints list --server http://127.0.0.1:8420",
		Args:    console.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return r.WithCoordinator(c.Context(), func(k *storage.Store) error {
				all := []wire.Stored{}
				for after := ""; ; after = all[len(all)-1].Name {
					found, err := k.Client.Blueprints(c.Context(), after, storage.Page)
					if err != nil {
						return err
					}
					if all = append(all, found...); len(found) < storage.Page {
						break
					}
				}
				if asJSON {
					return console.WriteJSON(r.Std.Out, all)
				}
				return r.writeBlueprints(all)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write them as a JSON array")
	return c
}

// writeBlueprints writes blueprints as a table.
func (r *blueprints) writeBlueprints(all []wire.Stored) error {
	if len(all) == 0 {
		fmt.Fprintln(r.Std.Err, `grapnel: No blueprints: "grapnel blueprints apply FILE" stores one.`)
		return nil
	}
	table := console.NewTable(r.Std.Out, "NAME", "TYPE", "VERSION", "UPDATED", "BY", "HOOKS", "DESCRIPTION")
	for _, b := range all {
		table.Row(b.Name, b.Type, b.Version, b.Updated, b.By, strings.Join(hookNames(b.Hooks), " "), b.Description)
	}
	return table.Flush()
}

// hookNames returns the points at which a blueprint has hooks.
func hookNames(hooks json.RawMessage) []string {
	var all map[string]json.RawMessage
	if len(hooks) == 0 || json.Unmarshal(hooks, &all) != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(all))
}

func (r *blueprints) newShowBlueprint() *cobra.Command {
	var version int64
	var to string
	c := &cobra.Command{
		Use:   "show NAME",
		Short: "Write a blueprint as JSON, or as files",
		Long: `Write a blueprint as JSON, as "grapnel blueprints apply" reads it. With --to, write it to NAME.json in a folder,
with the files of its pipeline in the folder NAME beside it. Files that exist are not replaced.`,
		Example: `  grapnel blueprints show report --server http://127.0.0.1:8420
  grapnel blueprints show report --version 3 --to backup`,
		Args: oneBlueprint,
		RunE: func(c *cobra.Command, args []string) error {
			return r.WithCoordinator(c.Context(), func(k *storage.Store) error {
				b, err := k.Client.Blueprint(c.Context(), args[0], version)
				switch {
				case err != nil:
					return storage.Missing(err, `no blueprint %q, or no such version: "grapnel blueprints list" lists them`, args[0])
				case b.Name != args[0]:
					return fmt.Errorf("the coordinator returned another blueprint, %q", b.Name)
				case to != "":
					return writeBlueprint(to, &b.Blueprint)
				}
				return console.WriteJSON(r.Std.Out, b.Blueprint)
			})
		},
	}
	c.Flags().Int64Var(&version, "version", 0, "the `number` of the version (default: the newest)")
	c.Flags().StringVar(&to, "to", "", "write files to this `folder`, which need not exist")
	return c
}

func (r *blueprints) newListVersions() *cobra.Command {
	var limit int
	c := &cobra.Command{
		Use:     "versions NAME",
		Short:   "List who has stored which version of a blueprint",
		Example: "  grapnel blueprints versions report --server http://127.0.0.1:8420",
		Args:    oneBlueprint,
		RunE: func(c *cobra.Command, args []string) error {
			return r.WithCoordinator(c.Context(), func(k *storage.Store) error {
				all, err := k.Client.BlueprintVersions(c.Context(), args[0], 0, limit)
				if err != nil {
					return storage.Missing(err, `no blueprint %q: "grapnel blueprints list" lists them`, args[0])
				}
				table := console.NewTable(r.Std.Out, "VERSION", "UPDATED", "BY")
				for _, v := range all {
					table.Row(v.Version, v.Updated, v.By)
				}
				return table.Flush()
			})
		},
	}
	c.Flags().IntVar(&limit, "limit", 50, "the `number` of the newest versions, at most 200")
	return c
}

func (r *blueprints) newDeleteBlueprint() *cobra.Command {
	return &cobra.Command{
		Use:     "delete NAME",
		Short:   "Remove a blueprint",
		Long:    `Remove a blueprint. Runs that were submitted keep it. It is refused while hooks of others start it.`,
		Example: "  grapnel blueprints delete report --server http://127.0.0.1:8420",
		Args:    oneBlueprint,
		RunE: func(c *cobra.Command, args []string) error {
			return r.WithCoordinator(c.Context(), func(k *storage.Store) error {
				err := k.Client.DeleteBlueprint(c.Context(), args[0], 0)
				if err == nil {
					_, err = fmt.Fprintf(r.Std.Out, "%s: removed\n", args[0])
				}
				return storage.Missing(err, `no blueprint %q: "grapnel blueprints list" lists them`, args[0])
			})
		},
	}
}

// NeedsBlueprint is the mistake of a command that names no blueprint, or several.
const NeedsBlueprint = "needs the name of one blueprint"

var oneBlueprint = console.Takes(1, 1, NeedsBlueprint)

// writeBlueprint writes a blueprint to a file in a folder, and the files of its pipeline to a folder below. It replaces no file.
func writeBlueprint(to string, b *wire.Blueprint) error {
	all, err := membersOf(b)
	if err != nil {
		return err
	}
	received, err := json.Marshal(b)
	if err == nil {
		_, err = coordinator.ParseBlueprint(received)
	}
	if err != nil {
		return fmt.Errorf("the coordinator returned an invalid blueprint: %w", err)
	}
	files := map[string]string{}
	if p := b.Pipeline; p != nil {
		names := []string{}
		for name, text := range p.Files {
			names, files[filepath.Join(b.Name, filepath.FromSlash(name))] = append(names, name), text
		}
		slices.Sort(names)
		if all["pipeline"], err = json.Marshal(pipelineMember{b.Name, p.File, names, p.Workspace}); err != nil {
			return err
		}
	}
	var text strings.Builder
	if err := console.WriteJSON(&text, all); err != nil {
		return err
	}
	files[b.Name+".json"] = text.String()
	if err := os.MkdirAll(to, 0o755); err != nil { //nolint:gosec // like other files of a project
		return err
	}
	root, err := os.OpenRoot(to) // the names come from another machine: none of them leads out of the folder
	if err != nil {
		return err
	}
	defer root.Close()
	for name := range files {
		if _, err := root.Lstat(name); err == nil {
			return console.Usagef("%s exists: remove it, or name another folder with --to", filepath.Join(to, name))
		}
	}
	for name, text := range files {
		if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		_, err = f.WriteString(text)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}
