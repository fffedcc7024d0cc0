package upgrade

import (
	"encoding"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/parts"
)

// writing is the version whose fixtures are to be written; empty means that fixtures are only read.
var writing = flag.String("write-fixtures", "", "write the fixtures of a version that has none, such as v0.2.0")

// Writing returns the version whose fixtures the flag -write-fixtures asks for; empty when they are only read.
func Writing() string { return *writing }

// Versions returns the versions that have fixtures, oldest first.
func Versions(t testing.TB) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(Dir("v*"), "forms"))
	require.NoError(t, err)
	var all []string
	for _, dir := range dirs {
		all = append(all, filepath.Base(filepath.Dir(dir)))
	}
	slices.SortFunc(all, compareVersions)
	require.NotEmpty(t, all)
	return all
}

// compareVersions compares two versions of the form v0.1.0 by their numbers.
func compareVersions(a, b string) int {
	numbers := func(version string) (n [3]int) {
		_, _ = fmt.Sscanf(version, "v%d.%d.%d", &n[0], &n[1], &n[2])
		return n
	}
	x, y := numbers(a), numbers(b)
	return slices.Compare(x[:], y[:])
}

// Dir returns the folder with the fixtures of a version.
func Dir(version string) string {
	return filepath.Join(parts.Root(), "internal", "upgrade", "testdata", version)
}

// Write writes one file of the fixtures that are being written, and fails if it is there already.
func Write(t testing.TB, name string, data []byte) {
	t.Helper()
	path := filepath.Join(Dir(Writing()), filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	require.NoError(t, err, "the fixtures of a version are written once")
	_, err = file.Write(data)
	require.NoError(t, err)
	require.NoError(t, file.Close())
}

// CheckForm compares the lines that describe a stored form with those of the newest version that has fixtures. With
// the flag -write-fixtures it writes the lines instead.
func CheckForm(t testing.TB, name string, lines []string) {
	t.Helper()
	text := strings.Join(lines, "\n") + "\n"
	file := filepath.Join("forms", name+".txt")
	if Writing() != "" {
		Write(t, file, []byte(text))
		return
	}
	all := Versions(t)
	newest := all[len(all)-1]
	want, err := os.ReadFile(filepath.Join(Dir(newest), file))
	require.NoError(t, err)
	assert.Equal(t, string(want), text, "the stored form %q differs from that of %s: read both forms, and write the "+
		"fixtures of the next version as the doc of internal/upgrade shows", name, newest)
}

// Fields describes the JSON of a type with a line for each member: its path, its Go kind, and whether it is optional.
// A type that was described on an earlier line is named in angle brackets.
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
