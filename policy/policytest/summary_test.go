package policytest_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/policy/policytest"
)

// A summary begins with the deciding rule, and counts the rules without an opinion.
func TestSummary(t *testing.T) {
	path, _ := write(t, `  PreToolUse:
    - {id: other, match: {tool: read}, decision: deny}
    - {id: ghost, match: {tool: bash}, decision: deny, mode: shadow}
    - {id: no, match: {tool: bash}, when: 'args.command.startsWith("ls && ")', decision: deny, reason: two at once}`, "")
	r := fire(t, load(t, path), "{tool: bash, args: {command: 'ls && rm a <b'}}")
	text := strings.ReplaceAll(r.Summary(nil, 0), filepath.Dir(path)+string(filepath.Separator), "")
	assert.Equal(t, `PreToolUse: bash {"command":"ls && rm a <b"}
deny by p/no: two at once
   at p.yaml:6:8
   args.command.startsWith("ls && ") = true
      args.command = "ls && rm a <b"
the model is told: tool "bash": denied by p/no: two at once
└─ p/ghost  deny in shadow
   p.yaml:5:8
advice: change the rule at this place; mode: shadow or a waiver there lets calls through in the meantime.
1 of 3 rules had no opinion or were not asked: --all shows them
`, text)
	for line := range strings.Lines(r.Summary(nil, 50)) {
		if !strings.Contains(line, "p.yaml") {
			assert.LessOrEqual(t, len([]rune(strings.TrimSuffix(line, "\n"))), 50, line)
		}
	}
}

// Arguments are given as arguments, or as args like in conditions.
func TestEventsTakeArgs(t *testing.T) {
	for _, key := range []string{"args", "arguments"} {
		e, err := policytest.ReadEvent("e.yaml", []byte("tool: bash\n"+key+": {command: ls}\nmessages: [{assistant: x, calls: [{tool: read, "+key+": {path: a}}]}]\n"))
		require.NoError(t, err)
		assert.JSONEq(t, `{"command":"ls"}`, string(e.Arguments))
		assert.JSONEq(t, `{"path":"a"}`, string(e.Messages[0].Calls[0].Arguments))
	}
	_, err := policytest.ReadEvent("e.yaml", []byte("tool: bash\nargs: {command: ls}\narguments: {command: rm}\n"))
	require.ErrorContains(t, err, `e.yaml:2:7: args is another name for "arguments": remove one of them`)
}
