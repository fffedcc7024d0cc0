package strictjson

import (
	"encoding/json"
	"math/big"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type flatTarget struct {
	Path  string   `json:"path"`
	Lines *int32   `json:"lines,omitempty"`
	Share float32  `json:"share,omitzero"`
	Deep  bool     `json:",omitzero"`
	Tags  []string `json:"tags,omitempty"`
	Size  uint8    `json:"size,omitzero"`
	Seen  int      `json:"-"`
}

func decodeFlat(t testing.TB, args string) (flatTarget, bool) {
	t.Helper()
	flat := FlatOf(reflect.TypeFor[flatTarget]())
	require.NotNil(t, flat)
	var got flatTarget
	ok := flat.Decode(args, reflect.ValueOf(&got).Elem())
	return got, ok
}

func TestFlatDecode(t *testing.T) {
	for args, want := range map[string]flatTarget{
		`{"path":""}`:                      {},
		` { "path" : "a" , "lines" : 7 } `: {Path: "a", Lines: new(int32(7))},
		`{"lines":null,"path":"a"}`:        {Path: "a"},
		`{"path":"a\n\u00e9","Deep":true,"share":-1.5e1,"size":255}`: {Path: "a\né", Deep: true, Share: -15, Size: 255},
		`{"path":"é","tags":["x", "y"],"lines":10.00,"size":-0}`:     {Path: "é", Tags: []string{"x", "y"}, Lines: new(int32(10))},
		`{"path":"a","tags":[]}`:                                     {Path: "a", Tags: []string{}},
	} {
		got, ok := decodeFlat(t, args)
		require.True(t, ok, "the fast way does not take %s", args)
		assert.Equal(t, want, got, args)
	}
}

func TestFlatLeavesTheUnusual(t *testing.T) {
	for _, args := range []string{
		``, `{}`, `[]`, `null`, `{"path":"a"`, `{"path":"a"}x`, `{"path":"a",}`, `{"path":"a" "lines":1}`, `{"path" "a"}`, `{path:"a"}`,
		`{"lines":1}`, `{"path":null}`, `{"path":1}`, `{"path":"a","path":"b"}`, `{"path":"a","Path":"b"}`, `{"p\u0061th":"a"}`,
		`{"path":"a","seen":1}`, `{"path":"a","Seen":1}`, "{\"path\":\"\xff\"}", "{\"path\":\"\n\"}", `{"path":"\ud800"}`, `{"path":"a`, `{"path":"a\`,
		`{"path":"a","lines":1.5}`, `{"path":"a","lines":1.}`, `{"path":"a","lines":1.05}`, `{"path":"a","lines":1e3}`, `{"path":"a","lines":1.0e3}`,
		`{"path":"a","lines":01}`, `{"path":"a","lines":-}`, `{"path":"a","lines":2147483648}`, `{"path":"a","lines":1234567890123456789}`,
		`{"path":"a","lines":nul}`, `{"path":"a","lines":`, `{"path":"a","share":1e39}`, `{"path":"a","share":.5}`, `{"path":"a","share":"1"}`,
		`{"path":"a","Deep":tru}`, `{"path":"a","Deep":0}`, `{"path":"a","size":256}`, `{"path":"a","size":-1}`,
		`{"path":"a","tags":null}`, `{"path":"a","tags":[1]}`, `{"path":"a","tags":["x",]}`, `{"path":"a","tags":["x"`, `{"path":"a","tags":[`, `{"path":"a","tags":["x" "y"]}`,
	} {
		_, ok := decodeFlat(t, args)
		assert.False(t, ok, "the fast way takes %s", args)
	}
}

func TestFlatOf(t *testing.T) {
	assert.NotNil(t, FlatOf(reflect.TypeFor[struct{}]()))
	many := make([]reflect.StructField, 65)
	for i := range many {
		many[i] = reflect.StructField{Name: "F" + big.NewInt(int64(i)).String(), Type: reflect.TypeFor[int]()}
	}
	assert.NotNil(t, FlatOf(reflect.StructOf(many[:64])))
	assert.Nil(t, FlatOf(reflect.StructOf(many)), "there are only 64 bits")
	for _, v := range []any{
		0, time.Time{}, map[string]int{}, &flatTarget{},
		struct{ A any }{}, struct{ A struct{} }{}, struct{ A []int }{}, struct{ A *[]string }{}, struct{ A **int }{}, struct{ A uintptr }{},
		struct{ A json.Number }{}, struct{ A *json.Number }{}, struct{ A []json.Number }{}, struct{ A big.Int }{}, struct{ flatTarget }{},
		struct {
			A int `json:"a,string"`
		}{},
		struct {
			A int `json:"a\\b"`
		}{},
		struct {
			A int `json:"a"`
			B int `json:"A"`
		}{},
	} {
		assert.Nil(t, FlatOf(reflect.TypeOf(v)), "%T", v)
	}
}

// FuzzFlat compares the fast path with CheckObject and UnmarshalStrict: they must accept everything that it accepts,
// with the same value.
func FuzzFlat(f *testing.F) {
	f.Add(`{"path":"a","lines":7,"share":1.5,"Deep":true,"tags":["x"],"size":1}`)
	f.Add(`{"path":"\u00e9\ud83d\ude00","lines":10.0}`)
	f.Fuzz(func(t *testing.T, args string) {
		got, ok := decodeFlat(t, args)
		if !ok {
			return
		}
		var want flatTarget
		if err := CheckObject(args); err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		if err := UnmarshalStrict(args, &want); err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: got %+v, want %+v", args, got, want)
		}
	})
}
