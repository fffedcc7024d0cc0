package approval

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/internal/invisible"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// People are the people who may sign in, with the hashes of their tokens. A People value is safe for concurrent use. It
// never changes, unless OpenPeople has made it. The file is YAML, or JSON if its name ends in .json:
//
//	people:
//	  - name: ann
//	    roles: [lead]
//	    token: sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
//	    expires: 2027-01-31T00:00:00Z
//
// "grapnel approvals token ann --role lead" makes a token and prints its entry.
type People struct {
	all  []Person
	file *peopleFile // nil unless OpenPeople has made the value
}

// Person is one entry of People.
type Person struct {
	// Name is the identity of the person.
	Name string `key:"name,required"`
	// Roles are the roles of the person.
	Roles []string `key:"roles"`
	// Token is the SHA-256 of the person's token. Without it the person cannot sign in.
	Token TokenSum `key:"token"`
	// Expires is when the token expires; zero for never.
	Expires Instant `key:"expires"`
}

// TokenSum is the SHA-256 of a token. Its text is "sha256:" and 64 hexadecimal digits.
type TokenSum [32]byte //nolint:recvcheck // Set needs a pointer

// Set parses the text of a sum.
func (s *TokenSum) Set(text string) error {
	digits, ok := strings.CutPrefix(text, "sha256:")
	raw, err := hex.DecodeString(digits)
	if !ok || err != nil || len(raw) != len(s) {
		return &yamlfile.SecretError{Expected: `expected "sha256:" and 64 hexadecimal digits: "grapnel approvals token NAME" prints them`}
	}
	copy(s[:], raw)
	return nil
}

// String returns the text of the sum; empty for the zero sum.
func (s TokenSum) String() string {
	if s == (TokenSum{}) {
		return ""
	}
	return "sha256:" + hex.EncodeToString(s[:])
}

// YAMLValue returns the text of the sum, for package yamlfile.
func (s TokenSum) YAMLValue() any { return s.String() }

// Instant is a time in a file of people.
type Instant struct{ time.Time } //nolint:recvcheck // Set needs a pointer

// Set parses a time in the form of RFC 3339.
func (i *Instant) Set(text string) (err error) {
	if i.Time, err = time.Parse(time.RFC3339, text); err != nil {
		return errors.New("expected a time such as 2027-01-31T00:00:00Z")
	}
	return nil
}

// YAMLValue returns the text of the time, for package yamlfile; empty for the zero time.
func (i Instant) YAMLValue() any {
	if i.IsZero() {
		return ""
	}
	return i.UTC().Format(time.RFC3339)
}

// PeopleFile is the form of a file of People.
type PeopleFile struct {
	People []Person `key:"people,required"`
}

// LoadPeople reads a file of people.
func LoadPeople(path string) (*People, error) {
	text, err := yamlfile.Read(path)
	if err != nil {
		return nil, fmt.Errorf("reading the people who may sign in: %w", err)
	}
	return parsePeople(path, text)
}

// parsePeople parses the text of a file of people; name is for errors.
func parsePeople(name string, text []byte) (*People, error) {
	file := yamlfile.Parse(name, text)
	file.Advise = func(key string) string {
		if key == "password" || key == "secret" {
			return "use token, with the SHA-256 of the person's token"
		}
		return ""
	}
	var form PeopleFile
	root, ok := file.Root()
	if ok {
		root.Decode(&form)
	}
	if err := file.Err(); err != nil {
		return nil, fmt.Errorf("reading the people who may sign in: %w", err)
	}
	if !ok { // perhaps it is being written
		return nil, fmt.Errorf("reading the people who may sign in: %s is empty: it needs the key people", name)
	}
	p, err := NewPeople(form.People...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// NewPeople returns the given people. It returns an error for a name that is empty or not unique, and for a token that two
// people have.
func NewPeople(all ...Person) (*People, error) {
	for i, p := range all {
		for _, before := range all[:i] {
			switch {
			case before.Name == p.Name:
				return nil, fmt.Errorf("two people are named %q: names must be unique", p.Name)
			case before.Token == p.Token && p.Token != (TokenSum{}):
				return nil, fmt.Errorf("%q and %q have the same token", before.Name, p.Name)
			}
		}
		if p.Name == "" || p.Name != strings.TrimSpace(p.Name) || invisible.CheckName("the name", p.Name) != nil {
			return nil, fmt.Errorf("the name %q cannot be used: it must have 1 to %d bytes, without invisible characters", p.Name, invisible.MaxName)
		}
	}
	return &People{all: slices.Clone(all)}, nil
}

// All returns all people.
func (p *People) All() []Person {
	switch {
	case p == nil:
		return nil
	case p.file != nil:
		return p.file.current()
	}
	return slices.Clone(p.all)
}

// Find returns the person who has a token; ok is false when there is none, or when the token has expired. Its time does not
// depend on the token.
func (p *People) Find(token string) (_ Principal, ok bool) {
	hash := durable.TokenHash(token)
	return p.FindSum(func(s TokenSum) bool { return subtle.ConstantTimeCompare(hash[:], s[:]) == 1 })
}

// FindSum returns the person whose valid token has a sum that a function accepts. It calls the function for all people.
func (p *People) FindSum(accept func(s TokenSum) bool) (found Principal, ok bool) {
	now := time.Now()
	for _, one := range p.All() {
		same := accept(one.Token)
		if same && one.Token != (TokenSum{}) && (one.Expires.IsZero() || now.Before(one.Expires.Time)) {
			found, ok = Principal{Name: one.Name, Roles: one.Roles}, true
		}
	}
	return found, ok
}

// NewToken returns a new token for a person, and its sum. Tokens are 32 random bytes, in letters that need no escaping in
// a URL.
func NewToken() (token string, sum TokenSum) {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails
	token = base64.RawURLEncoding.EncodeToString(raw[:])
	return token, durable.TokenHash(token)
}
