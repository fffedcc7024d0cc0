package grapnel_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/snippets"
)

// notOurs lists inline code that reads like a name of this module and is none, with the reason.
var notOurs = map[string]string{
	"EventSource":                 "of browsers",
	"CheckRedirect":               "a field of http.Client",
	"otelslog.NewHandler":         "OpenTelemetry",
	"otelslog.WithLoggerProvider": "OpenTelemetry",
	"FallbackModel":               "Pydantic AI",
	"RunState":                    "OpenAI Agents",
	"RequireConfirmation":         "ADK",
	"RequireConfirmationProvider": "ADK",
	"llmagent.Config":             "ADK",
	"plugin.Plugin":               "ADK",
	"SessionEnd":                  "a point of Claude Code",
	"UserPromptSubmit":            "a point of Claude Code",
	"PostToolUseFailure":          "a point of Claude Code",
	"PermissionRequest":           "a point of Claude Code",
	"SubagentStart":               "a point of Claude Code",
	"PreSkillShellCommand":        "a point of Claude Code",
	"BeforeTool":                  "a point of Gemini CLI",
	"AfterTool":                   "a point of Gemini CLI",
	"BeforeAgent":                 "a point of Gemini CLI",
	"SubagentStop":                "a point of Claude Code",
	"PostToolBatch":               "a point of Claude Code",
	"StopFailure":                 "a point of Claude Code",
}

// Other frameworks name these, and this module does not.
var notOurForm = regexp.MustCompile(`^\w+(Callbacks?|Middleware)$`)

// Inline code in prose that reads like an exported name must name something that exists. Declarations in the page's
// own blocks, which TestSnippetsCompile checks, count too.
func TestNamesInProseExist(t *testing.T) {
	t.Parallel()
	names, err := snippets.ReadNames(".")
	require.NoError(t, err)
	pages, err := snippets.ReadPages("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/*.md")
	require.NoError(t, err)
	alerts, err := os.ReadFile("docs/observability/alerts.yaml")
	require.NoError(t, err)
	spans, excused := 0, map[string]bool{}
	for _, page := range pages {
		if page.File == "docs/evidence.md" {
			continue // measured at an earlier commit
		}
		for _, span := range page.Spans {
			spans++
			for _, name := range names.Missing(span.Text) {
				switch {
				case notOurs[name] != "":
					excused[name] = true
				case notOurForm.MatchString(name), strings.Contains(string(alerts), "- alert: "+name+"\n"):
				case !inBlocks(page, name):
					assert.Fail(t, name+" does not exist", "%s: mend the page, or say in notOurs why it is right", span)
				}
			}
		}
	}
	assert.Greater(t, spans, 3000)
	for name := range notOurs {
		assert.True(t, excused[name], "no page names %s any more: take it out of notOurs", name)
	}
}

// inBlocks reports whether the last word of a name stands in a block of the page.
func inBlocks(page snippets.Page, name string) bool {
	word := regexp.MustCompile(`\b` + name[strings.LastIndex(name, ".")+1:] + `\b`)
	for _, b := range page.Code {
		if word.MatchString(b.Text) {
			return true
		}
	}
	return false
}
