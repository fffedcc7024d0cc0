package registry

import (
	"errors"
	"net/url"
	"regexp"
	"strings"

	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// URL is an address that begins with http:// or https:// and has no password.
type URL string

// Set parses an address.
func (v *URL) Set(text string) error {
	const expected = "expected an address, such as http://localhost:11434/v1"
	u, err := url.Parse(text)
	switch {
	case strings.Contains(text, "${"):
		return errors.New(expected + "; ${…} is not replaced in agent files")
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New(expected)
	case u.User != nil:
		return &yamlfile.SecretError{Expected: expected + ", without a name and password"}
	}
	*v = URL(text)
	return nil
}

func (v *URL) String() string { return string(*v) }

// Type returns the name of the value's type for a help text.
func (*URL) Type() string { return "url" }

// EnvName is the name of an environment variable.
type EnvName string

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Set parses a variable's name. The error never contains text that may be a secret.
func (v *EnvName) Set(text string) error {
	if !envName.MatchString(text) {
		return &yamlfile.SecretError{Expected: "expected the name of an environment variable, such as GITHUB_TOKEN, not its value"}
	}
	*v = EnvName(text)
	return nil
}
