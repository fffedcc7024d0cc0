package pipeline_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/pipeline"
)

// AP-59: mistakes are reported with their place, and a suggestion where one is near.
func TestMistakes(t *testing.T) {
	const stage = "name: a, command: {argv: ['true']}, termination: {type: fixed, iterations: 1}"
	for text, want := range map[string]string{
		"":                                     ":1:1: the file is empty",
		"stages: [{" + stage + "}]":            `the key "name" is missing`,
		"name: p\nstage: []":                   `:2:1: unknown key "stage" (did you mean "stages"?)`,
		"name: p/q\nstages: [{" + stage + "}]": ":1:7: name: invalid name of a pipeline",
		"name: p\nstages: [{" + stage + "}, {" + stage + "}]":                                                                           `name: another stage has the name "a", too`,
		"name: p\nstages: [{name: a, termination: {type: fixed, iterations: 1}}]":                                                       `:2:10: the stage does nothing`,
		"name: p\nstages: [{name: a, agent: b, termination: {type: fixed, iterations: 1}}]":                                             `the key "prompt" is missing`,
		"name: p\nstages: [{name: a, agent: b, prompt: c, command: {argv: [x]}, termination: {type: judgment}}]":                        `command: the stage has the key agent, too`,
		"name: p\nstages: [{name: a, command: {argv: [x]}, termination: {type: fixd}}]":                                                 `unknown termination "fixd" (did you mean "fixed"?)`,
		"name: p\nstages: [{name: a, command: {argv: [x]}, termination: {type: fixed}}]":                                                `the key "iterations" is missing`,
		"name: p\nstages: [{name: a, command: {argv: [x]}, termination: {type: queue, iterations: 2, command: [x]}}]":                   `iterations: not allowed in a termination of type queue`,
		"name: p\nstages: [{name: a, command: {argv: [x]}, termination: {type: queue}}]":                                                `the key "command" or "file" is missing`,
		"name: p\nstages: [{name: a, command: {argv: [x]}, termination: {type: queue, command: [x], file: x}}]":                         `file: the termination has the key command, too`,
		"name: p\nstages: [{name: a, command: {argv: [x]}, termination: {type: judgment}, max_cost: 1}]":                                `max_cost: not allowed in a stage with the key command`,
		"name: p\nstages: [{name: a, agent: ./none.yaml, prompt: c, termination: {type: judgment}}]":                                    `none.yaml: no such file`,
		"name: p\nstages: [{" + stage + ", on_failure: retry}]":                                                                         `on_failure: unknown value "retry"`,
		"name: p\nstages: [{name: a, loop: none}]":                                                                                      `:2:26: loop: no file none.yaml in `,
		"name: p\nstages: [{name: a, loop: x, prompt: y}]":                                                                              `prompt: not allowed in a stage with the key loop`,
		"name: p\nstages: [{name: b, parallel: [{" + stage + "}], hooks: {}}]":                                                          `hooks: not allowed in a stage with the key parallel`,
		"name: p\nstages: [{name: b, parallel: [{" + stage + "}, {" + stage + "}]}]":                                                    `name: another stage has the name "a", too`,
		"name: p\nstages: [{name: b, parallel: [{" + stage + ", hooks: {on_error: {type: shel}}}]}]":                                    `"shel"`,
		"name: p\nstages: [{" + stage + ", max_iterations: 3}]":                                                                         `max_iterations: the stage has a fixed number of iterations`,
		"name: p\nstages: [{" + stage + "}]\nhooks: {on_start: {type: shell, command: 'true'}}":                                         `:3:9: unknown point of a pipeline "on_start"`,
		"name: p\nstages: [{" + stage + "}]\nhooks: {PreToolUse: {decision: deny, reason: no}}":                                         `:3:9: PreToolUse does not fire in a pipeline: put its rules in a policy of the agent`,
		"name: p\nstages: [{name: a, agent: b, prompt: '${outputs.c}', termination: {type: judgment}}]":                                 `unknown stage of ${outputs.c} "c"`,
		"name: p\nstages: [{" + stage + "}]\nhooks:\n  on_session_complete: {type: gate, by: file, file: x}":                            `:4:25: on_session_complete, entry 1: a gate that waits for an answer at on_session_complete holds nothing up`,
		"name: p\nstages: [{" + stage + "}]\nhooks:\n  on_session_complete: {type: webhook, url: 'https://a.example.com', await: true}": `:4:25: on_session_complete, entry 1: a webhook that waits for an answer at on_session_complete holds nothing up`,
		"name: p\nstages: [{" + stage + ", hooks: {on_error: {type: shel, command: 'true'}}}]":                                          `"shel"`,
		"name: p\nstages: [{" + stage + "}]\nhooks: {on_error: {type: shell, command: 'true', when: '${NOTHING} == 1'}}":                `NOTHING`,
		"name: p\nstages: [{name: a, command: {argv: [echo, '${inputs.x}']}, termination: {type: fixed, iterations: 1}}]":               `:2:29: command: ${inputs.x} is not replaced in argv`,
		"name: p\nstages: [{" + stage + "}]\nhooks: {on_error: {type: shell, command: 'true', when: '${STAGE} == \"b\"'}}":              `:3:19: when: unknown stage "b"`,
		"name: p\nstages: [{" + stage + ", hooks: {on_error: {type: shell, command: 'true', when: '\"b\" != stage'}}}]":                 `when: unknown stage "b"`,
		"format: 2\nname: p": `format 2 is newer than this program reads (1)`,
	} {
		t.Run(want, func(t *testing.T) {
			b := &bench{t: t, dir: t.TempDir()}
			_, err := pipeline.Load(b.write("pipeline.yaml", text), pipeline.LoadOptions{})
			assert.ErrorContains(t, err, want)
		})
	}
}

// A mistake in the user's hooks names their file.
func TestMistakesInGlobalHooks(t *testing.T) {
	b := &bench{t: t, dir: t.TempDir()}
	path := b.write("pipeline.yaml", "name: p\nstages: [{name: a, command: {argv: ['true']}, termination: {type: fixed, iterations: 1}}]")
	for text, want := range map[string]string{
		"hook: {}": `hooks.yaml:1:1: unknown key "hook" (did you mean "hooks"?)`,
		"hooks: {on_error: {type: shell, command: 'true', awaits: true}}": `hooks.yaml:1:`,
	} {
		_, err := pipeline.Load(path, pipeline.LoadOptions{Global: b.write("hooks.yaml", text)})
		assert.ErrorContains(t, err, want)
	}
	_, err := pipeline.Load(path, pipeline.LoadOptions{Global: b.path("none.yaml")})
	assert.NoError(t, err, "AP-58: a missing file is skipped")
}

// What is probably a mistake in a hook is a warning, once, with its place.
func TestWarnings(t *testing.T) {
	const hook = "https://a.example.com"
	for name, tc := range map[string]struct{ hooks, want string }{
		"a webhook without a link":   {"on_stage_complete: {type: webhook, url: '" + hook + "', await: true, body: {text: ready}}", "add ${CALLBACK_URL}"},
		"with a link":                {"on_stage_complete: {type: webhook, url: '" + hook + "', await: true, body: {text: [{at: 'go ${CALLBACK_URL}'}]}}", ""},
		"with a link in a header":    {"on_stage_complete: {type: webhook, url: '" + hook + "', headers: {Link: '${CALLBACK_URL}'}, await: true, body: {text: ready}}", ""},
		"with the request":           {"on_stage_complete: {type: webhook, url: '" + hook + "', await: true}", ""},
		"with fields of the request": {"on_stage_complete: {type: webhook, url: '" + hook + "', await: true, fields: [run]}", "add ${CALLBACK_URL}"},
		"not awaited":                {"on_stage_complete: {type: webhook, url: '" + hook + "', body: {text: ready}}", ""},
		"completed at every end":     {"on_session_complete: {type: webhook, url: '" + hook + "', body: {text: '${SESSION} completed after ${ITERATION}'}}", "also runs when the session has failed"},
		"success in a command":       {"on_session_complete: {type: shell, command: 'notify \"Success\"'}", "also runs when the session has failed"},
		"with the reason":            {"on_session_complete: {type: webhook, url: '" + hook + "', body: {text: '${SESSION} completed: ${pipeline.reason}'}}", ""},
		"where it is so":             {"on_session_complete: {type: shell, command: echo completed, when: 'pipeline.reason == \"completed\"'}", ""},
		"under another condition":    {"on_session_complete: {type: shell, command: echo completed, when: 'ITERATION > 1'}", "also runs when the session has failed"},
		"a neutral text":             {"on_session_complete: {type: shell, command: echo finished}", ""},
		"at another point":           {"on_stage_complete: {type: shell, command: echo completed}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			p := b.load("name: p\nstages: [{name: a, command: {argv: [x]}, termination: {type: fixed, iterations: 1}}, {name: b, command: {argv: [x]}, termination: {type: fixed, iterations: 1}}]\nhooks:\n  " + tc.hooks)
			warnings, err := p.Warnings(b.host)
			require.NoError(t, err)
			if tc.want == "" {
				assert.Empty(t, warnings)
				return
			}
			require.Len(t, warnings, 1)
			assert.Contains(t, warnings[0].String(), tc.want)
			assert.Equal(t, 4, warnings[0].Line)
		})
	}
}

// All mistakes are reported together, in the order of each file, and none twice.
func TestAllMistakesTogether(t *testing.T) {
	b := &bench{t: t, dir: t.TempDir()}
	b.write("empty.yaml", "")
	b.write("nested.yaml", "name: x\nloop: y")
	texts := func(text string) []string {
		_, err := pipeline.Load(b.write("pipeline.yaml", text), pipeline.LoadOptions{NeedFiles: true})
		problems, others := yamlfile.Problems(err)
		assert.Empty(t, others)
		return lo.Map(problems, func(p yamlfile.Problem, _ int) string {
			return fmt.Sprintf("%s:%d %s", filepath.Base(p.File), p.Line, strings.SplitAfter(p.Text, ":")[0])
		})
	}
	assert.Equal(t, []string{"nested.yaml:1 a loop has an agent or a command, no other loop and no parallel stages", "pipeline.yaml:4 loop:", "empty.yaml:1 the file is empty:"},
		texts("name: p\nstages:\n- {name: a, loop: nested}\n- {name: b, loop: none}\n- {name: c, loop: empty}"))
	assert.Equal(t, []string{"pipeline.yaml:3 agent:", "pipeline.yaml:4 prompt:", "pipeline.yaml:7 when:"},
		texts("name: p\nstages:\n- {name: a, agent: none,\n   prompt: '${outputs.x}', termination: {type: judgment}}\nhooks:\n  on_stage_complete:\n  - {type: shell, command: x, await: true, when: 'stage == \"b\"'}"))
}
