package mcpproxy

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/grapnel-go/grapnel/guard"
	"github.com/grapnel-go/grapnel/internal/mcpcall"
	"github.com/grapnel-go/grapnel/internal/strictjson"
	"github.com/grapnel-go/grapnel/toolexec/mcp"
)

// Config configures a proxy in front of one server.
type Config struct {
	// Name is the server's name in the names of its tools: mcp__NAME__TOOL.
	Name string
	// Guard decides on calls.
	Guard *guard.Guard
	// Pins are the server's accepted tools.
	Pins *Pins
	// Log writes a line for people.
	Log func(format string, args ...any)
	// MaxMessage limits a message, in bytes. Zero means DefaultMaxMessage.
	MaxMessage int
}

// DefaultMaxMessage is the maximum length of a message, in bytes.
const DefaultMaxMessage = 16 << 20

// maxOpen limits the requests of a client that have no answer yet.
const maxOpen = 1000

// sink takes a message for the client. An error says that the client has gone.
type sink func(message []byte) error

// sendFunc sends a message to the server. To takes what the server sends in its answer, as over HTTP.
type sendFunc func(ctx context.Context, message []byte, to sink) error

// session is a client's connection with the server. Messages pass as they are, except tool calls and lists of tools.
type session struct {
	Config

	guarded *guard.Session
	send    sendFunc
	ended   chan struct{} // closed by end
	calls   sync.WaitGroup

	mu     sync.Mutex
	why    error                   // that the session has ended
	open   map[string]*open        // the client's requests
	asked  map[string]chan message // the proxy's own requests to the client
	deaf   bool                    // the client sends nothing more
	client clientInfo
	agreed string // the protocol version that the server has chosen
}

// clientInfo is a client's version and ability to ask.
type clientInfo struct {
	version string
	elicits bool
}

// open is a client's request without an answer.
type open struct {
	method string
	first  bool // the list's first page
	to     sink
	cancel context.CancelFunc // of a tool call
	sent   bool               // the server has got the tool call
	reply  chan message       // the server's answer to it
	listed chan struct{}      // closed when a list was answered
}

// sharedID is the ID of sessions that share their user's questions: the only one, or single requests.
const sharedID = "mcp"

// newSession opens a session. An empty ID means a random one.
func newSession(ctx context.Context, c Config, id string, send sendFunc) *session {
	return &session{
		Config: c, send: send, guarded: c.Guard.Session(context.WithoutCancel(ctx), id), ended: make(chan struct{}),
		open: map[string]*open{}, asked: map[string]chan message{},
	}
}

// end answers all open requests with an error.
func (s *session) end(ctx context.Context, why error) {
	s.mu.Lock()
	if s.why != nil {
		s.mu.Unlock()
		return
	}
	s.why = why
	close(s.ended)
	left := s.open
	s.open = map[string]*open{}
	s.mu.Unlock()
	for key, o := range left {
		if o.method != methodCall {
			_ = o.to(fault(idOf(key), codeInternal, why.Error()))
		}
	}
	s.calls.Wait()
	_ = s.guarded.Close(context.WithoutCancel(ctx))
}

// idOf returns the ID with a key.
func idOf(key string) json.RawMessage {
	if text, ok := strings.CutPrefix(key, "text "); ok {
		return mcpcall.JSONOf(text)
	}
	return json.RawMessage(key)
}

// fromClient handles a message from the client. To takes the answer.
func (s *session) fromClient(ctx context.Context, raw []byte, to sink) error {
	m, err := parse(raw)
	if err != nil {
		return to(fault(m.id, codeInvalid, "the message is refused: "+err.Error()))
	}
	switch {
	case m.method == "":
		return s.takeAnswer(ctx, m, to)
	case strings.EqualFold(strings.TrimSpace(m.method), methodCall) && (m.method != methodCall || m.key == ""):
		s.Log("refused: a tool call in an unusual form, with the method %q and the ID %s", m.method, m.id)
		if m.key == "" {
			return nil
		}
		return to(fault(m.id, codeInvalid, fmt.Sprintf("the method %q is refused: it must be %s", m.method, methodCall)))
	case m.method == methodTask || m.method == methodTaskResult:
		return to(fault(m.id, codeMethod, "the method "+m.method+" is refused: the results of tasks would pass no filter"))
	case m.method == methodCancel:
		return s.cancelRequest(ctx, m, to)
	case m.key == "":
		return s.pass(ctx, m, to)
	}
	o := &open{method: m.method, to: to}
	switch m.method {
	case methodInitialize:
		s.noteClient(m.params)
	case methodList:
		params, _ := mcpcall.ReadObject(m.params)
		cursor, ok := params.Text("cursor")
		o.first, o.listed = !ok || cursor == "", make(chan struct{})
	case methodCall:
		o.reply = make(chan message, 1)
		ctx, o.cancel = context.WithCancel(ctx)
	}
	s.mu.Lock()
	why := s.why
	switch {
	case why != nil:
	case s.open[m.key] != nil:
		why = errors.New("another request with this ID has no answer yet")
	case len(s.open) >= maxOpen:
		why = fmt.Errorf("%d requests have no answer yet", maxOpen)
	default:
		s.open[m.key] = o
		if o.reply != nil {
			s.calls.Add(1)
		}
	}
	s.mu.Unlock()
	if why != nil {
		return to(fault(m.id, codeInvalid, "the request is refused: "+why.Error()))
	}
	if o.reply != nil {
		go func() {
			defer s.calls.Done()
			defer o.cancel()
			s.call(ctx, m, o)
		}()
		return nil
	}
	return s.pass(ctx, m, to)
}

// pass sends a message as it is.
func (s *session) pass(ctx context.Context, m message, to sink) error {
	err := s.send(ctx, m.raw, to)
	if err == nil || m.method == "" || m.key == "" {
		return nil
	}
	o := s.take(m.key)
	if o == nil {
		return nil
	}
	o.release()
	return to(fault(m.id, codeInternal, err.Error()))
}

// take removes an open request.
func (s *session) take(key string) *open {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.open[key]
	delete(s.open, key)
	return o
}

// release lets calls go on that wait for the list. Only who has removed the request calls it.
func (o *open) release() {
	if o.listed != nil {
		close(o.listed)
	}
}

// waitForLists waits until the lists that the client has asked for are known.
func (s *session) waitForLists(ctx context.Context) {
	s.mu.Lock()
	var lists []chan struct{}
	for _, o := range s.open {
		if o.listed != nil {
			lists = append(lists, o.listed)
		}
	}
	s.mu.Unlock()
	for _, list := range lists {
		select {
		case <-list:
		case <-ctx.Done():
			return
		case <-s.ended:
			return
		}
	}
}

// takeAnswer handles the client's answer to a request from the server, or from the proxy.
func (s *session) takeAnswer(ctx context.Context, m message, to sink) error {
	s.mu.Lock()
	c := s.asked[m.key]
	delete(s.asked, m.key)
	s.mu.Unlock()
	if c != nil {
		c <- m
		return nil
	}
	return s.pass(ctx, m, to)
}

// cancelRequest ends a request. The server hears of it if it knows the request.
func (s *session) cancelRequest(ctx context.Context, m message, to sink) error {
	params, _ := mcpcall.ReadObject(m.params)
	key := keyOf(params.Get("requestId"))
	s.mu.Lock()
	o := s.open[key]
	sent := o == nil || o.reply == nil || o.sent
	delete(s.open, key)
	s.mu.Unlock()
	if o != nil {
		o.release()
	}
	if o != nil && o.cancel != nil {
		o.cancel()
	}
	if !sent {
		return nil
	}
	return s.pass(ctx, m, to)
}

// noteClient remembers what the client's greeting says.
func (s *session) noteClient(params json.RawMessage) {
	p, _ := mcpcall.ReadObject(params)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client.version, _ = p.Text("protocolVersion")
	s.client.elicits = canElicit(p.Get("capabilities"))
}

// noteVersion remembers the protocol version that the server has chosen.
func (s *session) noteVersion(result json.RawMessage) {
	r, _ := mcpcall.ReadObject(result)
	if version, ok := r.Text("protocolVersion"); ok {
		s.mu.Lock()
		s.client.version, s.agreed = version, version
		s.mu.Unlock()
	}
}

func canElicit(capabilities json.RawMessage) bool {
	c, _ := mcpcall.ReadObject(capabilities)
	modes, err := mcpcall.ReadObject(c.Get("elicitation"))
	return err == nil && (len(modes) == 0 || modes.Get("form") != nil)
}

// Members of a request's _meta since protocol 2026-07-28, which has no greeting.
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	versionOfInput   = "2026-07-28"
)

// askable returns how the client that made the call can ask its user.
func (s *session) askable(params mcpcall.Object, to sink) mcpcall.Client {
	meta, _ := mcpcall.ReadObject(params.Get("_meta"))
	s.mu.Lock()
	about := s.client
	s.mu.Unlock()
	if version, ok := meta.Text(metaVersion); ok {
		about = clientInfo{version, canElicit(meta.Get(metaCapabilities))}
	}
	switch {
	case !about.elicits:
		return mcpcall.Client{}
	case about.version >= versionOfInput:
		return mcpcall.Client{TakesInputRequests: true}
	}
	return mcpcall.Client{Elicit: func(ctx context.Context, form json.RawMessage) (json.RawMessage, error) {
		return s.elicit(ctx, form, to)
	}}
}

var errDeaf = errors.New("it has closed its output")

// elicit asks the client's user.
func (s *session) elicit(ctx context.Context, form json.RawMessage, to sink) (json.RawMessage, error) {
	id, c := "grapnel-"+rand.Text(), make(chan message, 1)
	key := keyOf(mcpcall.JSONOf(id))
	s.mu.Lock()
	deaf := s.deaf
	s.asked[key] = c
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.asked, key)
		s.mu.Unlock()
	}()
	if deaf {
		return nil, errDeaf
	}
	if err := to(request(id, methodElicit, form)); err != nil {
		return nil, err
	}
	select {
	case m, ok := <-c:
		if !ok {
			return nil, errDeaf
		}
		if m.fault != nil {
			return nil, fmt.Errorf("it answered %s", m.fault)
		}
		return m.result, nil
	case <-ctx.Done():
		_ = to(request("", methodCancel, mcpcall.JSONOf(map[string]string{"requestId": id})))
		return nil, context.Cause(ctx)
	case <-s.ended:
		return nil, s.why
	}
}

// faultError is an error that the server has answered.
type faultError struct{ m message }

func (e *faultError) Error() string { return "the server answered the error " + string(e.m.fault) }

// call judges a tool call, and answers it.
func (s *session) call(ctx context.Context, m message, o *open) {
	out := s.answerCall(ctx, m, o)
	s.mu.Lock()
	if s.open[m.key] == o {
		delete(s.open, m.key)
	}
	s.mu.Unlock()
	if ctx.Err() != nil { // cancelled by the client, which expects no answer
		return
	}
	_ = o.to(out)
}

func (s *session) answerCall(ctx context.Context, m message, o *open) []byte {
	if err := strictjson.CheckObject(string(m.raw)); err != nil {
		return fault(m.id, codeParams, "the tool call is refused: "+err.Error())
	}
	params, err := mcpcall.ReadObject(m.params)
	if err != nil {
		return fault(m.id, codeParams, "the tool call is refused: its params: "+err.Error())
	}
	name, ok := params.Text("name")
	if variant := params.Variant("name", "arguments", "_meta", "task", "requestState", "inputResponses"); variant != "" || !ok || name == "" {
		return fault(m.id, codeParams, fmt.Sprintf("the tool call is refused: it has no name, or the member %q", variant))
	}
	if params.Get("task") != nil {
		return fault(m.id, codeParams, "the tool call is refused: the results of tasks would pass no filter: make it without a task")
	}
	s.waitForLists(ctx)
	if why := s.Pins.check(name); why != "" {
		s.Log("the call of tool %q is refused: %s", name, why)
		return answer(m.id, mcpcall.Refusal(fmt.Sprintf("tool %q: not executed: %s", name, why)))
	}
	tool, err := mcp.ToolName(s.Name, name)
	if err != nil {
		return fault(m.id, codeInternal, err.Error())
	}
	c := mcpcall.Call{Tool: tool, Arguments: argumentsOf(params)}
	c.State, _ = params.Text("requestState")
	inputs, _ := mcpcall.ReadObject(params.Get("inputResponses"))
	c.Answer = inputs.Get(mcpcall.ApprovalInput)
	var reply message
	result, err := mcpcall.Answer(ctx, s.guarded, c, s.askable(params, o.to), func(ctx context.Context, r mcpcall.Request) (json.RawMessage, error) {
		var err error
		reply, err = s.forward(ctx, o, rewriteCall(m, params, c, r))
		switch {
		case err != nil:
			return nil, err
		case reply.fault != nil:
			return nil, &faultError{reply}
		}
		return reply.result, nil
	})
	failed, isFault := errors.AsType[*faultError](err)
	switch {
	case isFault:
		return failed.m.raw
	case err != nil:
		return fault(m.id, codeInternal, err.Error())
	case reply.raw != nil && bytes.Equal(result, reply.result):
		return reply.raw
	}
	return answer(m.id, result)
}

// argumentsOf returns a call's arguments, which may be absent.
func argumentsOf(params mcpcall.Object) string {
	if raw := params.Get("arguments"); string(raw) != "null" {
		return string(raw)
	}
	return ""
}

// rewriteCall returns the message for the server, which is the client's if nothing has changed.
func rewriteCall(m message, params mcpcall.Object, c mcpcall.Call, r mcpcall.Request) []byte {
	changed := params
	if before := argumentsOf(params); r.Arguments != before && (before != "" || r.Arguments != "{}") {
		changed = changed.With("arguments", json.RawMessage(r.Arguments))
	}
	switch r.State {
	case c.State:
	case "":
		changed = changed.With("requestState", nil)
	default:
		changed = changed.With("requestState", mcpcall.JSONOf(r.State))
	}
	if r.DropsInput {
		changed = changed.With("inputResponses", nil)
	}
	if bytes.Equal(changed.JSON(), params.JSON()) {
		return m.raw
	}
	whole, _ := mcpcall.ReadObject(m.raw)
	return whole.With("params", changed.JSON()).JSON()
}

// forward sends a judged call to the server, and waits for the answer.
func (s *session) forward(ctx context.Context, o *open, raw []byte) (message, error) {
	s.mu.Lock()
	if err := ctx.Err(); err != nil {
		s.mu.Unlock()
		return message{}, err
	}
	o.sent = true
	s.mu.Unlock()
	if err := s.send(ctx, raw, o.to); err != nil {
		return message{}, err
	}
	select {
	case m := <-o.reply:
		return m, nil
	case <-ctx.Done():
		return message{}, context.Cause(ctx)
	case <-s.ended:
		select { // its last words
		case m := <-o.reply:
			return m, nil
		default:
			return message{}, s.why
		}
	}
}

// fromServer handles a message from the server. To takes what is not an answer to a request.
func (s *session) fromServer(raw []byte, to sink) error {
	m, err := parse(raw)
	switch {
	case err != nil:
		s.Log("dropped from the server: %s: %.200q", err, raw)
		return nil
	case m.method != "", m.key == "" && m.fault != nil:
		return to(raw)
	}
	s.mu.Lock()
	o := s.open[m.key]
	switch {
	case o == nil || o.reply != nil && !o.sent:
		o = nil
	case o.reply == nil:
		delete(s.open, m.key)
	default:
		select {
		case o.reply <- m:
			s.mu.Unlock()
			return nil
		default: // a second answer
			o = nil
		}
	}
	s.mu.Unlock()
	switch {
	case o == nil:
		s.Log("dropped from the server: an answer to no open request, with the ID %.100s", m.id)
		return nil
	case o.method == methodInitialize:
		s.noteVersion(m.result)
	case o.method == methodList && m.result != nil:
		raw = s.filterList(m, o.first)
	}
	o.release()
	return o.to(raw)
}

// filterList removes the tools that the client must not see.
func (s *session) filterList(m message, first bool) []byte {
	result, err := mcpcall.ReadObject(m.result)
	if variant := result.Variant("tools", "nextCursor"); err == nil && variant != "" {
		err = fmt.Errorf("it has the member %q", variant)
	}
	var list []json.RawMessage
	if err == nil {
		err = json.Unmarshal(result.Get("tools"), &list)
	}
	if err != nil {
		return fault(m.id, codeInternal, "the server's list of tools is refused: "+err.Error())
	}
	tools := make([]listedTool, len(list))
	for i, raw := range list {
		tools[i] = readTool(raw)
	}
	next, more := result.Text("nextCursor")
	reasons, err := s.Pins.judge(tools, first, !more || next == "")
	if err != nil {
		s.Log("%v", err)
		return fault(m.id, codeInternal, "the server's list of tools is refused: "+err.Error())
	}
	kept := [][]byte{}
	for i, why := range reasons {
		if why == "" {
			kept = append(kept, list[i])
			continue
		}
		s.Log("the tool %q is hidden: %s", tools[i].name, why)
	}
	if len(kept) == len(list) {
		return m.raw
	}
	shown := append(append([]byte{'['}, bytes.Join(kept, []byte{','})...), ']')
	whole, _ := mcpcall.ReadObject(m.raw)
	return whole.With("result", result.With("tools", shown).JSON()).JSON()
}

// isOpen reports whether a request waits for the server's answer.
func (s *session) isOpen(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.open[key]
	return o != nil && len(o.reply) == 0
}
