package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/internal/exampletest"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/toolexec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestReadme(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the blueprints run commands of a POSIX system")
	}
	var out bytes.Buffer
	require.NoError(t, showHooks(t.Context(), &out))
	exampletest.Readme(t, out.String())
}

// The program stores every file.
func TestAllBlueprintsAreStored(t *testing.T) {
	names, err := fs.Glob(files, "*.yaml")
	require.NoError(t, err)
	for i, name := range names {
		names[i] = strings.TrimSuffix(name, ".yaml")
	}
	assert.ElementsMatch(t, names, stored)
}

// The validator allows only a folder directly below /tmp, however the parameters are written.
func TestSecurityValidatorHolds(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the blueprint runs a command of a POSIX system")
	}
	text, err := files.ReadFile("security-validator.yaml")
	require.NoError(t, err)
	root, ok := yamlfile.Parse("security-validator.yaml", text).Root()
	require.True(t, ok)
	text, err = json.Marshal(root.Value())
	require.NoError(t, err)
	b, err := coordinator.ParseBlueprint(text)
	require.NoError(t, err)
	schema, err := toolexec.CompileSchema(string(b.ParametersSchema))
	require.NoError(t, err)
	judge := func(input string) string {
		if schema.Validate(input) != nil {
			return "block" // the hook has failed
		}
		cmd := exec.CommandContext(t.Context(), b.Command.Argv[0], b.Command.Argv[1:]...)
		cmd.Stdin = strings.NewReader(input)
		out, err := cmd.Output()
		require.NoError(t, err)
		var answer struct{ Action string }
		require.NoError(t, json.Unmarshal(out, &answer), "%s: %s", input, out)
		return answer.Action
	}
	about := func(params string) string {
		return `{"agent_name":"cleanup","parameters":` + params + `,"run_id":"run_1","session_id":"ses_1"}`
	}
	assert.Equal(t, "continue", judge(about(`{"folder":"/tmp/cache"}`)))
	for _, params := range []string{
		`{"folder":"/home/ann"}`, `{"folder":"/tmp"}`, `{"folder":"/tmp/"}`, `{"folder":"/tmp/../home"}`, `{"folder":"/tmp/a/b"}`, `{"folder":"/tmp/a b"}`,
		`{"folder":"\u002ftmp/a"}`, `{"folder":"/tmp/a\u0022"}`, `{"folder":"/TMP/a"}`, `{"folder":["/tmp/a"]}`, `{}`,
		`{"folder":"\"parameters\":{\"folder\":\"/tmp/a\"}"}`, `{"x":{"parameters":{"folder":"/tmp/a"}},"folder":"/home"}`,
	} {
		assert.Equal(t, "block", judge(about(params)), params)
	}
}
