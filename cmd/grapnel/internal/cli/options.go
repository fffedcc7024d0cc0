package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/agentfile"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/registry"
	"github.com/grapnel-go/grapnel/toolexec"
)

// options are the flags that define the agent. They override the agent file.
type options struct {
	file  string
	flags said
	tools []string
	hooks []string
	// policies are the given files. rules are their rules and those of the user's own policy. agents are the
	// agents that rules may start.
	policies []string
	agents   []string
	rules    rules
	form     string
	color    string
	quiet    bool
	dir      string // the folder of the agent's work; empty means the working directory

	// texts holds the files that were read, by the path as given. A file is never read twice: a resumed run continues
	// with the texts with which it began.
	texts map[string]string
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
func (o *options) text(path string, read func(string) ([]byte, error)) (string, error) {
	if text, known := o.texts[path]; known {
		return text, nil
	}
	text, err := read(path)
	if err != nil {
		return "", err
	}
	if o.texts == nil {
		o.texts = map[string]string{}
	}
	o.texts[path] = string(text)
	return string(text), nil
}

func (o *options) register(c *cobra.Command) {
	o.registerAgent(c)
	o.registerLook(c)
}

// registerAgent registers the flags that define the agent.
func (o *options) registerAgent(c *cobra.Command) {
	f := c.Flags()
	f.SortFlags = false
	f.StringVarP(&o.file, "agent", "a", "", "`file` that defines the agent (YAML, or JSON if it ends in .json)")
	f.VarP(&o.flags.Model, "model", "m", "openai/…, openai-responses/…, anthropic/…, gemini/…, azure/…, vertex/…, or replay:FILE to play a recording")
	f.Var(&o.flags.BaseURL, "base-url", "the URL of the model service, such as http://localhost:11434/v1")
	f.StringVarP(&o.flags.Instructions, "instructions", "i", "", "the system prompt, as `text`")
	f.StringArrayVarP(&o.tools, "tool", "t", nil, "give the agent a tool: shell or files, in this folder (may be repeated)")
	f.StringArrayVar(&o.hooks, "hook", nil, "give the agent a ready-made hook: base-dir, redact (may be repeated)")
	f.StringArrayVarP(&o.policies, "policy", "p", nil, "`file` with rules for the agent (docs/policies.md; may be repeated)")
	f.StringArrayVar(&o.agents, "rule-agent", nil, "let actions of rules start the agent of an agent file, as `NAME=FILE` (may be repeated)")
	f.BoolVar(&o.rules.strict, "strict", false, "fail if there are rules for tools or arguments that the agent does not have")
	f.Var(&o.flags.Steps, "steps", "stop after this number of model turns, including sub-agents; -1 for no limit (default 100)")
	f.Var(&o.flags.Tokens, "tokens", "stop after this number of tokens, input and output together")
	f.Var(&o.flags.Cost, "cost", "stop at this cost in US dollars; an unknown cost counts as reached")
	f.Var(&o.flags.Time, "time", "stop after this time, such as 10m")
	f.Var(&o.flags.Parallel, "parallel", "the number of tool calls of one step that run at once")
	registerCompletion(c, "tool", cobra.FixedCompletions([]string{"shell", "files"}, cobra.ShellCompDirectiveNoFileComp))
	registerCompletion(c, "hook", cobra.FixedCompletions([]string{"base-dir", "redact"}, cobra.ShellCompDirectiveNoFileComp))
	f.StringVar(&o.form, "output-schema", "", "`file` with the JSON Schema that the final answer must have")
}

// registerLook registers the flags for the appearance.
func (o *options) registerLook(c *cobra.Command) {
	c.Flags().StringVar(&o.color, "color", "auto", "colours: auto, always or never")
	c.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "no timeline")
}

func (o *options) checkLook() error {
	switch o.color {
	case "auto", "always", "never":
		return nil
	}
	return &usageError{fmt.Errorf("--color is %q: it must be auto, always or never", o.color)}
}

// resolve returns the agent file, overridden by the flags.
func (o *options) resolve() (file *registry.File, err error) {
	if err := o.checkLook(); err != nil {
		return nil, err
	}
	file = &registry.File{}
	if o.file != "" {
		text, err := o.text(o.file, registry.ReadFile)
		if err == nil {
			file, err = newRegistry().Parse(o.file, []byte(text))
		}
		if err != nil {
			return nil, &usageError{err}
		}
	}
	named, err := policiesOf(file.Definition)
	if err != nil {
		return nil, &usageError{err}
	}
	o.rules.policy, err = loadPolicies(append(named, o.policies...), o.dir, func(path string) ([]byte, error) {
		text, err := o.text(path, yamlfile.Read)
		return []byte(text), err
	})
	if err != nil {
		return nil, err
	}
	if o.rules.agents, err = o.ruleAgents(); err != nil {
		return nil, &usageError{err}
	}
	override(&file.Model, o.flags.Model.String())
	override(&file.BaseURL, o.flags.BaseURL)
	override(&file.Instructions, o.flags.Instructions)
	override(&file.Guards.Steps, int(o.flags.Steps))
	override(&file.Guards.Tokens, int64(o.flags.Tokens))
	override(&file.Guards.Cost, float64(o.flags.Cost))
	override(&file.Guards.Time, time.Duration(o.flags.Time))
	override(&file.Parallel, int(o.flags.Parallel))
	for _, kind := range o.tools {
		if file.Tools, err = addPart(file.Tools, "tool", kind, newRegistry().Tools); err != nil {
			return nil, &usageError{fmt.Errorf("--tool: %w", err)}
		}
	}
	for _, kind := range o.hooks {
		if file.Hooks, err = addPart(file.Hooks, "hook", kind, newRegistry().Hooks); err != nil {
			return nil, &usageError{fmt.Errorf("--hook: %w", err)}
		}
	}
	if o.form != "" {
		text, err := o.text(o.form, os.ReadFile)
		if err == nil {
			_, err = toolexec.CompileSchema(text)
		}
		if err != nil {
			return nil, &usageError{fmt.Errorf("--output-schema %s: %w", o.form, err)}
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

// addPart returns list with another part, named by a flag and therefore without settings.
func addPart[L ~[]registry.Part, T any](list L, what, kind string, makers map[string]registry.Maker[T]) (L, error) {
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
