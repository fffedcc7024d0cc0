package redact_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/hooks/redact"
)

// unprinted are texts that show nothing, with which a secret is split.
var unprinted = []string{
	"\u00ad", "\ufeff", "\x00", "\u200b", "\u200d", "\u2060", "\u202e", "\u2066", "\u200f", "\ufe0f", "\U000e0100", "\u034f", "\u3164", "\u2800", "\U000e0041", "\x7f",
	"\r", "\b", "\x1b[0m", "\x1b[1;31m", "\x1b]8;;\x07", "\u009b1m", "\x1b", "\x1bM", "\x1b(B", "\u009b",
}

// A secret is found wherever characters that do not print split it, also in JSON, and no other byte changes.
func TestSplitSecrets(t *testing.T) {
	t.Parallel()
	r, err := redact.New(redact.Options{
		Literals: map[string]string{"OWN": "correct horse battery"}, Patterns: []redact.Pattern{{Kind: "order", Regexp: `ACME-[0-9]{6}`}},
	})
	require.NoError(t, err)
	token := "ghp_" + strings.Repeat("aB3", 12)
	for _, secret := range []string{token, "correct horse battery", "ACME-123456", "AKIA" + strings.Repeat("A", 16)} {
		for _, gap := range append(unprinted, "\n", "\r\n") {
			for at := 1; at < len(secret); at++ {
				text := "see \u200bfirst: " + secret[:at] + gap + secret[at:] + "\tthen\u00ad more\r\n"
				got, counts := r.Text(text)
				require.Regexp(t, "^see \u200bfirst: \\[redacted: [\\w ]+\\]\tthen\u00ad more\r\n$", got, "%q", text)
				require.Len(t, counts, 1)
			}
			got, _ := r.Text(`{"a":"` + secret[:3] + `\u200b\u00ad` + secret[3:] + `","b":1}`)
			require.Regexp(t, `^\{"a":"\[redacted: [\w ]+\]","b":1\}$`, got)
		}
	}
	for _, u := range unprinted {
		for text, secret := range map[string]string{
			"pass" + u + "word=hunter22":             "hunter22",
			"password=hun" + u + "ter22 and so on":   "hunter22",
			"Authorization: Bea" + u + "rer abcdef1": "abcdef1",
		} {
			got, _ := r.Text(text)
			assert.NotContains(t, strings.ReplaceAll(got, u, ""), secret, "%q", text)
		}
	}
	got, _ := r.Text(`{"pass\u200bword":"hunter22"}`)
	assert.Equal(t, `{"pass\u200bword":"[redacted: password]"}`, got)
	got, _ = r.Text("\ufeff" + `{"a":"\u0067hp_` + token[4:] + `"}`)
	assert.Equal(t, "\ufeff"+`{"a":"[redacted: GitHub token]"}`, got)
}

// Text without a secret keeps every byte. A name with a value does not reach over a line break.
func TestSplitLeavesTheRest(t *testing.T) {
	t.Parallel()
	r, err := redact.New(redact.Options{})
	require.NoError(t, err)
	for _, text := range []string{
		"a\u200bb\x1b[1mc\r\nd", "password:\nusername: ada\n", "secret:\r\n  name: example\n", "token\n=value4you\n", strings.Repeat("\u200b", 1000), "\xff\x00\u00ad",
	} {
		got, counts := r.Text(text)
		assert.Equal(t, text, got)
		assert.Empty(t, counts)
	}
}
