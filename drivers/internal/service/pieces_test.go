package service

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// join returns the arguments that the pieces add up to.
func join(pieces []string) string {
	var a ArgumentPieces
	var text string
	for _, piece := range pieces {
		text += a.Append(piece)
	}
	return text + a.End()
}

// Pieces of any object join to this object.
func TestArgumentPiecesLoseNothing(t *testing.T) {
	t.Parallel()
	// Few keys and deep nesting, so that pieces often begin like the arguments before them.
	var value func(depth int) *rapid.Generator[string]
	value = func(depth int) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			kind := rapid.IntRange(0, 5).Draw(t, "kind")
			if depth > 6 {
				kind = min(kind, 1)
			}
			switch kind {
			case 0:
				return rapid.SampledFrom([]string{"1", "11", "{}", "null", `""`, "[]", " 1", `"{\"a\":"`, `"\\"`, `"{"`}).Draw(t, "leaf")
			case 1:
				text, _ := json.Marshal(rapid.StringOfN(rapid.RuneFrom([]rune(`{"a:1}\ `)), 0, 9, -1).Draw(t, "text"))
				return string(text)
			case 2:
				return "[" + value(depth+1).Draw(t, "first") + "," + value(depth+1).Draw(t, "second") + "]"
			}
			return `{"a":` + value(depth+1).Draw(t, "member") + "}"
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		object := rapid.SampledFrom([]string{"", " ", "\n"}).Draw(t, "before") + `{"a":` + value(0).Draw(t, "value") + "}"
		var pieces []string
		for rest := object; rest != ""; {
			size := rapid.IntRange(0, len(rest)).Draw(t, "size")
			if rapid.Bool().Draw(t, "at a key") { // cut behind a colon, where the next value begins like the text before
				if size = 5 * rapid.IntRange(1, 6).Draw(t, "keys"); size > len(rest) {
					size = len(rest)
				}
			}
			pieces, rest = append(pieces, rest[:size]), rest[size:]
		}
		require.True(t, json.Valid([]byte(object)), object)
		require.Equal(t, object, join(pieces), "%q", pieces)
	})
}

// Services that repeat earlier pieces or send a placeholder mean the same arguments.
func TestArgumentPiecesRepeat(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		want   string
		pieces []string
	}{
		{`{"a":{"a":{"a":{"a":1}}}}`, []string{`{"a":`, `{"a":`, `{"a":{"a":`, `1}}}}`}},
		{`{"a":{"a":{"a":{"a":{"a":{"a":{"a":1}}}}}}}`, []string{`{"a":`, `{"a":{"a":`, `{"a":{"a":{"a":`, `{"a":`, `1}}}}}}}`}},
		{`{"a":{"a":{"a":{"a":1}}}}`, []string{`{"a":`, `{"a":{"a":`, `{"a":1}}}}`}},
		{`{"a":{"a":1}}`, []string{`{"a":`, `{"a":{"a":`, `{"a":{"a":1}}`}},
		{`{"a":{"a":1}}`, []string{`{`, `{"a":`, `{"a":{"a":`, `{"a":{"a":`, `{"a":{"a":1}}`, `{"a":{"a":1}}`}},
		{"{}", []string{"{}"}}, {"{} ", []string{"{}", " "}}, {" {}", []string{" ", "{}"}}, {`{"a":{}}`, []string{"{}", `{"a":`, "{}", "}"}},
	} {
		assert.Equal(t, tc.want, join(tc.pieces), "%q", tc.pieces)
	}
}
