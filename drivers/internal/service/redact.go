package service

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/drivers"
)

// newRedactor returns a function that removes secrets from a text: the key, tokens, a password in the URL, and
// additional header values that are long enough to be secrets. It is a func so that printing a driver does not print
// secrets.
func newRedactor(e Endpoint, header http.Header, tokens *secrets) func(string) string {
	secrets := []string{e.Key}
	if password, ok := e.URL.User.Password(); ok {
		secrets = append(secrets, password)
	}
	for _, values := range header {
		for _, value := range values {
			secrets = append(secrets, value, strings.TrimPrefix(value, "Bearer "))
		}
	}
	return func(text string) string {
		for _, secret := range longSecrets(append(tokens.all(), secrets...)) {
			text = drivers.Redact(text, secret)
		}
		return text
	}
}

// longSecrets returns the texts that are long enough to be secrets, the longest first, because one may begin with
// another.
func longSecrets(texts []string) []string {
	texts = lo.Filter(texts, func(s string, _ int) bool { return len(s) >= 4 })
	slices.SortFunc(texts, func(a, b string) int { return len(b) - len(a) })
	return texts
}

// RedactError returns the error with all secrets removed from its text.
func RedactError(err error, redact func(string) string) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err // the URL is the endpoint, which Features contains
	}
	if text := redact(err.Error()); text != err.Error() {
		return errors.New(text)
	}
	return err
}

// Excerpt returns the beginning of an answer on one line and without secrets. Some services answer with a whole page,
// others repeat the request.
func Excerpt(text string, redact func(string) string) string {
	const most = 1000
	text = redact(text) // before truncation, because a part of a key is secret, too
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
