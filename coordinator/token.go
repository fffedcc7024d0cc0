package coordinator

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/durable"
)

// Role says what a token allows. Each role allows what the ones before it allow, but RunnerRole allows only what runners need.
type Role string

// The roles.
const (
	// Viewer reads blueprints, runs and events.
	Viewer Role = "viewer"
	// Operator submits and stops runs, and answers what they ask.
	Operator Role = "operator"
	// RunnerRole claims runs and reports what became of them.
	RunnerRole Role = "runner"
	// Admin changes blueprints and tokens.
	Admin Role = "admin"
)

// Roles are all roles.
var Roles = []Role{Viewer, Operator, RunnerRole, Admin}

// allows reports whether a role may do what needs another one.
func allows(r, needed Role) bool {
	switch {
	case r == Admin || r == needed:
		return true
	case needed == Viewer:
		return r == Operator
	}
	return false
}

// kindToken is the kind of the documents with tokens; their names are the hashes of the tokens.
const kindToken = "token"

// Token is what is stored about a token: not the token itself.
type Token struct {
	// Name says whose it is. It is the name under which changes are recorded.
	Name string `json:"name"`
	Role Role   `json:"role"`
	// Created is when it was made, Expires when it stops being valid; zero for never.
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"`
	// ID identifies the token among others, for RevokeToken: the beginning of its hash.
	ID string `json:"id"`
}

// tokenPrefix begins every token, so that tools that look for secrets recognise them.
const tokenPrefix = "grp_"

// NewToken makes a token and stores its hash. TTL is how long it is valid; zero means until it is revoked.
func (c *Coordinator) NewToken(ctx context.Context, name string, role Role, ttl time.Duration, by string) (token string, about Token, err error) {
	var m mistakes
	if !blueprintName.MatchString(name) {
		m.add("name", "%q: expected 1 to 128 letters and digits, with . _ - between them", name)
	}
	if !slices.Contains(Roles, role) {
		m.add("role", "unknown role %q: expected one of %v", role, Roles)
	}
	if ttl < 0 {
		m.add("ttl", "%s: expected a duration above zero", ttl)
	}
	if err := m.err(); err != nil {
		return "", Token{}, err
	}
	token = tokenPrefix + rand.Text() + rand.Text()
	hash := hashToken(token)
	about = Token{Name: name, Role: role, Created: time.Now().UTC(), ID: hash[:12]}
	if ttl > 0 {
		about.Expires = about.Created.Add(ttl)
	}
	data, err := json.Marshal(about)
	if err != nil {
		return "", Token{}, err
	}
	_, err = c.store.PutDocument(ctx, durable.Document{Kind: kindToken, Name: hash, By: by, Data: data})
	if err != nil {
		return "", Token{}, fmt.Errorf("storing a token for %q: %w", name, err)
	}
	return token, about, nil
}

// hashToken returns the hash of a token, under which it is looked up. A token has more than 200 random bits, so that its hash cannot be
// reversed, and the time of the look-up tells nothing about it.
func hashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// errToken is returned for a token that is unknown, was revoked or has expired: callers are not told which.
var errToken = errors.New("the token is not valid: it is unknown, was revoked or has expired")

// identify returns what is stored about a token.
func (c *Coordinator) identify(ctx context.Context, token string) (Token, error) {
	if !strings.HasPrefix(token, tokenPrefix) {
		return Token{}, errToken
	}
	d, err := c.store.Document(ctx, kindToken, hashToken(token), 0)
	if errors.Is(err, durable.ErrNotFound) {
		return Token{}, errToken
	}
	var about Token
	if err == nil {
		err = json.Unmarshal(d.Data, &about)
	}
	if err != nil {
		return Token{}, fmt.Errorf("looking a token up: %w", err)
	}
	if !about.Expires.IsZero() && !time.Now().Before(about.Expires) {
		return Token{}, errToken
	}
	return about, nil
}

// ListTokens returns what is stored about all valid tokens.
func (c *Coordinator) ListTokens(ctx context.Context) (all []Token, err error) {
	err = c.eachToken(ctx, func(_ string, t Token) error {
		if t.Expires.IsZero() || time.Now().Before(t.Expires) {
			all = append(all, t)
		}
		return nil
	})
	return all, err
}

// RevokeToken deletes a token by its ID. It returns durable.ErrNotFound for an unknown one.
func (c *Coordinator) RevokeToken(ctx context.Context, id string) error {
	found := ""
	err := c.eachToken(ctx, func(hash string, t Token) error {
		if t.ID == id {
			found = hash
		}
		return nil
	})
	if err == nil && found == "" {
		err = durable.ErrNotFound
	}
	if err == nil {
		err = c.store.DeleteDocument(ctx, kindToken, found)
	}
	if err != nil {
		return fmt.Errorf("revoking token %q: %w", id, err)
	}
	return nil
}

func (c *Coordinator) eachToken(ctx context.Context, do func(hash string, t Token) error) error {
	for after := ""; ; {
		page, err := c.store.ListDocuments(ctx, kindToken, after, durable.DefaultLimit)
		if err != nil {
			return fmt.Errorf("listing tokens: %w", err)
		}
		for _, d := range page {
			var t Token
			if err := json.Unmarshal(d.Data, &t); err != nil {
				return fmt.Errorf("reading a token: %w", err)
			}
			if err := do(d.Name, t); err != nil {
				return err
			}
		}
		if len(page) < durable.DefaultLimit {
			return nil
		}
		after = page[len(page)-1].Name
	}
}
