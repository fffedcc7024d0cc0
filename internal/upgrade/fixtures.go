package upgrade

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// EachVersion calls f for each version that has fixtures, in a subtest. It skips the test while fixtures are written.
func EachVersion(t *testing.T, f func(t *testing.T, version string)) {
	t.Helper()
	if Writing() != "" {
		t.Skip("fixtures are being written")
	}
	for _, version := range Versions(t) {
		t.Run(version, func(t *testing.T) { f(t, version) })
	}
}

// Read returns a file of the fixtures of a version.
func Read(t testing.TB, version, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(Dir(version), name))
	require.NoError(t, err)
	return data
}

// Unpack writes the SQLite file NAME.db.gz of a version to a path.
func Unpack(t testing.TB, version, name, path string) {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(Read(t, version, name+".db.gz")))
	require.NoError(t, err)
	data, err := io.ReadAll(plain)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, data, 0o600))
}

// Pack writes the SQLite file at a path to NAME.db.gz of the fixtures that are being written.
func Pack(t testing.TB, name, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	require.NoError(t, err)
	_, err = w.Write(data)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	Write(t, name+".db.gz", out.Bytes())
}

// AssertFacts checks that every fact a version wrote down, as JSON decodes it, is still true. Facts that only the
// current version has are ignored.
func AssertFacts(t testing.TB, want, got any, path string) {
	t.Helper()
	switch want := want.(type) {
	case map[string]any:
		got, ok := got.(map[string]any)
		if !assert.True(t, ok, "%s is gone", path) {
			return
		}
		for name, value := range want {
			AssertFacts(t, value, got[name], path+"/"+name)
		}
	case []any:
		got, _ := got.([]any)
		if assert.Len(t, got, len(want), path) {
			for i := range want {
				AssertFacts(t, want[i], got[i], fmt.Sprint(path, "/", i))
			}
		}
	default:
		assert.Equal(t, want, got, path)
	}
}
