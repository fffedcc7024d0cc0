package agents

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/action/claudehooks"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/agentfile"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/registry"
	"github.com/grapnel-go/grapnel/toolexec"
)

// Options are the flags that define the agent. They override the agent file.
type Options struct {
	File  string
	Flags said
	Tools []string
	hooks []string
	// Policies are the given files. rules are their rules and the user's own. agents are the
	// agents that rules may start.
	Policies []string
	agents   []string
	claude   claudeSettings
	Rules    Rules
	form     string
	Color    string
	quiet    bool
	Dir      string // the folder of the agent's work; empty means the working directory

	// Texts holds the files that were read, by the path as given. A file is never read twice: a resumed run continues
	// with the texts with which it began.
	Texts map[string]string
}

// said is the part of the flags that defines the agent, as given by the user.
type said struct {
	Model        agentfile.Model
	BaseURL      registry.URL
	Instructions string
	Steps        yamlfile.Limit
	Tokens       yamlfile.Count
	Cost         agentfile.Dollars
	Time         yamlfile.Duration
	Parallel     yamlfile.Count
}

// text returns the text of a file.
func (o *Options) text(path string, read func(string) ([]byte, error)) (string, error) {
	if text, known := o.Texts[path]; known {
		return text, nil
	}
	text, err := read(path)
	if err != nil {
		return "", err
	}
	if o.Texts == nil {
		o.Texts = map[string]string{}
	}
	o.Texts[path] = string(text)
	return string(text), nil
}

// Register adds the flags of a command that runs an agent.
func (o *Options) Register(c *cobra.Command) {
	o.registerAgent(c)
	o.RegisterLook(c)
}

// registerAgent registers the flags that define the agent.
func (o *Options) registerAgent(c *cobra.Command) {
	f := c.Flags()
	f.SortFlags = false
	f.StringVarP(&o.File, "agent", "a", "", "`file` that defines the agent (YAML, or JSON if it ends in .json)")
	f.VarP(&o.Flags.Model, "model", "m", "openai/…, openai-responses/…, anthropic/…, gemini/…, azure/…, vertex/…, or replay:FILE to play a recording")
	f.Var(&o.Flags.BaseURL, "base-url", "the URL of the model service, such as http://localhost:11434/v1")
	f.StringVarP(&o.Flags.Instructions, "instructions", "i", "", "the system prompt, as `text`")
	f.StringArrayVarP(&o.Tools, "tool", "t", nil, "give the agent a tool: shell or files, in this folder (may be repeated)")
	f.StringArrayVar(&o.hooks, "hook", nil, "give the agent a ready-made hook: base-dir, redact (may be repeated)")
	f.StringArrayVarP(&o.Policies, "policy", "p", nil, "`file` with rules for the agent (docs/policies.md; may be repeated)")
	f.StringArrayVar(&o.claude.files, "claude-hooks", nil, "settings `file` of Claude Code or its plugins whose hooks run (may be repeated)")
	f.BoolVar(&o.claude.compat, "claude-compat", false, "treat failing hooks as Claude Code does: most of them do not block")
	f.StringArrayVar(&o.agents, "rule-agent", nil, "let actions of rules start the agent of an agent file, as `NAME=FILE` (may be repeated)")
	f.BoolVar(&o.Rules.Strict, "strict", false, "fail if there are rules for tools or arguments that the agent does not have")
	f.Var(&o.Flags.Steps, "steps", "stop after this number of model turns, including sub-agents; -1 for no limit (default 100)")
	f.Var(&o.Flags.Tokens, "tokens", "stop after this number of tokens, input and output together")
	f.Var(&o.Flags.Cost, "cost", "stop at this cost in US dollars; an unknown cost counts as reached")
	f.Var(&o.Flags.Time, "time", "stop after this time, such as 10m")
	f.Var(&o.Flags.Parallel, "parallel", "the number of tool calls of one step that run at once")
	console.RegisterCompletion(c, "tool", cobra.FixedCompletions([]string{"shell", "files"}, cobra.ShellCompDirectiveNoFileComp))
	console.RegisterCompletion(c, "hook", cobra.FixedCompletions([]string{"base-dir", "redact"}, cobra.ShellCompDirectiveNoFileComp))
	f.StringVar(&o.form, "output-schema", "", "`file` with the JSON Schema that the final answer must have")
}

// RegisterLook registers the flags for the appearance.
func (o *Options) RegisterLook(c *cobra.Command) {
	c.Flags().StringVar(&o.Color, "color", "auto", "colours: auto, always or never")
	c.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "no timeline")
}

// CheckLook returns an error for an unknown value of --color.
func (o *Options) CheckLook() error { return console.Usage(console.CheckColour(o.Color)) }

// Resolve returns the agent file, overridden by the flags.
func (o *Options) Resolve() (file *registry.File, err error) {
	if err := o.CheckLook(); err != nil {
		return nil, err
	}
	file = &registry.File{}
	if o.File != "" {
		text, err := o.text(o.File, registry.ReadFile)
		if err == nil {
			file, err = NewRegistry().Parse(o.File, []byte(text))
		}
		if err != nil {
			return nil, console.Usage(err)
		}
	}
	named, err := policiesOf(file.Definition)
	if err != nil {
		return nil, console.Usage(err)
	}
	o.Rules.Policy, err = LoadPolicies(append(named, o.Policies...), o.Dir, func(path string) ([]byte, error) {
		text, err := o.text(path, yamlfile.Read)
		return []byte(text), err
	})
	if err != nil {
		return nil, err
	}
	o.claude.read = func(path string) ([]byte, error) {
		text, err := o.text(path, yamlfile.Read)
		return []byte(text), err
	}
	if o.Rules.claude = o.claude; len(o.claude.files) > 0 {
		if _, err := claudehooks.Check(o.claude.files, claudehooks.Options{Dir: o.Dir, Compat: o.claude.compat, Read: o.claude.read}); err != nil {
			return nil, console.Usage(fmt.Errorf("--claude-hooks: %w", err))
		}
	}
	if o.Rules.agents, err = o.ruleAgents(); err != nil {
		return nil, console.Usage(err)
	}
	override(&file.Model, o.Flags.Model.String())
	override(&file.BaseURL, o.Flags.BaseURL)
	override(&file.Instructions, o.Flags.Instructions)
	override(&file.Guards.Steps, int(o.Flags.Steps))
	override(&file.Guards.Tokens, int64(o.Flags.Tokens))
	override(&file.Guards.Cost, float64(o.Flags.Cost))
	override(&file.Guards.Time, time.Duration(o.Flags.Time))
	override(&file.Parallel, int(o.Flags.Parallel))
	for _, kind := range o.Tools {
		if file.Tools, err = AddPart(file.Tools, "tool", kind, NewRegistry().Tools); err != nil {
			return nil, console.Usagef("--tool: %w", err)
		}
	}
	for _, kind := range o.hooks {
		if file.Hooks, err = AddPart(file.Hooks, "hook", kind, NewRegistry().Hooks); err != nil {
			return nil, console.Usagef("--hook: %w", err)
		}
	}
	if o.form != "" {
		text, err := o.text(o.form, os.ReadFile)
		if err == nil {
			_, err = toolexec.CompileSchema(text)
		}
		if err != nil {
			return nil, console.Usagef("--output-schema %s: %w", o.form, err)
		}
		file.Output = registry.Output{Name: "answer", Schema: registry.Schema(text)}
	}
	return file, nil
}

// policiesOf returns the policies that an agent file names.
func policiesOf(d registry.Definition) ([]string, error) {
	files := slices.Clone([]string(d.Policies))
	for _, part := range slices.Concat(d.PreHooks, d.Hooks, d.PostHooks) {
		if part.Name != "policy" {
			continue
		}
		var s agentfile.Policy
		if err := part.Decode(&s); err != nil {
			return nil, err
		}
		files = append(files, s.Files...)
	}
	return files, nil
}

// AddPart returns list with another part, named by a flag and therefore without settings.
func AddPart[L ~[]registry.Part, T any](list L, what, kind string, makers map[string]registry.Maker[T]) (L, error) {
	maker, known := makers[kind]
	if !known {
		return nil, errors.New(yamlfile.Unknown(what, kind, lo.Keys(makers)))
	}
	if _, must := maker.TakesSettings(); must {
		return nil, fmt.Errorf("the %s %q needs settings: set them in an agent file", what, kind)
	}
	if lo.ContainsBy(list, func(p registry.Part) bool { return p.Name == kind }) {
		return nil, fmt.Errorf("duplicate %s %q", what, kind)
	}
	return append(list, registry.Part{Name: kind}), nil
}

// override replaces a value if the flag was set.
func override[T comparable](at *T, said T) {
	var nothing T
	if said != nothing {
		*at = said
	}
}
