package library_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// ruleKeys matches parts of a rule that could name a tool or an argument.
var ruleKeys = regexp.MustCompile(`\bmatch:|\btool\b|\bargs[.\[]|\b(pick|rest)\(args, (?:\["[^*]|vars)`)

// Rules for assistants use only effects and roles. Neither they nor the sources name a benchmark's tools.
func TestAssistantsNameNoTools(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("assistant*.yaml")
	require.NoError(t, err)
	texts := map[string]string{}
	for _, file := range files {
		if strings.Contains(file, "@") {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		texts[file] = string(text)
		for line := range strings.Lines(string(text)) {
			line = strings.NewReplacer("calls(tool)", "", "denied(tool)", "").Replace(line) // the called tool, without its name
			if rule, _, _ := strings.Cut(line, "#"); !strings.Contains(line, "description:") && !strings.Contains(line, "reason:") && !strings.Contains(line, "id: tool") {
				assert.NotRegexp(t, ruleKeys, rule, file)
			}
		}
	}
	schemas, err := filepath.Glob(filepath.Join(parts.Recordings(t), "tools", "*.json"))
	require.NoError(t, err)
	for _, path := range schemas {
		list, err := replay.LoadTools(path)
		if err != nil {
			continue // an operator's facts, not schemas
		}
		for _, tool := range list {
			for file, text := range texts {
				if strings.ContainsAny(tool.Name, "_") {
					assert.NotContains(t, text, tool.Name, file)
				}
			}
		}
	}
}
