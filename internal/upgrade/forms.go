package upgrade

import (
	"encoding"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/parts"
)

// newest is the version whose formats are current.
const newest = "v0.1.0"

// EachVersion calls f for each version in testdata, in a subtest.
func EachVersion(t *testing.T, f func(t *testing.T, version string)) {
	t.Helper()
	dirs, err := filepath.Glob(Dir("v*"))
	require.NoError(t, err)
	require.NotEmpty(t, dirs)
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) { f(t, filepath.Base(dir)) })
	}
}

// Dir returns a version's folder.
func Dir(version string) string {
	return filepath.Join(parts.Root(), "internal", "upgrade", "testdata", version)
}

// Read returns one of a version's files.
func Read(t testing.TB, version, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(Dir(version), name))
	require.NoError(t, err)
	return data
}

// CheckForm compares the lines that describe a format with the newest recorded lines. If the test's flag -update is
// set, CheckForm writes the lines instead.
func CheckForm(t testing.TB, name string, lines []string) {
	t.Helper()
	file, text := filepath.Join(Dir(newest), "forms", name+".txt"), strings.Join(lines, "\n")+"\n"
	if f := flag.Lookup("update"); f != nil && f.Value.String() == "true" {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), text, "the form %q has changed: make sure that users' files and logs still load, then run the test with -update", name)
}

// Fields describes a type's JSON with a line for each member: its path, its Go kind, and whether it is optional. A
// type that an earlier line describes is named in angle brackets.
func Fields(t reflect.Type) []string {
	w := walker{seen: map[reflect.Type]string{}}
	w.walk(t, "")
	return w.lines
}

type walker struct {
	lines []string
	seen  map[reflect.Type]string
}

func (w *walker) walk(t reflect.Type, path string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if first, again := w.seen[t]; again {
		w.add(path, "<as "+first+">")
		return
	}
	switch {
	case writesItself(t):
		w.add(path, t.String())
	case t.Kind() == reflect.Struct:
		w.seen[t] = path + "/"
		w.members(t, path)
	case t.Kind() == reflect.Map:
		w.walk(t.Elem(), path+"/*")
	case (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) && t.Elem().Kind() != reflect.Uint8:
		w.walk(t.Elem(), path+"/0")
	default:
		w.add(path, t.Kind().String())
	}
}

func (w *walker) members(t reflect.Type, path string) {
	for field := range t.Fields() {
		name, rest, _ := strings.Cut(field.Tag.Get("json"), ",")
		embedded := field.Anonymous && name == ""
		if name == "-" || !field.IsExported() && !embedded {
			continue
		}
		if embedded {
			of := field.Type
			if of.Kind() == reflect.Pointer {
				of = of.Elem()
			}
			w.members(of, path)
			continue
		}
		if name == "" {
			name = field.Name
		}
		if rest != "" {
			name += "?"
		}
		w.walk(field.Type, path+"/"+name)
	}
}

func (w *walker) add(path, what string) { w.lines = append(w.lines, path+" "+what) }

// writesItself reports whether a type has its own method for encoding JSON, so that its fields do not describe its
// JSON.
func writesItself(t reflect.Type) bool {
	for _, method := range []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()} {
		if t.Implements(method) || reflect.PointerTo(t).Implements(method) {
			return true
		}
	}
	return t == reflect.TypeFor[time.Time]()
}
