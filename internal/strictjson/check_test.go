package strictjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// accepted lists arguments as models send them, and edge cases.
var accepted = []string{
	`{}`,
	" {\n\t} \r\n",
	`{"a":12,"b":30}`,
	`{"path":"/srv/x.txt","recursive":true,"limit":null}`,
	`{"command":"grep -n \"x\\ty\" *.go | head\n"}`,
	`{"items":[{"id":1,"tags":["a","b"]},{"id":2,"tags":[]}],"n":-1.5e+10}`,
	`{"a":{"x":1},"b":{"x":1,"X2":2}}`,
	`{"größe":"é","naïve":"日本語"}`,
	`{"emoji":"\ud83d\ude00","ctl":"\u0000"}`,
	`{"n":1e999,"m":1E-0000999,"k":123456789012345678901234567890}`,
	`{"":0}`,
	`{"s":"<del>` + "\x7f" + `</del>"}`,
	`{"a":` + strings.Repeat("[", MaxDepth-1) + strings.Repeat("]", MaxDepth-1) + `}`,
}

// refused maps arguments to a part of the error.
var refused = map[string]string{
	``:                                   "the text is empty",
	" \n":                                "the text is empty",
	`null`:                               "expected one JSON object, got null",
	`nothing fits`:                       "expected one JSON object, got text that is not JSON",
	`true, I think`:                      "expected one JSON object, got text that is not JSON",
	`42 degrees`:                         "expected one JSON object, got text that is not JSON",
	`[see below]`:                        "expected one JSON object, got text that is not JSON",
	`"quoted" text`:                      "expected one JSON object, got text that is not JSON",
	`[{"a":1,"a":2}]`:                    "expected one JSON object, got array",
	`"{}"`:                               "expected one JSON object, got string",
	`[{"a":1}]`:                          "expected one JSON object, got array",
	`7`:                                  "expected one JSON object, got number",
	`{"a":1} {}`:                         "nothing after it, got more text after byte 7",
	`{"a":1}}`:                           "nothing after it",
	`{"a":1,"a":2}`:                      `at /a: member "a" is given twice`,
	`{"x":[{"a":1,"a":2}]}`:              `at /x/0/a: member "a" is given twice`,
	`{"a":1,"\u0061":2}`:                 `at /a: member "a" is given twice`,
	`{"Path":1,"path":2}`:                `at /path: members "Path" and "path" differ only in case`,
	`{"q":{"k":1,"` + "\u212a" + `":2}}`: `differ only in case`, // the Kelvin sign
	`{"straße":1,"STRAßE":2}`:            `differ only in case`,
	`{"o/s":{"a~":1,"A~":2}}`:            `at /o~1s/A~0: members`,
	`{"a":01}`:                           "not valid JSON at byte 6",
	`{"a":1.}`:                           "not valid JSON",
	`{"a":.5}`:                           "not valid JSON",
	`{"a":+1}`:                           "not valid JSON",
	`{"a":NaN}`:                          "not valid JSON",
	`{"a":1,}`:                           "not valid JSON at byte 6",
	`{'a':1}`:                            "not valid JSON at byte 1",
	`{a:1}`:                              "not valid JSON at byte 1",
	`{"a" 1}`:                            "not valid JSON",
	`{"a":tru}`:                          "at /a: not valid JSON",
	"{\"a\":\"x\ny\"}":                   "at /a: not valid JSON",
	`{"a":"\x"}`:                         "at /a: not valid JSON",
	"{\"a\":\"\xff\"}":                   "invalid UTF-8",
	"{\"\xff\":1}":                       "invalid UTF-8",
	`{"a":"\ud83d"}`:                     "surrogate",
	`{"a":[1,2`:                          "at /a: the text ends after 9 bytes",
	`{"a`:                                "the text ends after",
	`{"a":1e1000}`:                       "at /a: the exponent of 1e1000 is out of range",
	`{"a":[1` + strings.Repeat("0", MaxDigits) + `]}`: "at /a/0: the number 10000",
	`{"a":0.` + strings.Repeat("3", MaxDigits) + `}`:  "is longer than 4000 bytes: give it as a string",
	`{"a":[1e-99999999]}`:                             "at /a/0: the exponent of 1e-99999999 is out of range",
	"\ufeff{}":                                        "not valid JSON at byte 0",
	`{"a":` + strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth) + `}`: "nested deeper than 1000",
	strings.Repeat(`{"a":`, MaxDepth+1) + `1` + strings.Repeat(`}`, MaxDepth+1):   "nested deeper than 1000",
	strings.Repeat(`{"a":`, 1_000_000):                                            "nested deeper than 1000",
	`{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":10,"k":11,"l":12,` +
		`"m":13,"n":14,"o":15,"p":16,"q":17,"r":18,"A":19}`: `members "a" and "A" differ only in case`,
}

func TestCheckObjectAccepts(t *testing.T) {
	for _, args := range accepted {
		assert.NoError(t, CheckObject(args), args)
		assert.NoError(t, checkTokens(args), args)
	}
}

func TestCheckObjectRefuses(t *testing.T) {
	for args, want := range refused {
		err := CheckObject(args)
		require.Error(t, err, args)
		assert.ErrorContains(t, err, want, args)
		_, ok := errors.AsType[*Error](err)
		assert.True(t, ok, "got %T for %s", err, args)
	}
}

// The hand scanner must accept common arguments; otherwise CheckObject would allocate for them.
func TestPlainTextsNeedNoTokens(t *testing.T) {
	for _, args := range accepted[:6] {
		assert.True(t, plainDocument(args), args)
		assert.Zero(t, testing.AllocsPerRun(100, func() { _ = CheckObject(args) }), args)
	}
}

func TestFoldAgreesWithEqualFold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.String().Draw(t, "a")
		b := rapid.SampledFrom([]string{strings.ToUpper(a), strings.ToLower(a), a + "x", rapid.String().Draw(t, "b")}).Draw(t, "other")
		assert.Equal(t, strings.EqualFold(a, b), fold(a) == fold(b), "%q %q", a, b)
	})
	for r := range rune(0x20000) {
		if other := foldRune(r); other != r {
			require.True(t, strings.EqualFold(string(r), string(other)), "%U folds to %U", r, other)
		}
	}
}

// FuzzCheckObject compares the hand scanner with the JSON library's tokens, and the tokens with encoding/json.
func FuzzCheckObject(f *testing.F) {
	for _, args := range accepted[:9] {
		f.Add(args)
	}
	for args := range refused {
		if len(args) < 100 {
			f.Add(args)
		}
	}
	f.Fuzz(func(t *testing.T, args string) {
		want := checkTokens(args)
		if plainDocument(args) && want != nil {
			t.Fatalf("the scanner takes %q, the tokens say: %v", args, want)
		}
		got := CheckObject(args)
		if (got == nil) != (want == nil) {
			t.Fatalf("%q: got %v, want %v", args, got, want)
		}
		var members map[string]any
		if want == nil && json.Unmarshal([]byte(args), &members) != nil && !strings.ContainsAny(args, "eE.") {
			t.Fatalf("%q is taken, but is no object for encoding/json", args)
		}
	})
}

func ExampleCheckObject() {
	fmt.Println(CheckObject(`{"path": "/tmp/x", "recursive": true}`))
	fmt.Println(CheckObject(`{"path": "/tmp/x", "PATH": "/etc"}`))
	fmt.Println(CheckObject(`{"files": [{"path": "a", "path": "b"}]}`))
	fmt.Println(CheckObject(`["/tmp/x"]`))
	// Output:
	// <nil>
	// at /PATH: members "path" and "PATH" differ only in case
	// at /files/0/path: member "path" is given twice
	// expected one JSON object, got array
}

func BenchmarkCheckObject(b *testing.B) {
	for name, args := range map[string]string{
		"flat":   `{"a":12,"b":30}`,
		"bash":   `{"command":"grep -rn \"TODO\" . | head -20","timeout":30}`,
		"nested": `{"items":[{"id":1,"tags":["a","b"]},{"id":2,"tags":[]}],"n":-1.5e+10}`,
	} {
		b.Run(name+"/scanner", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = CheckObject(args)
			}
		})
		b.Run(name+"/tokens", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = checkTokens(args)
			}
		})
	}
}
