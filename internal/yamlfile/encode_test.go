package yamlfile_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// Decoding returns the encoded value; zero values are omitted.
func TestEncode(t *testing.T) {
	part := 0.25
	value := everything{
		embedded: embedded{Name: "007"}, On: true, Whole: -3, Part: &part, Colors: []color{"red"},
		Labels: map[string]string{"b": "2", "a": "true"}, Window: window{To: time.Minute}, Any: []any{nil, "x"}, Size: 5,
	}
	for name, want := range map[string]string{
		"a.yaml": `name: "007"
on: true
whole: -3
part: 0.25
colors:
  - red
labels:
  a: "true"
  b: "2"
window:
  to: 1m0s
any:
  - null
  - x
size: 5
`,
		"a.json": `{
  "name": "007",
  "on": true,
  "whole": -3,
  "part": 0.25,
  "colors": [
    "red"
  ],
  "labels": {
    "a": "true",
    "b": "2"
  },
  "window": {
    "to": "1m0s"
  },
  "any": [
    null,
    "x"
  ],
  "size": 5
}
`,
	} {
		text, err := yamlfile.Encode(name, value)
		require.NoError(t, err)
		assert.Equal(t, want, string(text))
		file, got := parse(t, name, string(text))
		require.NoError(t, file.Err())
		assert.Equal(t, value, got)
	}
	_, err := yamlfile.Encode("a.yaml", struct {
		F func() `key:"f"`
	}{func() {}})
	require.ErrorContains(t, err, "cannot encode a func()")
}

// Pairs keep their order.
func TestEncodePairs(t *testing.T) {
	text, err := yamlfile.Encode("a.yaml", yamlfile.Pairs{{Key: "z", Value: 1}, {Key: "a", Value: yamlfile.Pairs{{Key: "y", Value: "~"}}}})
	require.NoError(t, err)
	assert.Equal(t, "z: 1\na:\n  y: \"~\"\n", string(text))
}
