package pipeline_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/pipeline"
)

// scripted is a pipeline with a stage that runs a script of the shell some times.
func scripted(iterations string) string {
	return "name: p\nstages:\n  - name: work\n    command: {argv: [sh, work.sh]}\n    termination: {type: fixed, iterations: " + iterations + "}\n" +
		"hooks: {on_iteration_complete: {type: shell, await: true, command: 'printf \"%s\\n\" \"$CHANGED_FILES\" >> ../changed'}}\n"
}

// submitIn starts a session whose files are in the workspace, as the command does.
func (b *bench) submitIn(text string) durable.Run {
	b.t.Helper()
	job, err := b.load(text).Job(pipeline.SessionOptions{
		Name: "demo", Dir: b.path("work", ".grapnel", "pipelines", "demo"), Workspace: b.path("work"),
	})
	require.NoError(b.t, err)
	runs, err := b.store.Submit(b.t.Context(), job)
	require.NoError(b.t, err)
	return runs[0]
}

// runScript runs a pipeline whose stage is a script.
func (b *bench) runScript(script, iterations string) pipeline.Status {
	b.t.Helper()
	require.NoError(b.t, os.WriteFile(b.path("work", "work.sh"), []byte(script), 0o600))
	return b.serve(b.submitIn(scripted(iterations)).ID)
}

// Nothing that a workspace configures is run: git has settings that name programs.
func TestWorkspaceSettingsRunNothing(t *testing.T) {
	b := newBench(t)
	for name, text := range map[string]string{
		".git/HEAD": "ref: refs/heads/main\n", ".git/objects/none": "", ".git/refs/none": "",
		"program.sh": "#!/bin/sh\ntouch \"$(dirname \"$0\")/../ran\"\n",
		".git/config": "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = ./program.sh\n\tsshCommand = ./program.sh\n\thooksPath = .\n" +
			"[diff]\n\texternal = ./program.sh\n[filter \"f\"]\n\tclean = ./program.sh\n\tprocess = ./program.sh\n",
		".gitattributes": "* filter=f diff=f\n",
		"git":            "#!/bin/sh\ntouch \"$(dirname \"$0\")/../ran\"\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(b.path("work", name)), 0o700))
		require.NoError(t, os.WriteFile(b.path("work", name), []byte(text), 0o700))
	}
	t.Setenv("PATH", ".:"+os.Getenv("PATH"))
	s := b.runScript("echo > new\n", "1")
	assert.Equal(t, pipeline.Completed, s.Reason, s.Error)
	assert.Equal(t, []string{"new"}, b.lines("../changed"))
	assert.NoFileExists(t, b.path("ran"))
}

// A stage that replaces files of its session by links makes nothing change outside of the workspace, and nothing readable.
func TestSessionFilesAreNoLinks(t *testing.T) {
	const session = "S=.grapnel/pipelines/demo\n"
	for name, at := range map[string]struct{ script, wrong string }{
		"the events":           {"ln -sf ../../../../outside/precious $S/events.jsonl", ""},
		"the events by name":   {"ln -f ../outside/precious $S/events.jsonl", ""},
		"the status":           {"ln -sf ../../../../outside/precious $S/status.json", ""},
		"the stages":           {"[ -L $S/stages ] || { mv $S/stages $S/old; ln -s ../../../../outside $S/stages; }", "stages: not a plain file or directory"},
		"the stages, inside":   {"[ -L $S/stages ] || { mv $S/stages $S/old; ln -s old $S/stages; }", "stages: not a plain file or directory"},
		"the session":          {"[ -L $S ] || { mv $S old; ln -s ../../../outside $S; }", "demo: not a plain file or directory"},
		"the progress file":    {"ln -sf ../../../../../../outside/new $PROGRESS", "progress.md: not a plain file or directory"},
		"a pipe":               {"rm -f $PROGRESS; mkfifo $PROGRESS", "progress.md: not a plain file or directory"},
		"the decision":         {"ln -sf ../../../../../../../../outside/decision $STATUS", "status.json: not a plain file or directory"},
		"the output":           {"ln -sf ../../../../outside/precious $S/output.json", "output.json: not a plain file or directory"},
		"outputs of a stage":   {"for i in 1 2; do ln -sf ../../../../../../../../outside/new $(dirname $STATUS)/output.txt; done", ""},
		"the next iteration":   {"ln -s ../../../../../../outside $(dirname $(dirname $STATUS))/0002", "0002: not a plain file or directory"},
		"the files to compare": {"ln -sf ../../../../../../../../outside/precious $(dirname $STATUS)/tree.json", "tree.json: not a plain file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			require.NoError(t, os.Mkdir(b.path("outside"), 0o700))
			require.NoError(t, os.WriteFile(b.path("outside", "precious"), []byte("precious\n"), 0o600))
			require.NoError(t, os.WriteFile(b.path("outside", "decision"), []byte(`{"decision": "secret"}`), 0o600))
			s := b.runScript(session+at.script+"\n", "2")
			if at.wrong == "" {
				assert.Equal(t, pipeline.Completed, s.Reason, s.Error)
			} else {
				assert.Equal(t, pipeline.Failed, s.Reason)
				assert.Contains(t, s.Error, at.wrong)
			}
			assert.NotContains(t, s.Error, "secret")
			left, err := os.ReadDir(b.path("outside"))
			require.NoError(t, err)
			assert.Len(t, left, 2, "files outside of the workspace")
			assert.Equal(t, []string{"precious"}, b.lines("../outside/precious"))
		})
	}
}

// AP-53: names that are not UTF-8, and names with quotes and line breaks, are one text each, as git writes them.
func TestChangedFilesOfAnyName(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"old\xff", "old\xfe"} {
		if err := os.WriteFile(b.path("work", name), nil, 0o600); err != nil {
			t.Skip("this file system has only names that are UTF-8: ", err)
		}
	}
	s := b.runScript(`if [ $ITERATION = 2 ]; then echo > "$(printf 'new\377')"; echo > "$(printf 'a\nb')"; echo > 'ä "x"'; else echo > normal; fi`+"\n", "2")
	assert.Equal(t, pipeline.Completed, s.Reason, s.Error)
	assert.Equal(t, []string{"normal", `"a\nb"`, `"new\377"`, `"ä \"x\""`}, b.lines("../changed"))
}

// AP-53: submodules and nested repositories count, and what they ignore does not.
func TestChangedFilesOfNestedRepositories(t *testing.T) {
	b := newBench(t)
	for name, text := range map[string]string{
		".git/HEAD": "ref: refs/heads/main\n", ".git/modules/vendored/HEAD": "ref: refs/heads/main\n", ".gitignore": "*.log\n.grapnel/\n",
		"vendored/.git": "gitdir: ../.git/modules/vendored\n", "vendored/.gitignore": "*.o\n", "nested/.git/HEAD": "ref: refs/heads/main\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(b.path("work", name)), 0o700))
		require.NoError(t, os.WriteFile(b.path("work", name), []byte(text), 0o600))
	}
	s := b.runScript("for f in own own.log vendored/added vendored/x.o nested/x; do echo > $f; done\n", "1")
	assert.Equal(t, pipeline.Completed, s.Reason, s.Error)
	assert.Equal(t, []string{"nested/x", "own", "vendored/added"}, b.lines("../changed"))
}

// A session in a directory whose path cannot be stored is refused.
func TestPathsAreUTF8(t *testing.T) {
	b := newBench(t)
	_, err := b.load(scripted("1")).Job(pipeline.SessionOptions{Name: "demo", Dir: b.path("a\xff"), Workspace: b.path("work")})
	require.ErrorContains(t, err, "must be UTF-8")
	assert.True(t, strings.HasPrefix(err.Error(), `session of pipeline "p": `), err.Error())
}
