package policy_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy"
)

// AP-59. What is wrong is told with its place and what would be right, and all at once.
func TestEverythingThatIsWrong(t *testing.T) {
	_, err := policy.Parse("p.yaml", []byte(`policy: "bad name"
verzion: 1
hooks:
  PreToolUze: [{id: a, decision: deny}]
  on_error: [{id: a, decision: deny}]
  StepEnd:
    - {id: b, decision: deny, match: {tool: bash}}
    - {decision: stop}
    - {id: bb}
    - {id: cc, decision: stop, type: shell}
  PreToolUse:
    - id: c
      match: {tool: "/(/", argz: {}, depth: {min: 3, max: 1}, any: []}
      when: 'args.command == 3 && (1'
      decision: dney
    - id: c
      decision: rewrite
      within: 3
      timeout: forever
      on_failure: maybe
      retries: 3
    - {type: shell, command: "true", await: false}
    - {type: command, argv: [a], on_error: closed, on_failure: open}
    - {$ref: nope, id: d, decision: deny}
    - {id: w, decision: deny, waiver: {expires: soon}}
    - id: u
      decision: deny
      when: |
        has(args.path) &&
          args.path.startsWit("/etc")
    - {id: two, decision: rewrite, set: {a.b: "1", a: "2"}}
    - {id: x, decision: ask, on_timeout: approve}
    - {id: y, type: gate, by: person, mode: shadow, await: true}
  ExecutionEnd:
    - {type: http, url: "http://example.com/x", on_failure: closed}
    - {type: http, url: "https://example.com/x", mode: shadow}
`), policy.Options{})
	wrong := &yamlfile.Error{}
	require.ErrorAs(t, err, &wrong)
	want := []string{
		`1:9: policy: invalid name "bad name"`,
		`2:1: a policy: unknown key "verzion" (did you mean "version"?)`,
		`4:3: unknown point of a policy "PreToolUze" (did you mean "PreToolUse"?)`,
		`5:3: "on_error" is ambiguous: use AgentFailed, IterationFailed (of a pipeline) or RunFailed (of the coordinator) (rule: points)`,
		`7:25: rule "b": "deny" is not possible at StepEnd: there a rule can allow, stop, add_context (rule: powers)`,
		`7:39: match: StepEnd is not about a tool call, so "tool" can never match (rule: matching)`,
		`8:8: StepEnd, entry 2: the key "id" is missing`,
		`9:7: rule "bb": decision or type is missing`,
		`10:7: rule "cc": decision and action are mutually exclusive`,
		`13:21: match: tool pattern "/(/"`,
		`13:28: match: unknown key "argz" (did you mean "args"?)`,
		`13:45: depth: the range from 3 to 1 is empty`,
		`13:68: match: an empty any matches nothing`,
		`14:37: when: `,
		`15:17: unknown decision "dney" (did you mean "deny"?)`,
		`16:7: the id "c" is taken by the rule in p.yaml, line 12 (rule: names)`,
		`17:7: rule "c": rewrite requires set or remove`,
		`18:7: rule "c": "within" belongs to decision: ask`,
		`19:16: timeout: expected a time above zero, such as 5s, 10m, or a number of seconds, got "forever"`,
		`20:19: unknown on_failure "maybe"`,
		`21:7: rule "c": retries requires on_failure: retry (rule: failure)`,
		`22:38: PreToolUse, entry 3: at PreToolUse the answer of an action may deny, so the rule must wait for it`,
		`23:34: PreToolUse, entry 4: on_error is another name for on_failure`,
		`24:14: $ref: unknown definition "nope"; known: none (rule: definitions)`,
		`25:39: waiver: the key "owner" is missing`,
		`25:39: waiver: the key "reason" is missing`,
		`25:49: expires: expected a day such as 2026-12-31`,
		`30:21: when: unknown name "startsWit": did you mean startsWith? (rule: conditions)`,
		`31:17: rule "two": "a.b" is within "a"`,
		`32:30: rule "x": on_timeout requires a deadline`,
		`35:25: ExecutionEnd, entry 1: url: http is allowed only for loopback addresses: use https (rule: actions)`,
		`35:49: "closed": a rule at ExecutionEnd cannot deny, so it cannot fail closed`,
		`36:50: ExecutionEnd, entry 2: mode: shadow requires a rule that decides (rule: shadow)`,
	}
	got := lo.Map(wrong.Problems, func(p yamlfile.Problem, _ int) string {
		assert.NotEmpty(t, p.Source, "the text that is meant is shown: %s", p.Text)
		head, _, _ := strings.Cut(strings.TrimPrefix(p.String(), "p.yaml:"), "\n")
		return head
	})
	require.Len(t, got, len(want), "%s", strings.Join(got, "\n"))
	for i := range want {
		assert.True(t, strings.HasPrefix(got[i], want[i]), "got  %s\nwant %s", got[i], want[i])
	}
}

func TestWhatIsRefused(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":                         {"", "the file is empty"},
		"no name":                         {"hooks: {}", `the key "policy" is missing`},
		"no mapping":                      {"- a", "expected keys with values, got a list"},
		"no decision, misspelt":           {"policy: p\nhooks: {Stop: {id: a, decisio: stop}}", `2:23: rule "a": unknown key "decisio" (did you mean "decision"?)`},
		"no action, misspelt":             {"policy: p\nhooks: {Stop: {id: a, typ: shell}}", `2:23: rule "a": unknown key "typ" (did you mean "type"?)`},
		"a program as a text":             {"policy: p\nhooks: {Stop: {type: command, argv: ls -l}}", `argv: expected a list, such as ["ls", "-l"]`},
		"an alias":                        {"policy: p\nvariables: {a: &x 1, b: *x}", "aliases are not supported"},
		"two documents":                   {"policy: p\n---\npolicy: q", "a second document begins here"},
		"a long file":                     {"policy: p\ndescription: " + strings.Repeat("a", 1<<20), "larger than a megabyte"},
		"many rules":                      {"policy: p\nhooks: {ExecutionEnd: [" + strings.Repeat("{type: func, func: f},", 5001) + "]}", "exceed the limit of"},
		"a circle":                        {"policy: p\ndefinitions: {a: {$ref: b}, b: {$ref: a}}\nhooks: {PreToolUse: [{$ref: a, id: x}]}", "form a cycle: a > b > a"},
		"a bad variable":                  {"policy: p\nvariables: {a-b: 1}", "conditions cannot name \"a-b\" as vars.a-b"},
		"a secret in a list":              {"policy: p\nenvironment: [xoxb-123-456]", "never their values"},
		"a missing include":               {"policy: p\ninclude: none.yaml", "none.yaml: no such file"},
		"a rule of nothing":               {"policy: p\nhooks: {PreToolUse: [1]}", `expected a rule or an action, written as keys with values, got "1"`},
		"two of a name":                   {"policy: p\nhooks: {ExecutionEnd: [{type: func, func: f, id: a}, {type: func, func: f, id: a}]}", `the id "a" is taken`},
		"closed observers":                {"policy: p\nhooks: {PreToolUse: [{type: func, func: f, observe: true, on_failure: retry, then: closed}]}", "cannot fail closed"},
		"an abort unheard":                {"policy: p\nhooks: {StepEnd: [{type: func, func: f, await: false, on_failure: abort}]}", "(rule: waiting)"},
		"a gate unheard":                  {"policy: p\nhooks: {StepEnd: [{type: gate, by: person, await: false}]}", "a gate requires await: true (rule: waiting)"},
		"metadata of the framework":       {"policy: p\nhooks: {PreToolUse: [{id: a, decision: allow, metadata: {agent.run_controls: '[]'}}]}", "belongs to the framework"},
		"metadata at an end":              {"policy: p\nhooks: {Stop: [{id: a, decision: continue, context: x}]}", "cannot add anything (rule: powers)"},
		"a reason of an action":           {"policy: p\nhooks: {PreToolUse: [{type: func, func: f, reason: x}]}", `"reason" belongs to decisions`},
		"not a default":                   {"policy: p\ndefaults: {timeout: soon}", "timeout: expected a time"},
		"no bool":                         {"policy: p\nhooks: {PreToolUse: [{id: a, decision: deny, when: '1 + 1'}]}", "(rule: conditions)"},
		"an unknown action":               {"policy: p\nhooks: {PreToolUse: [{id: a, decision: deny, when: 'actions.nope.status == \"x\"'}]}", "nope"},
		"switching off what is not above": {"policy: p\ndisable_global_hooks: 3", "expected true or false"},
		"a pattern for everything":        {"policy: p\nhooks: {PostToolUse: [{id: a, decision: redact, patterns: 'x*'}]}", "matches the empty text"},
	} {
		t.Run(name, func(t *testing.T) {
			got := refused(t, tc.text)
			assert.Contains(t, got, tc.want)
			assert.NotContains(t, got, "xoxb")
		})
	}
}

const noop = "policy: %s\nhooks: {PreToolUse: [{id: %s, decision: allow}]}\n"

func file(name string, more ...string) string {
	return strings.ReplaceAll(noop, "%s", name) + strings.Join(more, "\n")
}

func hookNames(p *policy.Policy) []string {
	return lo.Map(p.Rules(), func(r policy.Rule, _ int) string { return r.Hook() })
}

// AP-56, AP-57, AP-58: inner layers first, switches, and files that are not there.
func TestLayers(t *testing.T) {
	dir := write(t, map[string]string{
		"global.yaml":    file("global"),
		"required.yaml":  file("required", "required: true"),
		"pipeline.yaml":  file("pipeline"),
		"also.yaml":      file("also", "required: true"),
		"stage.yaml":     file("stage"),
		"no-global.yaml": file("quiet", "disable_global_hooks: true"),
		"alone.yaml":     file("alone", "disable_global_hooks: true", "disable_pipeline_hooks: true"),
	})
	layers := func(stage string, pipeline ...string) []policy.Layer {
		at := func(name string, files ...string) policy.Layer {
			return policy.Layer{Name: name, Files: lo.Map(files, func(f string, _ int) string { return filepath.Join(dir, f) })}
		}
		optional := at("agent", "none.yaml")
		optional.Optional = true
		return []policy.Layer{at("global", "global.yaml", "required.yaml"), at("pipeline", pipeline...), at("stage", stage), optional}
	}
	p, err := policy.Load(layers("stage.yaml", "pipeline.yaml"), policy.Options{})
	require.NoError(t, err)
	assert.Equal(t, []string{"stage/stage", "pipeline/pipeline", "global/global", "required/required"}, hookNames(p))
	assert.Equal(t, hookNames(p), set(t, p).Order(hooks.PreToolUse))

	p, err = policy.Load(layers("stage.yaml", "no-global.yaml"), policy.Options{})
	require.NoError(t, err)
	assert.Equal(t, []string{"stage/stage", "quiet/quiet", "required/required"}, hookNames(p))
	assert.Equal(t, []string{"global"}, p.DisabledPolicies())
	assert.Contains(t, lo.Map(p.Check(), func(w policy.Warning, _ int) string { return w.Text }),
		`the policy "required" is required and stays in force (rule: layers)`)

	p, err = policy.Load(layers("alone.yaml", "pipeline.yaml"), policy.Options{})
	require.NoError(t, err)
	assert.Equal(t, []string{"alone/alone", "required/required"}, hookNames(p))

	// Each warning about a required policy has the line of the setting for its layer.
	p, err = policy.Load(append(layers("alone.yaml", "also.yaml"), layers("no-global.yaml")[2]), policy.Options{})
	require.NoError(t, err)
	assert.Equal(t, []string{"alone.yaml:3 required", "alone.yaml:4 also", "no-global.yaml:3 required"},
		lo.Map(p.Check(), func(w policy.Warning, _ int) string {
			return filepath.Base(w.File) + ":" + strconv.Itoa(w.Line) + " " + strings.Split(w.Text, `"`)[1]
		}))

	_, err = policy.Load(layers("stage.yaml", "alone.yaml"), policy.Options{})
	assert.ErrorContains(t, err, "disable_pipeline_hooks: only a layer below the pipeline layer can switch it off")

	require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, "none.yaml")))
	_, err = policy.Load(layers("stage.yaml", "pipeline.yaml"), policy.Options{})
	assert.ErrorIs(t, err, os.ErrNotExist, "a link that leads nowhere was meant to lead to a policy")
	_, err = policy.Load([]policy.Layer{{Name: "agent", Files: []string{filepath.Join(dir, "none.yaml")}}}, policy.Options{})
	assert.ErrorContains(t, err, "no such file")
	_, err = policy.Load([]policy.Layer{{Name: "agnet"}}, policy.Options{})
	assert.ErrorContains(t, err, `(did you mean "agent"?)`)
}

// The same policy twice counts once. A different policy with the same name is an error.
//
// LH-23
func TestDuplicates(t *testing.T) {
	const user = "policy: user\nrequired: true\nhooks: {PreToolUse: [{id: no, decision: deny}]}\n"
	dir := write(t, map[string]string{
		"user.yaml": user, "copy.yaml": user, "other.yaml": strings.Replace(user, "deny", "allow", 1),
		"mine.yaml": "policy: mine\ndisable_global_hooks: true\nhooks: {PreToolUse: [{id: yes, decision: allow}]}\n",
	})
	at := func(layer string, files ...string) policy.Layer {
		return policy.Layer{Name: layer, Files: lo.Map(files, func(f string, _ int) string { return filepath.Join(dir, f) })}
	}
	p, err := policy.Load([]policy.Layer{at("global", "user.yaml"), at("run", "copy.yaml", "user.yaml", "mine.yaml")}, policy.Options{})
	require.NoError(t, err)
	assert.Equal(t, []string{"mine/yes", "user/no"}, hookNames(p))
	assert.Equal(t, "global", p.Rules()[1].Layer)

	// Who names a policy has it, whatever is switched off further out.
	loose := write(t, map[string]string{"user.yaml": strings.Replace(user, "required: true\n", "", 1)})
	again := policy.Layer{Name: "run", Files: []string{filepath.Join(loose, "user.yaml"), filepath.Join(dir, "mine.yaml")}}
	p, err = policy.Load([]policy.Layer{{Name: "global", Files: again.Files[:1]}, again}, policy.Options{})
	require.NoError(t, err)
	assert.Equal(t, []string{"user/no", "mine/yes"}, hookNames(p))
	assert.Empty(t, p.DisabledPolicies())

	_, err = policy.Load([]policy.Layer{at("global", "user.yaml"), at("run", "other.yaml")}, policy.Options{})
	assert.ErrorContains(t, err, `the policy "user" is declared twice`)

	// A layer may be read in another way than the rest: as it is, and not as it was.
	global := at("global", "user.yaml")
	global.Read = func(string) ([]byte, error) { return []byte(strings.ReplaceAll(user, "no,", "now,")), nil }
	p, err = policy.Load([]policy.Layer{global, at("run", "mine.yaml")}, policy.Options{})
	require.NoError(t, err)
	assert.Equal(t, []string{"mine/yes", "user/now"}, hookNames(p))
}

func TestIncludes(t *testing.T) {
	files := map[string]string{
		"main.yaml":    "policy: main\ninclude: [lib/one.yaml, lib/two.yaml]\nhooks: {PreToolUse: [{id: own, when: 'vars.limit > 1', decision: deny}, {$ref: shared, id: again, reason: mine}]}",
		"lib/one.yaml": "include: two.yaml\nvariables: {limit: 2}\nhooks: {PreToolUse: [{id: one, decision: allow}]}",
		"lib/two.yaml": "definitions: {shared: {decision: deny, reason: theirs, match: {tool: bash}}}\nhooks: {PreToolUse: [{id: two, decision: allow}]}",
	}
	dir := write(t, files)
	p, err := policy.LoadFiles(filepath.Join(dir, "main.yaml"))
	require.NoError(t, err)
	assert.Equal(t, []string{"main/two", "main/one", "main/own", "main/again"}, hookNames(p))
	assert.Equal(t, filepath.Join(dir, "lib/two.yaml"), p.Rules()[0].File)
	assert.Len(t, p.Files(), 3)

	// The hash is of everything: of what is included, too.
	files["lib/two.yaml"] += "\n# changed\n"
	other, err := policy.LoadFiles(filepath.Join(write(t, files), "main.yaml"))
	require.NoError(t, err)
	assert.NotEqual(t, p.Hash(), other.Hash())
	same, err := policy.LoadFiles(filepath.Join(dir, "main.yaml"))
	require.NoError(t, err)
	assert.Equal(t, p.Hash(), same.Hash())

	for name, tc := range map[string]struct{ text, want, at string }{
		"itself":            {"include: two.yaml", "form a cycle", "two.yaml:1:10:"},
		"what is not there": {"include: three.yaml", "no such file", "two.yaml:1:10:"},
		"a switch":          {"required: true", "only a whole policy can set this", "two.yaml:1:1:"},
		"the same variable": {"variables: {limit: 3}", `"limit" is set in another included file, too`, "one.yaml:2:13:"},
		"an unknown name":   {"hooks: {PreToolUse: [{id: x, when: 'vars.lmit > 1', decision: deny}]}", "vars.limit", "two.yaml:1:37:"},
	} {
		t.Run(name, func(t *testing.T) {
			files["lib/two.yaml"] = tc.text
			_, err := policy.LoadFiles(filepath.Join(write(t, files), "main.yaml"))
			require.ErrorContains(t, err, tc.want)
			assert.ErrorContains(t, err, tc.at)
		})
	}
}

// Loads that share Files find the same mistakes, each its own, and see a changed text.
func TestFiles(t *testing.T) {
	t.Parallel()
	text := "policy: a\nhooks:\n  PreToolUse: [{id: a, decision: deny, tols: bash}]\n"
	var files policy.Files
	load := func() error {
		_, err := policy.Load([]policy.Layer{{Name: "run", Files: []string{"a.yaml"}}}, policy.Options{
			Files: &files, Read: func(string) ([]byte, error) { return []byte(text), nil },
		})
		return err
	}
	first := load()
	require.ErrorContains(t, first, "tols")
	require.EqualError(t, load(), first.Error())
	text = strings.Replace(text, "tols", "tuls", 1)
	require.ErrorContains(t, load(), "tuls")
}

// A program that decides on one event loads only its rules.
func TestPointsThatAreLoaded(t *testing.T) {
	const text = "policy: p\nhooks:\n  PreToolUse: [{id: a, decision: deny}]\n  PostToolUse: [{id: b, when: no_such, decision: withhold}]\n"
	_, err := policy.Parse("p.yaml", []byte(text), policy.Options{})
	require.ErrorContains(t, err, "no_such")
	p, err := policy.Parse("p.yaml", []byte(text), policy.Options{Points: []hooks.PointName{hooks.PreToolUse}})
	require.NoError(t, err)
	require.Len(t, p.Rules(), 1)
	assert.Equal(t, "a", p.Rules()[0].ID)
}
