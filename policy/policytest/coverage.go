package policytest

import (
	"fmt"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/policy"
)

// Coverage is the coverage of policies: whether each rule applied, and whether each condition was true and false.
type Coverage struct {
	Rules []RuleCoverage `json:"rules"`
	// Branches is the number of these outcomes, Seen the number of covered ones.
	Branches int `json:"branches"`
	Seen     int `json:"seen"`
}

// RuleCoverage is the coverage of one rule.
type RuleCoverage struct {
	Rule string `json:"rule"`
	File string `json:"file"`
	Line int    `json:"line"`
	// When is the rule's condition; empty if it has none.
	When string `json:"when,omitempty"`
	// Applied is how often the rule was asked and its condition, if any, was true. False is how often the condition
	// was false, and Failed how often it failed.
	Applied int `json:"applied"`
	False   int `json:"false,omitempty"`
	Failed  int `json:"failed,omitempty"`
}

func newCoverage(p *policy.Policy) Coverage {
	return Coverage{Rules: lo.Map(p.Rules(), func(r policy.Rule, _ int) RuleCoverage {
		return RuleCoverage{Rule: r.Hook(), File: r.File, Line: r.Line, When: r.When}
	})}
}

// add counts one case's outcomes.
func (c *Coverage) add(seen []judged, events []hooks.Event) {
	of := func(hook string) *RuleCoverage {
		for i := range c.Rules {
			if c.Rules[i].Rule == strings.TrimSuffix(hook, waived) {
				return &c.Rules[i]
			}
		}
		return &RuleCoverage{}
	}
	for _, j := range seen {
		switch r := of(j.hook); {
		case j.Err != nil:
			r.Failed++
		case j.Value:
			r.Applied++
		default:
			r.False++
		}
	}
	for _, e := range events {
		if r := of(e.Hook); e.Kind == hooks.HookStart && r.When == "" {
			r.Applied++
		}
	}
}

// sum counts the branches.
func (c *Coverage) sum() {
	c.Branches, c.Seen = 0, 0
	for _, r := range c.Rules {
		branches, seen := r.branches()
		c.Branches, c.Seen = c.Branches+branches, c.Seen+seen
	}
}

func (r RuleCoverage) branches() (all, seen int) {
	all, seen = 1, lo.Ternary(r.Applied > 0, 1, 0)
	if r.When != "" {
		all, seen = 2, seen+lo.Ternary(r.False > 0, 1, 0)
	}
	return all, seen
}

// Missing describes the rule's uncovered outcome, or returns "".
func (r RuleCoverage) Missing() string {
	switch {
	case r.Applied == 0 && r.False == 0 && r.When == "":
		return "it was never asked"
	case r.Applied == 0 && r.False == 0:
		return "its condition was never evaluated"
	case r.Applied == 0:
		return "its condition was never true"
	case r.When != "" && r.False == 0:
		return "its condition was never false"
	}
	return ""
}

// Percent returns the coverage from 0 to 100; 100 if there are no rules.
func (c *Coverage) Percent() float64 {
	if c.Branches == 0 {
		return 100
	}
	return 100 * float64(c.Seen) / float64(c.Branches)
}

// String returns the coverage in words.
func (c *Coverage) String() string {
	return fmt.Sprintf("%d of %d branches (%.0f%%)", c.Seen, c.Branches, c.Percent())
}
