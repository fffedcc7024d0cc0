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

// Personal data with check digits, and addresses, are found where one line break splits a word or a number of them. What is complete in
// a line stays as it is.
func TestWrappedData(t *testing.T) {
	t.Parallel()
	f, err := pii.New(pii.Options{Detectors: []pii.Detector{{Kind: "order", Regexp: `ACME-[0-9]{6}`}}})
	require.NoError(t, err)
	for _, gap := range []string{"\n", "\r\n", "\u2028", "\u2029"} {
		for text, want := range map[string]string{
			"to ada@exa" + gap + "mple.com now":                      "to [EMAIL] now",
			"my card" + gap + "4111 1111" + gap + "1111 1111 is new": "my card" + gap + "[CREDIT_CARD] is new",
			"4111111" + gap + "111111111":                            "[CREDIT_CARD]",
			"DE89 3704 00" + gap + "44 0532 0130 00":                 "[IBAN]",
			"the order ACME-12" + gap + "3456":                       "the order [ORDER]",
			"to ada@exa" + "\u00ad" + "m" + gap + "ple.com":          "to [EMAIL]",
			"to ada@example.com" + gap + "Best":                      "to [EMAIL]" + gap + "Best",
			"Dear" + gap + "ada@example.com":                         "Dear" + gap + "[EMAIL]",
			"one 4111111111111111" + gap + "2":                       "one [CREDIT_CARD]" + gap + "2",
			"return x" + gap + "@app.route":                          "return x" + gap + "@app.route",
			"12345678" + gap + "87654321" + gap + "11112222":         "12345678" + gap + "87654321" + gap + "11112222",
			"+49 30" + gap + "1234567":                               "+49 30" + gap + "1234567",
		} {
			got, _ := f.Text(text)
			assert.Equal(t, want, got, "%q", text)
			got, _ = f.Text("first line" + gap + "second 1" + gap + text)
			assert.Equal(t, "first line"+gap+"second 1"+gap+want, got, "%q", text)
		}
	}
	got, _ := f.Text(`{"card":"4111 1111\r\n1111 1111"}`)
	assert.Equal(t, `{"card":"[CREDIT_CARD]"}`, got)
}
