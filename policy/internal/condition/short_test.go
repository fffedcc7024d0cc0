package condition

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// Random conditions use these operands, and random arguments these values. A comparison other than CEL's would most
// easily fail for them.
var (
	operands = []string{
		"args.a", "args.b", "args.o.a", "args.o.o.a", `args["a b"]`, `args["o"].a`, "args.o", "args.l", "args.e", "args", "args.missing",
		"original_args.a", "original_args.o.a", "tool", "step", "call.index", "run.id", "usage.tokens", "usage.cost", "ITERATION", "STAGE", "now",
		"vars.n", "vars.t", "vars.d", "vars.nan", "vars.l", "vars.m.x", "vars.m", "workspace",
		"1", "-1", "0", "2u", "1.0", "0.5", "9007199254740993", "9223372036854775807", "18446744073709551615u", "'a'", "'b'", "'ab'", "'1'", "''", "'/etc'", "true",
		"false", "null", "b'a'", "[1, 'a']", "size(args.a)", "args.a + 1", "args.l[0]", "tool.size()", "calls('x')", "path.base(args.a)",
		"args.?a.orValue(1)", "args.l.map(x, x).size()", "path.base(args.o.a)", "path.clean('a/../b')", "calls()", "denied(tool)", "twice(args.a)", "args.a.shout()",
		"members(args).size()", "size(members(args.l))", "texty(members(args))", "texty(args)", "texty(args.a)", "named('bash')", "named('x')",
		"(texty(args) ? args.a : tool == 'bash')", "(named('x') || texty(members(args.o)))", "texty(args.missing)",
	}
	listed   = []string{"vars.l", "vars.many", "args.l", "args.o", "args.e", "args", "[1, 2.0, 'a', null]", "[1, 'b']", "['/etc', '']", "[]", "[args.a]", "[1u, true]"}
	patterns = []string{"'a'", "'^/etc'", "'('", "tool", "args.a"}
	values   = []string{
		"1", "-1", "0", "2", "1.0", "-0.0", "0.5", "1e3", "9007199254740993", "9223372036854775807", "18446744073709551615", "99999999999999999999999",
		"1e300", `"a"`, `"ab"`, `"ba"`, `"1"`, `""`, `"/etc/passwd"`, `"\u002fetc"`, `"ä\n"`, "true", "false", "null", "[]", `[1,"a",null,2.0]`, `[[1],{"a":1}]`, `{"a":1}`,
		`{"a":{"a":1}}`, `{"o":{"a":"a"}}`, `{"a":99999999999999999999999}`,
	}
)

// Some strings and numbers are also drawn at random.
var (
	anyText   = rapid.StringOf(rapid.SampledFrom([]rune("a1/. *é\u0301İſK😀\u202e\uFFFD\x00\n\"'\\")))
	anyNumber = rapid.OneOf(
		rapid.Map(rapid.Int64(), func(n int64) string { return strconv.FormatInt(n, 10) }),
		rapid.Map(rapid.Uint64(), func(n uint64) string { return strconv.FormatUint(n, 10) }),
		rapid.Map(rapid.Float64Range(-1e17, 1e17), func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }),
	)
)

func drawOperand(t *rapid.T, label string) string {
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0:
		return strconv.QuoteToASCII(anyText.Draw(t, label))
	case 1:
		return anyNumber.Draw(t, label)
	}
	return rapid.SampledFrom(operands).Draw(t, label)
}

// drawValue draws an argument's value, as JSON.
func drawValue(t *rapid.T, label string, depth int) string {
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0:
		text, err := json.Marshal(anyText.Draw(t, label))
		require.NoError(t, err)
		return string(text)
	case 1:
		return anyNumber.Draw(t, label)
	case 2:
		if depth > 0 {
			return "[" + drawValue(t, label, depth-1) + "," + drawValue(t, label, depth-1) + "]"
		}
	case 3:
		if depth > 0 {
			return fmt.Sprintf(`{"a":%s,"o":%s}`, drawValue(t, label, depth-1), drawValue(t, label, depth-1))
		}
	}
	return rapid.SampledFrom(values).Draw(t, label)
}

func drawCondition(t *rapid.T, depth int) string {
	operand := func(label string) string { return drawOperand(t, label) }
	form := 0
	if depth > 0 {
		form = rapid.IntRange(0, 9).Draw(t, "form")
	}
	switch form {
	case 7, 8:
		return fmt.Sprintf("(%s %s %s)", drawCondition(t, depth-1), rapid.SampledFrom([]string{"&&", "||"}).Draw(t, "join"), drawCondition(t, depth-1))
	case 9:
		return "!" + drawCondition(t, depth-1)
	}
	switch rapid.IntRange(0, 7).Draw(t, "atom") {
	case 7:
		function := rapid.SampledFrom([]string{"glob", "path.within", "path.matches", "host.matches", "panics"}).Draw(t, "function")
		return fmt.Sprintf("%s(%s, %s)", function, operand("text"), rapid.SampledFrom(append([]string{
			"'/e*'", "'a'", "['/etc/**', 'a']", "['a', 1]", "[tool]", "vars.texts", "vars.l", "[]", "args.l",
		}, operands...)).Draw(t, "pattern"))
	case 0:
		return "has(" + rapid.SampledFrom([]string{"args.a", "args.o.a", "args.o.o.a", "args.missing", "args.a.b", "original_args.a", `args["o"].a`, "vars.m.x"}).Draw(t, "has") + ")"
	case 1:
		return operand("value") + " in " + rapid.SampledFrom(listed).Draw(t, "list")
	case 2:
		method := rapid.SampledFrom([]string{"startsWith", "endsWith", "contains"}).Draw(t, "method")
		return fmt.Sprintf("%s.%s(%s)", operand("text"), method, operand("part"))
	case 3:
		return fmt.Sprintf("%s.matches(%s)", operand("text"), rapid.SampledFrom(patterns).Draw(t, "pattern"))
	case 4:
		return operand("bool")
	default:
		sign := rapid.SampledFrom([]string{"==", "!=", "<", "<=", ">", ">="}).Draw(t, "sign")
		return fmt.Sprintf("(%s %s %s)", operand("left"), sign, operand("right"))
	}
}

func drawArguments(t *rapid.T) string {
	var members []string
	for _, name := range []string{"a", "b", "a b", "l", "e", "o"} {
		if rapid.IntRange(0, 4).Draw(t, "there") > 0 {
			members = append(members, fmt.Sprintf("%q:%s", name, drawValue(t, name, 2)))
		}
	}
	if rapid.IntRange(0, 9).Draw(t, "many") == 0 {
		for i := range 2 * mostLooks {
			members = append(members, fmt.Sprintf(`"m%d":%d`, i, i))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

// Judges return the same results as CEL, and report failures in CEL's words.
func TestTheShortWayIsThatOfCEL(t *testing.T) {
	var asked, short, failed, held int
	property := shortWayIsThatOfCEL(t)
	rapid.Check(t, func(t *rapid.T) {
		property(t, func(c *compiled, in Input, v ref.Val, err error) {
			asked++
			switch {
			case err != nil:
				failed++
			case v == types.True:
				held++
			}
			if c.judge != nil && c.judge(in.event) != unsure {
				short++
			}
		})
	})
	t.Logf("%d judgements: %d without CEL, %d failed, %d held", asked, short, failed, held)
}

// FuzzShortWay checks the same for conditions and arguments given as text. The seeds put each operator between
// operands of all kinds, and each condition judges arguments of all kinds.
func FuzzShortWay(f *testing.F) {
	const arguments = `{"a":"ab","b":1,"o":{"a":1.0},"l":[1,"a",null]}`
	lefts := []string{"args.a", "args.o.a", "original_args.a", "tool", "step", "vars.d", "1", "'ab'"}
	rights := []string{"args.b", "args.missing", "1", "1u", "1.0", "9007199254740993", "18446744073709551615u", "'ab'", "'b'", "'é'", "''", "null", "true", "vars.nan"}
	for _, left := range lefts {
		for _, right := range rights {
			for _, form := range []string{
				"%s == %s", "%s != %s", "%s < %s", "%s >= %s", "%s in [%s, 'b']", "%s.startsWith(%s)", "!%s.endsWith(%s)", "glob(%s, %s)",
				"%s <= 1 && tool > %s", "%s == 1 || %s in args.l || has(args.o.a)",
			} {
				f.Add(fmt.Sprintf(form, left, right), arguments)
			}
		}
	}
	for _, text := range []string{"args.a.matches('^a')", "args.a.contains('b')", "args.a in args.o", "has(args.a.b) == has(args.o)", "args.a.shout() == 'ab!'"} {
		f.Add(text, `{"a":"\u0061b","o":{"b":1e300}}`)
	}
	l := shortLanguage(f)
	each := lo.Map(values, func(value string, _ int) Input { return callOf(f, `{"a":`+value+`,"b":1}`, `{"a":1}`) })
	f.Fuzz(func(t *testing.T, text, arguments string) {
		c, err := l.Expression(text, hooks.PreToolUse)
		if err != nil || c.c.judge == nil {
			return
		}
		if strictjson.CheckObject(arguments) == nil {
			_, _ = requireSameAsCEL(t, c.c, callOf(t, arguments, `{}`), arguments)
		}
		for i, in := range each {
			_, _ = requireSameAsCEL(t, c.c, in, values[i])
		}
	})
}

// callOf returns the input for a bash call.
func callOf(t require.TestingT, arguments, original string) Input {
	in, err := FromJSON(fmt.Appendf(nil, `{"point":"PreToolUse","tool":"bash","arguments":%s,"original_arguments":%s}`, arguments, original), "")
	require.NoError(t, err)
	return in
}

// shortWayIsThatOfCEL returns a property that draws a condition and calls, and passes each of them with CEL's result
// to seen.
func shortWayIsThatOfCEL(t testing.TB) func(t *rapid.T, seen func(c *compiled, in Input, v ref.Val, err error)) {
	t.Helper()
	l := shortLanguage(t)
	return func(t *rapid.T, seen func(c *compiled, in Input, v ref.Val, err error)) {
		c, err := l.Expression(drawCondition(t, 2), hooks.PreToolUse)
		if err != nil {
			t.Skip(err)
		}
		for range 10 {
			arguments, original := drawArguments(t), drawArguments(t)
			in := callOf(t, arguments, original)
			v, err := requireSameAsCEL(t, c.c, in, arguments+original)
			seen(c.c, in, v, err)
		}
	}
}

// shortLanguage returns the language of the drawn conditions.
func shortLanguage(t testing.TB) *Language {
	t.Helper()
	var many []any
	for i := range 2 * mostLooks {
		many = append(many, i)
	}
	l, err := New(Options{CostLimit: 20_000, Workspace: "/srv", Home: "/home/x", Variables: map[string]any{
		"n": 1, "t": "a", "d": 1.0, "nan": math.NaN(), "l": []any{1, "a", nil, 2.5}, "many": many, "m": map[string]any{"x": "a"},
		"texts": []any{"/etc/*", "b"},
	}, Functions: []Function{
		{
			Name: "twice", Overloads: []Overload{{[]*cel.Type{cel.StringType}, cel.StringType}, {[]*cel.Type{cel.IntType}, cel.IntType}},
			Call: func(in Input, args ...ref.Val) ref.Val {
				if n, ok := args[0].(types.Int); ok {
					return n.Add(n)
				}
				return types.String(in.Point()) + args[0].(types.String) + args[0].(types.String)
			},
		},
		{
			Name: "members", Overloads: []Overload{{[]*cel.Type{cel.DynType}, cel.ListType(cel.DynType)}},
			Call: func(_ Input, args ...ref.Val) ref.Val {
				of, ok := args[0].(traits.Mapper)
				if !ok {
					return types.NewErr("no members")
				}
				return inOrder(of)
			},
		},
		{
			Name: "texty", Overloads: []Overload{{[]*cel.Type{cel.DynType}, cel.BoolType}},
			Call: func(_ Input, args ...ref.Val) ref.Val { return types.Bool(strings.Contains(showValue(args[0]), "a")) },
			Why:  func(_ Input, args ...ref.Val) string { return "of " + showValue(args[0]) },
		},
		{
			Name: "named", ByTool: true, Overloads: []Overload{{[]*cel.Type{cel.StringType}, cel.BoolType}},
			Call: func(in Input, args ...ref.Val) ref.Val { return types.Bool(types.String(in.Tool()) == args[0]) },
		},
		{
			Name: "shout", Member: true, Pure: true, Overloads: []Overload{{[]*cel.Type{cel.StringType}, cel.StringType}},
			Call: func(_ Input, args ...ref.Val) ref.Val { return args[0].(types.String) + "!" },
		},
		{
			Name: "panics", Overloads: []Overload{{[]*cel.Type{cel.StringType, cel.StringType}, cel.BoolType}, {[]*cel.Type{cel.StringType, texts}, cel.BoolType}},
			Call: func(_ Input, args ...ref.Val) ref.Val {
				if text, ok := args[1].(types.String); ok && strings.Contains(string(text), "a") {
					panic("odd: " + text)
				}
				return types.Bool(args[0].Equal(args[1]) == types.True)
			},
		},
	}})
	require.NoError(t, err)
	return l
}

// requireSameAsCEL compares a condition's value, errors and reasons with the ones from CEL alone, which it returns.
func requireSameAsCEL(t interface {
	require.TestingT
	Helper()
	Context() context.Context
}, c *compiled, in Input, about string,
) (ref.Val, error) {
	t.Helper()
	v, wantErr := c.evaluate(t.Context(), in)
	if c.judge == nil { // only CEL evaluates the condition
		c.explainFacts(t.Context(), in)
		return v, wantErr
	}
	want, isBool := v.(types.Bool)
	if wantErr == nil && !isBool {
		wantErr = c.wrongResult(v)
	}
	got, gotErr := (&Condition{c}).Test(t.Context(), in)
	if wantErr != nil {
		var wanted, given *EvalError
		require.ErrorAs(t, wantErr, &wanted, "%s\n%s", c.text, about)
		require.ErrorAs(t, gotErr, &given, "%s\n%s", c.text, about)
		require.Equal(t, wanted.Err.Error(), given.Err.Error(), "%s\n%s", c.text, about)
		require.Equal(t, wanted.Offset, given.Offset, "%s\n%s", c.text, about)
	} else {
		require.NoError(t, gotErr, "%s\n%s", c.text, about)
		require.Equal(t, bool(want), got, "%s\n%s", c.text, about)
	}
	plain := facts{of: c, in: in, state: c.trace(t.Context(), in.event.in(c.d))}
	if plain.state != nil {
		plain.gatherTraced(c.reasons())
	}
	require.Equal(t, plain.list, c.explainFacts(t.Context(), in), "%s\n%s", c.text, about)
	return v, wantErr
}

// These conditions are judged without CEL, and allocate nothing once the call was parsed.
func TestPlainConditionsNeedNoCEL(t *testing.T) {
	l, err := New(Options{Variables: map[string]any{"limit": 1000, "places": []any{"/", "/etc"}}})
	require.NoError(t, err)
	in, err := FromJSON([]byte(`{"point":"PreToolUse","tool":"bash","agent":"a","arguments":
		{"n":7,"x":1.5,"command":"ls \"a\"","path":"/srv/a","flags":{"force":false},"list":["a",1],"on":true,"nothing":null}}`), "")
	require.NoError(t, err)
	for text, want := range map[string]bool{
		`args.n == 39 && args.path.startsWith("/etc") || args.n > vars.limit`: false,
		`args.n in [1, 7] && !(args["path"] in vars.places)`:                  true,
		`has(args.flags.force) && !args.flags.force`:                          true,
		`has(args.timeout) && args.timeout > 600`:                             false,
		`args.command.contains("rm ") || args.command.endsWith('a"')`:         true,
		`args.path.matches("^/(srv|home)/")`:                                  true,
		`args.x >= 1.5 && args.x < 2.0 && args.path <= "/srv/b"`:              true,
		`"a" in args.list && "force" in args.flags && args.on`:                true,
		`args.nothing == null && args.nothing != args.n`:                      true,
		`original_args.n == args.n && tool == "bash" && step == 0`:            true,
		`agent == "b" && now > timestamp("2026-01-01T00:00:00Z")`:             false,
	} {
		c, err := l.Compile(text, hooks.PreToolUse)
		require.NoError(t, err)
		require.NotNil(t, c.c.judge, text)
		assert.Equal(t, verdictOf(want), c.c.judge(in.event), text)
		if strings.Contains(text, "matches") {
			continue // the regular expression may allocate, depending on its pool
		}
		assert.Zero(t, testing.AllocsPerRun(100, func() { _, _ = c.Test(t.Context(), in) }), text)
	}
}

// The same holds for our own string functions, which allocate only what they need.
func TestPlainCallsNeedNoCEL(t *testing.T) {
	l, err := New(Options{Workspace: t.TempDir(), Variables: map[string]any{"hosts": []any{"a.example", "*.b.example"}}})
	require.NoError(t, err)
	in, err := FromJSON([]byte(`{"point":"PreToolUse","tool":"bash","arguments":{"command":"curl x","path":"../x","url":"https://c.b.example/"}}`), "")
	require.NoError(t, err)
	for text, want := range map[string]bool{
		`glob(args.command, "curl *") && calls("bash") == 0`:            true,
		`!path.within(args.path, workspace) || calls() > 3`:             true,
		`host.matches(url.host(args.url), vars.hosts)`:                  true,
		`path.matches(args.path, ["/etc/**", "~/.ssh/**"])`:             false,
		`path.base(args.path) == "x" && url.port(args.url) in [1, 443]`: true,
	} {
		c, err := l.Compile(text, hooks.PreToolUse)
		require.NoError(t, err)
		require.NotNil(t, c.c.judge, text)
		assert.Equal(t, verdictOf(want), c.c.judge(in.event), text)
	}
}
