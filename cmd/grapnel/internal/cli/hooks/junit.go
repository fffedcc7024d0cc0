package hooks

import (
	"encoding/xml"
	"fmt"
	"os"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/policy/policytest"
)

// junit is the JUnit XML format, in which build servers read test results.
type junit struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	File    string        `xml:"file,attr"`
	Line    int           `xml:"line,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitFailure `xml:"failure"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// writeJUnit writes results as JUnit XML.
func writeJUnit(path string, results []*policytest.Result) error {
	all := junit{Name: "grapnel hooks test"}
	for _, r := range results {
		suite := junitSuite{Name: r.Path, Tests: len(r.Cases), Failures: r.FailedCases()}
		took := 0.0
		for _, c := range r.Cases {
			took += c.Took.Seconds()
			suite.Cases = append(suite.Cases, junitCase{
				Name: printable(c.Name), Class: r.Path, File: r.Path, Line: c.Line, Time: fmt.Sprintf("%.3f", c.Took.Seconds()), Failure: junitFailureOf(c),
			})
		}
		suite.Time = fmt.Sprintf("%.3f", took)
		all.Tests, all.Failures = all.Tests+suite.Tests, all.Failures+suite.Failures
		all.Suites = append(all.Suites, suite)
	}
	text, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("writing JUnit XML: %w", err)
	}
	if err := os.WriteFile(path, []byte(xml.Header+string(text)+"\n"), 0o600); err != nil {
		return fmt.Errorf("writing JUnit XML: %w", err)
	}
	return nil
}

func junitFailureOf(c policytest.CaseResult) *junitFailure {
	if c.Passed() {
		return nil
	}
	lines := lo.Map(c.Failures, func(f policytest.Failure, _ int) string { return f.String() })
	text := strings.Join(lines, "\n")
	if c.Report != nil {
		text += "\n\n" + c.Report.Text(nil)
	}
	return &junitFailure{Message: printable(c.Failures[0].Text), Text: printable(text)}
}

// printable removes characters that XML does not allow.
func printable(text string) string { return console.PaintText(text, false) }
