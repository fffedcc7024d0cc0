package provenance_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/policy/internal/provenance"
)

// Everything that the user wrote is from the user, as a whole and word by word, and nothing panics.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{
		"Pay DE89 3704 0044 0532 0130 00 on May 1st, 2024 to Ann <ann@example.com>", "https://a.example/?x=1#y \\n www.b.example.", "@ . :// \u200b 1,2,,3 [a](b) 10:00",
		"\xff\xfe from the 13th to the 17th of May", "a@b@c.d", "....@....", "1-1-1-1-1-1-1-1", "mailto:@", "://", "%zz://%zz/%zz",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 2000 {
			return
		}
		if n := provenance.Scan(text); n > 20*len(text)+20 {
			t.Errorf("%d keys of %d bytes", n, len(text))
		}
		trail := user(text).trail(t)
		for word := range strings.FieldsSeq(text) {
			if strings.Trim(word, "abcdefghijklmnopqrstuvwxyz") == "" {
				assert.True(t, trail.FromUser(word), word)
			}
		}
		for _, a := range provenance.Addresses(text) {
			assert.True(t, trail.FromUser(a), a)
		}
		for _, l := range provenance.Links(text) {
			assert.True(t, trail.FromUser(l), l)
		}
		_ = user("x").tool("get_page", `{}`, text).trail(t).Origin(text).String()
	})
}

// For any text, eachField ends soon and does not panic.
func FuzzEachField(f *testing.F) {
	for _, seed := range []string{
		`[{"a": "b", "c": [1, null, {"d": "e"}]}]`, "- a: 'b\n\n  c'\n  d: \"e\\\n    f\"", "{'a': True, 'b': [1, 2]}", "&a [*a]", "a: &a [x, x]\nb: [*a, *a]", "<<\n>>", "? [a]\n: b", "!!binary x",
		strings.Repeat("[", 300), strings.Repeat("- ", 300), "a: |\n  b: c", "\ufeffa: b",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n := provenance.EachField(text); n > len(text)+1 {
			t.Errorf("%d fields of %d bytes", n, len(text))
		}
	})
}
