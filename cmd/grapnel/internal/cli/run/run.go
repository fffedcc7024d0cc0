package run

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/agents"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/registry"
)

// New returns the command run.
func New(std console.Streams) *cobra.Command {
	var o agents.Options
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

` + console.ExitHelp,
		Example: `  grapnel run "Why do the tests fail?" --tool shell --tool files
  grapnel run --agent fixer.yaml "Fix the build" > answer.txt
  grapnel run --policy workspace.yaml --tool shell --tool files "Tidy up this folder"
  git diff | grapnel run "Review this change:" - --model anthropic/claude-haiku-5-5
  grapnel run -m openai/llama3 --base-url http://localhost:11434/v1 "Hello"
  grapnel run --agent fixer.yaml --json "Fix the build" | jq -r .type
  grapnel run --agent fixer.yaml --durable --no-wait "Fix the build, and push it"`,
		RunE: func(c *cobra.Command, args []string) error {
			file, err := o.Resolve()
			if err != nil {
				return err
			}
			prompt, err := console.PromptOf(args, std.In)
			if err != nil {
				return console.Usage(err)
			}
			isDurable, err := keep.resolve(c)
			if err != nil {
				return console.Usage(err)
			}
			return console.WithTelemetry(c.Context(), trace, std.Err, func(ctx context.Context) error {
				if v := agents.NewView(std, &o, asJSON, true); isDurable {
					return runKept(ctx, keep, &o, c, file, prompt, v)
				}
				return runAgent(ctx, file, o.Rules, prompt, agents.NewView(std, &o, asJSON, true))
			})
		},
	}
	o.Register(c)
	c.Flags().BoolVar(&asJSON, "json", false, "write every event to standard output, as JSON Lines (docs/streams.md)")
	c.Flags().StringVar(&trace, "trace", "", "write the run's OpenTelemetry spans to this `file`, and show them as a tree at the end")
	keep.register(c)
	return c
}

// runAgent runs the agent once, or plays the shipped recording if no model was named and none is available.
func runAgent(ctx context.Context, file *registry.File, rules agents.Rules, prompt string, v *agents.View) error {
	in := agents.NewInput(v.Std)
	ctx, release := console.WithInterrupt(ctx,
		func() { v.Note(storage.Cancelling) }, in.Restore)
	defer release()
	m, err := agents.Build(ctx, file, agents.Watchers{Observer: v.Observer(), Approver: in.Approver(v), Rules: rules, Note: v.Note})
	if errors.Is(err, agents.ErrNoKey) {
		return playShipped(ctx, rules, v, err)
	}
	if err != nil {
		return console.InterruptedOr(ctx, err)
	}
	if prompt == "" && m.Recording == nil {
		return errors.Join(errNoPrompt, m.Close())
	}
	final, err := m.Turn(ctx, v, prompt, agent.RunSettings{}, nil)
	if offline, ok := errors.AsType[*agents.OfflineError](err); ok {
		if err := m.Close(); err != nil {
			v.Note(err.Error())
		}
		return playShipped(ctx, rules, v, offline)
	}
	return m.Finish(ctx, v, final, err)
}

var errNoPrompt = console.Usagef(`no prompt: give one, as in grapnel run "Why do the tests fail?", or pipe one in`)

// playShipped plays the shipped recording instead of a run for which no model is available, and says so.
func playShipped(ctx context.Context, rules agents.Rules, v *agents.View, why error) error {
	v.Fallback(why, "This is not an answer to your prompt.")
	m, err := agents.NewShippedAgent(ctx, agents.Watchers{Observer: v.Observer(), Rules: rules, Note: v.Note})
	if err != nil {
		return err
	}
	final, err := m.Turn(ctx, v, "", agent.RunSettings{}, nil)
	return m.Finish(ctx, v, final, err)
}
