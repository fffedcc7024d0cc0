package hooks

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/action/claudehooks"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/agents"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy"
	"github.com/grapnel-go/grapnel/toolexec"
)

// checking are the flags of hooks check.
type checking struct {
	policies []string
	tools    []string
	stages   []string
	kind     string
	strict   bool
	json     bool
}

// Kinds are the kinds of files with hooks, by their names.
var Kinds = map[string]policy.Kind{"policy": policy.Policies, "pipeline": policy.Pipelines, "blueprint": policy.Blueprints}

func newHooksCheck(std console.Streams) *cobra.Command {
	var f checking
	c := &cobra.Command{
		Use:   "check FILE...",
		Short: "Check policy files for errors and likely mistakes",
		Long: `Check policy files: report all errors, with their lines and the correction, and likely mistakes in files that can be
loaded: tools that do not exist (--tools names the existing ones), rules that are never asked,
stage rules of an agent outside of pipelines (--stages names a pipeline's stages),
conditions that are always true or never, values that a shell would split; and notes: rules in shadow,
waivers and expired waivers. A rule that matches none of the --tools is an error, unless its policy is required
or from the library. If rules ask what a tool does, a tool that changes something and has no rule is a warning,
and so is a rule that none of the tools can match: see "grapnel hooks tools". Nothing is executed.

A settings file of Claude Code is checked for entries that do nothing here or anywhere, and its scripts for fields
that do not exist.

Exit codes:
  0    no errors; there may be likely mistakes
  1    likely mistakes, with --strict
  2    errors in a file, or in the command`,
		Example: `  grapnel hooks check workspace.yaml
  grapnel hooks check --strict --tools bash,read_file,write_file policies/*.yaml
  grapnel hooks check --kind pipeline pipeline.yaml
  grapnel hooks check .claude/settings.json`,
		RunE: func(_ *cobra.Command, args []string) error { return f.run(std.Out, append(f.policies, args...)) },
	}
	c.Flags().StringArrayVarP(&f.policies, "policy", "p", nil, "a policy `file`, as the arguments are; may be given several times")
	c.Flags().StringSliceVar(&f.tools, "tools", nil, "the `names` of the agent's tools, separated by commas, or *.json files of their schemas")
	c.Flags().StringSliceVar(&f.stages, "stages", nil, "the `names` of the stages of the pipeline that uses the policies, separated by commas")
	c.Flags().StringVar(&f.kind, "kind", "policy", "the kind of the files: policy, pipeline or blueprint")
	c.Flags().BoolVar(&f.strict, "strict", false, "exit with 1 for likely mistakes")
	c.Flags().BoolVar(&f.json, "json", false, "write the findings as JSON Lines")
	return c
}

func (f *checking) run(w io.Writer, files []string) error {
	kind, known := Kinds[f.kind]
	switch {
	case !known:
		return console.Usage(errors.New("--kind: " + yamlfile.Unknown("kind", f.kind, lo.Keys(Kinds))))
	case len(files) == 0:
		return console.Usagef("no file: name the policy files to check")
	}
	found, never, wrong := 0, 0, []error(nil)
	for _, file := range files {
		if claudehooks.IsSettings(file) {
			n, err := f.checkClaude(w, file)
			if found += n; err != nil {
				wrong = append(wrong, err)
				f.tellWrong(w, err)
			}
			continue
		}
		var o policy.Options
		if kind != policy.Policies { // the programs that load policies have secrets of their own
			o.Check = checkVariables
		}
		p, err := policy.Load([]policy.Layer{{Name: "run", Files: []string{file}, Kind: kind}}, o)
		if err != nil {
			wrong = append(wrong, err)
			f.tellWrong(w, err)
			continue
		}
		specs, err := f.readTools()
		if err != nil {
			return console.Usagef("--tools: %w", err)
		}
		warnings := p.CheckIn(hooks.Reach{Here: f.scope(kind, specs)})
		if len(specs) > 0 {
			warnings = append(warnings, p.CheckTools(specs...)...)
		}
		counts := countWarnings(warnings)
		found, never = found+counts.warnings, never+counts.errors
		for _, warning := range warnings {
			f.tell(w, warning, warning.String())
		}
		if !f.json {
			fmt.Fprintf(w, "%s: %s%s%s (%s)\n", timeline.Clean(file), lo.Ternary(len(warnings) == 0, "nothing is wrong: ", ""), p, counts, p.Hash()[:12])
		}
	}
	switch {
	case len(wrong) > 0 && f.json:
		return console.Exit(console.ExitUsage)
	case len(wrong) > 0:
		return console.Usage(errors.Join(wrong...))
	case never > 0:
		return console.Exit(console.ExitUsage)
	case found > 0 && f.strict:
		return console.Exit(console.ExitFailed)
	}
	return nil
}

// checkClaude checks a settings file of Claude Code, and returns the number of warnings.
func (f *checking) checkClaude(w io.Writer, file string) (int, error) {
	warnings, err := claudehooks.Check([]string{file}, claudehooks.Options{})
	if err != nil {
		return 0, err
	}
	for _, found := range warnings {
		f.tell(w, policy.Warning{File: found.File, Line: found.Line, Column: found.Column, Code: "claude-hooks", Text: found.Text}, found.String())
	}
	if !f.json {
		fmt.Fprintf(w, "%s: hooks of Claude Code%s\n", timeline.Clean(file), warningCounts{warnings: len(warnings)})
	}
	return len(warnings), nil
}

// checkVariables returns an error for each variable in a URL or a header that a hook does not declare.
func checkVariables(_ policy.Rule, a action.Declared) (err error) {
	host := action.Host{Secrets: action.Secrets{File: agents.SecretsFile()}}
	switch a := a.(type) {
	case action.HTTP:
		_, err = a.Action(host)
	case action.Gate:
		if a.By == action.GateCallback {
			_, err = a.Action(host)
		}
	}
	return err
}

// scope returns what rules of the kind can match.
func (f *checking) scope(kind policy.Kind, tools []agent.ToolSpec) hooks.Scope {
	here := hooks.Scope{Points: hooks.PointNames(), LaterAgents: []string{"*"}}
	for _, spec := range tools {
		tool := hooks.Tool{Name: spec.Name}
		if schema, err := toolexec.CompileSchema(spec.Parameters); err == nil && spec.Parameters != "" {
			tool.Arguments = schema
		}
		here.Tools = append(here.Tools, tool)
	}
	if len(tools) == 0 {
		here.LaterTools = []string{"*"}
	}
	here.Stages = lo.Map(f.stages, func(name string, _ int) string { return hooks.Exact(name) })
	if kind == policy.Pipelines && len(f.stages) == 0 {
		here.Stages = []string{"*"}
	}
	return here
}

// readTools returns the tools that --tools names. It reads the files of schemas.
func (f *checking) readTools() (specs []agent.ToolSpec, err error) {
	for _, name := range f.tools {
		if !strings.HasSuffix(name, ".json") {
			specs = append(specs, agent.ToolSpec{Name: name})
			continue
		}
		schemas, err := replay.LoadTools(name)
		if err != nil {
			return nil, err
		}
		specs = append(specs, specsOf(schemas)...)
	}
	return specs, nil
}

// warningCounts counts warnings by their sort.
type warningCounts struct{ errors, warnings, notes int }

func countWarnings(list []policy.Warning) (c warningCounts) {
	for _, w := range list {
		switch {
		case w.Error:
			c.errors++
		case w.Meant():
			c.notes++
		default:
			c.warnings++
		}
	}
	return c
}

// String returns the counts after commas: ", 1 error, 2 warnings".
func (c warningCounts) String() string {
	var text strings.Builder
	for _, of := range []struct {
		n    int
		what string
	}{{c.errors, "error"}, {c.warnings, "warning"}, {c.notes, "note"}} {
		if of.n > 0 {
			text.WriteString(", " + timeline.Plural(of.n, of.what))
		}
	}
	return text.String()
}

// tellWrong writes the errors as JSON; people read them in the error.
func (f *checking) tellWrong(w io.Writer, err error) {
	problems, ok := errors.AsType[*yamlfile.Error](err)
	if !f.json {
		return
	}
	if !ok {
		f.tell(w, policy.Warning{Code: "error", Text: err.Error()}, "")
		return
	}
	for _, p := range problems.Problems {
		f.tell(w, policy.Warning{File: p.File, Line: p.Line, Column: p.Column, Code: "error", Text: p.Text}, "")
	}
}

func (f *checking) tell(w io.Writer, warning policy.Warning, text string) {
	if !f.json {
		fmt.Fprintln(w, timeline.Clean(text))
		return
	}
	line, err := json.Marshal(warning)
	if err == nil {
		fmt.Fprintf(w, "%s\n", line)
	}
}

func newHooksSchema(std console.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Write the JSON Schema of policy files, for editors",
		Long: `Write the JSON Schema of policy files. Editors with a YAML language server use it to complete keys if the
first line of a policy is:

  # yaml-language-server: $schema=` + policy.SchemaID,
		Example: `  grapnel hooks schema > policy.schema.json`,
		Args:    console.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := std.Out.Write(policy.Schema())
			return err
		},
	}
}
