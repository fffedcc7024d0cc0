package approval

import (
	"context"
	"errors"
	"net/http"
	"strings"
)

// Principal is a person whose identity was verified.
type Principal struct {
	// Name is the identity: what agent.Question.Approvers and quorums compare. Required.
	Name string
	// Roles are the roles of the person, which agent.Question.Approvers may name as well.
	Roles []string
}

// ErrUnidentified is returned by Options.Identify for a request without valid credentials.
var ErrUnidentified = errors.New("the request has no valid credentials")

// identifies reports whether the handler can verify people: without that, it has no inbox.
func (h *handler) identifies() bool { return h.options.Identify != nil || h.options.People != nil }

// identify returns the author of a request; nil if the request has no valid credentials.
func (h *handler) identify(r *http.Request) (*Principal, error) {
	if h.options.Identify != nil {
		p, err := h.options.Identify(r)
		switch {
		case err == nil && p.Name != "":
			return &p, nil
		case err != nil && !errors.Is(err, ErrUnidentified):
			return nil, err
		}
	}
	if h.options.People == nil {
		return nil, nil
	}
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		if p, ok := h.options.People.Find(strings.TrimSpace(token)); ok {
			return &p, nil
		}
	}
	return nil, nil
}

// principalKey is the key of a *Principal in the context of a request.
type principalKey struct{}

// author returns who sends a request; nil when that is not verified.
func author(ctx context.Context) *Principal {
	p, _ := ctx.Value(principalKey{}).(*Principal)
	return p
}
