package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/grapnel-go/grapnel/internal/version"
)

// session is one connection to a server, from initialization to end.
type session struct {
	server  Server
	sdk     *sdk.ClientSession
	process *process  // nil for HTTP
	http    *endpoint // nil for a process
	news    *news
	gate    *gate
	desk    *openCalls
	dead    chan struct{} // closed when the connection has ended
	over    atomic.Bool   // calls must not use the session any more

	refreshing chan struct{} // holds a token except while the list is being read
	listed     map[string]definition
}

// protocols lists the protocol versions to try: first a version that common servers support, then the newest, which
// some servers require.
var protocols = []string{"2025-11-25", ""}

// dialServer starts or reaches a server, initializes it and reads its tool list. If it fails, no process keeps running.
func dialServer(ctx context.Context, s Server, turns *serial) (*session, []*sdk.Tool, error) {
	if s.ConnectTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.ConnectTimeout,
			fmt.Errorf("no answer within the %v of ConnectTimeout: %w", s.ConnectTimeout, context.DeadlineExceeded))
		defer cancel()
	}
	var c *session
	var err error
	for _, protocol := range protocols {
		var code int64
		if c, code, err = greetServer(ctx, s, turns, protocol); code != jsonrpc.CodeMethodNotFound && code != sdk.CodeUnsupportedProtocolVersion {
			break // the error is not about the protocol version
		}
	}
	if err != nil {
		return nil, nil, err
	}
	tools, err := c.list(ctx)
	if err != nil {
		said := c.lastOutput()
		_ = c.closeSession()
		return nil, nil, s.errorOf("listing the tools of", "", deadlineError(ctx, err), "", said)
	}
	return c, tools, nil
}

// deadlineError returns an error that names the timeout, if a passed deadline caused err.
func deadlineError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// greetServer connects to a server. code is the server's error code, if it returned one.
func greetServer(ctx context.Context, s Server, turns *serial, protocol string) (_ *session, code int64, _ error) {
	c := &session{server: s, news: &news{}, desk: &openCalls{server: s, serial: turns}, dead: make(chan struct{}), refreshing: make(chan struct{}, 1)}
	var transport sdk.Transport
	agreed := func(string) {}
	if s.URL != "" {
		c.http = newEndpoint(s)
		transport, agreed = c.http.transport(s), c.http.setVersion
	} else {
		p, err := startCommand(s)
		if err != nil {
			return nil, 0, s.errorOf("connecting to", "", err, "check Command, Dir and PATH", "")
		}
		c.process = p
		transport = newLines(p, s)
	}
	c.gate = newGate(transport, s, c.news, agreed)

	x := &exchange{}
	type outcome struct {
		session *sdk.ClientSession
		err     error
	}
	greeted := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() { greeted <- o }()
		defer recoverPanic(ctx, &o.err)
		o.session, o.err = newSDKClient(c.news, c.desk).Connect(
			context.WithValue(ctx, exchangeKey{}, x), c.gate, &sdk.ClientSessionOptions{ProtocolVersion: protocol})
	}()
	var o outcome
	select {
	case o = <-greeted:
	case <-ctx.Done():
		c.stop()
		select {
		case <-greeted:
		case <-time.After(patience):
		}
		o.err = ctx.Err()
	}
	if o.err != nil {
		_ = c.closeSession()
		if refused, ok := errors.AsType[*jsonrpc.Error](o.err); ok {
			code = refused.Code
		}
		if x.status.Load() == http.StatusBadRequest && strings.Contains(o.err.Error(), "notifications/initialized") {
			code = sdk.CodeUnsupportedProtocolVersion // the agreed version has no such message
		}
		return nil, code, s.errorOf("connecting to", "", deadlineError(ctx, o.err), x.advice(), c.lastOutput())
	}
	c.sdk = o.session
	go func() {
		_ = c.sdk.Wait()
		close(c.dead)
	}()
	c.refreshing <- struct{}{}
	return c, 0, nil
}

// newSDKClient returns a client that can only call tools. It lets servers ask people.
func newSDKClient(n *news, d *openCalls) *sdk.Client {
	client := sdk.NewClient(&sdk.Implementation{Name: "grapnel", Version: version.Read()}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{
			Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{},
		}},
		MultiRoundTrip:         &sdk.MultiRoundTripOptions{Disabled: true}, // the run waits instead
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { n.toldTools() },
	})
	client.AddReceivingMiddleware(d.onlyKnown)
	return client
}

// onlyKnown restricts a server's requests and notifications to the ones in use, because some SDK handlers panic on
// messages that a server can send.
func (d *openCalls) onlyKnown(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (_ sdk.Result, err error) {
		defer recoverPanic(ctx, &err)
		switch method {
		case "ping", "notifications/tools/list_changed":
			return next(ctx, method, r)
		case methodElicit:
			p, _ := r.GetParams().(*sdk.ElicitParams)
			return d.elicit(p)
		}
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: method + ": this client only calls tools"}
	}
}

// recoverPanic sets err to the error for a panic, and logs the panic with its stack. Call it with defer. The model can
// read the error, so it does not contain the panic's value.
func recoverPanic(ctx context.Context, err *error) {
	if v := recover(); v != nil {
		*err = errors.New("reading its output: the client panicked")
		slog.ErrorContext(ctx, "MCP client panicked", "panic", fmt.Sprintf("a value of type %T", v), "stack", string(debug.Stack()))
	}
}

// alive reports whether calls can be made.
func (c *session) alive() bool {
	return !c.over.Load() && !isClosed(c.dead) && (c.process == nil || !isClosed(c.process.broken)) && (c.http == nil || !c.http.gone.Load())
}

// lastOutput returns the server's last output outside of the protocol.
func (c *session) lastOutput() string {
	if c.process == nil {
		return ""
	}
	return c.process.said.String()
}

// stop begins to end the connection and does not wait.
func (c *session) stop() {
	if c.process != nil {
		c.process.stop()
	} else {
		c.http.stop()
	}
}

// patience is how long to wait for a killed process to end.
const patience = 5 * time.Second

// closeSession closes the connection, by force if it takes too long. Calls must have ended.
func (c *session) closeSession() error {
	if c.sdk != nil {
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			_ = c.sdk.Close()
		}()
		if !closesWithin(closed, c.server.CloseGrace) {
			c.stop()
			closesWithin(closed, patience)
		}
	}
	c.stop()
	if c.process != nil && !closesWithin(c.process.ended, 2*c.server.CloseGrace+patience) {
		return fmt.Errorf("closing mcp server %q: process %d does not end", c.server.Name, c.process.cmd.Process.Pid)
	}
	return nil
}
