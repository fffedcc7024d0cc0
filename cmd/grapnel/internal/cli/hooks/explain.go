package hooks

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/agents"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/policy/policytest"
	"github.com/grapnel-go/grapnel/policy/recorded"
)

// explaining are the flags of hooks explain.
type explaining struct {
	policies []string
	call     string
	run      string
	actions  bool
	json     bool
	all      bool
	color    string
}

func newHooksExplain(std console.Streams) *cobra.Command {
	f := &explaining{}
	c := &cobra.Command{
		Use:   "explain POLICY... EVENT|RECORDING",
		Short: "Explain why a call is denied or allowed: the rules and the values of their conditions",
		Long: `explain shows why the rules decide as they do about an event, or about a call of a recorded run: which rule decides, where it
is, the values of its condition, the origin of the arguments if the condition uses it, and what to do about it. With
--all, it shows each rule in order, which matcher did not match, and the result of each condition.

A POLICY is a file with rules, or library:NAME; --policy names one, too. The other argument is the event or the recording.

An EVENT is the same as for hooks fire; "-" is standard input. A RECORDING is the same as for hooks backtest. There, --call selects
the call, by its id or its number (1 is the first). It is judged as it was before it ran: after all earlier messages and
calls, even if the rules would have denied some of them.

Actions of rules are not executed without --actions: such a rule then has no opinion.

Exit codes:
  0    explained, whatever the decision
  2    the command, the event, the recording or a policy file is wrong`,
		Example: `  grapnel hooks explain workspace.yaml event.json
  grapnel hooks explain workspace.yaml session.jsonl --call 3
  grapnel hooks explain mail.yaml ~/.claude/projects/site/1f3a.jsonl --call toolu_01Ab --json`,
		RunE: func(c *cobra.Command, args []string) error {
			args, err := agents.PoliciesIn(args, &f.policies, 1)
			if err != nil {
				return err
			}
			trial, err := newTrial(f.policies, !f.actions)
			if err != nil {
				return err
			}
			event, err := f.event(std, args)
			if err != nil {
				return console.Usage(err)
			}
			report, err := fireOne(c.Context(), trial, event)
			if err != nil {
				return err
			}
			if f.json || f.all {
				return writeReport(std.Out, report, f.json, console.WantsColour(std.Out, f.color))
			}
			summary := report.Summary(console.MarkVerdict, console.ColumnsOf(std.Out))
			_, err = io.WriteString(std.Out, console.PaintText(summary, console.WantsColour(std.Out, f.color)))
			return err
		},
	}
	c.Flags().SortFlags = false
	c.Flags().StringArrayVarP(&f.policies, "policy", "p", nil, "a policy `file`; may be given several times")
	c.Flags().StringVar(&f.call, "call", "", "the call of a recording: its `id`, or its number")
	c.Flags().StringVar(&f.run, "run", "", "the run of a recording with several: its `id`, or its number")
	c.Flags().BoolVar(&f.actions, "actions", false, "execute the actions of rules")
	c.Flags().BoolVar(&f.all, "all", false, "show every rule at the point, even those without an opinion")
	c.Flags().BoolVar(&f.json, "json", false, "write JSON, as hooks fire does")
	c.Flags().StringVar(&f.color, "color", "auto", "colours: auto, always or never")
	return c
}

// event returns the event to explain.
func (f *explaining) event(std console.Streams, args []string) (*policytest.Event, error) {
	if err := console.CheckColour(f.color); err != nil {
		return nil, err
	}
	if len(args) == 0 || args[0] == "-" || f.call == "" && !isRecording(args[0]) {
		name, text, err := eventText(std, args)
		if err != nil {
			return nil, err
		}
		if f.call != "" || f.run != "" {
			return nil, errors.New("--call and --run are for recordings: an event is one call by itself")
		}
		return policytest.ReadEvent(name, text)
	}
	run, err := f.recordedRun(args[0])
	if err != nil {
		return nil, err
	}
	return policytest.FromRecording(run, f.call)
}

// isRecording reports whether a file contains runs, not an event: it has several lines of JSON, is compressed, or has
// messages but no point. A file that can be read only once counts as an event.
func isRecording(path string) bool {
	if strings.HasSuffix(path, ".jsonl") || strings.HasSuffix(path, ".gz") {
		return true
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return false
	}
	text, err := os.ReadFile(path)
	return err == nil && !bytes.Contains(text, []byte("point")) && !bytes.Contains(text, []byte("tool:")) &&
		!bytes.Contains(text, []byte(`"tool"`)) && bytes.Contains(text, []byte(`"messages"`))
}

// recordedRun returns the selected run of a recording: the named run, the run that contains the named call, or the
// only run.
func (f *explaining) recordedRun(path string) (*recorded.Run, error) {
	in, err := recorded.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening the recording: %w", err)
	}
	defer in.Close()
	var first *recorded.Run
	var ids []string
	for run, err := range in.Runs() {
		if err != nil {
			return nil, fmt.Errorf("reading the recording: %w", err)
		}
		if ids = append(ids, run.ID); f.run == run.ID || f.run == strconv.Itoa(len(ids)) {
			return run, nil
		}
		has := slices.ContainsFunc(callsOf(run), func(id string) bool { return id == f.call })
		if f.run == "" && has && f.call != "" {
			return run, nil
		}
		first = cmp.Or(first, run)
	}
	switch {
	case first == nil:
		return nil, fmt.Errorf("no run in %s", path)
	case f.run != "":
		return nil, fmt.Errorf("no run %q in %s: it has %s", f.run, path, strings.Join(lo.Subset(ids, 0, 20), ", "))
	case len(ids) > 1:
		return nil, fmt.Errorf("%d runs in %s, but no call %q in any of them: select a run with --run, such as %s or 1", len(ids), path, f.call, ids[0])
	}
	return first, nil
}

func callsOf(run *recorded.Run) []string {
	var ids []string
	for _, c := range run.Calls() {
		ids = append(ids, c.ID)
	}
	return ids
}
