package condition

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"cel.dev/cel-go/common/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/grapnel-go/grapnel/hooks"
)

// numbers draws ordinary numbers, and numbers that a conversion between whole numbers and doubles changes.
var numbers = rapid.Custom(func(t *rapid.T) string {
	near := rapid.SampledFrom([]string{
		"0", "1", "4503599627370496", "9007199254740992", "9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616", "1000000000000000000",
	}).Draw(t, "near")
	n, _ := new(big.Int).SetString(near, 10)
	n.Add(n, big.NewInt(rapid.Int64Range(-3, 3).Draw(t, "off")))
	if rapid.Bool().Draw(t, "negative") {
		n.Neg(n)
	}
	suffix := rapid.SampledFrom([]string{"", "", "", ".0", ".5", ".25", ".000000000000000000001", "e0", "e1"}).Draw(t, "suffix")
	return n.String() + suffix
})

// literalOf returns a number as written in a condition.
func literalOf(number string) string {
	if strings.ContainsAny(number, ".e") {
		return number
	}
	if _, err := strconv.ParseInt(number, 10, 64); err == nil {
		return number
	}
	return number + "u"
}

// A comparison of two numbers of any notation and size is exact or fails: with and without CEL, as operator, in
// lists, and nested in lists and maps.
func TestNumbersAreComparedExactly(t *testing.T) {
	l, err := New(Options{Variables: map[string]any{"huge": 9007199254740992.0 * 4}})
	require.NoError(t, err)
	signs := map[string]func(order int) bool{
		"args.a == %s": func(o int) bool { return o == 0 }, "args.a != %s": func(o int) bool { return o != 0 },
		"args.a < %s": func(o int) bool { return o < 0 }, "args.a <= %s": func(o int) bool { return o <= 0 },
		"args.a > %s": func(o int) bool { return o > 0 }, "args.a >= %s": func(o int) bool { return o >= 0 },
		"args.a in [dyn(%s), 'x']": func(o int) bool { return o == 0 }, "args.a in [%s]": func(o int) bool { return o == 0 },
		"dyn(%s) in args.l": func(o int) bool { return o == 0 }, "args.l == ['x', %s]": func(o int) bool { return o == 0 },
		"args.m == {'x': {'y': dyn(%s)}}":                    func(o int) bool { return o == 0 },
		"args.l.exists(x, x != 'x' && x == dyn(%s))":         func(o int) bool { return o == 0 },
		"sets.contains([args.a], [%s])":                      func(o int) bool { return o == 0 },
		"[args.a, dyn(%s)].distinct().size() == 1":           func(o int) bool { return o == 0 },
		"math.greatest(args.a, dyn(%s)) != args.a":           func(o int) bool { return o < 0 },
		"args.a == %[1]s || (args.a < %[1]s) == (1 == 1)":    func(o int) bool { return o <= 0 },
		"double(args.a) <= double(%s)":                       func(o int) bool { return o <= 0 },
		"has(args.a) && !(args.a != %s) && tool == 'bash'":   func(o int) bool { return o == 0 },
		"cel.bind(x, dyn(%s), x <= args.a && x == args.a)":   func(o int) bool { return o == 0 },
		"args.l.filter(x, x == %s).size() + size('') == 1":   func(o int) bool { return o == 0 },
		"(args.a == %s) != (args.l.exists(x, x == 'other'))": func(o int) bool { return o == 0 },
	}
	ctx := t.Context()
	ask := func(t require.TestingT, form, left, right string) (text string, got bool, err error) {
		text = fmt.Sprintf(form, literalOf(right))
		c, err := l.Compile(text, hooks.PreToolUse)
		if err != nil {
			return text, false, err
		}
		got, err = c.Test(ctx, callOf(t, fmt.Sprintf(`{"a":%[1]s,"l":["x",%[1]s],"m":{"x":{"y":%[1]s}}}`, left), `{}`))
		return text, got, err
	}
	rapid.Check(t, func(t *rapid.T) {
		left, right := numbers.Draw(t, "left"), numbers.Draw(t, "right")
		a, _ := new(big.Rat).SetString(left)
		b, _ := new(big.Rat).SetString(right)
		for form, want := range signs {
			if text, got, err := ask(t, form, left, right); err == nil {
				assert.Equal(t, want(a.Cmp(b)), got, "%s with %s", text, left)
			}
		}
	})
	// No form always fails.
	for form, want := range signs {
		for order, right := range []string{"3", "2", "1"} {
			text, got, err := ask(t, form, "2", right)
			require.NoError(t, err, text)
			assert.Equal(t, want(order-1), got, text)
		}
	}
}

// Large doubles that no argument can have are also compared exactly with whole numbers.
func TestLargeDoublesAreComparedExactly(t *testing.T) {
	l, err := New(Options{})
	require.NoError(t, err)
	in := callOf(t, `{"n":9007199254740993,"big":1e16,"long":99999999999999999999999,"l":[99999999999999999999999],"f":9007199254740990.9}`, `{}`)
	for text, want := range map[string]string{
		`args.n > 9007199254740992.0`:                           "true",
		`args.n == 9007199254740992.0`:                          "false",
		`9007199254740992.0 < args.n`:                           "true",
		`args.n in [9007199254740992.0]`:                        "false",
		`dyn(9007199254740992.0) in [9007199254740993]`:         "false",
		`[args.n] == [9007199254740992.0]`:                      "false",
		`dyn(4503599627370496.0 * 2.0) == args.n`:               "false",
		`sets.contains([args.n], [9007199254740992.0])`:         "cannot be compared exactly here",
		`double(args.n) == 9007199254740992.0`:                  "the number 9007199254740993 would be rounded as a double",
		`double("9007199254740993") > 1.0`:                      "would be rounded as a double",
		`args.n == 9007199254740993.0`:                          "the number 9007199254740993.0 would be rounded to 9007199254740992",
		`args.n > -9007199254740993.0`:                          "the number -9007199254740993.0 would be rounded",
		`args.big in [10000000000000000]`:                       "too large for a condition",
		`10000000000000000 in [args.big]`:                       "too large for a condition",
		`10000000000000000 in args.l`:                           "too many digits",
		`args.l == [1]`:                                         "too many digits",
		`!(args.l != [1])`:                                      "too many digits",
		`args == {"n": 1}`:                                      "false",
		`args.long > 5`:                                         "too many digits",
		`args.f > 9007199254740990`:                             "too many digits",
		`{9007199254740993: 1}[dyn(9007199254740993)] == 1`:     "true",
		`dyn(9007199254740992.0) in {9007199254740993: 1}`:      "false",
		`dyn(0.0 / 0.0) == args.n || !(args.n == 9.0e15 + 1.0)`: "true",
	} {
		c, err := l.Compile(text, hooks.PreToolUse)
		if err != nil {
			assert.ErrorContains(t, err, want, text)
			continue
		}
		got, err := c.Test(t.Context(), in)
		if err != nil {
			assert.ErrorContains(t, err, want, text)
			continue
		}
		assert.Equal(t, want, strconv.FormatBool(got), text)
	}
}

// Values other than numbers compare as in CEL.
func TestOtherValuesCompareAsInCEL(t *testing.T) {
	values := []any{nil, true, "a", "", int64(1), uint64(1 << 63), 0.5, []any{"a", nil}, []any{}, map[string]any{"a": 1.5}, map[string]any{}}
	for _, a := range values {
		for _, b := range values {
			x, y := valueOf(a), valueOf(b)
			assert.Equal(t, types.Equal(x, y), equalValues(x, y), "%v %v", a, b)
		}
	}
	assert.Equal(t, types.False, equalValues(types.Double(math.NaN()), types.Double(math.NaN())))
	assert.Equal(t, types.False, equalValues(types.Int(1), types.Double(math.NaN())))
}
