package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/registry"
)

func newRun(std streams) *cobra.Command {
	var o options
	var asJSON bool
	var trace string
	var keep keptFlags
	c := &cobra.Command{
		Use:   "run [PROMPT | -]",
		Short: "Run an agent until it is done",
		Long: `Run an agent on a prompt until it is done, stopped, denied or failed.

The prompt is the arguments, or standard input if they end in "-" or if there
are none and input is piped. The answer goes to standard output, the progress
to standard error; with --json, both go to standard output, as JSON
Lines. Keys are read from the environment only: OPENAI_API_KEY, ANTHROPIC_API_KEY,
GEMINI_API_KEY. docs/cli.md describes Azure and Vertex AI.

Without --model, a model in the agent file or GRAPNEL_MODEL, grapnel uses a small
model of the first service with a key. Without any key, or without a network, it plays
a recording that ships with grapnel instead, and says so.

With --durable, the run is stored while it runs, so that it survives the end of
the process: "grapnel runs" lists, answers and resumes it. When a person is asked
and there is no terminal, the run parks. The first Ctrl-C (or SIGTERM) suspends it at the
end of its step, the second cancels it.

` + exitHelp,
		Example: `  grapnel run "Why do the tests fail?" --tool shell --tool files
  grapnel run --agent fixer.yaml "Fix the build" > answer.txt
  grapnel run --policy workspace.yaml --tool shell --tool files "Tidy up this folder"
  git diff | grapnel run "Review this change:" - --model anthropic/claude-haiku-5-5
  grapnel run -m openai/llama3 --base-url http://localhost:11434/v1 "Hello"
  grapnel run --agent fixer.yaml --json "Fix the build" | jq -r .type
  grapnel run --agent fixer.yaml --durable --no-wait "Fix the build, and push it"`,
		RunE: func(c *cobra.Command, args []string) error {
			file, err := o.resolve()
			if err != nil {
				return err
			}
			prompt, err := promptOf(args, std.in)
			if err != nil {
				return &usageError{err}
			}
			isDurable, err := keep.resolve(c)
			if err != nil {
				return &usageError{err}
			}
			return withTelemetry(c.Context(), trace, std.err, func(ctx context.Context) error {
				if v := newView(std, &o, asJSON, true); isDurable {
					return runKept(ctx, keep, &o, c, file, prompt, v)
				}
				return runAgent(ctx, file, o.rules, prompt, newView(std, &o, asJSON, true))
			})
		},
	}
	o.register(c)
	c.Flags().BoolVar(&asJSON, "json", false, "write every event to standard output, as JSON Lines (docs/streams.md)")
	c.Flags().StringVar(&trace, "trace", "", "write the run's OpenTelemetry spans to this `file`, and show them as a tree at the end")
	keep.register(c)
	return c
}

// runAgent runs the agent once, or plays the shipped recording if no model was named and none is available.
func runAgent(ctx context.Context, file *registry.File, rules rules, prompt string, v *view) error {
	in := newInput(v.std)
	ctx, release := withInterrupt(ctx,
		func() { v.note(cancelling) }, in.restore)
	defer release()
	m, err := build(ctx, file, watchers{observer: v.observer(), approver: in.approver(v), reasons: tracesRuns(ctx), rules: rules})
	if errors.Is(err, errNoKey) {
		return playShipped(ctx, rules, v, err)
	}
	if err != nil {
		return interruptedOr(ctx, err)
	}
	if prompt == "" && m.recording == nil {
		return errors.Join(errNoPrompt, m.close())
	}
	final, err := m.turn(ctx, v, prompt, agent.RunSettings{}, nil)
	if offline, ok := errors.AsType[*offlineError](err); ok {
		if err := m.close(); err != nil {
			v.note(err.Error())
		}
		return playShipped(ctx, rules, v, offline)
	}
	return m.finish(ctx, v, final, err)
}

var errNoPrompt = &usageError{errors.New(`no prompt: give one, as in grapnel run "Why do the tests fail?", or pipe one in`)}

// playShipped plays the shipped recording instead of a run for which no model is available, and says so.
func playShipped(ctx context.Context, rules rules, v *view, why error) error {
	v.fallback(why, "This is not an answer to your prompt.")
	m, err := newShippedAgent(watchers{observer: v.observer(), reasons: tracesRuns(ctx), rules: rules})
	if err != nil {
		return err
	}
	final, err := m.turn(ctx, v, "", agent.RunSettings{}, nil)
	return m.finish(ctx, v, final, err)
}
