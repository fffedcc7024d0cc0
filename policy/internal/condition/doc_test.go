package condition

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"cel.dev/cel-go/cel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The tables in the package comment name every variable with its type, and every function.
func TestTheTablesAreWhole(t *testing.T) {
	source, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	row := regexp.MustCompile(`(?m)^//\t(\S*[^\s:]) {2,}(\S+)`)
	documented := map[string]string{}
	for _, m := range row.FindAllStringSubmatch(string(source), -1) {
		documented[m[1]] = m[2]
	}
	l, err := New(Options{})
	require.NoError(t, err)
	known := map[string]bool{"vars.NAME": true, "workspace": true}
	for _, v := range variables {
		known[v.name] = true
		want := strings.ReplaceAll(cel.FormatCELType(v.kind), " ", "")
		assert.Equal(t, want, documented[v.name], "the table in doc.go on %s", v.name)
	}
	for name, f := range l.functions {
		if f.Member {
			name = "c." + name
		}
		known[name] = true
		assert.NotEmpty(t, documented[name], "the table in doc.go has no line on the function %s", name)
	}
	for name := range documented {
		assert.True(t, known[name], "the table in doc.go tells of %s, which is not there", name)
	}
}
