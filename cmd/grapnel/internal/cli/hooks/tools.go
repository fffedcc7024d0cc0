package hooks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/agents"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/policy"
	"github.com/grapnel-go/grapnel/policy/recorded"
	"github.com/grapnel-go/grapnel/policy/tools"
)

// toolsFlags are the flags of hooks tools.
type toolsFlags struct {
	policies []string
	write    string
	json     bool
}

func newHooksTools(std console.Streams) *cobra.Command {
	f := &toolsFlags{}
	c := &cobra.Command{
		Use:   "tools POLICY... SCHEMAS|AGENT|RECORDING...",
		Short: "Show what policies believe about tools: effects, and roles of arguments",
		Long: `Show what each tool does and what its arguments are for, where that comes from and how sure it is. Then name the tools that
change something and have no rule, and the rules that can match none of the tools.

A POLICY is a file with rules, or library:NAME; --policy names one, too. Without one, library:assistant is used. The other arguments
name tools: a file of schemas in OpenAI form (*.json), an agent file (*.yaml; its MCP servers are started), recorded runs.

--write writes a file with the key "tools" to correct; include it in your policy. docs/assistants.md describes the words.

Exit codes:
  0    every tool that changes something has a rule
  1    some have none
  2    the command or a file is wrong`,
		Example: `  grapnel hooks tools schemas.json
  grapnel hooks tools ours.yaml agent.yaml
  grapnel hooks tools --policy library:assistant --write tools.yaml schemas.json`,
		RunE: func(c *cobra.Command, args []string) error { return f.run(c.Context(), std.Out, args) },
	}
	c.Flags().StringArrayVarP(&f.policies, "policy", "p", nil, "a policy `file`; may be given several times")
	c.Flags().StringVar(&f.write, "write", "", "write the descriptions to a `file`, to correct them")
	c.Flags().BoolVar(&f.json, "json", false, "write the descriptions as JSON Lines")
	return c
}

func (f *toolsFlags) run(ctx context.Context, out io.Writer, args []string) error {
	args, files := lo.FilterReject(args, func(arg string, _ int) bool { return !isAgentFile(arg) })
	args, err := agents.PoliciesIn(args, &f.policies, -1)
	if err != nil {
		return err
	}
	specs, err := toolsIn(ctx, append(files, args...))
	if err != nil {
		return console.Usage(err)
	}
	if len(specs) == 0 {
		return console.Usagef("no tools: name a file of schemas, an agent file, or recorded runs")
	}
	if len(f.policies) == 0 {
		f.policies = []string{"library:assistant"}
	}
	p, err := policy.Load([]policy.Layer{{Name: "run", Files: f.policies}}, policy.Options{})
	if err != nil {
		return console.Usage(err)
	}
	reports, never := p.Tools(specs...)
	if f.json {
		err = writeToolsJSON(out, reports)
	} else {
		err = writeTools(out, reports, never)
	}
	if err == nil && f.write != "" {
		if _, err := os.Lstat(f.write); err == nil {
			return console.Usagef("%s exists and may be corrected: remove it, or name another file with --write", f.write)
		}
		err = writeFile(f.write, func(w io.Writer) error { return writeTable(w, reports) })
	}
	if err != nil {
		return fmt.Errorf("writing the descriptions: %w", err)
	}
	if slices.ContainsFunc(reports, policy.ToolReport.Unguarded) {
		return console.Exit(console.ExitFailed)
	}
	return nil
}

// isAgentFile reports whether a file is neither a policy nor JSON.
func isAgentFile(path string) bool {
	return slices.Contains([]string{".yaml", ".yml"}, strings.ToLower(filepath.Ext(path))) && !agents.IsPolicy(path)
}

// toolsIn returns the tools in files, each name once.
func toolsIn(ctx context.Context, paths []string) ([]agent.ToolSpec, error) {
	var out []agent.ToolSpec
	for _, path := range paths {
		var list []agent.ToolSpec
		var err error
		if isAgentFile(path) {
			list, err = toolsOfAgent(ctx, path)
		} else if schemas, wrong := replay.LoadTools(path); wrong == nil {
			list = specsOf(schemas)
		} else if list, err = toolsOfRuns(path); err != nil {
			err = errors.Join(wrong, err)
		}
		if err != nil {
			return nil, fmt.Errorf("read tools: %w", err)
		}
		out = append(out, list...)
	}
	return lo.UniqBy(out, func(s agent.ToolSpec) string { return s.Name }), nil
}

func specsOf(schemas []replay.ToolSchema) []agent.ToolSpec {
	return lo.Map(schemas, func(t replay.ToolSchema, _ int) agent.ToolSpec {
		return agent.ToolSpec{Name: t.Name, Description: t.Description, Parameters: string(t.Parameters)}
	})
}

// toolsOfAgent builds the tools of an agent file.
func toolsOfAgent(ctx context.Context, path string) (specs []agent.ToolSpec, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	file, err := agents.NewRegistry().Parse(path, text)
	if err != nil {
		return nil, err
	}
	p := &agents.Parts{}
	p.Clean, p.Unclean = agents.Redacting(file.Definition)
	built, err := p.Registry().BuildFile(ctx, file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, built.Close()) }()
	plan, err := built.Builder.Plan().Get()
	if err != nil {
		return nil, err
	}
	for _, tool := range plan.Tools() {
		specs = append(specs, tool.Spec())
	}
	return specs, nil
}

// toolsOfRuns returns the tools of recorded runs: those of their schemas, and those that they call.
func toolsOfRuns(path string) ([]agent.ToolSpec, error) {
	reader, err := recorded.Open(path)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	found := map[string]agent.ToolSpec{}
	refs := map[string]bool{}
	for run, err := range reader.Runs() {
		if err != nil {
			return nil, err
		}
		schemas := run.Tools
		if ref := run.ToolsRef; ref != "" && !refs[ref] {
			refs[ref] = true
			if schemas, err = replay.FindTools(os.DirFS(filepath.Dir(path)), ref); err != nil {
				return nil, err
			}
		}
		for _, spec := range specsOf(schemas) {
			found[spec.Name] = spec
		}
		for _, call := range run.Calls() {
			if name := call.Function.Name; found[name].Name == "" {
				found[name] = agent.ToolSpec{Name: name}
			}
		}
	}
	return lo.Map(slices.Sorted(maps.Keys(found)), func(name string, _ int) agent.ToolSpec { return found[name] }), nil
}

// writeTools writes the descriptions as a table, followed by what is missing.
func writeTools(out io.Writer, reports []policy.ToolReport, never []string) error {
	table := console.NewTable(out, "TOOL", "DOES", "RECORDS", "SOURCE", "ARGUMENTS")
	for _, r := range reports {
		d := r.Description
		arguments := lo.Map(d.Arguments, func(a tools.Argument, _ int) string {
			return a.Name + "=" + cmp.Or(string(a.Role), "?") + lo.Ternary(a.Certainty == tools.Sure, "", "~")
		})
		table.Row(d.Tool, cmp.Or(words(d.Effects), "?"), words(d.Records), fmt.Sprintf("%s, %s", d.Source, d.Certainty), strings.Join(arguments, " "))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out, "\n?: not understood; ~: not sure")
	for _, r := range reports {
		if r.Unguarded() {
			fmt.Fprintf(out, "no rule is about %q, which %s\n", timeline.Clean(r.Description.Tool), changesWhat(r.Description))
		}
	}
	for _, rule := range never {
		fmt.Fprintf(out, "rule %s can match none of these tools\n", rule)
	}
	return nil
}

// changesWhat says what a tool without a rule does.
func changesWhat(d *tools.Description) string {
	if len(d.Effects) == 0 {
		return "does something unknown"
	}
	return words(d.Effects)
}

func words[S ~string](list []S) string {
	return strings.Join(lo.Map(list, func(w S, _ int) string { return string(w) }), ", ")
}

func writeToolsJSON(out io.Writer, reports []policy.ToolReport) error {
	for _, r := range reports {
		line, err := json.Marshal(struct {
			*tools.Description

			Rules []string `json:"rules"`
		}{r.Description, r.Rules})
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%s\n", line); err != nil {
			return err
		}
	}
	return nil
}

// writeTable writes the descriptions as a policy file with the key "tools". JSON is YAML, too.
func writeTable(out io.Writer, reports []policy.ToolReport) error {
	fmt.Fprint(out, "# What your tools do. Correct it, and include the file in your policy: docs/assistants.md describes the words.\npolicy: tools\ntools:\n")
	for _, r := range reports {
		d := r.Description
		entry := tools.Entry{Effects: d.Effects, Records: d.Records, Roles: map[string]tools.Role{}}
		for _, a := range d.Arguments {
			if a.Role != tools.Unknown {
				entry.Roles[a.Name] = a.Role
			}
		}
		text, err := json.Marshal(entry)
		if err != nil {
			return err
		}
		unsure := lo.FilterMap(d.Arguments, func(a tools.Argument, _ int) (string, bool) { return a.Name, a.Role == tools.Unknown })
		comment := lo.Ternary(d.Certainty == tools.Sure, "", "  # "+string(d.Certainty))
		if len(unsure) > 0 {
			comment += lo.Ternary(comment == "", "  # ", "; ") + "without a role: " + strings.Join(unsure, ", ")
		}
		name, err := json.Marshal(d.Tool)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "  %s: %s%s\n", name, text, timeline.Clean(comment)); err != nil {
			return err
		}
	}
	return nil
}
