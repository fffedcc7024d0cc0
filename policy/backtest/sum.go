package backtest

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/policy/recorded"
)

// Report is the result of a backtest. Its JSON form is for programs.
type Report struct {
	Recordings []string `json:"recordings"`
	// Interrupted reports whether the backtest stopped before the end of the recordings.
	Interrupted bool `json:"interrupted"`
	// Runs is the number of runs replayed, and Plays the number of replays: one for each run and policy. Failed is
	// the number of runs and lines that could not be read or replayed, and Problems describes the first of them.
	Runs     int       `json:"runs"`
	Plays    int       `json:"plays"`
	Failed   int       `json:"failed"`
	Problems []string  `json:"problems"`
	LeftOut  []LeftOut `json:"left_out"`
	// Lacks lists the information that some runs' formats do not record, with the number of such runs.
	Lacks []Lack `json:"lacks"`
	// Policies are in the order of Options.Policies.
	Policies []PolicyReport `json:"policies"`
	// Cases lists the runs behind the numbers, in recording order: runs with a decision, and runs that count for
	// blocked, broken or twins.
	Cases   []*Case `json:"runs_told"`
	Seconds float64 `json:"seconds"`

	kept int64 // the number of bytes of compressed transcripts
}

// PolicyReport is the report on one policy.
type PolicyReport struct {
	Name   string `json:"name"`
	Total  Score  `json:"total"`
	Suites []Row  `json:"suites"`
	Models []Row  `json:"models"`
	// Results separates, for each model, the runs that did their task from the runs that did not. It omits runs whose
	// task was not checked.
	Results []Result `json:"results"`
	// Tools lists the called tools. Rules lists the hooks that may decide, including hooks that never decided.
	Tools []ToolRow `json:"tools"`
	Rules []Rule    `json:"rules"`
}

// Row is the score for a suite's or model's runs.
type Row struct {
	Name string `json:"name"`
	Score
}

// Result is the score for a model's runs that did their task, or for its other runs.
type Result struct {
	Model string `json:"model"`
	Done  bool   `json:"done"`
	Score
}

// ToolRow counts the decisions about a tool's calls. The counts have the same meaning as in Score.
type ToolRow struct { //nolint:recvcheck // read as a value, counted through a pointer
	Name      string `json:"name"`
	Calls     int    `json:"calls"`
	Denied    int    `json:"denied"`
	Asked     int    `json:"asked"`
	Rewritten int    `json:"rewritten"`
	Mocked    int    `json:"mocked"`
	Redacted  int    `json:"redacted"`
	Stopped   int    `json:"stopped"`
	Shadow    int    `json:"shadow"`
}

// Rule counts one hook's decisions.
type Rule struct {
	Name string `json:"name"`
	// File and Line are the rule's position if it comes from a file.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// Shadow reports whether the hook runs in shadow: it is asked, but its decisions have no effect.
	Shadow bool `json:"shadow,omitempty"`
	// Undone reports whether the rule was not judged, because it depends on an action that a backtest does not
	// perform.
	Undone bool `json:"undone,omitempty"`
	// Judged is the number of times the hook was asked, and Effects counts its decisions by effect. Runs is the
	// number of runs in which it decided something, First the number of runs in which it was the first to prevent a
	// call, and Harm the number of its decisions about calls labelled harm.
	Judged  int            `json:"judged"`
	Effects map[Effect]int `json:"effects"`
	Runs    int            `json:"runs"`
	First   int            `json:"first"`
	Harm    int            `json:"harm"`
}

// LeftOut describes runs that were not replayed, and why: a file in a folder is not a recording, or a policy has no
// hooks for a suite.
type LeftOut struct {
	File   string `json:"file,omitempty"`
	Policy string `json:"policy,omitempty"`
	Suite  string `json:"suite,omitempty"`
	Runs   int    `json:"runs,omitempty"`
	Why    string `json:"why"`
}

// Lack is information that some runs' format does not record.
type Lack struct {
	Format recorded.Format `json:"format"`
	What   string          `json:"what"`
	Runs   int             `json:"runs"`
}

// Case is one run.
type Case struct {
	ID     string          `json:"id"`
	File   string          `json:"file"`
	Line   int             `json:"line"`
	Format recorded.Format `json:"format"`
	Suite  string          `json:"suite,omitempty"`
	Model  string          `json:"model,omitempty"`
	Task   string          `json:"task,omitempty"`
	Kind   replay.Kind     `json:"kind,omitempty"`
	Attack *replay.Attack  `json:"attack,omitempty"`
	// Utility and Security are copied from the recording.
	Utility  *bool     `json:"utility,omitempty"`
	Security *bool     `json:"security,omitempty"`
	Verdicts []Verdict `json:"verdicts"`

	at     [2]int
	packed []byte
}

// mostProblems is the maximum number of entries in Report.Problems.
const mostProblems = 100

// isCounted reports whether a run belongs in Report.Cases.
func isCounted(verdicts []Verdict) bool {
	return slices.ContainsFunc(verdicts, func(v Verdict) bool {
		return slices.ContainsFunc(v.Decisions, func(d Decision) bool { return d.Effect != NotRun }) || v.Score.Blocked.Of+v.Score.Twins.Of > 0
	})
}

// sum adds up results as they arrive.
type sum struct {
	from     *backtest
	runs     int
	size     int64
	out      *Report
	keep     int64
	policies map[string]*policySum
	left     map[LeftOut]int
	lacks    map[Lack]int
}

// doneBy is a model, and whether the run did its task.
type doneBy struct {
	model string
	done  bool
}

type policySum struct {
	total          Score
	suites, models map[string]Score
	results        map[doneBy]Score
	tools          map[string]*ToolRow
	rules          map[string]*Rule
}

func newSum(b *backtest) *sum {
	s := &sum{
		from: b, policies: map[string]*policySum{}, left: map[LeftOut]int{}, lacks: map[Lack]int{},
		keep: cmp.Or(b.options.Keep, defaultKeep),
		size: lo.SumBy(b.recordings, func(r Recording) int64 { return r.Size }),
		out: &Report{
			Recordings: lo.Map(b.recordings, func(r Recording, _ int) string { return r.Name }),
			Problems:   []string{}, LeftOut: []LeftOut{}, Lacks: []Lack{}, Cases: []*Case{}, Policies: []PolicyReport{},
		},
	}
	for _, p := range b.options.Policies {
		s.policies[p.Name] = &policySum{
			total: Score{Left: map[replay.DepartureKind]int{}}, suites: map[string]Score{}, models: map[string]Score{},
			results: map[doneBy]Score{}, tools: map[string]*ToolRow{}, rules: map[string]*Rule{},
		}
	}
	return s
}

// countStopped returns how many calls each policy has denied or asked about.
func (s *sum) countStopped() []int {
	return lo.Map(s.from.options.Policies, func(p Policy, _ int) int {
		total := s.policies[p.Name].total
		return total.Denied + total.Asked
	})
}

func (s *sum) add(r result) {
	for _, l := range r.left {
		n := max(l.Runs, 1)
		l.Runs = 0
		s.left[l] += n
	}
	if r.wrong != nil {
		s.out.Failed++
		if len(s.out.Problems) < mostProblems {
			s.out.Problems = append(s.out.Problems, r.wrong.Error())
		}
		return
	}
	run := r.job.run
	if run == nil {
		return
	}
	s.runs++
	if len(r.job.verdicts) == 0 {
		return
	}
	s.out.Runs++
	if run.Lacks != "" {
		s.lacks[Lack{Format: run.Format, What: run.Lacks}]++
	}
	for _, v := range r.job.verdicts {
		s.out.Plays++
		s.policies[v.Policy].add(run, v)
	}
	if isCounted(r.job.verdicts) {
		s.out.Cases = append(s.out.Cases, s.caseOf(r))
	}
}

func (s *sum) caseOf(r result) *Case {
	run := r.job.run
	c := &Case{
		ID: run.ID, File: run.File, Line: run.Line, Format: run.Format, Suite: run.Suite, Model: run.Model, Task: run.Task,
		Kind: run.Kind, Attack: run.Attack, Utility: run.Utility, Security: run.Security, Verdicts: r.job.verdicts, at: r.job.at,
	}
	if s.out.kept+int64(len(r.packed)) <= s.keep {
		c.packed = r.packed
		s.out.kept += int64(len(r.packed))
	}
	return c
}

// add adds a run's verdict to a policy's sums.
func (p *policySum) add(run *recorded.Run, v Verdict) {
	p.total = p.total.add(v.Score)
	p.suites[run.Suite] = p.suites[run.Suite].add(v.Score)
	p.models[run.Model] = p.models[run.Model].add(v.Score)
	if run.Utility != nil {
		by := doneBy{run.Model, *run.Utility}
		p.results[by] = p.results[by].add(v.Score)
	}
	for _, c := range run.Calls() {
		p.tool(c.Function.Name).Calls++
	}
	for name, n := range v.Score.judged {
		p.rule(name).Judged += n
	}
	told, first := map[string]bool{}, false
	for _, d := range v.Decisions {
		if d.Call >= 0 {
			p.tool(d.Tool).count(d)
		}
		if d.Rule == "" {
			continue
		}
		r := p.rule(d.Rule)
		r.Effects[d.Effect]++
		r.Shadow = r.Shadow || d.Shadow
		if d.File != "" {
			r.File, r.Line = d.File, d.Line
		}
		r.Harm += lo.Ternary(d.Label == replay.LabelHarm, 1, 0)
		if !told[d.Rule] {
			told[d.Rule] = true
			r.Runs++
		}
		if !first && d.prevents() {
			first = true
			r.First++
		}
	}
}

func (p *policySum) tool(name string) *ToolRow {
	if p.tools[name] == nil {
		p.tools[name] = &ToolRow{Name: name}
	}
	return p.tools[name]
}

func (p *policySum) rule(name string) *Rule {
	if p.rules[name] == nil {
		p.rules[name] = &Rule{Name: name, Effects: map[Effect]int{}}
	}
	return p.rules[name]
}

// count counts a decision about one of the tool's calls.
func (t *ToolRow) count(d Decision) {
	switch {
	case d.Shadow:
		t.Shadow++
	case d.Effect == Denied:
		t.Denied++
	case d.Effect == Asked:
		t.Asked++
	case d.Effect == Rewritten:
		t.Rewritten++
	case d.Effect == Mocked:
		t.Mocked++
	case d.Effect == Redacted:
		t.Redacted++
	case d.Effect == Stopped:
		t.Stopped++
	}
}

func (s *sum) report(took time.Duration, interrupted bool) *Report {
	r := s.out
	r.Seconds, r.Interrupted = took.Seconds(), interrupted
	slices.SortFunc(r.Cases, func(a, b *Case) int { return cmp.Or(a.at[0]-b.at[0], a.at[1]-b.at[1]) })
	slices.Sort(r.Problems)
	for l, n := range s.left {
		if l.File == "" {
			l.Runs = n
		}
		r.LeftOut = append(r.LeftOut, l)
	}
	slices.SortFunc(r.LeftOut, func(a, b LeftOut) int {
		return cmp.Or(strings.Compare(a.File, b.File), strings.Compare(a.Suite, b.Suite), strings.Compare(a.Policy, b.Policy))
	})
	for l, n := range s.lacks {
		l.Runs = n
		r.Lacks = append(r.Lacks, l)
	}
	slices.SortFunc(r.Lacks, func(a, b Lack) int {
		return cmp.Or(strings.Compare(string(a.Format), string(b.Format)), strings.Compare(a.What, b.What))
	})
	for _, p := range s.from.options.Policies {
		r.Policies = append(r.Policies, s.policies[p.Name].report(p.Name, s.from.casts.rules[p.Name]))
	}
	return r
}

func (p *policySum) report(name string, known map[string]Rule) PolicyReport {
	for _, k := range known {
		rule := p.rule(k.Name)
		rule.File, rule.Line, rule.Shadow, rule.Undone = k.File, k.Line, rule.Shadow || k.Shadow, k.Undone
	}
	out := PolicyReport{
		Name: name, Total: p.total, Suites: scoreRows(p.suites), Models: scoreRows(p.models), Results: []Result{}, Tools: []ToolRow{}, Rules: []Rule{},
	}
	for by, score := range p.results {
		out.Results = append(out.Results, Result{by.model, by.done, score})
	}
	slices.SortFunc(out.Results, func(a, b Result) int {
		return cmp.Or(strings.Compare(a.Model, b.Model), lo.Ternary(a.Done, -1, 1)-lo.Ternary(b.Done, -1, 1))
	})
	for _, name := range slices.Sorted(maps.Keys(p.tools)) {
		out.Tools = append(out.Tools, *p.tools[name])
	}
	for _, name := range slices.Sorted(maps.Keys(p.rules)) {
		out.Rules = append(out.Rules, *p.rules[name])
	}
	slices.SortStableFunc(out.Tools, func(a, b ToolRow) int { return cmp.Or(b.stopping()-a.stopping(), b.Calls-a.Calls) })
	slices.SortStableFunc(out.Rules, func(a, b Rule) int { return b.total() - a.total() })
	return out
}

func (t ToolRow) stopping() int { return t.Denied + t.Asked + t.Stopped }

// total returns a rule's number of decisions.
func (r Rule) total() int { return lo.Sum(slices.Collect(maps.Values(r.Effects))) }

func scoreRows(scores map[string]Score) []Row {
	out := []Row{}
	for _, name := range slices.Sorted(maps.Keys(scores)) {
		out = append(out, Row{name, scores[name]})
	}
	return out
}
