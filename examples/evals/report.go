package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/samber/lo"
)

// Report is a model's result in all cases.
type Report struct {
	Model string   `json:"model"`
	Cases []Result `json:"cases"`
}

func (r Report) countPassed() int {
	return lo.CountBy(r.Cases, func(c Result) bool { return c.Passed })
}

func (r Report) dollars() float64 {
	return lo.SumBy(r.Cases, func(c Result) float64 { return c.Dollars })
}

func writeReports(out io.Writer, reports []Report) error {
	for _, r := range reports {
		fmt.Fprintf(out, "%s: %d of %d cases passed, $%.3f\n\n", r.Model, r.countPassed(), len(r.Cases), r.dollars())
		table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "  \tcase\tsteps\ttokens\tcalls")
		for _, c := range r.Cases {
			fmt.Fprintf(table, "  %s\t%s\t%d\t%d\t%s\n", lo.Ternary(c.Passed, "✓", "✗"), c.Case, c.Steps, c.Tokens, joinNames(c.Calls))
		}
		if err := table.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(out)
		for _, c := range r.Cases {
			for _, problem := range c.Problems {
				fmt.Fprintf(out, "  %s: %s\n", c.Case, problem)
			}
		}
		if r.countPassed() < len(r.Cases) {
			fmt.Fprintln(out)
		}
	}
	return nil
}

func writeJSON(out io.Writer, reports []Report) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(reports)
}
