package hooks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/policy/policytest"
)

// caseRuns are the flags of hooks test.
type caseRuns struct {
	run         string
	minCoverage float64
	coverage    bool
	watch       bool
	junit       string
	json        bool
	verbose     bool
	color       string
	schema      bool

	only *regexp.Regexp
}

func newHooksTest(std console.Streams) *cobra.Command {
	f := &caseRuns{}
	c := &cobra.Command{
		Use:   "test [FILE|FOLDER]...",
		Short: "Run the test cases of policies",
		Long: `test runs the cases in files that end in .test.yaml (.yml, .json): NAME.test.yaml tests NAME.yaml. A FILE is one of these, or
a policy with such a file next to it; a FOLDER stands for all such files in it; the default is the current folder. docs/policy-testing.md explains
how to write them.

Actions are real: commands run in a separate folder for each case, requests go to the URL in the policy, or to the
case's receiver.

Exit codes:
  0    all cases passed
  1    a case failed, or the coverage is below --min-coverage
  2    the command, a file of cases or a policy is wrong, or there are no cases`,
		Example: `  grapnel hooks test workspace.yaml
  grapnel hooks test --min-coverage 100 --junit report.xml policies/
  grapnel hooks test --watch --run 'wipe|push'`,
		RunE: func(c *cobra.Command, args []string) error { return f.start(c.Context(), std, args) },
	}
	c.Flags().SortFlags = false
	c.Flags().StringVarP(&f.run, "run", "r", "", "only the cases whose names match this regular `expression`")
	c.Flags().Float64Var(&f.minCoverage, "min-coverage", 0, "fail if the coverage of rules and branches is below this `percent`")
	c.Flags().BoolVar(&f.coverage, "coverage", false, "list the coverage of all rules, not only the missed ones")
	c.Flags().BoolVarP(&f.watch, "watch", "w", false, "run again whenever a file changes")
	c.Flags().StringVar(&f.junit, "junit", "", "write the results as JUnit XML to a `file`, too")
	c.Flags().BoolVar(&f.json, "json", false, "write the results as JSON")
	c.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "show the opinions of the rules for each case")
	c.Flags().StringVar(&f.color, "color", "auto", "colours: auto, always or never")
	c.Flags().BoolVar(&f.schema, "schema", false, "write the JSON Schema of files of cases, for editors, and do nothing else")
	return c
}

func (f *caseRuns) start(ctx context.Context, std console.Streams, args []string) error {
	if f.schema {
		_, err := std.Out.Write(policytest.Schema())
		return err
	}
	if err := f.check(); err != nil {
		return console.Usage(err)
	}
	ctx, release := console.WithInterrupt(ctx, func() {}, func() {})
	defer release()
	if f.watch {
		return console.InterruptedOr(ctx, f.watching(ctx, std, args))
	}
	_, err := f.once(ctx, std, args)
	return console.InterruptedOr(ctx, err)
}

func (f *caseRuns) check() error {
	var err error
	if f.only, err = regexp.Compile(f.run); err != nil {
		return fmt.Errorf("--run: %w", err)
	}
	switch {
	case f.watch && (f.json || f.junit != ""):
		return errors.New("--watch cannot be combined with --json or --junit")
	case f.minCoverage < 0 || f.minCoverage > 100:
		return fmt.Errorf("--min-coverage is %v: expected a percentage from 0 to 100", f.minCoverage)
	case f.run != "" && f.minCoverage > 0:
		return errors.New("--min-coverage needs all cases: omit --run")
	}
	return console.CheckColour(f.color)
}

// suites returns the files of cases for the arguments.
func suites(args []string) ([]string, error) {
	if len(args) == 0 {
		args = []string{"."}
	}
	var out []string
	for _, arg := range args {
		info, err := os.Stat(arg)
		switch {
		case err != nil:
			return nil, fmt.Errorf("looking for tests: %w", err)
		case info.IsDir():
			found, err := suitesIn(arg)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		case policytest.IsSuite(arg):
			out = append(out, arg)
		default:
			beside, ok := policytest.Of(arg)
			if !ok {
				extension := filepath.Ext(arg)
				return nil, fmt.Errorf("no tests next to %s: put cases into %s", arg, strings.TrimSuffix(arg, extension)+policytest.Suffix+extension)
			}
			out = append(out, beside)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no tests in %s: tests are in files that end in %s.yaml", strings.Join(args, ", "), policytest.Suffix)
	}
	return lo.Uniq(out), nil
}

// suitesIn returns the files of cases in a folder and those below it.
func suitesIn(dir string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != dir && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "node_modules"):
			return filepath.SkipDir
		case !entry.IsDir() && policytest.IsSuite(path):
			out = append(out, path)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for tests: %w", err)
	}
	return out, nil
}

// once runs all cases and writes the results. It returns the files on which the results depend.
func (f *caseRuns) once(ctx context.Context, std console.Streams, args []string) (files []string, err error) {
	paths, err := suites(args)
	if err != nil {
		return args, console.Usage(err)
	}
	files = paths
	w := &testWriter{out: std.Out, colours: console.WantsColour(std.Out, f.color), verbose: f.verbose, all: f.coverage, quiet: f.json}
	o := policytest.Options{Only: f.only.MatchString, Told: w.writeCase}
	var results []*policytest.Result
	var wrong []error
	for _, path := range paths {
		suite, err := policytest.Open(path)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		files = append(files, suite.Files(o)...)
		w.begin(suite)
		result, err := suite.Run(ctx, o)
		if ctx.Err() != nil {
			return files, err
		}
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		results = append(results, result)
		w.coverage(result, f.run == "")
	}
	return files, f.conclude(std, w, results, wrong)
}

// conclude writes the summary, and returns the error for the exit code.
func (f *caseRuns) conclude(std console.Streams, w *testWriter, results []*policytest.Result, wrong []error) error {
	if f.junit != "" {
		if err := writeJUnit(f.junit, results); err != nil {
			wrong = append(wrong, err)
		}
	}
	if f.json {
		if err := console.WriteJSON(std.Out, lo.CoalesceSliceOrEmpty(results)); err != nil {
			return fmt.Errorf("writing the results: %w", err)
		}
	}
	ran := lo.SumBy(results, func(r *policytest.Result) int { return len(r.Cases) })
	failed := lo.SumBy(results, (*policytest.Result).FailedCases)
	low := lo.Filter(results, func(r *policytest.Result, _ int) bool { return r.Coverage.Percent() < f.minCoverage })
	w.sum(ran, failed, low, f.minCoverage)
	switch {
	case len(wrong) > 0:
		return console.Usage(errors.Join(wrong...))
	case ran == 0 && f.run != "":
		return console.Usagef("no case has a name that matches %q", f.run)
	case failed > 0 || len(low) > 0:
		return console.Exit(console.ExitFailed)
	}
	return nil
}

// everySo is the interval at which watched files are checked.
const everySo = 300 * time.Millisecond

// watching runs all cases, and again whenever a file has changed, until ctx is done.
func (f *caseRuns) watching(ctx context.Context, std console.Streams, args []string) error {
	for {
		if term := console.WantsColour(std.Out, f.color); term {
			fmt.Fprint(std.Out, "\x1b[H\x1b[2J")
		}
		files, err := f.once(ctx, std, args)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if _, said := errors.AsType[*console.ExitError](err); err != nil && !said {
			console.ReportError(std.Err, err)
		}
		fmt.Fprintf(std.Out, "\nWatching %s; press Ctrl-C to end.\n", lo.Ternary(len(files) == 1, "one file", fmt.Sprintf("%d files", len(lo.Uniq(files)))))
		if !changed(ctx, files, args) {
			return context.Cause(ctx)
		}
	}
}

// changed waits until a file has changed or a new file of cases exists. It returns false if ctx is done first.
func changed(ctx context.Context, files, args []string) bool {
	look := func() string {
		found, _ := suites(args) // the existing ones
		var b strings.Builder
		for _, path := range append(slices.Clone(files), found...) {
			if info, err := os.Stat(path); err == nil {
				fmt.Fprintln(&b, path, info.Size(), info.ModTime().UnixNano())
			}
		}
		return b.String()
	}
	before := look()
	tick := time.NewTicker(everySo)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
			if look() != before {
				return true
			}
		}
	}
}

// testWriter writes test results as text.
type testWriter struct {
	out     io.Writer
	colours bool
	verbose bool
	all     bool
	quiet   bool
}

func (w *testWriter) line(format string, args ...any) {
	if !w.quiet {
		fmt.Fprint(w.out, console.PaintText(fmt.Sprintf(format, args...)+"\n", w.colours))
	}
}

func (w *testWriter) begin(s *policytest.Suite) {
	w.line("%s", console.MarkText(s.Path, console.MarkBold))
}

// writeCase writes the result of a case.
func (w *testWriter) writeCase(_ *policytest.Suite, r policytest.CaseResult) {
	sign := console.MarkText("✓", console.MarkGood)
	if !r.Passed() {
		sign = console.MarkText("✗", console.MarkBad)
	}
	w.line("  %s %s", sign, r.Name)
	for _, f := range r.Failures {
		w.line("      %s", strings.ReplaceAll(f.String(), "\n", "\n      "))
	}
	if r.Report != nil && w.verbose {
		w.line("      %s", strings.ReplaceAll(strings.TrimSuffix(r.Report.Text(console.MarkVerdict), "\n"), "\n", "\n      "))
	}
}

// coverage writes the coverage of the rules.
func (w *testWriter) coverage(r *policytest.Result, whole bool) {
	if !whole {
		return
	}
	w.line("  coverage: %s", r.Coverage.String())
	for _, rule := range r.Coverage.Rules {
		switch missing := rule.Missing(); {
		case missing != "":
			w.line("    %s %s  %s:%d: %s", console.MarkText("○", console.MarkDoubt), rule.Rule, rule.File, rule.Line, missing)
		case w.all:
			w.line("    %s %s  %s", console.MarkText("●", console.MarkGood), rule.Rule, seenOf(rule))
		}
	}
}

func seenOf(r policytest.RuleCoverage) string {
	if r.When == "" {
		return fmt.Sprintf("asked %d times", r.Applied)
	}
	return fmt.Sprintf("true %d times, false %d times", r.Applied, r.False)
}

// sum writes the summary.
func (w *testWriter) sum(ran, failed int, low []*policytest.Result, least float64) {
	for _, r := range low {
		w.line("%s: %s is below the required %v%%", r.Path, r.Coverage.String(), least)
	}
	cases := timeline.Plural(ran, "case")
	switch {
	case failed > 0:
		w.line("%s", console.MarkText(fmt.Sprintf("%d of %s failed", failed, cases), console.MarkBad))
	case ran > 0:
		w.line("%s", console.MarkText(cases+" passed", console.MarkGood))
	}
}
