package yamlfile_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"

	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// At finds the X in each text.
func TestThePlaceWithinAText(t *testing.T) {
	for name, text := range map[string]string{
		"plain":             "when: a == 1 && X\n",
		"plain, long":       "when: a == 1\n  && b\n\n  && é X\n",
		"single quotes":     "when: 'it''s 日本 X'\n",
		"double quotes":     `when: "a\"\\ \u65e5\x41\U0001F600 X"` + "\n",
		"double, two lines": "when: \"a  \n   b\n\n   X\"\n",
		"a line that goes on": "when: \"a\\\n" +
			"   X\"\n",
		"literal":          "list:\n  - when: |\n      a &&\n        (b ||\n\n        X)\n",
		"literal, kept":    "when: |2+\n   a\n  bX\n\n",
		"folded":           "when: >-\n  a &&\n  b\n\n  || X\n",
		"folded, indented": "when: >\n  a\n    b\n    X\n  c\n",
		"tabs":             "when: \"a\tb\tX\"\n",
		"windows":          "when: |\r\n  a\r\n  X\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			file := yamlfile.Parse("a.yaml", []byte(text))
			root, ok := file.Root()
			require.True(t, ok, "%v", file.Err())
			n := root.Find("when")
			if name == "literal" {
				n = root.Find("list", 0, "when")
			}
			assert.Equal(t, "X", writtenAt(text, n.At(strings.Index(n.Raw(), "X"))))
		})
	}
	text := `{"when": "\ud83d\ude00\n\t\/ X"}`
	root, _ := yamlfile.Parse("a.json", []byte(text)).Root()
	n := root.Find("when")
	assert.Equal(t, "X", writtenAt(text, n.At(strings.Index(n.Raw(), "X"))))
	assert.Equal(t, n.At(1000), n.At(len(n.Raw())), "past the end is the end")
	assert.Equal(t, root.Place(), root.At(3), "no text, no place in it")
}

func writtenAt(text string, p yamlfile.Place) string {
	lines := strings.Split(text, "\n")
	if p.Line > len(lines) || p.Column > utf8.RuneCountInString(lines[p.Line-1]) {
		return ""
	}
	return string([]rune(lines[p.Line-1])[p.Column-1])
}

// At finds each letter, however the text is written.
func TestEveryLetterOfATextIsFound(t *testing.T) {
	styles := []yaml.Style{0, yaml.SingleQuotedStyle, yaml.DoubleQuotedStyle, yaml.LiteralStyle, yaml.FoldedStyle}
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringOfN(rapid.SampledFrom([]rune(`ab'"\日#é`+"  \n\t")), 1, 60, -1).Draw(t, "value")
		style := rapid.SampledFrom(styles).Draw(t, "style")
		written, err := yaml.Marshal(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{
			{Kind: yaml.ScalarNode, Value: "when"}, {Kind: yaml.ScalarNode, Tag: "!!str", Value: value, Style: style},
		}})
		require.NoError(t, err)
		inJSON, err := json.Marshal(map[string]string{"when": value})
		require.NoError(t, err)
		for name, text := range map[string]string{"a.yaml": string(written), "a.json": string(inJSON)} {
			root, ok := yamlfile.Parse(name, []byte(text)).Root()
			require.True(t, ok)
			n := root.Find("when")
			if n.Kind() != yamlfile.TextNode || n.Raw() != value {
				continue // the writer omitted the quotes, or cannot write this style
			}
			for i, r := range value {
				if strings.ContainsRune(" \n\t", r) {
					continue
				}
				if got := writtenAt(text, n.At(i)); got != string(r) && got != `\` {
					t.Fatalf("%q at %d of %q is found at %s (%q) of\n%s", r, i, value, n.At(i), got, text)
				}
			}
		}
	})
}
