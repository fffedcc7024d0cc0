package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/mock"
)

// score records what the hooks observed in one run. The run's tools are executed one after the other.
type score struct {
	calls  []string
	steps  int
	usage  agent.Usage
	status agent.Status
	answer string
}

// hooks returns the observers that keep score: after each call, after each step, and at the end.
func (s *score) hooks() []hooks.Hook {
	return []hooks.Hook{
		hooks.Observe(hooks.AtPostToolUse, "score calls", func(_ context.Context, c hooks.ToolResultContext) error {
			s.calls = append(s.calls, c.Tool())
			return nil
		}),
		hooks.Observe(hooks.AtStepEnd, "score steps", func(_ context.Context, c hooks.StepEndContext) error {
			s.steps, s.usage = c.StepIndex()+1, c.RunUsage()
			return nil
		}),
		hooks.Observe(hooks.AtExecutionEnd, "score the end", func(_ context.Context, c hooks.EndContext) error {
			s.status, s.answer = c.Status(), c.Answer()
			return nil
		}),
	}
}

// Result is a model's result in one case.
type Result struct {
	Case     string   `json:"case"`
	Passed   bool     `json:"passed"`
	Problems []string `json:"problems"`
	Calls    []string `json:"calls"`
	Steps    int      `json:"steps"`
	Tokens   int64    `json:"tokens"`
	Dollars  float64  `json:"dollars"`
	Answer   string   `json:"answer"`
}

// result compares the observations with the case's expectations.
func (s *score) result(c Case, table *mock.Table) Result {
	problems := []string{}
	wrong := func(is bool, format string, args ...any) {
		if is {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	wrong(s.status != agent.StatusDone, "the run ended as %s", s.status)
	for _, tool := range c.Never {
		wrong(slices.Contains(s.calls, tool), "called %s, which it must not", tool)
	}
	if len(lo.Intersect(s.calls, c.Never)) == 0 {
		wrong(!slices.Equal(s.calls, c.Calls), "called %s, not %s", joinNames(s.calls), joinNames(c.Calls))
	}
	for _, call := range table.UnmatchedCalls() {
		wrong(true, "no mock for %s %s", call.Name, call.Arguments)
	}
	for _, row := range table.UnusedRows() {
		wrong(true, "never came to %q", row)
	}
	wrong(!strings.Contains(s.answer, c.Says), "the answer does not say %q", c.Says)
	wrong(s.steps > c.Steps, "took %d steps, not %d", s.steps, c.Steps)
	return Result{
		Case: c.Name, Passed: len(problems) == 0, Problems: problems, Calls: s.calls, Steps: s.steps,
		Tokens: s.usage.Tokens(), Dollars: s.usage.Cost.OrEmpty(), Answer: s.answer,
	}
}

func joinNames(tools []string) string {
	if len(tools) == 0 {
		return "nothing"
	}
	return strings.Join(tools, ", ")
}
