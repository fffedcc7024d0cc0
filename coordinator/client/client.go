package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/internal/cause"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
)

// Options configures a Client.
type Options struct {
	// URL is the address of the coordinator, such as http://127.0.0.1:8420. Required.
	URL string
	// Token is sent with each request. Required.
	Token string
	// HTTP sends the requests. Nil means a client without a time limit of its own: the contexts of the calls limit them.
	HTTP *http.Client
}

// Client uses a coordinator. It is safe for concurrent use.
type Client struct {
	base  *url.URL
	token string
	http  *http.Client
}

// New returns a client.
func New(o Options) (*Client, error) {
	base, err := url.Parse(o.URL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the address of the coordinator: %w", err)
	case base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.User != nil:
		return nil, fmt.Errorf("the address of the coordinator is %q: expected one such as http://127.0.0.1:8420", o.URL)
	case o.Token == "":
		return nil, errors.New("missing token: a coordinator accepts only requests with one")
	}
	if o.HTTP == nil {
		o.HTTP = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	return &Client{base, o.Token, o.HTTP}, nil
}

// Error is a response that is not a success.
type Error struct {
	// Status is the HTTP status.
	Status int `json:"status"`
	// Detail says what is wrong; Errors has one item for each wrong member of the request.
	Detail string       `json:"detail"`
	Errors []FieldError `json:"errors,omitempty"`
}

// FieldError is what is wrong with one member of a request.
type FieldError struct {
	Location string `json:"location"`
	Message  string `json:"message"`
}

// Error returns what is wrong.
func (e *Error) Error() string {
	texts := []string{cmp.Or(e.Detail, http.StatusText(e.Status))}
	for _, f := range e.Errors {
		texts = append(texts, f.Location+": "+f.Message)
	}
	return strings.Join(texts, "; ")
}

// Is reports whether the response stands for an error of a store.
func (e *Error) Is(target error) bool {
	switch target {
	case durable.ErrNotFound:
		return e.Status == http.StatusNotFound
	case durable.ErrConflict:
		return e.Status == http.StatusPreconditionFailed
	case durable.ErrStale:
		return e.Status == http.StatusConflict && strings.Contains(e.Detail, durable.ErrStale.Error())
	case durable.ErrEnded:
		return e.Status == http.StatusConflict && strings.Contains(e.Detail, durable.ErrEnded.Error())
	}
	return false
}

// maxResponse is the maximum size of a response.
const maxResponse = 512 << 20

// patience is how often a request is sent that the coordinator refuses because the token has sent too many.
const patience = 10

// call sends a request and reads its response. While the token has sent too many requests, it waits.
func (c *Client) call(ctx context.Context, method, path string, query url.Values, header http.Header, in, out any) error {
	for attempt := 1; ; attempt++ {
		err := c.send(ctx, method, path, query, header, in, out)
		refused, ok := errors.AsType[*Error](err)
		if !ok || refused.Status != http.StatusTooManyRequests || attempt == patience {
			return err
		}
		waitFor(ctx, time.Second)
	}
}

// send sends a request once.
func (c *Client) send(ctx context.Context, method, path string, query url.Values, header http.Header, in, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("%s %s: %w", method, path, err)
		}
		body = bytes.NewReader(text)
	}
	to := *c.base
	to.Path, to.RawPath = "", ""
	to = *to.JoinPath(c.base.Path, path)
	to.RawQuery = query.Encode()
	ctx, failure := cause.Into(ctx)
	r, err := http.NewRequestWithContext(ctx, method, to.String(), body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	maps.Copy(r.Header, header)
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(r.Header))
	r.Header.Set("Authorization", "Bearer "+c.token)
	r.Header.Set("Accept", "application/json")
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(r)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxResponse+1))
	switch {
	case *failure != nil:
		return *failure
	case err != nil:
		return fmt.Errorf("%s %s: reading the response: %w", method, path, err)
	case len(text) > maxResponse:
		return fmt.Errorf("%s %s: the response has more than %d bytes", method, path, maxResponse)
	case response.StatusCode/100 != 2:
		failed := &Error{}
		if json.Unmarshal(text, failed) != nil {
			failed.Detail = ""
		}
		failed.Status = response.StatusCode
		return fmt.Errorf("%s %s: %w", method, path, failed)
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("%s %s: reading the response: %w", method, path, err)
	}
	return nil
}

// Submit submits a run of a blueprint.
func (c *Client) Submit(ctx context.Context, r wire.RunRequest) (s wire.Submitted, err error) {
	err = c.call(ctx, http.MethodPost, "/runs", nil, nil, r, &s)
	return s, err
}

// Retry submits a run again that has failed or was stopped.
func (c *Client) Retry(ctx context.Context, id agent.RunID, r wire.RetryRequest) (s wire.Submitted, err error) {
	err = c.call(ctx, http.MethodPost, runPath(id, "retry"), nil, nil, r, &s)
	return s, err
}

// Run returns everything about a run.
func (c *Client) Run(ctx context.Context, id agent.RunID) (d wire.RunDetail, err error) {
	err = c.call(ctx, http.MethodGet, runPath(id, ""), nil, nil, nil, &d)
	return d, err
}

// Runs returns a page of runs, newest first. The query has the parameters of GET /runs.
func (c *Client) Runs(ctx context.Context, query url.Values) (l wire.RunList, err error) {
	err = c.call(ctx, http.MethodGet, "/runs", query, nil, nil, &l)
	return l, err
}

// Stop stops a run.
func (c *Client) Stop(ctx context.Context, id agent.RunID, reason string) error {
	return c.call(ctx, http.MethodPost, runPath(id, "stop"), nil, nil, map[string]string{"reason": reason}, nil)
}

// Events returns at most limit events of a run after the one with a number.
func (c *Client) Events(ctx context.Context, id agent.RunID, after int64, limit int) ([]wire.EventView, error) {
	var out struct {
		Events []wire.EventView `json:"events"`
	}
	query := url.Values{"after": {strconv.FormatInt(after, 10)}, "limit": {strconv.Itoa(limit)}}
	err := c.call(ctx, http.MethodGet, runPath(id, "events"), query, nil, nil, &out)
	return out.Events, err
}

// Wait waits until a run has ended, and returns everything about it.
func (c *Client) Wait(ctx context.Context, id agent.RunID) (wire.RunDetail, error) {
	pause := 50 * time.Millisecond
	for {
		d, err := c.Run(ctx, id)
		if err != nil || d.Status == wire.Completed || d.Status == wire.Failed || d.Status == wire.Stopped {
			return d, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return d, context.Cause(ctx)
		}
		pause = min(2*pause, 2*time.Second)
	}
}

// Prune deletes the runs that ended before a time, and returns their number.
func (c *Client) Prune(ctx context.Context, before time.Time) (int, error) {
	var out struct {
		Deleted int `json:"deleted"`
	}
	err := c.call(ctx, http.MethodDelete, "/stored-runs", url.Values{"ended_before": {before.UTC().Format(time.RFC3339Nano)}}, nil, nil, &out)
	return out.Deleted, err
}

// CreateBlueprint stores a blueprint, given as JSON.
func (c *Client) CreateBlueprint(ctx context.Context, text json.RawMessage) (s wire.Stored, err error) {
	err = c.call(ctx, http.MethodPost, "/blueprints", nil, nil, text, &s)
	return s, err
}

// CheckBlueprint returns an error that lists everything that is wrong with a blueprint, and stores nothing. The names in with count as
// existing blueprints.
func (c *Client) CheckBlueprint(ctx context.Context, text json.RawMessage, with ...string) error {
	return c.call(ctx, http.MethodPost, "/blueprints", url.Values{"dry_run": {"true"}, "with": with}, nil, text, nil)
}

// UpdateBlueprint changes members of a blueprint: absent ones stay, null and {} clear. It returns durable.ErrConflict unless the newest
// version is after, or after is zero.
func (c *Client) UpdateBlueprint(ctx context.Context, name string, changes json.RawMessage, after int64) (s wire.Stored, err error) {
	err = c.call(ctx, http.MethodPatch, "/blueprints/"+url.PathEscape(name), nil, matching(after), changes, &s)
	return s, err
}

// Blueprint returns a version of a blueprint; zero means the newest.
func (c *Client) Blueprint(ctx context.Context, name string, version int64) (s wire.Stored, err error) {
	query := url.Values{}
	if version != 0 {
		query.Set("version", strconv.FormatInt(version, 10))
	}
	err = c.call(ctx, http.MethodGet, "/blueprints/"+url.PathEscape(name), query, nil, nil, &s)
	return s, err
}

// Blueprints returns at most limit blueprints whose names follow after.
func (c *Client) Blueprints(ctx context.Context, after string, limit int) ([]wire.Stored, error) {
	var out struct {
		Blueprints []wire.Stored `json:"blueprints"`
	}
	query := url.Values{"after": {after}, "limit": {strconv.Itoa(limit)}}
	err := c.call(ctx, http.MethodGet, "/blueprints", query, nil, nil, &out)
	return out.Blueprints, err
}

// BlueprintVersions returns at most limit versions of a blueprint, newest first: those before a version, unless that is zero.
func (c *Client) BlueprintVersions(ctx context.Context, name string, before int64, limit int) ([]wire.BlueprintVersion, error) {
	var out struct {
		Versions []wire.BlueprintVersion `json:"versions"`
	}
	query := url.Values{"before": {strconv.FormatInt(before, 10)}, "limit": {strconv.Itoa(limit)}}
	err := c.call(ctx, http.MethodGet, "/blueprints/"+url.PathEscape(name)+"/versions", query, nil, nil, &out)
	return out.Versions, err
}

// matching returns the header of a change of a version; nil for any version.
func matching(version int64) http.Header {
	if version == 0 {
		return nil
	}
	return http.Header{"If-Match": {strconv.Quote(strconv.FormatInt(version, 10))}}
}

// DeleteBlueprint deletes a blueprint. It returns durable.ErrConflict unless its newest version is after, or after is zero.
func (c *Client) DeleteBlueprint(ctx context.Context, name string, after int64) error {
	return c.call(ctx, http.MethodDelete, "/blueprints/"+url.PathEscape(name), nil, matching(after), nil, nil)
}

// NewToken makes a token.
func (c *Client) NewToken(ctx context.Context, name string, role wire.Role, ttl time.Duration) (string, error) {
	var out struct {
		Token string `json:"token"`
	}
	in := map[string]any{"name": name, "role": role, "ttl_seconds": int64(ttl / time.Second)}
	err := c.call(ctx, http.MethodPost, "/tokens", nil, nil, in, &out)
	return out.Token, err
}

// Tokens returns the valid tokens, without the tokens themselves.
func (c *Client) Tokens(ctx context.Context) ([]wire.Token, error) {
	var out struct {
		Tokens []wire.Token `json:"tokens"`
	}
	err := c.call(ctx, http.MethodGet, "/tokens", nil, nil, nil, &out)
	return out.Tokens, err
}

// RevokeToken revokes the token with an ID.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, "/tokens/"+url.PathEscape(id), nil, nil, nil, nil)
}

// Sessions returns a page of sessions, newest first. The query has the parameters of GET /sessions.
func (c *Client) Sessions(ctx context.Context, query url.Values) (l wire.SessionList, err error) {
	err = c.call(ctx, http.MethodGet, "/sessions", query, nil, nil, &l)
	return l, err
}

// Session returns a session with its runs, and those that it has started.
func (c *Client) Session(ctx context.Context, id agent.SessionID) (s wire.Session, err error) {
	err = c.call(ctx, http.MethodGet, "/sessions/"+url.PathEscape(string(id)), nil, nil, nil, &s)
	return s, err
}

// Resume submits the next run of a session.
func (c *Client) Resume(ctx context.Context, id agent.SessionID, r wire.ResumeRequest) (s wire.Submitted, err error) {
	err = c.call(ctx, http.MethodPost, "/sessions/"+url.PathEscape(string(id))+"/resume", nil, nil, r, &s)
	return s, err
}
