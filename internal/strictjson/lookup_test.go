package strictjson

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const tree = ` {"a": {"b": [10, {"c": "x\"]}"}, []]}, "a.b": 1, "/": 2, "~": 3, "\u0065\"": 4, "": 5, "n": null, "0": "zero"} `

func TestLookup(t *testing.T) {
	for path, want := range map[string]string{
		"":         strings.TrimSpace(tree),
		"a.b.0":    "10",
		"a.b.1":    `{"c": "x\"]}"}`,
		"a.b.1.c":  `"x\"]}"`,
		"a.b.2":    "[]",
		"/a/b/1/c": `"x\"]}"`,
		"/a.b":     "1",
		"/~1":      "2",
		"/~0":      "3",
		"/e\"":     "4",
		"e\"":      "4",
		"/":        "5",
		"n":        "null",
		"0":        `"zero"`,
	} {
		got, ok := Lookup(tree, path)
		require.True(t, ok, path)
		assert.Equal(t, want, got, path)
	}
	for _, path := range []string{
		"b", "a.c", "a.b.3", "a.b.-1", "a.b.00", "a.b.x", "a.b.0.0", "a.b.2.0", "A", "/a/b/", "n.x", "a.b.99999999999999", ".",
	} {
		got, ok := Lookup(tree, path)
		assert.False(t, ok, "%s is there: %s", path, got)
	}
	assert.Zero(t, testing.AllocsPerRun(100, func() { Lookup(tree, "a.b.1.c") }))
}

// For text that did not pass CheckObject, Lookup returns an undefined result but does not panic.
func TestLookupSurvivesBrokenText(t *testing.T) {
	for end := range len(tree) {
		for _, path := range []string{"", "a.b.1.c", "0", "/a/b/2/1", "zzz"} {
			assert.NotPanics(t, func() { Lookup(tree[:end], path) }, "%d %s", end, path)
		}
	}
}

// Lookup agrees with the decoded tree for every path.
func TestLookupAgreesWithUnmarshal(t *testing.T) {
	name := rapid.StringMatching(`[a-zé~/ "\\]{0,3}`)
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		leaves := []*rapid.Generator[any]{
			rapid.Int().AsAny(), rapid.String().AsAny(), rapid.Bool().AsAny(), rapid.Just[any](nil),
		}
		if depth > 0 {
			leaves = append(leaves,
				rapid.SliceOfN(value(depth-1), 0, 4).AsAny(),
				rapid.MapOfN(name, value(depth-1), 0, 4).AsAny())
		}
		return rapid.OneOf(leaves...)
	}
	rapid.Check(t, func(t *rapid.T) {
		members := rapid.MapOfN(name, value(3), 1, 4).Draw(t, "members")
		text, err := Marshal(members)
		require.NoError(t, err)
		var walk func(pointer string, v any)
		walk = func(pointer string, v any) {
			want, err := Marshal(v)
			require.NoError(t, err)
			got, ok := Lookup(text, pointer)
			require.True(t, ok, "%s in %s", pointer, text)
			assert.Equal(t, want, got)
			switch v := v.(type) {
			case []any:
				for i, item := range v {
					walk(pointer+"/"+strconv.Itoa(i), item)
				}
			case map[string]any:
				for name, item := range v {
					walk(pointer+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name), item)
				}
			}
		}
		walk("", any(members))
	})
}

func FuzzLookup(f *testing.F) {
	f.Add(tree, "a.b.1.c")
	f.Add(`{"a":[`, "a.0")
	f.Fuzz(func(t *testing.T, args, path string) {
		raw, ok := Lookup(args, path)
		if !ok || CheckObject(args) != nil {
			return
		}
		var v any
		if err := Unmarshal(raw, &v); err != nil {
			t.Fatalf("%q in %q gives %q: %v", path, args, raw, err)
		}
	})
}

func ExampleLookup() {
	const args = `{"files": [{"path": "/etc/passwd"}], "dry.run": true}`
	raw, ok := Lookup(args, "files.0.path")
	fmt.Println(raw, ok)
	raw, ok = Lookup(args, "/dry.run")
	fmt.Println(raw, ok)
	raw, ok = Lookup(args, "files.1")
	fmt.Println(raw, ok)
	// Output:
	// "/etc/passwd" true
	// true true
	//  false
}

func BenchmarkLookup(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Lookup(tree, "a.b.1.c")
	}
}
