package yamlfile_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

type window struct {
	From time.Duration `key:"from,nonnegative"`
	To   time.Duration `key:"to,positive,required"`
}

func (w *window) Check(n yamlfile.Node) {
	if w.From > w.To {
		n.Wrong("it ends before it begins")
	}
}

type color string

func (c *color) Set(text string) error {
	if text != "red" && text != "blue" {
		return errors.New("expected red or blue")
	}
	*c = color(text)
	return nil
}

type secretName string

func (s *secretName) Set(text string) error {
	if !strings.HasPrefix(text, "NAME") {
		return &yamlfile.SecretError{Expected: "expected a name"}
	}
	*s = secretName(text)
	return nil
}

type doubled string

func (d *doubled) ReadNode(n yamlfile.Node) {
	if text, ok := n.Text(); ok {
		*d = doubled(text + text)
	}
}

type embedded struct {
	Name string `key:"name"`
}

type everything struct {
	embedded
	On      bool              `key:"on"`
	Whole   int               `key:"whole"`
	Count   int               `key:"count,positive"`
	Part    *float64          `key:"part,nonnegative"`
	Colors  []color           `key:"colors"`
	Secrets []secretName      `key:"secrets"`
	Twice   doubled           `key:"twice"`
	Labels  map[string]string `key:"labels"`
	Window  window            `key:"window"`
	Any     any               `key:"any"`
	Size    yamlfile.Bytes    `key:"size"`
}

func parse(t *testing.T, name, text string) (*yamlfile.File, everything) {
	t.Helper()
	file := yamlfile.Parse(name, []byte(text))
	file.Advise = func(key string) string {
		if key == "password" {
			return "put it elsewhere"
		}
		return ""
	}
	var got everything
	if root, ok := file.Root(); ok {
		root.Decode(&got)
	}
	return file, got
}

func TestDecode(t *testing.T) {
	part := 0.5
	want := everything{
		embedded: embedded{Name: "a"}, On: true, Whole: -3, Count: 2, Part: &part,
		Colors: []color{"red", "blue"}, Secrets: []secretName{"NAME1"}, Twice: "xx", Labels: map[string]string{"k": "v"},
		Window: window{0, time.Minute}, Any: map[string]any{"list": []any{nil, true, "x"}}, Size: 2048,
	}
	for name, text := range map[string]string{
		"a.yaml": `
name: a
on: true
whole: -3
count: 2
part: 0.5
colors: [red, blue]
secrets: [NAME1]
twice: x
labels: {k: v}
window: {from: 0s, to: 1m}
any: {list: [null, true, "x"]}
size: 2KiB
`,
		"a.json": `{"name": "a", "on": true, "whole": -3, "count": 2, "part": 0.5, "colors": ["red", "blue"], "secrets": ["NAME1"],
			"twice": "x", "labels": {"k": "v"}, "window": {"from": "0s", "to": "1m"}, "any": {"list": [null, true, "x"]}, "size": "2KiB"}`,
	} {
		file, got := parse(t, name, text)
		require.NoError(t, file.Err(), name)
		assert.Equal(t, want, got, name)
	}
}

// All problems are reported together, in file order.
func TestEveryProblemIsTold(t *testing.T) {
	file, _ := parse(t, "a.yaml", `name: 1
on: yes
whole: 1.5
count: 0
part: -1
colors: [green]
twice: [x]
labels: {k: 1}
window: {from: 2m, to: 1m}
size: 3 PiB
nane: b
on: true
`)
	wrong, ok := errors.AsType[*yamlfile.Error](file.Err())
	require.True(t, ok)
	var got []string
	for _, p := range wrong.Problems {
		first, _, _ := strings.Cut(p.String(), "\n")
		got = append(got, first)
	}
	assert.Equal(t, []string{
		`a.yaml:1:7: expected text, got 1: put it in quotes if it is text`,
		`a.yaml:2:5: expected true or false, got "yes"`,
		`a.yaml:3:8: expected a whole number, such as 20, got "1.5"`,
		`a.yaml:4:8: expected a whole number above zero, such as 20, got "0"`,
		`a.yaml:5:7: expected a number that is not negative, such as 0.5, got "-1"`,
		`a.yaml:6:10: expected red or blue, got "green"`,
		`a.yaml:7:8: expected text, got a list`,
		`a.yaml:8:13: expected text, got 1: put it in quotes if it is text`,
		`a.yaml:9:9: it ends before it begins`,
		`a.yaml:10:7: expected a size above zero, such as 4096, 64KiB or 2MiB, got "3 PiB"`,
		`a.yaml:11:1: unknown key "nane" (did you mean "name"?); known: ` +
			`"any", "colors", "count", "labels", "name", "on", "part", "secrets", "size", "twice", "whole", "window"`,
		`a.yaml:12:1: the key "on" is declared twice: the first is in line 2`,
	}, got)
	assert.Equal(t, `a.yaml:6:10: expected red or blue, got "green"
     6 | colors: [green]
       |          ^^^^^`, wrong.Problems[5].String())
}

func TestAKeyThatMustBeThere(t *testing.T) {
	file, _ := parse(t, "a.yaml", "window: {from: 1s}\n")
	require.ErrorContains(t, file.Err(), `a.yaml:1:9: the key "to" is missing`)
}

// No problem shows text that may be a secret, even for another place on the same line.
func TestSecretsAreNotShown(t *testing.T) {
	for _, text := range []string{
		"secrets: [sk-hidden]\n", "secrets: sk-hidden\n", "{password: sk-hidden, nane: 3}\n", "secrets: {a: sk-hidden}\n",
	} {
		file, _ := parse(t, "a.yaml", text)
		require.Error(t, file.Err(), text)
		assert.NotContains(t, file.Err().Error(), "hidden")
		assert.Contains(t, file.Err().Error(), "…")
		assert.NotContains(t, file.At(yamlfile.Position{Line: 1, Column: 1}).Error(io.EOF).Error(), "hidden")
	}
}

func TestWhatCannotBeRead(t *testing.T) {
	deep := strings.Repeat("[", 60) + strings.Repeat("]", 60)
	for text, want := range map[string]string{
		"a: b: c\n":                       "a.yaml:1:5: this is not YAML",
		"a: 1\r\nb: ä\x00\n":              "a.yaml:2:5: this is not YAML: control character U+0000",
		"a: 1\nb: caf\xe9\n":              "a.yaml:2:7: this is not YAML: the byte 0xe9 is not valid UTF-8",
		"a: 1\n---\nb: 2\n":               "a.yaml:2:1: a second document begins here",
		"a: &x 1\nb: *x\n":                "a.yaml:1:4: anchors are not supported: remove &x",
		"a: {<<: {b: 1}}\n":               "merge keys are not supported",
		"a: !!binary aGk=\n":              "tags are not supported",
		"? [a]\n: b\n":                    "a key must be a word",
		"any: " + deep:                    "nested more than 50 deep",
		strings.Repeat("x", 1<<20) + "yz": "a.yaml: the file is larger than a megabyte",
	} {
		file, _ := parse(t, "a.yaml", text)
		require.ErrorContains(t, file.Err(), want)
	}
	for text, want := range map[string]string{
		`{"name": "x"`:                      "unexpected end of the file",
		`{"name": x}`:                       "a.json:1:10: this is not JSON",
		`{} {}`:                             "a.json:1:4: this is not JSON: unexpected text after the end of the object",
		"{\n \"name\": 1}":                  "a.json:2:10: expected text",
		`{"name": "a", "name": "b"}`:        `a.json:1:15: the key "name" is declared twice`,
		strings.Repeat("[", 10000):          "nested more than 50 deep",
		`{"any": ` + deep + `, "nane": ""}`: "nested more than 50 deep",
	} {
		file, _ := parse(t, "a.json", text)
		require.ErrorContains(t, file.Err(), want)
	}
	for _, text := range []string{"", "# nothing\n", "\ufeff"} {
		file, _ := parse(t, "a.yaml", text)
		_, ok := file.Root()
		assert.False(t, ok)
		require.NoError(t, file.Err())
	}
}

// A problem shows the wrong part of a long line, with the mark below it.
func TestLongLines(t *testing.T) {
	mark := strings.Repeat(" ", 81) + "^^"
	for text, want := range map[string]string{
		strings.Repeat("x", 500) + "🦊!" + strings.Repeat("y", 500): "…" + strings.Repeat("x", 80) + "🦊!" + strings.Repeat("y", 77) + "…\n       | " + mark,
		strings.Repeat("x", 500) + "🦊!":                            "…" + strings.Repeat("x", 80) + "🦊!\n       | " + mark,
		"🦊!" + strings.Repeat("y", 500):                            "🦊!" + strings.Repeat("y", 158) + "…\n       | ^^",
	} {
		p := yamlfile.Problem{File: "a.yaml", Position: yamlfile.Position{Line: 1, Column: strings.Count(text, "x") + 1}, Text: "odd", Source: text, Width: 2}
		_, shown, _ := strings.Cut(p.String(), "   1 | ")
		assert.Equal(t, want, shown)
	}
	p := yamlfile.Problem{File: "a.yaml", Position: yamlfile.Position{Line: 1, Column: 900}, Text: "odd", Source: strings.Repeat("x", 300)}
	assert.Contains(t, p.String(), "x\n       | "+strings.Repeat(" ", 81)+"^")
}

// A duplicate problem is reported once, problems are grouped by file, and errors.Is finds a problem's cause.
func TestProblemsGather(t *testing.T) {
	first, second := yamlfile.Parse("one.yaml", []byte("a: {b: [1, x]}\n")), yamlfile.Parse("two.yaml", []byte("a: 1\n"))
	require.NoError(t, yamlfile.Join(first, second))
	one, _ := first.Root()
	two, _ := second.Root()
	two.Find("a").Wrong("second: %w", io.ErrUnexpectedEOF)
	for range 2 {
		one.Find("a", "b", 1).Wrong("first")
	}
	assert.Equal(t, yamlfile.AbsentNode, one.Find("a", "b", 2).Kind())
	assert.Equal(t, yamlfile.AbsentNode, one.Find("a", 0).Kind())
	err := yamlfile.Join(first, second)
	assert.Equal(t, `one.yaml:1:12: first
     1 | a: {b: [1, x]}
       |            ^
two.yaml:1:4: second: unexpected EOF
     1 | a: 1
       |    ^`, err.Error())
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)

	place := one.Find("a", "b", 0).Place()
	assert.Equal(t, "one.yaml:1:9", place.String())
	require.ErrorIs(t, place.Error(io.EOF), io.EOF)
	require.ErrorContains(t, place.Error(io.EOF), "one.yaml:1:9: EOF")
	assert.Equal(t, io.EOF, yamlfile.Place{}.Error(io.EOF), "what did not come from a file")
}

// An absent node has no text, items and entries, and reports no problem: this is how optional keys are read.
func TestAbsentNodes(t *testing.T) {
	f := yamlfile.Parse("f.yaml", []byte("a: {b: [1, x]}"))
	root, _ := f.Root()
	for _, n := range []yamlfile.Node{{}, root.Find("c"), root.Find("a", "c"), root.Find("a", "b", 7), root.Find("c", "d", 0)} {
		assert.Empty(t, n.Entries())
		assert.Empty(t, n.Items())
		assert.Nil(t, n.Value())
		text, ok := n.Text()
		assert.Empty(t, text)
		assert.False(t, ok)
	}
	assert.NoError(t, yamlfile.Join(f))
}

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.yaml")
	_, err := yamlfile.Read(path)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("x", 2*yamlfile.MaxBytes)), 0o600))
	text, err := yamlfile.Read(path)
	require.NoError(t, err)
	assert.Len(t, text, yamlfile.MaxBytes+1)
}

func TestUnknown(t *testing.T) {
	assert.Equal(t, `unknown tool "bsah" (did you mean "bash"?); known: "bash", "read_file"`, yamlfile.Unknown("tool", "bsah", []string{"read_file", "bash"}))
	assert.Equal(t, `unknown tool "x"; known: none`, yamlfile.Unknown("tool", "x", nil))
}

// For all inputs, Parse does not panic, and every problem has a place in the file.
func FuzzParse(f *testing.F) {
	f.Add("a.yaml", "name: a\nany: {b: [1, 'x', \"y\\n\"]}\nlabels:\n  k: |\n    two\n    lines\n")
	f.Add("a.json", `{"name": "\ud83d\ude00", "colors": ["red"]}`)
	f.Add("a.yaml", "a: *b\n? [x]\n: !!x y\n<<: {}\nb: >-\n  f\n  g\n")
	f.Fuzz(func(t *testing.T, name, text string) {
		file, _ := parse(t, name, text)
		if root, ok := file.Root(); ok {
			everyText(root, func(n yamlfile.Node) {
				for i := range len(n.Raw()) + 2 {
					n.At(i).Wrong("here")
				}
			})
		}
		wrong, ok := errors.AsType[*yamlfile.Error](file.Err())
		if !ok {
			return
		}
		for _, p := range wrong.Problems {
			assert.LessOrEqual(t, p.Line, len(text)+1)
			assert.GreaterOrEqual(t, p.Column, 0)
			assert.NotContains(t, p.String(), "\x1b")
		}
	})
}

func everyText(n yamlfile.Node, do func(yamlfile.Node)) {
	switch n.Kind() {
	case yamlfile.TextNode:
		do(n)
	case yamlfile.ListNode:
		for _, item := range n.Items() {
			everyText(item, do)
		}
	case yamlfile.MappingNode:
		for _, e := range n.Entries() {
			everyText(e.Value, do)
		}
	}
}
