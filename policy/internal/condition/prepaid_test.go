package condition_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/policy/internal/condition"
)

// mostMemory is the maximum that an evaluation that stops at the default cost may allocate in total, about four times
// the usual amount. Tests that measure it are not parallel.
const mostMemory = 64 << 20

// allocates fails the test if f allocates more than mostMemory in total, even if it is freed in between.
func allocates(t *testing.T, what string, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(mostMemory), what)
}

// doubled returns an expression that doubles the value a0 n times with operation, in which %[1]s stands for the
// value.
func doubled(first, operation string, n int, last string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "cel.bind(a0, %s, ", first)
	for i := range n {
		fmt.Fprintf(&b, "cel.bind(a%d, %s, ", i+1, fmt.Sprintf(operation, fmt.Sprintf("a%d", i)))
	}
	fmt.Fprintf(&b, last, fmt.Sprintf("a%d", n))
	b.WriteString(strings.Repeat(")", n+1))
	return b.String()
}

// AP-50
func TestWhatGrowsIsPaidBefore(t *testing.T) {
	l := languageOf(t, condition.Options{Variables: map[string]any{"re": "(a|b)*c"}})
	in := callOf(t, `{"s":"`+strings.Repeat("a", 400_000)+`","l":["`+strings.Repeat(`a","`, 90_000)+`"],"n":10000,"y":"x: &x [a, b]\ny: [*x, *x]\n","q":"`+
		strings.Repeat(`[`, 9000)+strings.Repeat(`]`, 9000)+`","m":{"k":"`+strings.Repeat(`\u0001`, 100_000)+`"}}`)
	const tooMuch = "the cost is above the limit"
	for text, want := range map[string]string{
		// A single call that turns its arguments into gigabytes.
		"args.s.replace('a', args.s).size() > 0":                               tooMuch,
		"args.s.replace('', args.s).size() > 0":                                tooMuch,
		"args.s.replace('a', args.s, 300000).size() > 0":                       tooMuch,
		"dyn(args.s).replace('a', args.s).size() > 0":                          tooMuch,
		"args.l.join(args.s).size() > 0":                                       tooMuch,
		"dyn(args.l).join(args.s) == ''":                                       tooMuch,
		"'%s'.format([args.l.map(x, args.s)]) == ''":                           tooMuch,
		"args.s.split('').size() > 0":                                          tooMuch,
		"args.s.split('a').size() > 0":                                         tooMuch,
		"args.l.map(x, args.s.lowerAscii()).size() > 0":                        tooMuch,
		"lists.range(10000).map(x, lists.range(10000)).size() > 0":             tooMuch,
		"lists.range(args.n).map(x, lists.range(args.n)).flatten().size() > 0": tooMuch,
		"lists.range(10000).map(x, args.s + args.s).size() > 0":                tooMuch,
		"lists.range(10000).map(x, args.l + args.l).flatten().size() > 0":      tooMuch,
		"lists.range(10000).map(x, args.l.slice(0, 80000)).size() > 0":         tooMuch,
		"lists.range(10000).map(x, base64.encode(bytes(args.s))).size() > 0":   tooMuch,
		"lists.range(10000).map(x, base64.decode(args.s)).size() > 0":          tooMuch,
		"lists.range(10000).map(x, json.encode(args)).size() > 0":              tooMuch,
		"lists.range(10000).map(x, yaml.encode(args)).size() > 0":              tooMuch,
		"lists.range(10000).map(x, strings.quote(args.s)).size() > 0":          tooMuch,
		"lists.range(10000).map(x, args.s.reverse()).size() > 0":               tooMuch,
		"lists.range(10000).map(x, args.s.substring(1)).size() > 0":            tooMuch,
		"lists.range(10000).map(x, args.l.reverse()).size() > 0":               tooMuch,
		"lists.range(10000).map(x, path.clean(args.s)).size() > 0":             tooMuch,
		"lists.range(10000).map(x, url.host('http://' + args.s)).size() > 0":   tooMuch,
		"lists.range(10000).map(x, json.parse(args.q)).size() > 0":             tooMuch,
		"yaml.encode(json.parse(args.q).value()) == ''":                        tooMuch,
		"yaml.parse(args.y).hasValue()":                                        "yaml.parse: the text may hold aliases, which can make it very large: remove & or *",
		// Repeated comparisons.
		"args.l.distinct().size() > 0":                  tooMuch,
		"sets.equivalent(args.l, args.l)":               tooMuch,
		"sets.contains(args.l, args.l)":                 tooMuch,
		"args.l.hasAny(['b'] + args.l)":                 tooMuch,
		"args.l.sort().size() > 0":                      tooMuch,
		"args.l.sortBy(x, x + x).size() > 0":            tooMuch,
		"args.s.indexOf(args.s.substring(200000)) > 0":  tooMuch,
		"args.l.exists(x, x in args.l.map(y, y + 'b'))": tooMuch,
		"args.l.exists(x, args.l == [x])":               tooMuch,
		// Each step doubles the value.
		doubled("'aaaaaaaa'", "%[1]s + %[1]s", 60, "%s.size() > 0"):            tooMuch,
		doubled("b'aaaaaaaa'", "%[1]s + %[1]s", 60, "%s.size() > 0"):           tooMuch,
		doubled("'aa'", "%[1]s.replace('a', %[1]s)", 30, "%s.size() > 0"):      tooMuch,
		doubled("'a'", "'%%s%%s'.format([%[1]s, %[1]s])", 60, "%s.size() > 0"): tooMuch,
		doubled("'a'", "[%[1]s, %[1]s].join(%[1]s)", 40, "%s.size() > 0"):      tooMuch,
		doubled("'\\\\'", "strings.quote(%[1]s)", 60, "%s.size() > 0"):         tooMuch,
		// A list with little memory and many elements.
		doubled("[1]", "%[1]s + %[1]s", 60, "5 in %s"):                                                    tooMuch,
		doubled("[1]", "%[1]s + %[1]s", 60, "%[1]s == %[1]s + [1]"):                                       tooMuch,
		doubled("[1]", "%[1]s + %[1]s", 60, "%s.exists(x, x == 2)"):                                       tooMuch,
		doubled("[1]", "%[1]s + %[1]s", 60, "%s.map(x, x).size() > 0"):                                    tooMuch,
		doubled("[1]", "%[1]s + %[1]s", 60, "%s.distinct().size() > 0"):                                   tooMuch,
		doubled("['a']", "%[1]s + %[1]s", 60, "%s.join(',') == ''"):                                       tooMuch,
		doubled("['a']", "%[1]s + %[1]s", 60, "glob('b', %s)"):                                            tooMuch,
		doubled("[1]", "%[1]s + %[1]s", 60, "math.greatest(%s) > 1"):                                      tooMuch,
		doubled("[1]", "[%[1]s, %[1]s]", 60, "%[1]s == [%[1]s] + [1]"):                                    "",
		doubled("dyn([1])", "dyn([%[1]s, %[1]s])", 60, "%[1]s == dyn([%[1]s[0], %[1]s[0]])"):              tooMuch,
		doubled("dyn([1])", "dyn([%[1]s, %[1]s])", 60, "%s.flatten(70).size() > 0"):                       tooMuch,
		doubled("dyn([1])", "dyn([%[1]s, %[1]s])", 60, "json.encode(%s) == ''"):                           tooMuch,
		doubled("dyn([1])", "dyn([%[1]s, %[1]s])", 60, "'%%s'.format([%s]) == ''"):                        tooMuch,
		doubled("dyn([1])", "dyn({'a': %[1]s, 'b': %[1]s})", 60, "json.encode(%s) == ''"):                 tooMuch,
		doubled("dyn([1])", "dyn({'a': %[1]s, 'b': %[1]s})", 60, "%[1]s == {'a': %[1]s.a, 'b': %[1]s.b}"): tooMuch,
		// Parts that decide the result do not help.
		"args.s.replace('a', args.s).size() > 0 || tool == 'bash'": tooMuch,
		"tool != 'bash' && args.s.replace('a', args.s).size() > 0": "",
	} {
		what := text[:min(len(text), 90)]
		c, err := l.Compile(text, hooks.PreToolUse)
		if err != nil { // without any value, it always fails
			assert.ErrorContains(t, err, want, what)
			continue
		}
		allocates(t, what, func() { _, err = c.Test(t.Context(), in) })
		if want == "" {
			if err != nil {
				assert.NotContains(t, err.Error(), tooMuch, what)
			}
			continue
		}
		assert.ErrorContains(t, err, want, what)
		allocates(t, what+" (explained)", func() { c.Explain(t.Context(), in) })
	}
}

// Whatever an expression does with each function that creates strings or lists, it takes little memory or is stopped
// in time.
func TestNoFunctionGrowsUnpaid(t *testing.T) {
	l := languageOf(t, condition.Options{})
	in := callOf(t, `{"s":"`+strings.Repeat("a", 400_000)+`","t":"a","l":["`+strings.Repeat(`a","`, 90_000)+`"],"n":10000,"m":{"k":["v"]}}`)
	texts := []string{
		// The value that each loop iteration creates.
		"args.s.upperAscii()", "args.s.trim()", "args.s + 'a'", "'a' + args.s", "args.s.substring(1)", "args.s.substring(1, 399999)", "args.s.charAt(3)", "args.s.split('b')[0]",
		"args.s.split('a', 90000)", "args.s.replace('aa', 'b')", "args.s.replace('a', 'bb', 100000)", "args.l.join()", "args.l.join(', ')", "'%s'.format([args.s])", "'%s'.format([args.l])",
		"'%x'.format([args.s])", "'%x'.format([bytes(args.s)])", "'%.100f %.100e'.format([1.0, 1.0])", "'%b'.format([args.n])", "strings.quote(args.s)", "bytes(args.s)", "string(bytes(args.s))",
		"base64.encode(bytes(args.s))", "base64.decode(base64.encode(bytes(args.s)))", "lists.range(args.n)", "lists.range(args.n).reverse()", "args.l.slice(1, 80000)", "args.l + args.l", "[args.l, args.l].flatten()",
		"args.l.distinct()", "args.l.sort()", "args.l.sortBy(y, args.s)", "args.l.map(y, y + args.s)", "args.l.filter(y, y != args.s)", "args.l.map(y, args.l)", "args.l.map(y, args.l).flatten()",
		"args.l.transformList(i, y, args.s + string(i))", "args.l.transformMap(i, y, args.s + string(i))", "args.l.transformMapEntry(i, y, {string(i): args.s + y})", "{args.s + 'k': args.s + 'v'}",
		"{'a': args.l.map(y, y + 'b')}", "json.encode(args.l)", "yaml.encode(args.l)", "json.parse('[' + args.l.join(',') + ']')", "args.l.map(y, [y, [y, [y]]]).flatten(3)", "math.greatest(args.l.map(y, size(y)))",
		"sets.contains(args.l, args.l)", "args.l.first()", "args.l.last()", "path.join(args.s, args.s)", "path.clean(args.s + '/../' + args.s)", "url.path('http://a/' + args.s)", "glob(args.s, [args.s + '*'])",
		"args.s.matches('(a*)*b')", "args.s.lastIndexOf(args.s.substring(1))", "args.l.exists(y, y == args.s)", "args.l.map(y, args.l.map(z, y + z))", "shell.commands(args.s)", "shell.clear('echo ' + args.s)",
		"optional.of(args.s + 'a')", "[?optional.of(args.s + 'a')]", "cel.bind(y, args.s + args.s, y + y)",
	}
	try := func(text string) {
		c, err := l.Compile(text, hooks.PreToolUse)
		if err != nil {
			return // the function does not accept this type, or compilation refuses it
		}
		allocates(t, text[:min(len(text), 90)], func() { _, _ = c.Test(t.Context(), in) })
	}
	compiles := 0
	for _, text := range texts {
		if _, err := l.Compile("dyn("+text+") == 1", hooks.PreToolUse); err == nil {
			compiles++
		}
		try("dyn(" + text + ") == 1")
		try("lists.range(10000).map(x, " + text + ").size() > 0")
		try("lists.range(1000).map(x, lists.range(1000).map(w, " + text + ")).size() > 0")
	}
	assert.Greater(t, compiles, len(texts)*8/10)
	// Each step processes the previous result.
	for _, step := range []string{
		"%[1]s.upperAscii() + %[1]s", "string(bytes(%[1]s + %[1]s))", "base64.encode(bytes(%[1]s))", "json.encode(%[1]s + '\"')", "json.encode([%[1]s, %[1]s])", "%[1]s.replace('a', 'aa')",
		"%[1]s.split('').join('aa')", "%[1]s.split('').map(y, %[1]s).join()", "'%%s %%s'.format([%[1]s, %[1]s])", "strings.quote(%[1]s + '\"')", "%[1]s.reverse() + %[1]s", "[%[1]s, %[1]s].join('-')",
		"yaml.encode([%[1]s, %[1]s])", "%[1]s.replace('', %[1]s)", "%[1]s.substring(0) + %[1]s.charAt(0) + %[1]s", "path.join(%[1]s, %[1]s)",
	} {
		try(doubled("args.t + 'aa'", step, 60, "%s.size() > 0"))
	}
	for _, step := range []string{
		"%[1]s + %[1]s", "[%[1]s, %[1]s].flatten()", "%[1]s.map(y, [y, y]).flatten()", "%[1]s.transformList(i, y, [y, y]).flatten()", "%[1]s.reverse() + %[1]s", "%[1]s.slice(0, size(%[1]s)) + %[1]s",
		"%[1]s.map(y, %[1]s).flatten()", "(%[1]s + %[1]s).sort()", "%[1]s.filter(y, true) + %[1]s", "%[1]s.map(y, y + y)",
	} {
		try(doubled("[args.t]", step, 60, "%s.size() > 0"))
		try(doubled("[args.t]", step, 60, "%s.map(y, y + 'a').size() > 0"))
		try(doubled("[args.t]", step, 60, "%s.join(',').size() > 0"))
	}
	try(doubled("dyn({'a': args.t})", "dyn({'a': %[1]s, 'b': %[1]s})", 60, "%s.transformMap(k, v, [v, v]).size() > 0"))
	try(doubled("dyn({'a': args.t})", "dyn({'a': %[1]s, 'b': %[1]s})", 60, "yaml.encode(%s) == ''"))
}

// Constant parts are evaluated at compile time, at the default cost.
func TestCompilingIsBounded(t *testing.T) {
	l := languageOf(t, condition.Options{CostLimit: 1 << 40})
	text := doubled("'aaaaaaaa'", "%[1]s + %[1]s", 60, "%s.size() > 0")
	allocates(t, "compiling", func() {
		_, err := l.Compile(text, hooks.PreToolUse)
		assert.NoError(t, err)
	})
}

// A result that would be enormous for its reader is an error.
func TestAResultIsNotLargerThanItsCost(t *testing.T) {
	l := languageOf(t, condition.Options{})
	in := callOf(t, `{"l":[1]}`)
	for _, text := range []string{
		doubled("dyn(args.l)", "dyn([%[1]s, %[1]s])", 60, "%s"),
		doubled("dyn(args.l)", "dyn({'a': %[1]s, 'b': %[1]s})", 60, "%s"),
		doubled("dyn(args.l)", "dyn([%[1]s, %[1]s])", 60, "optional.of(%s)"),
	} {
		e, err := l.Expression(text, hooks.PreToolUse)
		require.NoError(t, err)
		allocates(t, text[:90], func() {
			_, err = e.Value(t.Context(), in)
			assert.ErrorContains(t, err, "the result is larger than the cost limit allows")
			e.Explain(t.Context(), in)
		})
	}
}

// A value parsed from text is parsed once, however often a loop names it.
func TestALoopReadsTextOnce(t *testing.T) {
	l := languageOf(t, condition.Options{})
	big := `[` + strings.Repeat(`{"a":1},`, 10_000) + `0]`
	in := callOf(t, `{}`).With(condition.Values{Actions: map[string]condition.Action{"a": {Status: "success", Output: big}}})
	c := compiled(t, l, "lists.range(1000).all(x, actions.a.response[x].a == 1)")
	allocates(t, c.String(), func() {
		yes, err := c.Test(t.Context(), in)
		require.NoError(t, err)
		assert.True(t, yes)
	})
}

// Ordinary conditions are not refused: the costs of long values are far below the limit.
func TestOrdinaryConditionsArePaid(t *testing.T) {
	in := callOf(t, `{"s":"`+strings.Repeat("a b ", 10_000)+`","l":["`+strings.Repeat(`user@example.com","`, 500)+`x"]}`)
	hold(t, languageOf(t, condition.Options{}), in, map[string]bool{
		"args.s.replace(' ', '_').size() == 40000":                                       true,
		"args.s.split(' ').size() == 20001":                                              true,
		"args.s.lowerAscii().contains('password')":                                       false,
		"args.l.all(x, x in ['x', 'user@example.com'])":                                  true,
		"args.l.exists(x, x.endsWith('@evil.example'))":                                  false,
		"args.l.map(x, x + '!').join(', ').size() > 1000":                                true,
		"args.l.filter(x, x != 'x').size() == 500":                                       true,
		"'%s: %d'.format([tool, args.l.size()]).size() > 1":                              true,
		"args.s.indexOf('password') < 0 && size(args.s) > 3":                             true,
		"args.s.startsWith('b') ? args.l == [] : args.l[0] + '?' == 'user@example.com?'": true,
	})
}
