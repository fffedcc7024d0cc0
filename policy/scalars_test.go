package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/policy"
)

// A scalar without quotes that YAML does not keep as written is an error where it is compared, with its place and both ways
// to write it.
func TestScalarsThatYAMLChanges(t *testing.T) {
	t.Parallel()
	places := []string{
		"policy: p\nhooks:\n  PreToolUse:\n    - {id: m, match: {tool: install, args: {version: %s}}, decision: deny, reason: bad}\n",
		"policy: p\nhooks:\n  PreToolUse:\n    - {id: m, match: {tool: install, args: {version: [a, %s]}}, decision: deny, reason: bad}\n",
		"policy: p\nhooks:\n  PreToolUse:\n    - {id: m, match: {tool: install, args: {v: {equals: {x: [%s]}}}}, decision: deny, reason: bad}\n",
		"policy: p\nhooks:\n  PreToolUse:\n    - {id: m, match: {tool: install, metadata: {v: {equals: %s}}}, decision: deny, reason: bad}\n",
		"policy: p\nvariables: {bad: %s}\nhooks:\n  PreToolUse:\n    - {id: m, decision: deny, reason: bad}\n",
		"policy: p\nvariables: {bad: [{v: %s}]}\nhooks:\n  PreToolUse:\n    - {id: m, decision: deny, reason: bad}\n",
	}
	for _, text := range places {
		before, _, _ := strings.Cut(text, "%s")
		at := fmt.Sprintf("p.yaml:%d:%d: ", strings.Count(before, "\n")+1, len(before)-strings.LastIndex(before, "\n"))
		for scalar, want := range map[string]string{
			"1.10":         `unquoted, 1.10 is the number 1.1: write "1.10" for the text, or 1.1 for the number`,
			"4225332e04":   `is the number 42253320000: write "4225332e04" for the text`,
			"1e3":          `or 1000 for the number`,
			"1E-2":         `or 0.01 for the number`,
			"1e100":        `write "1e100" for the text`,
			"1e400":        `unquoted, 1e400 is a number that is too large: write "1e400" for the text`,
			"-1.5E+999":    `write "-1.5E+999" for the text`,
			"-0":           `or 0 for the number`,
			"012":          `put it in quotes if it is text`,
			"0o14":         `put it in quotes if it is text`,
			"0x1f":         `put it in quotes if it is text`,
			"1_000":        `put it in quotes if it is text`,
			".5":           `put it in quotes if it is text`,
			"+1":           `put it in quotes if it is text`,
			".inf":         `put it in quotes if it is text`,
			"~":            `unquoted, ~ is null: write "~" for the text, or null`,
			"Null":         `write "Null" for the text`,
			"True":         `unquoted, True is true: write "True" for the text, or true`,
			"9007199254.0": `or 9007199254 for the number`,
		} {
			_, err := policy.Parse("p.yaml", fmt.Appendf(nil, text, scalar), policy.Options{})
			if scalar == "9007199254.0" && strings.HasSuffix(before, "{bad: ") {
				assert.NoError(t, err, "a variable may be a double")
				continue
			}
			assert.ErrorContains(t, err, at, "%s: %s", scalar, text)
			assert.ErrorContains(t, err, want, "%s: %s", scalar, text)
		}
		for _, scalar := range []string{"1", "-1", "1.1", "0.5", "0", "yes", "no", "on", "2024-01-01", "12:30:45", `"1.10"`, "'~'", "null", "true", "v1.10", "1.10.0"} {
			_, err := policy.Parse("p.yaml", fmt.Appendf(nil, text, scalar), policy.Options{})
			assert.NoError(t, err, "%s: %s", scalar, text)
		}
	}
	_, err := policy.Parse("p.json", []byte(`{"policy":"p","hooks":{"PreToolUse":[{"id":"m","match":{"args":{"v":1.10}},"decision":"deny","reason":"bad"}]}}`), policy.Options{})
	assert.NoError(t, err, "JSON has quotes around texts")
}
