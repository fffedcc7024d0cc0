package bash

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files again")

// testdata/cases.golden contains the analysis of each line in testdata/cases.txt.
func TestCases(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "cases.txt"))
	require.NoError(t, err)
	var got strings.Builder
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		fmt.Fprintf(&got, "%s\n%s\n", line, told(Analyse(line, Options{})))
	}
	golden := filepath.Join("testdata", "cases.golden")
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got.String()), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), got.String())
}

// told returns an analysis as text, with a line for each element.
func told(a Analysis) string {
	var b strings.Builder
	if a.Unparseable != nil {
		fmt.Fprintf(&b, "\t! %s\n", a.Unparseable.Error())
	}
	for _, c := range a.Commands {
		b.WriteString("\t")
		for _, s := range c.Via {
			b.WriteString(strings.TrimSpace(string(s.Kind)+" "+s.Name) + " > ")
		}
		if c.Kind != Program {
			fmt.Fprintf(&b, "(%s) ", c.Kind)
		}
		for i, w := range c.Words {
			if i > 0 {
				b.WriteString(" ")
			}
			b.WriteString(shown(w))
		}
		if c.Sub != "" {
			fmt.Fprintf(&b, "  sub %q", c.Sub)
		}
		if dirs := strings.Join(c.Dirs, " or "); dirs == "" {
			b.WriteString("  somewhere")
		} else if dirs != "." {
			b.WriteString("  in " + dirs)
		}
		if c.Language != "" {
			fmt.Fprintf(&b, "  %s: %q", c.Language, c.Code)
		}
		b.WriteString("\n")
	}
	for _, f := range a.Files {
		known := ""
		if !f.Known {
			known = " …"
		}
		fmt.Fprintf(&b, "\t%s %s%s\n", f.Access, f.Path, known)
	}
	for _, h := range a.Hosts {
		fmt.Fprintf(&b, "\thost %s\n", strings.TrimSuffix(h.Name+":"+h.Port, ":"))
	}
	for _, o := range a.Opaque {
		fmt.Fprintf(&b, "\t? %s at %d: %s\n", o.Reason, o.Pos.Column, o.Detail)
	}
	return b.String()
}

func shown(w Word) string {
	text := w.String()
	if w.Kind == Pattern {
		return "«" + text + "»"
	}
	if text == "" || strings.ContainsAny(text, " \t\n\"'") {
		return fmt.Sprintf("%q", text)
	}
	return text
}
