package library

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestVersionsAreFound(t *testing.T) {
	text := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	shelf := fstest.MapFS{
		"safe.yaml": text("policy: safe\nversion: \"11\"\n"), "safe@2.yaml": text("two"), "safe@10.yaml": text("ten"),
		"safe-not.yaml": text("version: 1 \n"),
	}
	assert.Equal(t, []string{"safe", "safe-not"}, namesIn(shelf))
	assert.Equal(t, []string{"11", "10", "2"}, versionsIn(shelf, "safe"))
	assert.Empty(t, versionsIn(shelf, "nope"))
	for reference, want := range map[string]string{
		"safe": "library:safe 11", "library:safe": "library:safe 11", "safe.yaml": "library:safe 11", "safe@11": "library:safe 11",
		"library:safe@10": "library:safe@10 10", "safe@2.yaml": "library:safe@2 2", "safe-not@1": "library:safe-not 1",
	} {
		p, err := findIn(shelf, reference)
		require.NoError(t, err, reference)
		assert.Equal(t, want, p.Path()+" "+p.Version, reference)
	}
	p, err := findIn(shelf, "safe@10")
	require.NoError(t, err)
	assert.Equal(t, "ten", string(p.Text))
	for reference, want := range map[string]string{
		"safe@3":    `read library:safe@3: unknown version "3"; known: 11, 10, 2`,
		"safe@":     `read library:safe@: unknown version ""; known: 11, 10, 2`,
		"other@1":   "read library:other: unknown policy; known: safe, safe-not",
		"../safe@2": `read library:../safe: unknown policy (did you mean "safe"?); known: safe, safe-not`,
		"safe@2@2":  `read library:safe@2@2: unknown version "2@2"; known: 11, 10, 2`,
	} {
		_, err := findIn(shelf, reference)
		assert.EqualError(t, err, want)
	}
}
