package invisible

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestRemove(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a\u00adb\ufeffc\x00d\u200be\u2066f\ufe0fg\u034fh\u202ei\U000e0041j\u3164k\u2800l\x7fm\u0085n":        "abcdefghijklmn",
		"a\x1b[31mb\x1b[0mc\x1b]0;title\x07d\x1b(Be\u009b1mf\x1bMg":                                           "abcdefg",
		"a\x1bPq#0\x1b\\b\x1b_x\x1b\\c\x1b^x\x1b\\d\x1bXx\x1b\\e\u009d0;t\u009cf\u0090x\x1b\\g\u009fx\u009ch": "abcdefgh",
		"a\rb\r\nc\td": "ab\r\nc\td",
		"\x1b":         "",
		"é\u0301\xffz": "é\u0301\xffz",
	} {
		got, ok := Remove(text)
		assert.Equal(t, want != text, ok, "%q", text)
		if ok {
			assert.Equal(t, want, got.Visible, "%q", text)
		}
	}
	_, ok := Remove("plain text\n")
	assert.False(t, ok)
}

func TestClean(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain":                  "plain",
		"a\tb":                   "a    b",
		"a\r\nb":                 "a\nb",
		"\x1b[2J\x1b]0;t\x07":    "␛[2J␛]0;t␇",
		"\u009b31m":              "�31m",
		"a\u202eb\u2066c":        "a�b�c",
		"a\u200fb\u2028c":        "a�b�c",
		"日本語 👩‍👩‍👧 é":            "日本語 👩‍👩‍👧 é",
		"\xff\x00\x7f":           "�␀␡",
		"hid\U000e0041den\ufeff": "hid�den",
	} {
		assert.Equal(t, want, Clean(in), "%q", in)
	}
}

// Replace changes only text that a removed character splits. It reads an escape character with and without the letter
// behind it.
func TestReplace(t *testing.T) {
	t.Parallel()
	find := func(text Text) []Match {
		at := strings.Index(text.Visible, "key")
		if at < 0 {
			return nil
		}
		return []Match{{From: at, To: at + 3, Start: at, End: at + 3, With: func() string { return "*" }}}
	}
	for text, want := range map[string]string{
		"\u200bk\u200bey\u200b": "\u200b*\u200b", "\u200bkey": "\u200bkey", "k\x1bey": "*", "k\x1bMey": "*", "k\u009bey": "*", "k\u009bmey": "*",
		"k\x1bPq\x1b\\ey": "*", "\x1b]0;k\u200bey\x07": "\x1b]0;*\x07", "k\u0090x\u009cey": "*", "k\x1b_x\x1b\\e\u009d0;t\x07y": "*",
		"k\x1b[1me\x1by": "*", "k\r\ney": "k\r\ney", "k\x1b]x": "k\x1b]x",
	} {
		assert.Equal(t, want, Replace(text, find), "%q", text)
	}
	assert.Equal(t, "a\n*\r\nb", ReplaceOverBreaks("a\nk\r\ne\ny\r\nb", find))
}

// A span of the visible text is the same text in the original, including the removed characters in it.
func TestSpan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.SampledFrom([]string{"a", "é", "😀", "\xff", "\n", "\u200b", "\u00ad", "\x00", "\x1b[1m", "\x1b", "["})).Draw(t, "parts")
		text := strings.Join(parts, "")
		got, ok := Remove(text)
		if !ok || got.Visible == "" {
			return
		}
		from := rapid.IntRange(0, len(got.Visible)-1).Draw(t, "from")
		to := rapid.IntRange(from+1, len(got.Visible)).Draw(t, "to")
		start, end := got.Span(from, to)
		if again, removed := Remove(text[start:end]); removed {
			assert.Equal(t, got.Visible[from:to], again.Visible, "%q", text)
		} else {
			assert.Equal(t, got.Visible[from:to], text[start:end], "%q", text)
		}
	})
}

func TestEscape(t *testing.T) {
	assert.Equal(t, "a\n\tb\\u202ec\\u001b\\udb40\\udc41 é 漢 😀", Escape("a\n\tb\u202ec\x1b\U000e0041 é 漢 😀"))
}
