package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/agentfile"
	"github.com/grapnel-go/grapnel/toolexec"
)

// options are the flags that say what the agent is made of. Where they say
// something, they go before the agent file.
type options struct {
	file  string
	flags agentfile.File
	tools []string
	hooks []string
	form  string
	color string
	quiet bool

	// texts are the files that were read, by the path that was given. What is there is
	// not read again: a run that is resumed goes on with what it began with.
	texts map[string]string
}

// text is what stands in a file.
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

// registerAgent registers the flags that say what the agent is made of.
func (o *options) registerAgent(c *cobra.Command) {
	f := c.Flags()
	f.SortFlags = false
	f.StringVarP(&o.file, "agent", "a", "", "`file` that says what the agent is made of (YAML, or JSON if it ends in .json)")
	f.VarP(&o.flags.Model, "model", "m", "openai/…, anthropic/…, gemini/…, or replay:FILE to play a recording")
	f.Var(&o.flags.BaseURL, "base-url", "where the model service is, such as http://localhost:11434/v1")
	f.StringVarP(&o.flags.Instructions, "instructions", "i", "", "the system prompt, as `text`")
	f.StringArrayVarP(&o.tools, "tool", "t", nil, "give the agent a tool: shell or files, in this folder (may be repeated)")
	f.StringArrayVar(&o.hooks, "hook", nil, "give the agent a ready-made hook: base-dir, redact (may be repeated)")
	f.Var(&o.flags.Guards.Steps, "steps", "stop after so many model turns")
	f.Var(&o.flags.Guards.Tokens, "tokens", "stop after so many tokens, input and output together")
	f.Var(&o.flags.Guards.Cost, "cost", "stop at this cost in US dollars; an unknown cost counts as reached")
	f.Var(&o.flags.Guards.Time, "time", "stop after this time, such as 10m")
	f.Var(&o.flags.Parallel, "parallel", "run so many tool calls of one step at once")
	f.StringVar(&o.form, "output-schema", "", "`file` with the JSON Schema that the final answer must have")
}

// registerLook registers the flags that say how it looks.
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

// resolve is the agent file, with what the flags say put over it. Explicit says that
// somebody asked for a model.
func (o *options) resolve() (file *agentfile.File, err error) {
	if err := o.checkLook(); err != nil {
		return nil, err
	}
	file = &agentfile.File{}
	if o.file != "" {
		text, err := o.text(o.file, agentfile.Read)
		if err == nil {
			file, err = agentfile.Parse(o.file, []byte(text))
		}
		if err != nil {
			return nil, &usageError{err}
		}
	}
	over(&file.Model, o.flags.Model)
	over(&file.BaseURL, o.flags.BaseURL)
	over(&file.Instructions, o.flags.Instructions)
	over(&file.Guards.Steps, o.flags.Guards.Steps)
	over(&file.Guards.Tokens, o.flags.Guards.Tokens)
	over(&file.Guards.Cost, o.flags.Guards.Cost)
	over(&file.Guards.Time, o.flags.Guards.Time)
	over(&file.Parallel, o.flags.Parallel)
	for _, kind := range o.tools {
		if err := file.Tools.AddTool(kind); err != nil {
			return nil, &usageError{fmt.Errorf("--tool: %w", err)}
		}
	}
	for _, kind := range o.hooks {
		if err := file.Hooks.AddHook(kind); err != nil {
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
		file.Output = agentfile.Output{Name: "answer", Schema: agentfile.Schema{Text: text}}
	}
	return file, nil
}

// over puts what is said in the place of what was there.
func over[T comparable](at *T, said T) {
	var nothing T
	if said != nothing {
		*at = said
	}
}
