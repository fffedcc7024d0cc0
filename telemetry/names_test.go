package telemetry_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"github.com/grapnel-go/grapnel/internal/parts"
)

// names returns every name that telemetry records: attributes, metrics and events.
func names(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(parts.Root(), "internal", "semconv", "names.go"), nil, 0)
	require.NoError(t, err)
	var out []string
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			name, err := strconv.Unquote(lit.Value)
			require.NoError(t, err)
			out = append(out, name)
		}
		return true
	})
	return lo.Filter(out, func(name string, _ int) bool { return strings.Contains(name, ".") && !strings.Contains(name, "/") })
}

func doc(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(parts.Root(), "docs", path))
	require.NoError(t, err)
	return string(text)
}

// The page names whatever can arrive, and shows the trace that the test compares.
func TestTheDocsNameEverything(t *testing.T) {
	page := doc(t, "observability.md")
	all := names(t)
	require.Greater(t, len(all), 60)
	for _, name := range all {
		short := name[strings.LastIndexByte(name, '.'):]
		assert.True(t, strings.Contains(page, "`"+name+"`") || strings.HasPrefix(name, "grapnel.hook") && strings.Contains(page, "`"+short+"`"),
			"docs/observability.md has no word on %s", name)
	}
	assert.Contains(t, page, eventfulTree)
}

func TestDashboardAndAlertsCanBeRead(t *testing.T) {
	var dashboard struct {
		Title  string
		Panels []struct {
			ID      int
			Title   string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(doc(t, "observability/dashboard.json")), &dashboard))
	assert.Len(t, dashboard.Panels, 12)
	for _, p := range dashboard.Panels {
		require.NotEmpty(t, p.Targets, p.Title)
	}
	var alerts struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(doc(t, "observability/alerts.yaml")), &alerts))
	require.Len(t, alerts.Groups, 1)
	for _, r := range alerts.Groups[0].Rules {
		assert.NotEmpty(t, r.Expr, r.Alert)
		assert.NotEmpty(t, r.Annotations["summary"], r.Alert)
	}
}
