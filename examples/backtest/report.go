package main

import (
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"
)

// report is what the program tells at the end.
type report struct {
	Recordings  []string  `json:"recordings"`
	Sample      bool      `json:"sample"`      // the recordings are those that ship with the program
	Interrupted bool      `json:"interrupted"` // before everything was played
	Rows        []row     `json:"rows"`        // by suite and policy
	Totals      []row     `json:"totals"`      // by policy
	LeftOut     []leftOut `json:"left_out"`
	Failed      int       `json:"failed"` // runs, and lines that are none, that could not be played
	Runs        int       `json:"runs"`
	Plays       int       `json:"plays"` // one for each run and policy
	Seconds     float64   `json:"seconds"`
	PlaysPerSec float64   `json:"plays_per_second"`
}

// row is the score of one policy.
type row struct {
	Suite  string `json:"suite,omitzero"` // empty in totals
	Policy string `json:"policy"`
	score
}

// leftOut is what was not played, and why: a file of a folder that is no recording, or the runs of a suite that no
// policy knows.
type leftOut struct {
	File  string `json:"file,omitzero"`
	Suite string `json:"suite,omitzero"`
	Runs  int    `json:"runs,omitzero"`
	Why   string `json:"why"`
}

// sum adds up results as they come.
type sum struct {
	found  found
	scores map[string]map[string]score // by suite and policy
	left   map[[2]string]leftOut       // by file and suite
	failed int
	said   map[string]bool
	runs   int
}

func newSum(f found) *sum {
	return &sum{found: f, scores: map[string]map[string]score{}, left: map[[2]string]leftOut{}, said: map[string]bool{}}
}

// add takes a result in. It returns the number of runs so far, and what has to be said about this one, if anything.
func (s *sum) add(r result) (runs int, news string) {
	switch {
	case r.wrong != nil:
		s.failed++
		if !s.said[r.wrong.Error()] {
			s.said[r.wrong.Error()] = true
			news = "backtest: " + r.wrong.Error()
		}
	case r.left != nil:
		what := [2]string{r.left.File, r.left.Suite}
		r.left.Runs += s.left[what].Runs
		s.left[what] = *r.left
	default:
		s.runs++
		if s.scores[r.suite] == nil {
			s.scores[r.suite] = map[string]score{}
		}
		for policy, score := range r.scores {
			s.scores[r.suite][policy] = s.scores[r.suite][policy].plus(score)
		}
	}
	return s.runs, news
}

func (s *sum) report(policies []policy, took time.Duration, interrupted bool) report {
	r := report{
		Recordings: lo.Map(s.found.recordings, func(r recording, _ int) string { return r.name }), Sample: s.found.sample,
		Interrupted: interrupted, Failed: s.failed, Runs: s.runs, Seconds: took.Seconds(),
		Rows: []row{}, Totals: []row{}, LeftOut: []leftOut{},
	}
	total := map[string]score{}
	for _, suite := range slices.Sorted(maps.Keys(s.scores)) {
		for _, p := range policies {
			if score, ok := s.scores[suite][p.name]; ok {
				r.Rows = append(r.Rows, row{suite, p.name, score})
				total[p.name] = total[p.name].plus(score)
				r.Plays += score.Runs
			}
		}
	}
	for _, p := range policies {
		if score, ok := total[p.name]; ok {
			r.Totals = append(r.Totals, row{"", p.name, score})
		}
	}
	r.LeftOut = slices.AppendSeq(r.LeftOut, maps.Values(s.left))
	slices.SortFunc(r.LeftOut, func(a, b leftOut) int { return strings.Compare(a.File+a.Suite, b.File+b.Suite) })
	r.PlaysPerSec = float64(r.Plays) / max(r.Seconds, 1e-9)
	return r
}

func (r report) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
