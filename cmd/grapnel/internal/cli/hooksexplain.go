package cli

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
	"golang.org/x/term"

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

func newHooksExplain(std streams) *cobra.Command {
	f := &explaining{}
	c := &cobra.Command{
		Use:   "explain POLICY... EVENT|RECORDING",
		Short: "Say why a call is denied or allowed: the rules that were tried, and the values of their conditions",
		Long: `explain says why the rules decide as they do about an event, or about a call of a recorded run: which rule decides, where it
stands, the values of its condition, who brought the arguments in where the condition asks for that, and what to do about it. With
--all it shows each rule in the order in which they are asked, which matcher said no, and what each condition came to.

A POLICY is a file with rules, or library:NAME; --policy names one, too. The other argument is the event or the recording.

An EVENT is what hooks fire takes; "-" is standard input. A RECORDING is what hooks backtest takes. There the call is named by
--call, with its id or its place among the calls (1 is the first), and judged as it was before it ran: with all that was said and
called before it, whatever the rules would have made of that.

The actions of rules are not done unless --actions says so: such a rule then has no opinion.

Exit codes:
  0    it was explained, whatever was decided
  2    the command, the event, the recording or a policy file is wrong`,
		Example: `  grapnel hooks explain workspace.yaml event.json
  grapnel hooks explain workspace.yaml session.jsonl --call 3
  grapnel hooks explain mail.yaml ~/.claude/projects/site/1f3a.jsonl --call toolu_01Ab --json`,
		RunE: func(c *cobra.Command, args []string) error {
			args, err := policiesIn(args, &f.policies, 1)
			if err != nil {
				return err
			}
			trial, err := newTrial(f.policies, !f.actions)
			if err != nil {
				return err
			}
			event, err := f.event(std, args)
			if err != nil {
				return &usageError{err}
			}
			report, err := fireOne(c.Context(), trial, event)
			if err != nil {
				return err
			}
			if f.json || f.all {
				return writeReport(std.out, report, f.json, wantsColour(std.out, f.color))
			}
			width := 0
			if term.IsTerminal(int(std.out.Fd())) {
				width = widthOf(std.out)
			}
			_, err = io.WriteString(std.out, paintText(report.Summary(markVerdict, width), wantsColour(std.out, f.color)))
			return err //nolint:wrapcheck // it names the output
		},
	}
	c.Flags().SortFlags = false
	c.Flags().StringArrayVarP(&f.policies, "policy", "p", nil, "a policy `file`; may be given several times")
	c.Flags().StringVar(&f.call, "call", "", "which call of a recording: its `id`, or its place")
	c.Flags().StringVar(&f.run, "run", "", "which run of a recording of several: its `id`, or its place")
	c.Flags().BoolVar(&f.actions, "actions", false, "do what the actions of rules say")
	c.Flags().BoolVar(&f.all, "all", false, "show every rule at the point, also those without an opinion")
	c.Flags().BoolVar(&f.json, "json", false, "write it as JSON: what hooks fire writes")
	c.Flags().StringVar(&f.color, "color", "auto", "colours: auto, always or never")
	return c
}

// event returns what is to be explained.
func (f *explaining) event(std streams, args []string) (*policytest.Event, error) {
	if err := checkColor(f.color); err != nil {
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

// isRecording reports whether a file holds runs and no event: it has lines of JSON, or is
// packed, or speaks of messages and no point. What can be read only once holds an event.
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

// recordedRun returns the run of a recording that is meant: the one that was named, or has the
// call that was named, or the only one.
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
		return nil, fmt.Errorf("there is no run in %s", path)
	case f.run != "":
		return nil, fmt.Errorf("there is no run %q in %s; there are %s", f.run, path, strings.Join(lo.Subset(ids, 0, 20), ", "))
	case len(ids) > 1:
		return nil, fmt.Errorf("there are %d runs in %s, and no call %q in any: say which run with --run, such as %s or 1", len(ids), path, f.call, ids[0])
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

// checkColor finds what --color cannot be.
func checkColor(when string) error {
	if when == "auto" || when == "always" || when == "never" {
		return nil
	}
	return fmt.Errorf("--color is %q: it must be auto, always or never", when)
}
