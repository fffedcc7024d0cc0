package pii_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/hooks/pii"
)

// Personal data is found where characters that do not print split it.
func TestSplitData(t *testing.T) {
	t.Parallel()
	f, err := pii.New(pii.Options{Except: []string{"bob@example.com"}})
	require.NoError(t, err)
	for _, gap := range []string{"\u00ad", "\ufeff", "\x00", "\u200b", "\u202e", "\ufe0f", "\u034f", "\x1b[1m", "\r"} {
		for text, want := range map[string]string{
			"to ada@exa" + gap + "mple.com \u200bnow":  "to [EMAIL] \u200bnow",
			"to a" + gap + "da@example.com now":        "to [EMAIL] now",
			`{"to":"a` + "\u200b" + `da@example.com"}`: `{"to":"[EMAIL]"}`,
			"to bob@exa" + gap + "mple.com":            "to bob@exa" + gap + "mple.com",
			"nothing" + gap + " here":                  "nothing" + gap + " here",
		} {
			got, _ := f.Text(text)
			assert.Equal(t, want, got, "%q", text)
		}
	}
}
