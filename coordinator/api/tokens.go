package api

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

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

// addTokens adds what administrators do with tokens.
func (a *api) addTokens() {
	type tokenInput struct {
		Body struct {
			Name       string    `json:"name" pattern:"^[A-Za-z0-9]([A-Za-z0-9._-]{0,126}[A-Za-z0-9])?$" patternDescription:"1 to 128 letters and digits, with . _ - between them" doc:"Whose it is."` //nolint:lll // a tag
			Role       wire.Role `json:"role" enum:"viewer,operator,runner,admin"`
			TTLSeconds int64     `json:"ttl_seconds,omitempty" minimum:"0" maximum:"9000000000" doc:"How long it is valid; absent means until it is revoked."`
		}
	}
	type newToken struct {
		wire.Token

		Text string `json:"token" doc:"The token. It is not stored and cannot be read again."`
	}
	add(a, route(http.MethodPost, "/tokens", "create-token", "Create a token", wire.Admin, withStatusCreated, withOwnAudit),
		func(ctx context.Context, in *tokenInput) (newToken, error) {
			a.record(ctx, in.Body.Name+", role "+string(in.Body.Role))
			text, about, err := a.newToken(ctx, in.Body.Name, in.Body.Role, time.Duration(in.Body.TTLSeconds)*time.Second)
			return newToken{about, text}, err
		})

	type tokens struct {
		Tokens []wire.Token `json:"tokens"`
	}
	add(a, route(http.MethodGet, "/tokens", "list-tokens", "List valid tokens, without the tokens themselves", wire.Admin),
		func(ctx context.Context, _ *struct{}) (tokens, error) {
			all := []wire.Token{}
			err := a.eachToken(ctx, func(_ string, t wire.Token) {
				if isValid(t) {
					all = append(all, t)
				}
			})
			return tokens{all}, err
		})

	addQuiet(a, route(http.MethodDelete, "/tokens/{id}", "revoke-token", "Revoke a token", wire.Admin), func(ctx context.Context, in *struct {
		ID string `path:"id"`
	},
	) error {
		found := ""
		err := a.eachToken(ctx, func(hash string, t wire.Token) {
			if t.ID == in.ID {
				found = hash
			}
		})
		if err == nil && found == "" {
			err = durable.ErrNotFound
		}
		if err != nil {
			return err
		}
		return a.store.DeleteDocument(ctx, kindToken, found, 0)
	})
}

// newToken makes a token and stores its hash.
func (a *api) newToken(ctx context.Context, name string, role wire.Role, ttl time.Duration) (text string, about wire.Token, err error) {
	text = tokenPrefix + rand.Text() + rand.Text()
	hash := hashToken(text)
	about = wire.Token{Name: name, Role: role, Created: time.Now().UTC(), ID: hash[:12]}
	if ttl > 0 {
		about.Expires = about.Created.Add(ttl)
	}
	data, err := json.Marshal(about)
	if err != nil {
		return "", wire.Token{}, err
	}
	_, err = a.store.PutDocument(ctx, durable.Document{Kind: kindToken, Name: hash, By: identityOf(ctx).Name, Data: data})
	return text, about, err
}

// isValid reports whether a token has not expired.
func isValid(t wire.Token) bool { return t.Expires.IsZero() || time.Now().Before(t.Expires) }

// hashToken returns the hash of a token, under which it is looked up. A token has more than 200 random bits, so that its hash cannot be
// reversed, and the time of the look-up tells nothing about it.
func hashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// errToken is returned for a token that is unknown, was revoked or has expired: callers are not told which.
var errToken = errors.New("the token is not valid: it is unknown, was revoked or has expired")

// eachToken calls do for all tokens.
func (a *api) eachToken(ctx context.Context, do func(hash string, t wire.Token)) error {
	for after := ""; ; {
		page, err := a.store.ListDocuments(ctx, kindToken, after, durable.DefaultLimit)
		if err != nil {
			return fmt.Errorf("listing tokens: %w", err)
		}
		for _, d := range page {
			var t wire.Token
			if err := json.Unmarshal(d.Data, &t); err != nil {
				return fmt.Errorf("reading a token: %w", err)
			}
			do(d.Name, t)
		}
		if len(page) < durable.DefaultLimit {
			return nil
		}
		after = page[len(page)-1].Name
	}
}

type identityKey struct{}

// identityOf returns who sends a request.
func identityOf(ctx context.Context) wire.Token {
	t, _ := ctx.Value(identityKey{}).(wire.Token)
	return t
}

// authorize refuses requests whose token does not allow the operation.
func (a *api) authorize(to huma.API, ctx huma.Context, next func(huma.Context)) {
	needed, _ := ctx.Operation().Metadata[roleKey].(wire.Role)
	token, ok := strings.CutPrefix(ctx.Header("Authorization"), "Bearer ")
	if !ok {
		ctx.SetHeader("WWW-Authenticate", "Bearer")
		a.refuse(to, ctx, http.StatusUnauthorized, "missing token: send it as Authorization: Bearer TOKEN")
		return
	}
	about, err := a.identify(ctx.Context(), strings.TrimSpace(token))
	switch {
	case errors.Is(err, errToken):
		ctx.SetHeader("WWW-Authenticate", "Bearer")
		a.refuse(to, ctx, http.StatusUnauthorized, err.Error())
	case err != nil:
		a.logError("looking a token up", err)
		a.refuse(to, ctx, http.StatusServiceUnavailable, "the store does not answer: try again")
	case needed == "" || !allows(about.Role, needed):
		a.refuse(to, ctx, http.StatusForbidden, missingRole(about, needed))
	case about.Role != wire.RunnerRole && !a.rates.Allow(about.ID):
		ctx.SetHeader("Retry-After", "1")
		a.refuse(to, ctx, http.StatusTooManyRequests, "the token of "+about.Name+" has sent too many requests: wait a second")
	default:
		ctx = a.withAudit(huma.WithValue(ctx, identityKey{}, about))
		next(ctx)
		setOutcome(ctx.Context(), strconv.Itoa(ctx.Status()))
		if err := recordNow(ctx.Context(), a.store); err != nil { // of a request that was refused before its operation
			a.logError("recording a request", err)
		}
	}
}

// missingRole says that an operation needs another role.
func missingRole(about wire.Token, needed wire.Role) string {
	return "the token of " + about.Name + " has the role " + string(about.Role) + ", and this needs the role " + string(needed)
}

// identify returns what is known about a token.
func (a *api) identify(ctx context.Context, token string) (wire.Token, error) {
	if a.token != "" && subtle.ConstantTimeCompare([]byte(hashToken(token)), []byte(hashToken(a.token))) == 1 {
		return wire.Token{Name: "local", Role: wire.Admin}, nil
	}
	if !strings.HasPrefix(token, tokenPrefix) {
		return wire.Token{}, errToken
	}
	about, err := findToken(ctx, a.store, hashToken(token))
	if errors.Is(err, durable.ErrNotFound) {
		err = errToken
	}
	return about, err
}

// findToken returns the valid token with a hash. It returns durable.ErrNotFound for one that is unknown, was revoked or
// has expired.
func findToken(ctx context.Context, store durable.Store, hash string) (about wire.Token, err error) {
	d, err := store.Document(ctx, kindToken, hash, 0)
	if err == nil {
		err = json.Unmarshal(d.Data, &about)
	}
	if err == nil && !isValid(about) {
		err = durable.ErrNotFound
	}
	if err != nil {
		return wire.Token{}, fmt.Errorf("looking a token up: %w", err)
	}
	return about, nil
}

func (a *api) refuse(to huma.API, ctx huma.Context, status int, message string) {
	if err := huma.WriteErr(to, ctx, status, message); err != nil {
		a.log.Debug("writing a response", "error", err)
	}
}
