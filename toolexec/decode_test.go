package toolexec

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
)

type addInput struct {
	A int `json:"a"`
	B int `json:"b"`
}

type shellInput struct {
	Command string `json:"command" jsonschema:"what to run"`
	Timeout *int   `json:"timeout,omitempty"`
}

type word string

// everyKind has all that a flat struct may have.
type everyKind struct {
	S   string    `json:"s,omitzero"`
	W   word      `json:"w,omitzero"`
	B   bool      `json:"b,omitzero"`
	I   int       `json:"i,omitzero"`
	I8  int8      `json:"i8,omitzero"`
	I16 int16     `json:"i16,omitzero"`
	I32 int32     `json:"i32,omitzero"`
	I64 int64     `json:"i64,omitzero"`
	U   uint      `json:"u,omitzero"`
	U8  uint8     `json:"u8,omitzero"`
	U16 uint16    `json:"u16,omitzero"`
	U32 uint32    `json:"u32,omitzero"`
	U64 uint64    `json:"u64,omitzero"`
	F32 float32   `json:"f32,omitzero"`
	F64 float64   `json:"f64,omitzero"`
	PS  *string   `json:"ps,omitempty"`
	PB  *bool     `json:"pb,omitempty"`
	PI  *int16    `json:"pi,omitempty"`
	PF  *float64  `json:"pf,omitempty"`
	L   []string  `json:"l,omitempty"`
	LW  []word    `json:"lw,omitempty"`
	Req int       `json:"req"`
	Raw string    `json:"-"`
	own time.Time //nolint:unused // decoding must leave it alone
}

func decoderOf[In any](t testing.TB) *Decoder[In] {
	t.Helper()
	d, err := NewDecoder[In]()
	require.NoError(t, err)
	return d
}

func TestDecodeFlat(t *testing.T) {
	d := decoderOf[everyKind](t)
	require.NotNil(t, d.flat)
	for args, want := range map[string]everyKind{
		`{"req":1}`:                                       {Req: 1},
		" {\n\t\"req\" : -0 , \"s\" : \"\" } ":            {},
		`{"s":"a","w":"b","b":true,"req":7}`:              {S: "a", W: "b", B: true, Req: 7},
		`{"req":7,"b":false,"w":"b","s":"a"}`:             {S: "a", W: "b", Req: 7},
		`{"s":"größe \u00e9 \"\\\n\ud83d\ude00","req":0}`: {S: "größe é \"\\\n😀"},
		`{"i":-999999999999999999,"i8":-128,"i16":32767,"i32":-2147483648,"req":0}`: {
			I: -999999999999999999, I8: -128, I16: 32767, I32: math.MinInt32,
		},
		`{"i64":9223372036854775807,"u64":18446744073709551615,"req":0}`: {I64: math.MaxInt64, U64: math.MaxUint64},
		`{"i64":-9223372036854775808,"req":10.0}`:                        {I64: math.MinInt64, Req: 10},
		`{"u":4,"u8":255,"u16":1e2,"u32":4294967295,"req":0}`:            {U: 4, U8: 255, U16: 100, U32: math.MaxUint32},
		`{"f32":1.5,"f64":-0.1e-3,"req":0}`:                              {F32: 1.5, F64: -0.0001},
		`{"f64":3,"pf":3,"req":0}`:                                       {F64: 3, PF: new(3.0)},
		`{"ps":"x","pb":false,"pi":-5,"req":0}`:                          {PS: new("x"), PB: new(false), PI: new(int16(-5))},
		`{"ps":null,"pb":null,"pi":null,"pf":null,"req":0}`:              {},
		`{"l":[],"lw":["a", "b\n"],"req":0}`:                             {L: []string{}, LW: []word{"a", "b\n"}},
	} {
		var got everyKind
		require.NoError(t, d.Decode(args, &got), args)
		assert.Equal(t, want, got, args)
	}
}

func TestDecodeRefuses(t *testing.T) {
	d := decoderOf[everyKind](t)
	for args, want := range map[string]string{
		``:                               "checking arguments: /req: is missing; expected integer",
		`{}`:                             "checking arguments: /req: is missing; expected integer",
		`{"req":1.5}`:                    "checking arguments: /req: expected integer, got number 1.5",
		`{"req":"1"}`:                    `checking arguments: /req: expected integer, got string "1": give the integer itself, not inside a string`,
		`{"req":null}`:                   "checking arguments: /req: expected integer, got null",
		`{"req":1,"s":null}`:             "checking arguments: /s: expected string, got null",
		`{"req":1,"l":null}`:             "checking arguments: /l: expected array, got null",
		`{"req":1,"l":["a",null]}`:       "checking arguments: /l/1: expected string, got null",
		`{"req":1,"i8":128}`:             "checking arguments: /i8: must be at most 127; got integer 128",
		`{"req":1,"u":-1}`:               "checking arguments: /u: must be at least 0; got integer -1",
		`{"req":9223372036854775808}`:    "checking arguments: /req: 9223372036854775808 is out of range for integer (int)",
		`{"req":1,"u64":1e20}`:           "checking arguments: /u64: 1e20 is out of range for integer (uint64)",
		`{"req":1,"f32":1e39}`:           "checking arguments: /f32: 1e39 is out of range for number (float32)",
		`{"req":1,"f64":1e999}`:          "checking arguments: /f64: 1e999 is out of range for number (float64)",
		`{"req":1,"Raw":"x"}`:            `/Raw: is not known`,
		`{"req":1,"REQ":1}`:              `reading arguments: /REQ: members "req" and "REQ" differ only in case`,
		`{"Req":1}`:                      `/Req: is not known; did you mean "req"?`,
		`{"req":1,"req":1}`:              `reading arguments: /req: member "req" is given twice`,
		`{"req":01}`:                     "reading arguments: not valid JSON at byte 8",
		`{"req":1,"s":"` + "\xff" + `"}`: "reading arguments: /s: not valid JSON",
		`{"req":1,"s":"\ud83d"}`:         "reading arguments: /s: not valid JSON",
		`{"req":1} ` + "\x00":            "reading arguments: expected one JSON object and nothing after it",
		`[1]`:                            "reading arguments: expected one JSON object, got array",
		` `:                              "reading arguments: the text is empty",
	} {
		got := everyKind{Req: 42, S: "before"}
		err := d.Decode(args, &got)
		require.Error(t, err, args)
		assert.ErrorContains(t, err, want, args)
		_, ok := errors.AsType[*agent.ArgumentsError](err)
		assert.True(t, ok, "got %T", err)
		assert.Zero(t, got, "something is left after an error: %s", args)
	}
}

func TestDecodeForgetsWhatWasThere(t *testing.T) {
	d := decoderOf[everyKind](t)
	in := everyKind{S: "old", PS: new("old"), L: []string{"old"}, Raw: "old"}
	require.NoError(t, d.Decode(`{"req":1}`, &in))
	assert.Equal(t, everyKind{Req: 1}, in)
	require.NoError(t, d.Decode(`{"req":2.0,"s":"new"}`, &in)) // the slow way
	assert.Equal(t, everyKind{Req: 2, S: "new"}, in)
}

func TestDecodeNested(t *testing.T) {
	type file struct {
		Path string   `json:"path"`
		Tags []string `json:"tags,omitempty"`
	}
	type input struct {
		Files []file         `json:"files"`
		Meta  map[string]any `json:"meta,omitempty"`
		When  time.Time      `json:"when,omitzero"`
		Big   *big.Int       `json:"big,omitempty"`
		From  netip.Addr     `json:"from,omitzero"`
		Rest  any            `json:"rest,omitempty"`
		Bytes []byte         `json:"bytes,omitempty"`
	}
	d := decoderOf[input](t)
	assert.Nil(t, d.flat)
	var in input
	require.NoError(t, d.Decode(`{"files":[{"path":"a"},{"path":"b","tags":["x"]}],"meta":{"id":9007199254740993},
		"when":"2026-11-02T03:04:05Z","big":123456789012345678901234567890,"from":"10.0.0.1","rest":[1.0],"bytes":"aGk="}`, &in))
	n, _ := new(big.Int).SetString("123456789012345678901234567890", 10)
	assert.Equal(t, input{
		Files: []file{{Path: "a"}, {Path: "b", Tags: []string{"x"}}},
		Meta:  map[string]any{"id": json.Number("9007199254740993")},
		When:  time.Date(2026, 11, 2, 3, 4, 5, 0, time.UTC),
		Big:   n,
		From:  netip.MustParseAddr("10.0.0.1"),
		Rest:  []any{json.Number("1.0")},
		Bytes: []byte("hi"),
	}, in)

	for args, want := range map[string]string{
		`{"files":[{"path":"a","pth":"b"}]}`:             `/files/0/pth: is not known; did you mean "path"?; known: "path", "tags"`,
		`{"files":[{"path":"a"},{"path":7}],"meta":"x"}`: `2 problems: /files/1/path: expected string, got integer 7; /meta: expected object, got string "x"`,
		`{"files":[],"from":"home"}`:                     `/from: `,
		`{"files":[],"when":"tomorrow"}`:                 `/when: `,
		`{"files":[],"rest":{"a":{"k":1,"K":2}}}`:        `/rest/a/K: members "k" and "K" differ only in case`,
		`{"files":[],"meta":{"a":1e999999999}}`:          `/meta/a: the exponent of 1e999999999 is out of range`,
	} {
		assert.ErrorContains(t, d.Decode(args, &in), want, args)
	}
}

func TestDecodeIntoMap(t *testing.T) {
	d := decoderOf[map[string]any](t)
	var in map[string]any
	require.NoError(t, d.Decode(`{"n":10000000000000000000000}`, &in))
	assert.Equal(t, map[string]any{"n": json.Number("10000000000000000000000")}, in)
}

func TestDecodeWithOwnSchema(t *testing.T) {
	schema, err := CompileSchema(`{"type":"object","properties":{"a":{"type":"integer","minimum":1},"b":{"enum":[1,2]}},"required":["a"]}`)
	require.NoError(t, err)
	d, err := newDecoderWith[addInput](schema)
	require.NoError(t, err)
	assert.Same(t, schema, d.Schema())
	var in addInput
	require.NoError(t, d.Decode(`{"a":3,"b":2}`, &in))
	assert.Equal(t, addInput{A: 3, B: 2}, in)
	assert.EqualError(t, d.Decode(`{"a":0,"b":3}`, &in),
		"checking arguments: 2 problems: /a: must be at least 1; got integer 0; /b: must be one of 1, 2; got integer 3")
	// The schema lets it pass, the tool would never see it.
	assert.EqualError(t, d.Decode(`{"a":1,"c":3}`, &in), `checking arguments: /c: member "c" is not known`)

	_, err = newDecoderWith[struct{ X int }](schema)
	assert.ErrorContains(t, err, `has no place for member "a"`)
}

// What is flat is a promise about speed only; these are the ones that must not be taken for flat.
func TestNotFlat(t *testing.T) {
	for _, v := range []any{
		struct{ In addInput }{},
		struct{ addInput }{},
		struct{ A any }{},
		struct{ A json.Number }{},
		struct{ A []json.Number }{},
		struct{ A time.Time }{},
		struct{ A **int }{},
		struct{ A *[]string }{},
		struct{ A []int }{},
		struct{ A []byte }{},
		struct{ A netip.Addr }{},
		struct{ A []netip.Addr }{},
		struct{ A unit }{},
		struct{ A *unit }{},
		struct{ A []unit }{},
		struct {
			A int `json:"a\"b"`
		}{},
		time.Time{},
		map[string]string{},
	} {
		assert.Nil(t, flatOf(reflect.TypeOf(v)), "%T", v)
	}
}

// FuzzDecode holds the one-pass way against the reference: same verdict, same value. The reference reports all
// errors, so the verdict is all that the fast way may get wrong.
func FuzzDecode(f *testing.F) {
	for _, args := range []string{
		``, `{}`, `{"a":12,"b":30}`, `{"b":1,"a":-0}`, `{"a":1,"a":2}`, `{"a":1,"A":2,"b":3}`, `{"a":10.0,"b":1e1}`,
		`{"command":"ls \"x\"\n"}`, `{"command":"é\ud83d\ude00","timeout":null}`, `{"command":"x","timeout":30} `,
		`{"req":1,"s":"x","w":"y","b":true,"i8":-128,"u8":255,"f32":1.5,"f64":-1e-7,"ps":"p","pb":false,"pi":1,"pf":2}`,
		`{"req":1,"l":["a","b"],"lw":[]}`, `{"req":1,"l":["a",]}`, `{"req":00}`, `{"req":1,"f64":1e400,"u16":65536}`,
		`{"i64":9223372036854775807,"u64":18446744073709551615,"req":-}`, `{"req":1,"b":tru}`, `{"req":1,"ps":nul}`,
	} {
		f.Add(args)
	}
	add, shell, every := decoderOf[addInput](f), decoderOf[shellInput](f), decoderOf[everyKind](f)
	f.Fuzz(func(t *testing.T, args string) {
		sameDecoding(t, add, args)
		sameDecoding(t, shell, args)
		sameDecoding(t, every, args)
	})
}

func sameDecoding[In any](t *testing.T, d *Decoder[In], args string) {
	t.Helper()
	var got, want In
	err := d.Decode(args, &got)
	text := args
	if text == "" {
		text = "{}"
	}
	wantErr := d.decodeSlowly(text, &want)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%T from %q: got error %v, want %v", got, args, err, wantErr)
	}
	if wantErr != nil {
		want = *new(In)
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%q: got %+v, want %+v", args, got, want)
	}
}

func BenchmarkDecode(b *testing.B) {
	b.Run("add", func(b *testing.B) { benchmarkDecode[addInput](b, `{"a":12,"b":30}`) })
	b.Run("shell", func(b *testing.B) { benchmarkDecode[shellInput](b, `{"command":"grep -rn main . | head -20"}`) })
	b.Run("shell-escapes", func(b *testing.B) { benchmarkDecode[shellInput](b, `{"command":"grep -rn \"main\" . | head -20"}`) })
	b.Run("every", func(b *testing.B) {
		benchmarkDecode[everyKind](b, `{"s":"text","b":true,"i":-5,"u8":200,"f64":2.5,"l":["a","b"],"req":1}`)
	})
}

func benchmarkDecode[In any](b *testing.B, args string) {
	b.Helper()
	d := decoderOf[In](b)
	b.Run("fused", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var in In
			if err := d.Decode(args, &in); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var in In
			if err := json.Unmarshal([]byte(args), &in); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("schema-library", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var in In
			if err := d.decodeSlowly(args, &in); err != nil {
				b.Fatal(err)
			}
		}
	})
}
