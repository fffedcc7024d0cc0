package policytest

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy"
)

// Options configure Run. The zero value runs all cases with the standard condition functions.
type Options struct {
	// Only selects cases by name; nil selects all.
	Only func(name string) bool
	// Policy holds the options for loading policies, such as additional condition functions. Run replaces the options
	// that depend on the case, such as the folder and the host.
	Policy policy.Options
	// Told, unless nil, is called after each case.
	Told func(s *Suite, r CaseResult)
}

// Result is the result of a file's cases.
type Result struct {
	// Path is the case file. Policies lists the policies under test.
	Path     string       `json:"file"`
	Policies []string     `json:"policies"`
	Cases    []CaseResult `json:"cases"`
	Coverage Coverage     `json:"coverage"`
}

// CaseResult is a case's result.
type CaseResult struct {
	Name string `json:"name"`
	Line int    `json:"line"`
	// Failures lists the deviations from the expected result; none if the case passed.
	Failures []Failure     `json:"failures,omitempty"`
	Took     time.Duration `json:"took_ns"`
	// Report is the report for a case with an event.
	Report *Report `json:"report,omitempty"`
}

// Failure is one deviation from the expected result.
type Failure struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	// Key names the expectation: decision, reason, arguments …; empty if the case could not run.
	Key  string `json:"key,omitempty"`
	Text string `json:"text"`
}

func (f Failure) String() string {
	return fmt.Sprintf("%s:%d:%d: %s%s", f.File, f.Line, f.Column, lo.Ternary(f.Key == "", "", f.Key+": "), f.Text)
}

// Passed reports whether the case has no failures.
func (r CaseResult) Passed() bool { return len(r.Failures) == 0 }

// FailedCases returns how many cases failed.
func (r *Result) FailedCases() int {
	return lo.CountBy(r.Cases, func(c CaseResult) bool { return !c.Passed() })
}

// Run runs the cases one after the other. It returns an error if it cannot run them: a policy is invalid, or ctx has
// ended. While a case runs, its fixtures change the process environment, so nothing else should read it.
func (s *Suite) Run(ctx context.Context, o Options) (*Result, error) {
	r := &Result{Path: s.Path, Policies: s.policies, Cases: []CaseResult{}}
	base, err := s.loadTrial(fixtures{}, nil, nil, o)
	if err != nil {
		return nil, err
	}
	if err := s.checkPolicy(base.policy); err != nil {
		return nil, err
	}
	r.Coverage = newCoverage(base.policy)
	for i := range s.cases {
		c := &s.cases[i]
		if o.Only != nil && !o.Only(c.Name) {
			continue
		}
		if ctx.Err() != nil {
			return r, context.Cause(ctx)
		}
		began := time.Now()
		result := CaseResult{Name: c.Name, Line: c.node.Place().Line}
		result.Failures = s.try(ctx, c, o, &result, &r.Coverage)
		result.Took = time.Since(began)
		r.Cases = append(r.Cases, result)
		if o.Told != nil {
			o.Told(s, result)
		}
	}
	r.Coverage.sum()
	return r, nil
}

// Files returns all files that the results depend on: the case file, the policies with their includes, and the copied
// files.
func (s *Suite) Files(o Options) []string {
	out := append([]string{s.Path}, s.policies...)
	if t, err := s.loadTrial(fixtures{}, nil, nil, o); err == nil {
		out = append(out, t.policy.Files()...)
	}
	for _, f := range append(lo.Map(s.cases, func(c testCase, _ int) fixtures { return c.Fixtures }), s.fixtures) {
		out = append(out, lo.Map(f.Copy, func(name string, _ int) string { return pathBelow(s.Path, name) })...)
	}
	return lo.Uniq(out)
}

// loadTrial loads the policies for a case.
func (s *Suite) loadTrial(f fixtures, w *world, faults map[string]injectedFault, o Options) (*Trial, error) {
	with := o.Policy
	if w != nil {
		with.Dir, with.Host = w.workspace, f.host(w)
		with.Variables = lo.MapValues(f.Variables, func(v Value, _ string) any { return variableValue(v) })
		with.Wrap = func(r policy.Rule, a action.Action) action.Action {
			for id, fault := range faults {
				if policy.NamesRule(id, r.Hook()) {
					return fault.with(r.Action, a)
				}
			}
			return a
		}
		return Load([]policy.Layer{{Name: "run", Files: s.policies}}, with)
	}
	p, err := policy.Load([]policy.Layer{{Name: "run", Files: s.policies}}, with)
	return &Trial{policy: p}, err
}

// checkPolicy reports cases that name unknown rules.
func (s *Suite) checkPolicy(p *policy.Policy) error {
	rules := p.Rules()
	known := func(id string) bool {
		return lo.SomeBy(rules, func(r policy.Rule) bool { return policy.NamesRule(id, r.Hook()) })
	}
	look := func(x *expectation) {
		if x == nil {
			return
		}
		if x.Rule != "" && !known(x.Rule) {
			x.node.Find("rule").Wrong("%s", policy.UnknownRule("rule", x.Rule, rules))
		}
		for id := range x.Rules {
			if !known(id) {
				x.node.Find("rules", id).Wrong("%s", policy.UnknownRule("rule", id, rules))
			}
		}
	}
	for i := range s.cases {
		c := &s.cases[i]
		look(&c.Expect)
		for _, t := range c.Transcript {
			look(t.Expect)
			for _, k := range t.Calls {
				look(k.Expect)
			}
		}
		acting := lo.Filter(rules, func(r policy.Rule, _ int) bool { return r.Action != "" })
		for id := range c.Faults {
			if !lo.SomeBy(acting, func(r policy.Rule) bool { return policy.NamesRule(id, r.Hook()) }) {
				c.node.Find("faults", id).Wrong("%s", policy.UnknownRule("rule with an action", id, acting))
			}
		}
	}
	return s.file.Err()
}

// try runs a case.
func (s *Suite) try(ctx context.Context, c *testCase, o Options, result *CaseResult, cover *Coverage) []Failure {
	var d differences
	folder, err := filepath.Abs(filepath.Dir(s.Path))
	if err != nil {
		return []Failure{failureAt(c.node, "", err.Error())}
	}
	var own testCase // with names replaced by values
	c.node.Decode((*caseOf)(&own))
	given := s.fixtures.over(own.Fixtures)
	w, err := given.build(folder)
	if err != nil {
		return []Failure{failureAt(c.node, "", err.Error())}
	}
	in := w.names(folder)
	fill(&own, in)
	fill(&given, in)
	t, err := s.loadTrial(given, w, own.Faults, o)
	if err != nil {
		return []Failure{failureAt(c.node, "", errorOf(err, w.close()))}
	}
	var failures []Failure
	if own.Event != nil {
		if own.Event.Now == (Time{}) {
			own.Event.Now = given.Now
		}
		result.Report, err = t.Fire(ctx, own.Event)
		if err == nil {
			own.Expect.compareReport(&d, result.Report)
			cover.add(t.seenConditions(), result.Report.fired.Events)
		}
	} else {
		failures, err = t.play(ctx, &own, given.Now, &d, cover)
	}
	if err == nil {
		own.Expect.checkWorld(&d, w)
	}
	if text := errorOf(err, w.close()); text != "" {
		failures = append(failures, failureAt(c.node, "", text))
	}
	return append(failures, failuresOf(c.Expect.node, c.node, d)...)
}

// errorOf returns the joined errors' text.
func errorOf(errs ...error) string {
	return strings.Join(lo.FilterMap(errs, func(err error, _ int) (string, bool) {
		if err == nil {
			return "", false
		}
		return err.Error(), true
	}), "\n")
}

// failuresOf converts differences to failures at the expectation's place.
func failuresOf(at, otherwise yamlfile.Node, d differences) []Failure {
	return lo.Map(d, func(x difference, _ int) Failure {
		place := otherwise
		if at.Kind() != yamlfile.AbsentNode {
			place = at
		}
		if at.Kind() == yamlfile.MappingNode {
			for keys := strings.Split(x.key, "."); len(keys) > 0; keys = keys[:len(keys)-1] {
				path := lo.Map(keys, func(k string, _ int) any { return parseIndex(k) })
				if n := at.Find(path...); n.Kind() != yamlfile.AbsentNode {
					place = n
					break
				}
			}
		}
		return failureAt(place, x.key, x.text)
	})
}

// parseIndex returns a list index if the key is a number, and the key otherwise.
func parseIndex(key string) any {
	n := 0
	if _, err := fmt.Sscanf(key, "%d", &n); err == nil && strconv.Itoa(n) == key {
		return n
	}
	return key
}

func failureAt(n yamlfile.Node, key, text string) Failure {
	p := n.Place()
	return Failure{File: p.File(), Line: p.Line, Column: p.Column, Key: key, Text: text}
}
