package coordinator_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/durabletest"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/pipeline"
)

// withPipelines lets the coordinator of a bench run pipelines.
func withPipelines(t *testing.T) func(o *coordinator.Options) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the stages are commands of a POSIX system")
	}
	return func(o *coordinator.Options) {
		o.Pipelines.Dir = filepath.Join(t.TempDir(), "pipelines")
		o.Host.Parks = true
	}
}

// pipelineText returns a blueprint with the files of a pipeline and further members.
func pipelineText(t *testing.T, name string, files map[string]string, members string) string {
	t.Helper()
	text, err := json.Marshal(files)
	require.NoError(t, err)
	if members != "" {
		members = ", " + members
	}
	return `{"name": "` + name + `", "type": "pipeline", "pipeline": {"files": ` + string(text) + `}` + members + `}`
}

// two has a stage of an agent and one of a command, which is among the files.
var two = map[string]string{
	"pipeline.yaml": `
name: report
stages:
  - name: draft
    agent: writer
    prompt: "About ${inputs.topic}"
    termination: {type: fixed, iterations: 1}
  - name: finish
    command: {argv: [./finish.sh]}
    termination: {type: fixed, iterations: 1}
`,
	"agents/writer.yaml": "name: writer\nmodel: test/model\n",
	"finish.sh":          "#!/bin/sh\necho \"done in $(basename \"$PWD\")\"\n",
}

// A pipeline is a blueprint like others: its parameters are the inputs, hooks change them, see its result and are told of its end.
func TestPipelineBlueprint(t *testing.T) {
	var told []string
	b := newBench(t, withPipelines(t), func(o *coordinator.Options) {
		o.Host.Funcs = map[string]action.Body{
			"tell": func(_ context.Context, r *action.Request) (*action.Decision, error) {
				told = append(told, r.ResultText)
				return nil, nil //nolint:nilnil // no opinion
			},
			"topic": changeOnce(`{"topic":"cats"}`, `{"topic":"dogs"}`),
			"seal": func(_ context.Context, r *action.Request) (*action.Decision, error) {
				return &action.Decision{Decision: hooks.Replace, Result: new("sealed: " + strings.TrimPrefix(r.ResultText, "sealed: "))}, nil
			},
		}
	})
	var asked []string
	b.answers["writer"] = func(input string) string {
		asked = append(asked, input)
		return "a draft"
	}
	b.create(pipelineText(t, "weekly", two, `
		"parameters_schema": {"type": "object", "required": ["topic"]},
		"hooks": {
			"on_run_start": {"type": "func", "func": "topic", "on_error": "block"},
			"on_result": {"type": "func", "func": "seal", "on_error": "block"},
			"on_run_finish": {"type": "func", "func": "tell", "on_error": "continue"}
		}`))
	_, err := b.c.Submit(t.Context(), wire.RunRequest{AgentName: "weekly"}, "ann")
	require.ErrorContains(t, err, "topic")
	_, err = b.c.Submit(t.Context(), wire.RunRequest{
		AgentName: "weekly", Parameters: json.RawMessage(`{"topic": "cats"}`), Demands: map[string]string{"zone": "eu"},
	}, "ann")
	require.ErrorContains(t, err, "the coordinator executes")

	id := b.submit("weekly", `{"topic": "cats"}`)
	d := b.work(id)
	require.Equal(t, wire.Completed, d.Status, lo.FromPtr(d.Error))
	assert.Equal(t, wire.Pipeline, d.Type)
	assert.Equal(t, []string{"About dogs"}, asked)
	assert.JSONEq(t, `{"topic": "dogs"}`, string(d.Parameters))
	assert.JSONEq(t, `{"topic": "cats"}`, string(d.OriginalParameters))
	assert.Equal(t, "sealed: done in workspace\n", *d.ResultText)
	assert.Equal(t, []string{"sealed: done in workspace\n"}, told)
	require.NotNil(t, d.Pipeline)
	assert.Equal(t, "finish", d.Pipeline.Stage)
	assert.Empty(t, d.Labels)

	list, err := b.store.List(t.Context(), durable.Filter{Parent: id})
	require.NoError(t, err)
	require.Len(t, list, 3, "two iterations, and the hooks after the run")
	iterations := 0
	for _, below := range list { // no runs of blueprints: iterations can be read
		read, err := b.c.Run(t.Context(), below.ID)
		if below.Kind == coordinator.KindHooks {
			require.ErrorIs(t, err, durable.ErrNotFound)
			continue
		}
		require.NoError(t, err)
		iterations++
		assert.Equal(t, id, read.ParentRunID)
		assert.Contains(t, []string{"draft", "finish"}, read.Stage)
		assert.Equal(t, 1, read.Iteration)
		assert.Empty(t, read.Labels)
		require.ErrorIs(t, b.c.Stop(t.Context(), below.ID, "", ""), durable.ErrNotFound)
		_, err = b.c.Retry(t.Context(), below.ID, wire.RetryRequest{}, "ann")
		require.ErrorIs(t, err, durable.ErrNotFound)
	}
	assert.Equal(t, 2, iterations)
	require.Len(t, d.Pipeline.Stages, 2)
	for _, s := range d.Pipeline.Stages {
		require.Len(t, s.Iterations, 1)
		assert.Equal(t, pipeline.StageComplete, s.Iterations[0].State)
		assert.False(t, s.Iterations[0].Ended.Before(s.Iterations[0].Began))
	}
	text, err := json.Marshal(d)
	require.NoError(t, err)
	assert.NotContains(t, string(text), `"dir"`)
	again, err := b.c.Submit(t.Context(), wire.RunRequest{
		AgentName: "weekly", Parameters: json.RawMessage(`{"topic": "birds"}`), IdempotencyKey: "one",
	}, "ann")
	require.NoError(t, err)
	same, err := b.c.Submit(t.Context(), wire.RunRequest{
		AgentName: "weekly", Parameters: json.RawMessage(`{"topic": "birds"}`), IdempotencyKey: "one",
	}, "ann")
	require.NoError(t, err)
	assert.Equal(t, again.ID, same.ID)
}

// The mistakes of all files are reported, with their places, and none of the files of the machine is read.
func TestWrongPipelineBlueprints(t *testing.T) {
	b := newBench(t, withPipelines(t))
	outside := filepath.Join(t.TempDir(), "agent.yaml")
	require.NoError(t, os.WriteFile(outside, []byte("name: a\n"), 0o600))
	stage := func(what string) string {
		return "name: p\nstages:\n  - name: s\n    " + what + "\n    termination: {type: fixed, iterations: 1}\n"
	}
	for name, c := range map[string]struct {
		files    map[string]string
		more     string
		field    string
		expected string
	}{
		"no files":            {nil, "", "pipeline.files", "missing"},
		"another file":        {map[string]string{"a.yaml": ""}, "", "pipeline.file", `"pipeline.yaml" is none of the files: a.yaml`},
		"a path outside":      {map[string]string{"pipeline.yaml": stage("command: {argv: [x]}"), "../x": ""}, "", "pipeline.files", "without .. in it"},
		"an absolute path":    {map[string]string{"pipeline.yaml": stage("command: {argv: [x]}"), "/x": ""}, "", "pipeline.files", "relative"},
		"a file as a folder":  {map[string]string{"pipeline.yaml": stage("command: {argv: [x]}"), "a": "", "a/b": ""}, "", "pipeline.files", `"a/b" is in "a", which is a file`},
		"a long name":         {map[string]string{"pipeline.yaml": stage("command: {argv: [x]}"), strings.Repeat("a", 300): ""}, "", "pipeline.files", "at most 1024 bytes"},
		"a deep name":         {map[string]string{"pipeline.yaml": stage("command: {argv: [x]}"), strings.Repeat("a/", 600) + "a": ""}, "", "pipeline.files", "at most 1024 bytes"},
		"a mistake":           {map[string]string{"pipeline.yaml": stage("command: {argv: [x]}\n    whatever: 1")}, "", "pipeline.files.pipeline.yaml", `5:5: unknown key "whatever"`},
		"an unknown agent":    {map[string]string{"pipeline.yaml": stage("agent: none\n    prompt: x")}, "", "pipeline.files.pipeline.yaml", "no file none.yaml"},
		"an agent elsewhere":  {map[string]string{"pipeline.yaml": stage("agent: " + outside + "\n    prompt: x")}, "", "pipeline.files.pipeline.yaml", "not exist"},
		"an agent above":      {map[string]string{"pipeline.yaml": stage("agent: ../agent.yaml\n    prompt: x")}, "", "pipeline.files.pipeline.yaml", "not exist"},
		"a hook":              {map[string]string{"pipeline.yaml": stage("command: {argv: [x]}") + "hooks: {on_nothing: []}\n"}, "", "pipeline.files.pipeline.yaml", "on_nothing"},
		"a command":           {map[string]string{"pipeline.yaml": stage("command: {argv: [x]}")}, `"command": {"argv": ["x"]}`, "command", "type procedural"},
		"demands":             {map[string]string{"pipeline.yaml": stage("command: {argv: [x]}")}, `"demands": {"a": "b"}`, "demands", "by the coordinator"},
		"an output schema":    {map[string]string{"pipeline.yaml": stage("command: {argv: [x]}")}, `"output_schema": {"type": "object"}`, "output_schema", "remove it"},
		"hooks of tool calls": {map[string]string{"pipeline.yaml": stage("command: {argv: [x]}")}, `"hooks": {"on_tool_call": {"type": "command", "argv": ["x"], "on_error": "block"}}`, "hooks.on_tool_call", "calls no tools"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := b.c.CreateBlueprint(t.Context(), []byte(pipelineText(t, "p", c.files, c.more)), "ann")
			wrong, ok := errors.AsType[*coordinator.InvalidError](err)
			require.True(t, ok, "%v", err)
			require.Len(t, wrong.Fields, 1, wrong.Error())
			assert.Equal(t, c.field, wrong.Fields[0].Field)
			assert.Contains(t, wrong.Fields[0].Message, c.expected)
		})
	}
}

// A pipeline waits at a gate in the store, and is stopped there or goes on when a person has answered; a hook may start one.
func TestPipelineWaits(t *testing.T) {
	files := map[string]string{"pipeline.yaml": `
name: gated
stages:
  - name: work
    command: {argv: [sh, -c, "echo '{\"action\": \"continue\"}'"]}
    termination: {type: fixed, iterations: 1}
    hooks:
      on_iteration_start:
        - {type: gate, by: person, reason: "Now?", await: true}
`}
	b := newBench(t, withPipelines(t))
	b.create(pipelineText(t, "gated", files, ""),
		`{"name": "job", "type": "procedural", "command": {"argv": ["echo", "ran"]},
			"hooks": {"on_run_start": {"type": "agent", "agent_name": "gated", "on_error": "block"}}}`)
	w := b.worker()
	wait := func(id agent.RunID) (of durable.Wait) {
		for range 10 {
			require.NoError(t, w.ExecuteReady(t.Context()))
		}
		waits, err := b.store.OpenWaits(t.Context(), durable.WaitFilter{Kinds: []durable.WaitKind{durable.WaitApproval}})
		require.NoError(t, err)
		require.Len(t, waits, 1)
		return waits[0]
	}
	id := b.submit("gated", `{}`)
	wait(id)
	d, err := b.c.Run(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, wire.Waiting, d.Status)
	require.Len(t, d.Pipeline.WaitsFor, 1)
	require.NoError(t, b.c.Stop(t.Context(), id, "enough", "ann"))
	d = b.work(id)
	assert.Equal(t, wire.Stopped, d.Status)
	assert.Equal(t, "enough", *d.Error)

	id = b.submit("job", `{}`)
	asked := wait(id)
	require.NoError(t, durabletest.Approve(t.Context(), b.store, asked.Run, asked.ID, agent.Approval{Verdict: agent.Approve}))
	d = b.work(id)
	require.Equal(t, wire.Completed, d.Status, lo.FromPtr(d.Error))
	assert.Equal(t, "ran\n", *d.ResultText)
}

// A process without the folder of a pipeline's runs executes none of them, and a coordinator without a folder accepts none.
func TestPipelinesNeedTheirFolder(t *testing.T) {
	b := newBench(t, withPipelines(t))
	b.answers["writer"] = func(string) string { return "a draft" }
	b.create(pipelineText(t, "weekly", two, ""))
	id := b.submit("weekly", `{"topic": "cats"}`)
	for _, o := range []coordinator.PipelineOptions{{}, {Dir: t.TempDir()}} {
		other, err := coordinator.New(coordinator.Options{Store: b.store, Pipelines: o})
		require.NoError(t, err)
		if o.Dir == "" {
			_, err = other.Submit(t.Context(), wire.RunRequest{AgentName: "weekly", Parameters: json.RawMessage(`{"topic": "a"}`)}, "ann")
			require.ErrorContains(t, err, "this coordinator runs none")
		}
		first := b.c
		b.c = other
		require.NoError(t, b.worker().ExecuteReady(t.Context()))
		b.c = first
		r, err := b.store.Run(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, durable.StatusReady, r.Status)
	}
	require.Equal(t, wire.Completed, b.work(id).Status)
}
