package policytest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/parts"
	"github.com/grapnel-go/grapnel/policy"
	"github.com/grapnel-go/grapnel/policy/policytest"
)

// write writes a policy and its cases to a folder, and returns their paths.
func write(t *testing.T, rules, cases string) (policyFile, casesFile string) {
	t.Helper()
	dir := t.TempDir()
	policyFile, casesFile = filepath.Join(dir, "p.yaml"), filepath.Join(dir, "p.test.yaml")
	require.NoError(t, os.WriteFile(policyFile, []byte("policy: p\nhooks:\n"+rules), 0o600))
	require.NoError(t, os.WriteFile(casesFile, []byte(cases), 0o600))
	return policyFile, casesFile
}

func load(t *testing.T, path string) *policytest.Trial {
	t.Helper()
	trial, err := policytest.Load([]policy.Layer{{Name: "run", Files: []string{path}}}, policy.Options{})
	require.NoError(t, err)
	return trial
}

func fire(t *testing.T, trial *policytest.Trial, event string) *policytest.Report {
	t.Helper()
	e, err := policytest.ReadEvent("event.yaml", []byte(event))
	require.NoError(t, err)
	r, err := trial.Fire(t.Context(), e)
	require.NoError(t, err)
	return r
}

// Every point can be fired, and a rule that watches it is asked.
func TestEveryPointCanBeFired(t *testing.T) {
	var rules strings.Builder
	for _, at := range hooks.PointNames() {
		fmt.Fprintf(&rules, "  %s: [{id: at-%s, type: command, argv: [cat], observe: true}]\n", at, strings.ToLower(string(at)))
	}
	path, _ := write(t, rules.String(), "")
	trial := load(t, path)
	for _, at := range hooks.PointNames() {
		t.Run(string(at), func(t *testing.T) {
			event := fmt.Sprintf("point: %s\n", at)
			switch at {
			case hooks.PreToolUse, hooks.PostToolUse, hooks.ToolFailed,
				hooks.InterventionRequested, hooks.InterventionResolved, hooks.InterventionStopped:
				event += "tool: bash\n"
			}
			r := fire(t, trial, event)
			require.Len(t, r.Rules, 1)
			assert.Equal(t, "pass", r.Rules[0].Said, "%+v", r.Rules[0])
			assert.Empty(t, r.Error)
		})
	}
}

// Cases as in the manual: real commands, a real receiver, links, faults, a conversation.
func TestCases(t *testing.T) {
	parts.Command(t, "sh", "a shell")
	suite, err := policytest.Open("testdata/workspace.test.yaml")
	require.NoError(t, err)
	result, err := suite.Run(t.Context(), policytest.Options{})
	require.NoError(t, err)
	for _, c := range result.Cases {
		assert.Empty(t, c.Failures, c.Name)
	}
	assert.InDelta(t, 100, result.Coverage.Percent(), 0.1, "%+v", result.Coverage)
	assert.Empty(t, os.Getenv("SCAN_URL"), "the environment is as it was")
}

// Deviations from the expectations are reported with their place.
func TestFailuresHavePlaces(t *testing.T) {
	_, cases := write(t, `  PreToolUse: [{id: no, match: {tool: bash}, decision: deny, reason: never}]`, `cases:
  - name: one
    event: {tool: bash}
    expect:
      decision: allow
      rule: no
      reason: always
      ran: true
      rules:
        no: skip
  - name: another
    transcript:
      - user: hi
      - calls: [{tool: bash, expect: allow}]
      - assistant: done
    expect: {status: stopped}
`)
	suite, err := policytest.Open(cases)
	require.NoError(t, err)
	result, err := suite.Run(t.Context(), policytest.Options{})
	require.NoError(t, err)
	got := lo.FlatMap(result.Cases, func(c policytest.CaseResult, _ int) []string {
		return lo.Map(c.Failures, func(f policytest.Failure, _ int) string {
			return strings.TrimPrefix(f.String(), filepath.Dir(cases)+string(filepath.Separator))
		})
	})
	assert.Equal(t, []string{
		`p.test.yaml:5:17: decision: expected allow, got deny by p/no: never`,
		`p.test.yaml:7:15: reason: expected "always", got "never"`,
		`p.test.yaml:8:12: ran: expected the tool to run, but it would not`,
		`p.test.yaml:10:13: rules.no: expected skip, got deny`,
		`p.test.yaml:14:38: decision: expected allow, got deny by p/no: never`,
		`p.test.yaml:16:22: status: expected the run to end as stopped, but it ended as done`,
	}, got)
}

// An invalid case file is refused, with file, line and column.
func TestWrongCases(t *testing.T) {
	for name, tc := range map[string]struct{ cases, want string }{
		"an unknown key":      {"cases: [{name: a, event: {tool: bash, argumets: {}}, expect: deny}]", `1:39: unknown key "argumets" (did you mean "arguments"?)`},
		"an unknown point":    {"cases: [{name: a, event: {point: PreTolUse}, expect: deny}]", `(did you mean "PreToolUse"?)`},
		"an unknown decision": {"cases: [{name: a, event: {tool: bash}, expect: dny}]", `(did you mean "deny"?)`},
		"an unknown rule":     {"cases: [{name: a, event: {tool: bash}, expect: {rule: nope}}]", `unknown rule "nope"`},
		"an unknown fault":    {"cases: [{name: a, event: {tool: bash}, faults: {no: explode}, expect: deny}]", `unknown fault "explode"`},
		"a fault of nothing":  {"cases: [{name: a, event: {tool: bash}, faults: {no: crash}, expect: deny}]", `unknown rule with an action "no"`},
		"nothing expected":    {"cases: [{name: a, event: {tool: bash}}]", "expect is missing"},
		"nothing happens":     {"cases: [{name: a, expect: deny}]", "event is missing"},
		"two of a name":       {"cases:\n- {name: a, event: {tool: b}, expect: deny}\n- {name: a, event: {tool: b}, expect: deny}", "the case in line 2 has the same name"},
		"no tool":             {"cases: [{name: a, event: {point: PreToolUse}, expect: deny}]", `the key "tool" is missing`},
		"a wrong pattern":     {"cases: [{name: a, event: {tool: b}, expect: {reason: /(/}}]", "expected a text, or a regular expression between slashes"},
		"a step too early":    {"cases: [{name: a, event: {point: InputSubmitted, step: 2}, expect: deny}]", "at InputSubmitted there are no steps of the run"},
	} {
		t.Run(name, func(t *testing.T) {
			_, cases := write(t, `  PreToolUse: [{id: no, match: {tool: bash}, decision: deny}]`, tc.cases)
			suite, err := policytest.Open(cases)
			if err == nil {
				_, err = suite.Run(t.Context(), policytest.Options{})
			}
			require.Error(t, err)
			assert.Contains(t, err.Error(), tc.want)
			assert.Contains(t, err.Error(), "p.test.yaml:")
		})
	}
}

// An action's input can be fired again.
func TestWhatAnActionIsToldCanBeFired(t *testing.T) {
	parts.Command(t, "tee", "coreutils")
	told := filepath.Join(t.TempDir(), "told.json")
	path, _ := write(t, `  PostToolUse: [{id: tell, type: command, argv: [tee, "`+told+`"], observe: true}]`, "")
	trial := load(t, path)
	fire(t, trial, "point: PostToolUse\ntool: bash\narguments: {command: ls}\nresult: a.txt\nrun: {id: r1, depth: 1}\nstep: 2\n")
	text, err := os.ReadFile(told)
	require.NoError(t, err)
	again, err := policytest.ReadEvent("told.json", text)
	require.NoError(t, err, string(text))
	r, err := trial.Fire(t.Context(), again)
	require.NoError(t, err)
	assert.Equal(t, hooks.PostToolUse, r.Point)
	assert.JSONEq(t, `{"command":"ls"}`, string(r.Arguments))
	assert.Equal(t, "a.txt", r.Told)
}

// An action's input at other points can be fired, and the next action receives the same input.
func TestWhatActionsAreToldAtOtherPointsCanBeFired(t *testing.T) {
	parts.Command(t, "tee", "coreutils")
	for point, event := range map[string]string{
		"StepEnd":       "reply: {text: hm, tools: [bash], finish_reason: length, model: m, usage: {input_tokens: 3, output_tokens: 4, reasoning_tokens: 2}}\nstep: 2\nusage: {input_tokens: 9, cost: 0.5}\ncalls: {bash: {calls: 2, ok: 1}}\n",
		"Stop":          "answer: done\nend: {reason: finish_reason, details: {finishReason: length}}\nstep: 1\n",
		"PostSubagent":  "subagent: {agent: reader, instruction: read, result: ok}\n",
		"StageComplete": "pipeline: {name: p, reason: max_iterations}\n",
	} {
		t.Run(point, func(t *testing.T) {
			told := filepath.Join(t.TempDir(), "told.json")
			path, _ := write(t, "  "+point+`: [{id: tell, type: command, argv: [tee, "`+told+`"], observe: true}]`, "")
			trial := load(t, path)
			fire(t, trial, "point: "+point+"\n"+event)
			text, err := os.ReadFile(told)
			require.NoError(t, err)
			again, err := policytest.ReadEvent("told.json", text)
			require.NoError(t, err, string(text))
			_, err = trial.Fire(t.Context(), again)
			require.NoError(t, err)
			once, err := os.ReadFile(told)
			require.NoError(t, err)
			for _, member := range []string{"reply", "end", "pipeline", "step_kind", "result", "subagent"} {
				assert.Equal(t, memberOf(t, text, member), memberOf(t, once, member), member)
			}
		})
	}
}

// memberOf returns a member's JSON.
func memberOf(t *testing.T, text []byte, name string) string {
	t.Helper()
	var all map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(text, &all))
	return string(all[name])
}

// Rules are reported in order, each with its result and reason.
func TestWhatEachRuleSaid(t *testing.T) {
	path, _ := write(t, `  PreToolUse:
    - {id: other, match: {tool: read, args: {path: "*"}}, decision: deny}
    - {id: ghost, when: args.n > 1, decision: deny, mode: shadow}
    - {id: small, when: args.n > 5, decision: deny}
    - {id: broken, when: args.m > 5, decision: deny, on_failure: open}
    - {id: big, when: args.n > 2, decision: deny, reason: too much}
    - {id: late, decision: allow}
`, "")
	r := fire(t, load(t, path), "tool: pay\narguments: {n: 3}")
	assert.Equal(t, []string{"other skip", "ghost deny shadow", "small pass", "broken failed", "big deny", "late not_asked"},
		lo.Map(r.Rules, func(s policytest.Said, _ int) string {
			return strings.TrimPrefix(s.Rule, "p/") + " " + s.Said + lo.Ternary(s.Shadow, " shadow", "")
		}))
	assert.Equal(t, []string{"tool read", "argument path ~ *"}, r.Rules[0].Unmatched)
	assert.Contains(t, r.Rules[2].Facts, hooks.Fact{Name: "args.n", Value: "3"})
	assert.Equal(t, r.Facts, r.Rules[4].Facts, "what spans carry")
	assert.Equal(t, "p/big", r.Rule)
	golden := `PreToolUse: pay {"n":3}
deny by p/big: too much
├─ p/other  skipped
│  it is not about this: tool read
│  it is not about this: argument path ~ *
├─ p/ghost  deny in shadow
│  args.n > 1 = true
│     args.n = 3
│  p.yaml:5:8
├─ p/small  pass: its condition is false
│  args.n > 5 = false
│     args.n = 3
├─ p/broken  failed: when: condition "args.m > 5" at PreToolUse, column 5: args.m: no member "m": check with has(…) first
│  args.m > 5 = failed: no member "m": check with has(…) first
│     args.m = failed: no member "m": check with has(…) first
│  on failure: open
│  p.yaml:7:8
├─ p/big  deny: too much
│  args.n > 2 = true
│     args.n = 3
│  p.yaml:8:8
└─ p/late  not asked
the model is told: tool "pay": denied by p/big: too much
`
	assert.Equal(t, golden, strings.ReplaceAll(r.Text(nil), filepath.Dir(path)+string(filepath.Separator), ""))
}

// If a condition asks who brought in a value, the report says where the value is.
func TestOrigins(t *testing.T) {
	path, _ := write(t, `  PreToolUse: [{id: known, match: {tool: pay}, when: '!from_user(args.to)', decision: deny}]`, "")
	r := fire(t, load(t, path), `
tool: pay
arguments: {to: US13, amount: 5}
messages:
  - {user: pay my bill of 5}
  - calls: [{tool: read_mail, result: send it to US13}]
`)
	require.Equal(t, hooks.Deny, r.Decision)
	assert.Equal(t, "read_mail", r.Rules[0].Origins["to"].Place.Tool)
	assert.Contains(t, r.Text(nil), `args.to: "US13" is untrusted: message 2, read_mail`)
}

// Disabled actions do not run.
func TestNoActions(t *testing.T) {
	made := filepath.Join(t.TempDir(), "made")
	path, _ := write(t, `  PreToolUse: [{id: act, type: command, argv: [touch, "`+made+`"]}]`, "")
	trial, err := policytest.Load([]policy.Layer{{Name: "run", Files: []string{path}}}, policy.Options{Wrap: policytest.NoActions})
	require.NoError(t, err)
	assert.Equal(t, hooks.Pass, fire(t, trial, "tool: bash").Decision)
	assert.NoFileExists(t, made)
}

func TestTheSchemaIsPublished(t *testing.T) {
	published, err := os.ReadFile("../../docs/policy-test.schema.json")
	require.NoError(t, err)
	assert.Equal(t, string(policytest.Schema()), string(published), "write it with: grapnel hooks test --schema > docs/policy-test.schema.json")
}

func TestCancelled(t *testing.T) {
	suite, err := policytest.Open("testdata/workspace.test.yaml")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = suite.Run(ctx, policytest.Options{})
	assert.ErrorIs(t, err, context.Canceled)
}

// Library rules have full names; the error for a test that uses only the ID suggests the full name.
func TestLibraryRulesAreNamedInFull(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "p.yaml"), []byte("policy: p\ninclude: library:safe-shell\n"), 0o600))
	run := func(expect string) (*policytest.Result, error) {
		path := filepath.Join(dir, "p.test.yaml")
		text := "cases: [{name: a, event: {tool: bash, arguments: {command: 'eval $X'}}, expect: {decision: deny, " + expect + "}}]\n"
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		s, err := policytest.Open(path)
		require.NoError(t, err)
		return s.Run(t.Context(), policytest.Options{})
	}
	_, err := run("rule: library:safe-shell/readable, rules: {library:safe-shell/wreck: not_asked}")
	require.NoError(t, err)
	_, err = run("rule: readable")
	require.ErrorContains(t, err, `unknown rule "readable" (did you mean "library:safe-shell/readable"?)`)
}
