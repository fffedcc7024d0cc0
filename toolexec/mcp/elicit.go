package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/inputform"
	"github.com/grapnel-go/grapnel/toolexec"
)

// A server asks a person in one of two ways. Since protocol 2026-07-28, it answers a call with input_required, and the
// call is made again with the answers and the server's requestState. Before, it sends elicitation/create during the
// call. Then the request is cancelled, the call's result is dropped, and the call is made again. The server asks again,
// and gets the recorded answer. In both cases the call ends with an agent.InputError in between, so that nothing waits
// in memory.

// The limits for a server's questions.
const (
	maxRequestState = 64 << 10
	maxRequests     = 8 // in one result
	maxRequestKey   = 200
	maxQuestion     = 8 << 10
)

// memo is the state of an InputError.
type memo struct {
	// Server is a hash of the server that asked. No other server gets the answers.
	Server string `json:"server"`
	// State is the server's requestState. Keys and Requests belong to the same result, in the order in which a person
	// is asked. From is the number of earlier answers for the call. All are empty for elicitation during a call.
	State    string               `json:"state,omitempty"`
	Keys     []string             `json:"keys,omitempty"`
	Requests []agent.InputRequest `json:"requests,omitempty"`
	From     int                  `json:"from,omitempty"`
}

// identity returns a hash of the server's name and how the server is reached.
func (s Server) identity() string {
	sum := sha256.Sum256([]byte(jsonOf([]any{s.Name, s.URL, s.Command})))
	return hex.EncodeToString(sum[:16])
}

// memoOf returns the memo for a repeated call, and an empty memo for one that has not asked.
func (b *call) memoOf(c toolexec.Call) (m memo, err error) {
	if len(c.InputState) == 0 {
		return m, nil
	}
	if err := json.Unmarshal(c.InputState, &m); err != nil {
		return m, fmt.Errorf("reading what it had asked for: %w", err)
	}
	switch {
	case m.Server != b.tool.client.server.identity():
		return m, errors.New("another server had asked for input: the Command or URL has changed since")
	case len(m.Keys) != len(m.Requests) || m.From < 0 || m.From > len(c.Given):
		return m, errors.New("reading what it had asked for: it is incomplete")
	}
	return m, nil
}

// next returns the error that asks for the same result's next request. It returns nil if all have answers.
func (m memo) next(c toolexec.Call) error {
	n := len(c.Given) - m.From
	if n >= len(m.Requests) {
		return nil
	}
	return &agent.InputError{Request: m.Requests[n], State: c.InputState}
}

// responses returns the answers to the last result's requests, by key.
func (m memo) responses(c toolexec.Call) sdk.InputResponseMap {
	if len(m.Keys) == 0 {
		return nil
	}
	all := sdk.InputResponseMap{}
	for i, key := range m.Keys {
		all[key] = responseTo(c.Given[m.From+i])
	}
	return all
}

// responseTo returns a person's answer in the protocol's format.
func responseTo(g agent.GivenInput) *sdk.ElicitResult {
	if !g.Accepted {
		return &sdk.ElicitResult{Action: "decline"}
	}
	result := &sdk.ElicitResult{Action: "accept"}
	if g.Content != "" {
		d := json.NewDecoder(strings.NewReader(g.Content))
		d.UseNumber()
		_ = d.Decode(&result.Content) // it was checked against the schema
	}
	return result
}

// needInput returns the error for a result that requires input.
func (b *call) needInput(r *sdk.CallToolResult, c toolexec.Call) error {
	switch n := len(r.InputRequests); {
	case n == 0:
		return errors.New("the server is busy: try again later")
	case n > maxRequests:
		return fmt.Errorf("it asks for input with %d requests at once: at most %d are supported", n, maxRequests)
	case len(r.RequestState) > maxRequestState:
		return fmt.Errorf("it asks for input with a requestState of %d bytes: at most %d are stored", len(r.RequestState), maxRequestState)
	}
	server := b.tool.client.server
	m := memo{Server: server.identity(), State: r.RequestState, Keys: slices.Sorted(maps.Keys(r.InputRequests)), From: len(c.Given)}
	for _, key := range m.Keys {
		if len(key) > maxRequestKey {
			return fmt.Errorf("it asks for input with a key of %d bytes: at most %d are supported", len(key), maxRequestKey)
		}
		p, ok := r.InputRequests[key].(*sdk.ElicitParams)
		if !ok || p == nil {
			return errors.New("it requires something else than elicitation, such as sampling or roots, which is not supported")
		}
		request, err := server.requestOf(p)
		if err != nil {
			return err
		}
		m.Requests = append(m.Requests, request)
	}
	return &agent.InputError{Request: m.Requests[0], State: m.encode()}
}

func (m memo) encode() []byte { return []byte(jsonOf(m)) }

// requestOf returns the input that a server asks for.
func (s Server) requestOf(p *sdk.ElicitParams) (agent.InputRequest, error) {
	r := agent.InputRequest{By: fmt.Sprintf("mcp server %q", s.Name), Message: strings.TrimSpace(inputform.Clean(p.Message, maxQuestion))}
	mode := p.Mode
	if mode == "" {
		mode = lo.Ternary(p.URL != "" || p.ElicitationID != "", "url", "form")
	}
	switch {
	case len(p.Message) > maxQuestion:
		return r, fmt.Errorf("it asks for input with a message of %d bytes: at most %d are supported", len(p.Message), maxQuestion)
	case mode == "url":
		at, err := url.Parse(p.URL)
		if err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != "http" || p.URL != inputform.OneLine(p.URL) {
			return r, errors.New("it asks a person to visit an invalid address")
		}
		r.URL = p.URL
		return r, nil
	case mode != "form":
		return r, fmt.Errorf("it asks for input in the unknown mode %q", shortenText(p.Mode))
	case p.RequestedSchema == nil:
		return r, nil
	}
	schema := jsonOf(p.RequestedSchema)
	form, err := inputform.Parse(schema)
	if err != nil {
		return r, fmt.Errorf("it asks for input that cannot be shown: %w", err)
	}
	if len(form.Fields) > 0 {
		r.Schema = schema
	}
	return r, nil
}

// requiredVisit returns the first address that a person must visit before the call, according to a server's error. It
// does not ask again for an address that the person has declined or already visited. Then the error is the call's
// result.
func (s Server) requiredVisit(err error, given []agent.GivenInput) (*agent.InputRequest, error) {
	refused, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || refused.Code != sdk.CodeURLElicitationRequired {
		return nil, nil
	}
	var data struct {
		Elicitations []*sdk.ElicitParams `json:"elicitations"`
	}
	if json.Unmarshal(refused.Data, &data) != nil {
		return nil, nil //nolint:nilerr // it is an error of the server as any other
	}
	for _, p := range data.Elicitations {
		if p == nil {
			continue
		}
		r, err := s.requestOf(p)
		switch {
		case err != nil:
			return nil, err
		case !slices.ContainsFunc(given, func(g agent.GivenInput) bool { return isSame(g.Request, r) }):
			return &r, nil
		}
	}
	return nil, nil
}

// isSame reports whether two requests ask the same.
func isSame(a, b agent.InputRequest) bool {
	return a.Message == b.Message && a.URL == b.URL && a.Schema == b.Schema
}

// openCalls attributes elicitation during a call to its call. The protocol does not say which call asks. After a server has
// asked in this way, its calls are made one at a time.
type openCalls struct {
	server Server
	serial *serial

	mu    sync.Mutex
	calls []*openCall
}

// openCall is a call in progress.
type openCall struct {
	given   []agent.GivenInput  // answers that the server has not got in this attempt
	request *agent.InputRequest // the first request without an answer
	err     error               // the request that cannot be shown
}

// serial lets one call at a time begin once a server has asked during a call.
type serial struct {
	asks atomic.Bool
	turn chan struct{}
}

func newSerial() *serial {
	s := &serial{turn: make(chan struct{}, 1)}
	s.turn <- struct{}{}
	return s
}

// wait waits until the call may begin. over ends its turn.
func (s *serial) wait(done <-chan struct{}) (over func()) {
	if !s.asks.Load() {
		return func() {}
	}
	select {
	case <-s.turn:
		return func() { s.turn <- struct{}{} }
	case <-done:
		return func() {}
	}
}

// enter begins a call, with the answers that it has.
func (d *openCalls) enter(given []agent.GivenInput) (a *openCall, leave func()) {
	a = &openCall{given: slices.Clone(given)}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, a)
	return a, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.calls = lo.Without(d.calls, a)
	}
}

// outcome returns the call's request for input.
func (d *openCalls) outcome(a *openCall) (request *agent.InputRequest, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return a.request, a.err
}

// elicit answers a server's request with the recorded answer, or cancels it.
func (d *openCalls) elicit(p *sdk.ElicitParams) (sdk.Result, error) {
	cancelled := &sdk.ElicitResult{Action: "cancel"}
	if p == nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "elicitation/create: the parameters are missing"}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.calls) == 0 {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "elicitation/create: no call is in progress"}
	}
	d.serial.asks.Store(true)
	if len(d.calls) > 1 { // one of them asks, and a person cannot know which one
		return cancelled, nil
	}
	a := d.calls[0]
	r, err := d.server.requestOf(p)
	if err != nil {
		a.err = lo.Ternary(a.err == nil, err, a.err)
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	if a.request != nil || a.err != nil {
		return cancelled, nil
	}
	for i, g := range a.given {
		if isSame(g.Request, r) {
			a.given = slices.Delete(a.given, i, i+1)
			return responseTo(g), nil
		}
	}
	a.request = &r
	return cancelled, nil
}
