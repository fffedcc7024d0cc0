package condition_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/policy/internal/condition"
)

func languageOf(t testing.TB, o condition.Options) *condition.Language {
	t.Helper()
	l, err := condition.New(o)
	require.NoError(t, err)
	return l
}

// compiled returns a condition compiled at PreToolUse.
func compiled(t testing.TB, l *condition.Language, text string) *condition.Condition {
	t.Helper()
	c, err := l.Compile(text, hooks.PreToolUse)
	require.NoError(t, err, text)
	return c
}

// event returns an event at PreToolUse, unless the members say otherwise.
func event(t testing.TB, members map[string]any) condition.Input {
	t.Helper()
	if members["point"] == nil {
		members["point"] = "PreToolUse"
	}
	text, err := json.Marshal(members)
	require.NoError(t, err)
	in, err := condition.FromJSON(text, "")
	require.NoError(t, err)
	return in
}

// callOf returns a call of bash with the given arguments.
func callOf(t testing.TB, arguments string) condition.Input {
	t.Helper()
	return event(t, map[string]any{"tool": "bash", "arguments": json.RawMessage(arguments)})
}

// hold tests the values of conditions for an event.
func hold(t *testing.T, l *condition.Language, in condition.Input, want map[string]bool) {
	t.Helper()
	for text, want := range want {
		c, err := l.Compile(text, in.Point())
		if !assert.NoError(t, err, text) {
			continue
		}
		got, err := c.Test(t.Context(), in)
		if assert.NoError(t, err, text) {
			assert.Equal(t, want, got, text)
		}
	}
}

// AP-46
func TestOperators(t *testing.T) {
	hold(t, languageOf(t, condition.Options{}), callOf(t, `{"n":7,"s":"x","f":1.5,"l":[1,2],"m":{"k":null}}`), map[string]bool{
		"args.n == 7": true, "args.n != 7": false, "args.n < 8": true, "args.n <= 7": true, "args.n > 7": false,
		"args.n >= 7": true, "args.n % 2 == 1": true, "args.n > 5 && args.s == 'x'": true, `args.n > 9 || args.s == "x"`: true,
		"!(args.n == 7)": false, "(1 + 2) * 3 == 9": true, "args.f > 1": true, "args.n > 6.5": true, "tool == 'bash'": true,
		"has(args.n) && !has(args.o)": true, "args.l[1] == 2": true, "2 in args.l": true, "args.m.k == null": true,
		"'s' in args && !('t' in args)": true, "args.n == 7 ? args.s == 'x' : args.nothing": true,
		"args.?o.orValue('none') == 'none'": true, "size(args.l) == 2 && args.l.all(x, x > 0)": true,
		"args.n == 7 // and so on": true, "args == original_args": true,
	})
}

// AP-47, AP-48
func TestNamesInBraces(t *testing.T) {
	l := languageOf(t, condition.Options{})
	for iteration := 1; iteration <= 20; iteration++ {
		in := event(t, map[string]any{
			"point": "IterationComplete", "run": map[string]any{"id": "r", "session": "s", "root": "r", "number": 1,
				"iteration": iteration, "stage": "work", "started": "2026-01-01T00:00:00Z"},
		})
		hold(t, l, in, map[string]bool{
			"${ITERATION} % 10 == 0":                                    iteration%10 == 0,
			"${ITERATION}%10==0":                                        iteration%10 == 0,
			"ITERATION % 10 == 0":                                       iteration%10 == 0,
			"${STAGE} == 'work' && ${ITERATION} > 5":                    iteration > 5,
			"${ITERATION} > 5 && ${STAGE} == 'work'":                    iteration > 5,
			"${STAGE} == 'plan'":                                        false,
			"${run.session} == 's'":                                     true,
			"'${ITERATION} or so' == '$' + '{ITERATION} or so' // ${X}": true,
		})
	}
}

// AP-49, AP-55
func TestWhatIsWrongIsSaidWithItsPlace(t *testing.T) {
	l := languageOf(t, condition.Options{
		Variables: map[string]any{"workspace": "/srv", "limits": map[string]any{"max": 3}}, Actions: []string{"scan"},
	})
	for text, want := range map[string]struct {
		offset     int
		message    string
		suggestion string
	}{
		"argz.path == 'x'":                            {0, `unknown name "argz.path"`, "args"},
		"1 == 1 && tol == 'x'":                        {10, `unknown name "tol"`, "tool"},
		"'ä€' == tool && tol == 'x'":                  {19, `unknown name "tol"`, "tool"},
		"run.sesion == 'x'":                           {0, `unknown name "run.sesion"`, "run.session"},
		"${ITERATON} == 1":                            {2, `unknown name "ITERATON"`, "ITERATION"},
		"tool == 'x' && ${HOME} == 'y'":               {17, `unknown name "HOME"`, ""},
		"vars.workspce == 'x'":                        {0, `unknown name "vars.workspce"`, "vars.workspace"},
		"vars.limits.mx == 3":                         {11, `unknown name "mx" in vars.limits`, "max"},
		"actions.scam.status == 'success'":            {7, `unknown name "scam" in actions`, "scan"},
		"path.withn(args.path, workspace)":            {0, `unknown name "path.withn"`, "path.within"},
		"result.text == 'x'":                          {0, "result.text does not exist at PreToolUse, only at PostToolUse, ToolFailed, RunResult, RunFinish", ""},
		"shell.commands(tool).exists(c, c.nme == '')": {32, `unknown field "nme"`, "name"},
		"tool == 1":                                   {5, "== does not accept values of type string, int", ""},
		"${ITERATION} == 'x'":                         {13, "== does not accept values of type int, string", ""},
		"calls(1) > 0":                                {0, "calls does not accept values of type int", ""},
		"tool":                                        {0, "a condition must be a bool, but this expression is of type string", ""},
		"  tool":                                      {2, "a condition must be a bool, but this expression is of type string", ""},
		"tool ==":                                     {7, "the expression is incomplete", ""},
		"tool = 'x'":                                  {5, "unexpected '= '", "=="},
		"tool == 'x' and depth == 1":                  {12, "unexpected 'and'", "&&"},
		"depth == 1 | depth == 2":                     {11, "unexpected '| '", "||"},
		"'${STAGE}' == 'x'":                           {0, "quotes make ${STAGE} plain text: remove them to use the variable", ""},
		"$STAGE == 'x'":                               {0, "expected a name in braces after $, such as ${ITERATION}", ""},
		"tool == 'x' || ${ITERATION":                  {15, "expected a name in braces after $, such as ${ITERATION}", ""},
		"":                                            {0, "the condition is empty", ""},
		" \n":                                         {0, "the condition is empty", ""},
		"tool == '\xff'":                              {0, "the condition is not UTF-8 text", ""},
		"tool == 'x' &&\n  1 / 0 == 1":                {0, "", ""}, // fails only where the first part is true
		"2 / 0 == 1":                                  {2, "this always fails: division by zero", ""},
		"tool.matches('(')":                           {0, "error parsing regexp: missing closing ): `(`", ""},
		"tool.matches(args.pattern)":                  {5, "the regular expression must be constant: write it here or in vars", ""},
		"shell.Command{name: 'x'}.name == tool":       {13, "a condition cannot create a shell.Command", ""},
		strings.Repeat("(", 300) + "true":             {100, "", ""},
		"tool == '" + strings.Repeat("x", 16<<10) + "'": {16 << 10, "the condition is longer than 16384 bytes", ""},
	} {
		_, err := l.Compile(text, hooks.PreToolUse)
		if want.message == "" && want.offset == 0 {
			assert.NoError(t, err, text)
			continue
		}
		wrong, ok := errors.AsType[condition.Errors](err)
		if !assert.True(t, ok, "%s: %v", text, err) {
			continue
		}
		if want.message == "" {
			continue
		}
		assert.Equal(t, want.offset, wrong[0].Offset, text)
		assert.Equal(t, want.message, wrong[0].Message, text)
		assert.Equal(t, want.suggestion, wrong[0].Suggestion, text)
		assert.Equal(t, text, wrong[0].Text)
	}
}

func TestAnErrorSaysLineAndColumn(t *testing.T) {
	_, err := languageOf(t, condition.Options{}).Compile("tool == 'x' &&\n  (agnt == 'y' ||\n\t'ü' == stag)", hooks.PreToolUse)
	require.Error(t, err)
	assert.Equal(t, `condition at PreToolUse, line 2, column 4: unknown name "agnt": did you mean agent?
condition at PreToolUse, line 3, column 10: unknown name "stag": did you mean stage?`, err.Error())
	one, ok := errors.AsType[*condition.Error](err)
	require.True(t, ok)
	assert.Equal(t, `unknown name "agnt": did you mean agent?`, one.MessageWithHint())
}

func TestThereMustBeSuchAPoint(t *testing.T) {
	l := languageOf(t, condition.Options{})
	_, err := l.Compile("true", "Lunch")
	assert.EqualError(t, err, `unknown hook point "Lunch"`)
	assert.Empty(t, l.Variables("Lunch"))
	for _, at := range hooks.PointNames() {
		_, err := l.Compile("agent == 'a' && ${ITERATION} > 0 && calls('x') == 0 && workspace != ''", at)
		assert.NoError(t, err, at)
	}
}

// AP-50, AP-52
func TestWhatCannotBeEvaluatedIsAnError(t *testing.T) {
	l := languageOf(t, condition.Options{})
	for text, want := range map[string]string{
		"args.path == 'x'": `condition "args.path == 'x'" at PreToolUse, column 5: args.path: no member "path": check with has(…) first`,
		"args.n / (args.n - 7) == 1": `condition "args.n / (args.n - 7) == 1" at PreToolUse, column 8: args.n / (args.n - 7): ` +
			"division by zero; args.n is the int 7",
		"7 % ${ITERATION} == 1": `condition "7 % ${ITERATION} == 1" at PreToolUse, column 3: 7 % ITERATION: ` +
			"remainder of a division by zero; ITERATION is the int 0",
		"args.s + args.n == 'x7'": `condition "args.s + args.n == 'x7'" at PreToolUse, column 8: args.s + args.n: ` +
			`the operator or function does not accept values of these types; args.s is the string "x", args.n is the int 7`,
		"args.s > 3":     `condition "args.s > 3" at PreToolUse, column 8: the operator or function does not accept values of these types; args.s is the string "x"`,
		"args.n":         `condition "args.n" at PreToolUse, column 1: a condition must be a bool, but this is the int 7`,
		"args.n && true": `condition "args.n && true" at PreToolUse, column 8: the operator or function does not accept values of these types; args.n is the int 7`,
		"args.big > 1": `condition "args.big > 1" at PreToolUse, column 5: args.big: ` +
			"the number 12345678901234567890123 has too many digits for a condition",
		"args.d > 1": `condition "args.d > 1" at PreToolUse, column 5: args.d: ` +
			"the number 9007199254740993.0 is too large for a condition to hold exactly",
		"args.l.exists(x, x.y == 1)": `condition "args.l.exists(x, x.y == 1)" at PreToolUse, column 19: x.y: no member "y": check with has(…) first`,
		"args.l[7] == 1":             `condition "args.l[7] == 1" at PreToolUse, column 7: args.l[7]: no element at index 7`,
		"shell.clear(args.n)": `condition "shell.clear(args.n)" at PreToolUse, column 7: ` +
			"the operator or function does not accept values of these types; args.n is the int 7",
		"usage.cost > 1.0 && actions.a.status == ''": `condition "usage.cost > 1.0 && actions.a.status == ''" at PreToolUse, column 28: ` +
			`actions.a: no member "a": check with has(…) first`,
	} {
		in := callOf(t, `{"n":7,"s":"x","big":12345678901234567890123,"l":[1,"b"],"d":9007199254740993.0}`)
		if strings.HasPrefix(text, "usage") {
			in = event(t, map[string]any{"tool": "bash", "usage": map[string]any{"cost": 2}})
		}
		c, err := l.Compile(text, hooks.PreToolUse)
		if !assert.NoError(t, err, text) {
			continue
		}
		yes, err := c.Test(t.Context(), in)
		assert.False(t, yes, text)
		assert.EqualError(t, err, want, text)
		_, ok := errors.AsType[*condition.EvalError](err)
		assert.True(t, ok)
	}
}

func TestNumbersKeepTheirDigits(t *testing.T) {
	hold(t, languageOf(t, condition.Options{}), callOf(t, `{"a":9007199254740993,"b":18446744073709551615,"c":-9223372036854775808,"d":1.0,"e":1e3,"f":0.1}`), map[string]bool{
		"args.a == 9007199254740993": true, "args.a == 9007199254740992": false, "string(args.a) == '9007199254740993'": true,
		"args.b == 18446744073709551615u": true, "args.b > 5": true, "args.b > 9223372036854775807": true,
		"args.c < 0": true, "args.d == 1": true, "args.e == 1000": true, "args.f < 1": true,
	})
}

// AP-51
func TestValuesAreNeverText(t *testing.T) {
	l := languageOf(t, condition.Options{})
	for _, value := range []string{
		"' || 1==1", "' || true || '", `" || 1==1 //`, "\n", "\x00", "${ITERATION}", "'", `\`, "'''", `"""`, "x'; rm -rf ~; '", "${", "$(touch x)",
		"a\nb", "\u2028", "��", "true", "null", "*", "[", `{"a":1}`, "%s%n", "((((", strings.Repeat("'", 5000),
	} {
		quoted, err := json.Marshal(value)
		require.NoError(t, err)
		in := event(t, map[string]any{
			"tool": value, "arguments": json.RawMessage(fmt.Sprintf(`{"v":%s,%s:1}`, quoted, nameOf(value))),
			"variables": map[string]any{"STAGE": value, "ERROR": value}, "agent": value,
			"actions": map[string]any{"a": map[string]any{"status": "success", "output": value}},
		})
		hold(t, l, in, map[string]bool{
			"args.v == 'safe'": false, "${STAGE} == 'work'": false, "tool == 'x' || agent == 'y' || ${ERROR} == 'z'": false,
			"args.v == tool && ${STAGE} == tool && actions.a.output == tool": true,
			"actions['a'].status == 'success' && size(args) == 2":            true,
			"glob(args.v, 'safe')": false,
		})
	}
}

// nameOf returns a value as a member name that differs from the other names.
func nameOf(value string) string {
	name, _ := json.Marshal(value + "_") // a string can be encoded
	return string(name)
}

func TestCostIsBounded(t *testing.T) {
	l := languageOf(t, condition.Options{})
	in := callOf(t, `{"s":"`+strings.Repeat("a", 10_000)+`"}`)
	for _, text := range []string{
		"lists.range(10000).all(x, lists.range(10000).all(y, x + y >= 0))",
		"args.s.replace('a', args.s).replace('a', args.s).size() > 0",
		"lists.range(10000).all(x, !glob(args.s, '*b*c*d'))",
		"lists.range(9999).map(x, args.s + args.s).size() > 0",
		"lists.range(9999).all(x, shell.clear(args.s + string(x)))",
	} {
		_, err := compiled(t, l, text).Test(t.Context(), in)
		assert.ErrorContains(t, err, "the cost is above the limit", text)
	}
	_, err := compiled(t, l, "lists.range(args.n).size() > 0").Test(t.Context(), callOf(t, `{"n":1000000}`))
	assert.Error(t, err)
}

func TestAContextThatHasEndedEndsIt(t *testing.T) {
	l := languageOf(t, condition.Options{CostLimit: 1 << 60})
	gone := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	l2 := languageOf(t, condition.Options{CostLimit: 1 << 60, Functions: []condition.Function{stopper(cancel, gone)}})
	_, err := compiled(t, l2, "lists.range(9999).all(x, lists.range(9999).all(y, stop()))").Test(ctx, callOf(t, "{}"))
	assert.Equal(t, gone, err)
	_, err = compiled(t, l, "tool == 'x'").Test(ctx, callOf(t, "{}"))
	assert.Equal(t, gone, err)
}

func TestAConditionIsForItsPoint(t *testing.T) {
	c := compiled(t, languageOf(t, condition.Options{}), "tool == 'bash'")
	_, err := c.Test(t.Context(), event(t, map[string]any{"point": "PostToolUse", "tool": "bash"}))
	assert.EqualError(t, err, `condition "tool == 'bash'" was compiled for PreToolUse and cannot be evaluated at PostToolUse`)
	_, err = c.Test(t.Context(), condition.Input{})
	assert.EqualError(t, err, "the input is empty: create it with Of")
	assert.Empty(t, c.Explain(t.Context(), condition.Input{}))
}

func TestConstants(t *testing.T) {
	l := languageOf(t, condition.Options{Variables: map[string]any{"on": false}})
	for text, want := range map[string]struct{ value, known bool }{
		"true": {true, true}, "1 == 2": {false, true}, "tool == 'x' || true": {true, true}, "false && tool == 'x'": {false, true},
		"tool == 'x'": {}, "vars.on": {}, "calls('x') >= 0": {}, "now > timestamp('2020-01-01T00:00:00Z')": {},
		"path.ext('a.go') == '.go'": {true, true}, "host.private('127.1')": {true, true}, "path.within('a', 'b')": {},
		"'a' in ['a', 'b']": {true, true}, "[1, 2].exists(x, x > 5)": {false, true}, "has(args.x) || !has(args.x)": {},
		"tool.startsWith('x') ? true : true": {},
	} {
		value, known := compiled(t, l, text).Constant()
		assert.Equal(t, want.known, known, text)
		assert.Equal(t, want.value, value, text)
	}
}

func TestUses(t *testing.T) {
	c := compiled(t, languageOf(t, condition.Options{Variables: map[string]any{"a": 1}}),
		"args.x == vars.a && calls('x') > 0 && args.l.exists(i, shell.clear(i)) && ${ITERATION} > 1")
	for _, name := range []string{"args", "vars.a", "calls", "shell.clear", "ITERATION"} {
		assert.True(t, c.Uses(name), name)
	}
	assert.False(t, c.Uses("metadata") || c.Uses("denied"))
}

func TestExpressionsHaveAnyType(t *testing.T) {
	l := languageOf(t, condition.Options{})
	in := callOf(t, `{"path":"a/../b","n":[1,2]}`)
	for text, want := range map[string]struct {
		kind  string
		value any
	}{
		"path.clean(args.path)": {"string", "b"}, "args.n": {"dyn", nil}, "size(args.n) + 1": {"int", int64(3)},
		"{'a': 1}": {"map(string, int)", nil}, "args.path + '?'": {"string", "a/../b?"}, "calls('x') * 2": {"int", int64(0)},
		"now < timestamp('2020-01-01T00:00:00Z')": {"bool", false},
	} {
		e, err := l.Expression(text, hooks.PreToolUse)
		require.NoError(t, err, text)
		assert.Equal(t, want.kind, e.Type(), text)
		assert.Equal(t, text, e.String())
		v, err := e.Value(t.Context(), in)
		require.NoError(t, err, text)
		if want.value != nil {
			assert.Equal(t, want.value, v.Value(), text)
		}
	}
	_, err := l.Expression("nothing + 1", hooks.PreToolUse)
	assert.ErrorContains(t, err, `unknown name "nothing"`)
}

func TestOptionsThatAreWrong(t *testing.T) {
	_, err := condition.New(condition.Options{
		Variables: map[string]any{"my-host": "x", "in": 1, "big": json.Number("123456789012345678901234567890"), "f": func() {}},
		Functions: []condition.Function{{Name: "calls"}, {Name: "two words", Call: stopper(nil, nil).Call, Overloads: stopper(nil, nil).Overloads}},
	})
	for _, part := range []string{`variable "my-host"`, `variable "in"`, `variable "big"`, `variable "f"`, `function "calls"`, `function "two words"`} {
		assert.ErrorContains(t, err, part)
	}
}

func TestVariablesHaveTheTypesOfTheirValues(t *testing.T) {
	l := languageOf(t, condition.Options{Variables: map[string]any{
		"s": "x", "n": 3, "f": 1.5, "b": true, "hosts": []any{"a", "b"}, "mixed": []any{"a", 1}, "m": map[string]any{"k": []any{1}}, "none": nil, "empty": []any{},
	}})
	got := l.Variables(hooks.PreToolUse)
	for name, want := range map[string]string{
		"vars.s": "string", "vars.n": "int", "vars.f": "double", "vars.b": "bool", "vars.hosts": "list(string)",
		"vars.mixed": "list(dyn)", "vars.m": "map(string, list(int))", "vars.none": "dyn", "vars.empty": "list(dyn)",
		"args": "map(string, dyn)", "ITERATION": "int", "now": "timestamp", "workspace": "string",
	} {
		assert.Equal(t, want, got[name], name)
	}
	hold(t, l, callOf(t, `{"host":"b"}`), map[string]bool{
		"args.host in vars.hosts": true, "vars.m.k[0] == 1": true, "vars.none == null": true, "vars.n > 2 && vars.b": true,
	})
	_, err := l.Compile("vars.n == 'x'", hooks.PreToolUse)
	assert.Error(t, err)
}
