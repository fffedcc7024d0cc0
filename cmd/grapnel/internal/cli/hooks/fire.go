package hooks

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/agents"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy"
	"github.com/grapnel-go/grapnel/policy/policytest"
)

// exitVerdict describes the exit codes for decisions, which are the same as for a run.
const exitVerdict = `Exit codes:
  0    the run continues: no opinion, allowed, rewritten, mocked, replaced
  1    a rule could not decide, which counts as a denial
  2    the command, the event or a policy file is wrong
  3    stopped
  4    denied, or withheld
  5    rejected by a rule that answers for a person
  6    a person must be asked`

func newHooksFire(std console.Streams) *cobra.Command {
	var policies []string
	var noActions, text bool
	c := &cobra.Command{
		Use:   "fire POLICY... [EVENT]",
		Short: "Evaluate the rules of policies for one event, and show the opinion of each",
		Long: `fire evaluates the rules at one point for one event, which is JSON or YAML in a file or on standard input, and writes the
decision as JSON: who decided, why, the opinion of each rule in order, and the rewritten values. All points are supported. The event has
the same form as for actions; docs/policy-testing.md describes all its members.

A POLICY is a file with rules, or library:NAME; --policy names one, too. The other argument is the event.

Actions of rules are executed: commands run, requests are sent. With --no-actions, they are not, and have no opinion.

` + exitVerdict,
		Example: `  echo '{"tool":"bash","arguments":{"command":"rm -rf /"}}' | grapnel hooks fire workspace.yaml
  grapnel hooks fire workspace.yaml mail.yaml event.json`,
		RunE: func(c *cobra.Command, args []string) error {
			args, err := agents.PoliciesIn(args, &policies, 1)
			if err != nil {
				return err
			}
			trial, err := newTrial(policies, noActions)
			if err != nil {
				return err
			}
			name, content, err := eventText(std, args)
			if err != nil {
				return console.Usage(err)
			}
			event, err := policytest.ReadEvent(name, content)
			if err != nil {
				return console.Usage(err)
			}
			report, err := fireOne(c.Context(), trial, event)
			if err != nil {
				return err
			}
			if err := writeReport(std.Out, report, !text, console.WantsColour(std.Out, "auto")); err != nil {
				return err
			}
			return verdictExit(report)
		},
	}
	c.Flags().SortFlags = false
	c.Flags().StringArrayVarP(&policies, "policy", "p", nil, "a policy `file`; may be given several times")
	c.Flags().BoolVar(&noActions, "no-actions", false, "do not execute actions: they have no opinion")
	c.Flags().BoolVar(&text, "text", false, "write a readable text, as hooks explain does")
	return c
}

// newTrial returns the policies for a trial.
func newTrial(files []string, noActions bool) (*policytest.Trial, error) {
	if len(files) == 0 {
		return nil, console.Usagef("no policy to try: name a file with rules, or library:NAME, as an argument or with --policy")
	}
	o := policy.Options{Host: action.Host{Secrets: action.Secrets{File: agents.SecretsFile()}}}
	if noActions {
		o.Wrap, o.Host = policytest.NoActions, policytest.IdleHost()
	}
	trial, err := policytest.Load([]policy.Layer{{Name: "run", Files: files}}, o)
	if err != nil {
		return nil, console.Usage(err)
	}
	return trial, nil
}

// eventText returns the content of the file, or of standard input. If the text of standard input looks like JSON, the
// returned name ends in .json.
func eventText(std console.Streams, args []string) (name string, text []byte, err error) {
	if len(args) > 0 && args[0] != "-" {
		text, err = yamlfile.Read(args[0])
		if err != nil {
			return "", nil, fmt.Errorf("reading the event: %w", err)
		}
		return args[0], text, nil
	}
	if text, err = io.ReadAll(io.LimitReader(std.In, yamlfile.MaxBytes+1)); err != nil {
		return "", nil, fmt.Errorf("reading the event: %w", err)
	}
	return "<stdin>" + formOf(text), text, nil
}

// formOf returns ".json" for valid JSON, and the empty string for any other text, which is YAML.
func formOf(text []byte) string {
	if json.Valid(text) {
		return ".json"
	}
	return ""
}

// fireOne fires an event. It returns an error if the event is invalid.
func fireOne(ctx context.Context, trial *policytest.Trial, event *policytest.Event) (*policytest.Report, error) {
	ctx, release := console.WithInterrupt(ctx, func() {}, func() {})
	defer release()
	report, err := trial.Fire(ctx, event)
	if err != nil && ctx.Err() == nil {
		err = console.Usage(err)
	}
	return report, console.InterruptedOr(ctx, err)
}

// writeReport writes the report.
func writeReport(w io.Writer, report *policytest.Report, asJSON, colours bool) error {
	if asJSON {
		return console.WriteJSON(w, report)
	}
	_, err := io.WriteString(w, console.PaintText(report.Text(console.MarkVerdict), colours))
	return err
}

// verdictExit returns the exit code for a decision.
func verdictExit(r *policytest.Report) error {
	code := console.ExitDone
	switch r.Decision {
	case hooks.StopRun:
		code = console.ExitStopped
	case hooks.Deny, hooks.Withhold:
		code = console.ExitDenied
	case hooks.RejectAndEnd:
		code = console.ExitRejected
	case hooks.Ask:
		code = console.ExitParked
	}
	if r.Failed {
		code = console.ExitFailed
	}
	return console.Exit(code)
}
