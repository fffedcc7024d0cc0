package pipeline_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/pipeline"
)

// The files that a pipeline names can be given to Load again without a disk, as it is for a pipeline that a store has.
func TestPortableFiles(t *testing.T) {
	b := newBench(t)
	b.write("hooks.yaml", "hooks: {}\n")
	for _, dir := range []string{"agents", "pipelines"} {
		require.NoError(t, os.Mkdir(b.path(dir), 0o700))
	}
	b.write("pipelines/child.yaml", "name: child\nstages:"+"\n"+counted("x", 1))
	b.write("agents/c#.yaml", "name: c\nmodel: test/model\n")
	b.write("loop.yaml", "name: loop\ncommand: {argv: [sh]}\ntermination: {type: fixed, iterations: 1}\n")
	path := b.write("pipeline.yaml", `name: p
stages:
  - {name: a, agent: c#, prompt: x, termination: {type: fixed, iterations: 1}}
  - {name: b, agent: {model: test/model}, prompt: x, termination: {type: fixed, iterations: 1}}
  - {name: c, loop: ./loop.yaml}
hooks:
  on_stage_complete:
    - {type: spawn, pipeline: child}
`)
	first, err := pipeline.Load(path, pipeline.LoadOptions{Global: b.path("hooks.yaml"), NeedFiles: true})
	require.NoError(t, err)
	files := map[string]string{}
	for at, text := range first.Files() {
		relative, err := filepath.Rel(b.dir, at)
		require.NoError(t, err)
		files[filepath.ToSlash(relative)] = text
	}
	assert.Equal(t, []string{"agents/c#.yaml", "loop.yaml", "pipeline.yaml", "pipelines/child.yaml"}, slices.Sorted(maps.Keys(files)))

	again, err := pipeline.Load("pipeline.yaml", pipeline.LoadOptions{Files: files, NeedFiles: true})
	require.NoError(t, err)
	assert.Equal(t, files, again.Files())
	assert.Len(t, again.Agents(), 2)
	for name := range files {
		less := maps.Clone(files)
		delete(less, name)
		_, err := pipeline.Load("pipeline.yaml", pipeline.LoadOptions{Files: less, NeedFiles: true})
		require.ErrorContains(t, err, strings.TrimSuffix(filepath.Base(name), ".yaml"), "nothing is read from the disk")
	}

	job, err := again.Job(pipeline.SessionOptions{Name: "s", Dir: b.path("s"), Inputs: json.RawMessage(`{"topic":"cats"}`)})
	require.NoError(t, err)
	changed, err := pipeline.WithInputs(job.Input, json.RawMessage(`{"topic":"dogs"}`))
	require.NoError(t, err)
	inputs, err := pipeline.InputsOf(changed)
	require.NoError(t, err)
	assert.JSONEq(t, `{"topic":"dogs"}`, string(inputs))
	inputs, err = pipeline.InputsOf([]byte(`{}`))
	require.NoError(t, err)
	assert.JSONEq(t, `{}`, string(inputs))
	_, err = pipeline.InputsOf([]byte(`[`))
	require.Error(t, err)
}
