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

	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
)

// allows reports whether a role may do what needs another one.
func allows(r, needed wire.Role) bool {
	switch {
	case r == wire.Admin || r == needed:
		return true
	case needed == wire.Viewer:
		return r == wire.Operator
	}
	return false
}

// kindToken is the kind of the documents with tokens; their names are the hashes of the tokens.
const kindToken = "token"

// tokenPrefix begins every token, so that tools that look for secrets recognise them.
const tokenPrefix = "grp_"

// NewToken makes a token and stores its hash. TTL is how long it is valid; zero means until it is revoked.
func (c *Coordinator) NewToken(ctx context.Context, name string, role wire.Role, ttl time.Duration, by string) (token string, about wire.Token, err error) {
	var m mistakes
	if !blueprintName.MatchString(name) {
		m.add("name", "%q: expected 1 to 128 letters and digits, with . _ - between them", name)
	}
	if !slices.Contains(wire.Roles, role) {
		m.add("role", "unknown role %q: expected one of %v", role, wire.Roles)
	}
	if ttl < 0 {
		m.add("ttl", "%s: expected a duration above zero", ttl)
	}
	if err := m.err(); err != nil {
		return "", wire.Token{}, err
	}
	token = tokenPrefix + rand.Text() + rand.Text()
	hash := hashToken(token)
	about = wire.Token{Name: name, Role: role, Created: time.Now().UTC(), ID: hash[:12]}
	if ttl > 0 {
		about.Expires = about.Created.Add(ttl)
	}
	data, err := json.Marshal(about)
	if err != nil {
		return "", wire.Token{}, err
	}
	_, err = c.store.PutDocument(ctx, durable.Document{Kind: kindToken, Name: hash, By: by, Data: data})
	if err != nil {
		return "", wire.Token{}, fmt.Errorf("storing a token for %q: %w", name, err)
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
func (c *Coordinator) identify(ctx context.Context, token string) (wire.Token, error) {
	if !strings.HasPrefix(token, tokenPrefix) {
		return wire.Token{}, errToken
	}
	d, err := c.store.Document(ctx, kindToken, hashToken(token), 0)
	if errors.Is(err, durable.ErrNotFound) {
		return wire.Token{}, errToken
	}
	var about wire.Token
	if err == nil {
		err = json.Unmarshal(d.Data, &about)
	}
	if err != nil {
		return wire.Token{}, fmt.Errorf("looking a token up: %w", err)
	}
	if !about.Expires.IsZero() && !time.Now().Before(about.Expires) {
		return wire.Token{}, errToken
	}
	return about, nil
}

// ListTokens returns what is stored about all valid tokens.
func (c *Coordinator) ListTokens(ctx context.Context) (all []wire.Token, err error) {
	err = c.eachToken(ctx, func(_ string, t wire.Token) error {
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
	err := c.eachToken(ctx, func(hash string, t wire.Token) error {
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

func (c *Coordinator) eachToken(ctx context.Context, do func(hash string, t wire.Token) error) error {
	for after := ""; ; {
		page, err := c.store.ListDocuments(ctx, kindToken, after, durable.DefaultLimit)
		if err != nil {
			return fmt.Errorf("listing tokens: %w", err)
		}
		for _, d := range page {
			var t wire.Token
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
