package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/propagation"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/runctx"
	"github.com/grapnel-go/grapnel/toolexec"
)

// IdempotencyKey is the member of a request's _meta with the call's idempotency key: see toolexec.Call.IdempotencyKey.
const IdempotencyKey = "grapnel/idempotency-key"

// call is the Body for calling a server's tool.
type call struct {
	tool      *tool
	arguments string
}

// Run sends the call to the server. It returns as soon as ctx is done, and cancels the request at the server.
func (b *call) Run(ctx context.Context, c toolexec.Call) (toolexec.Output, error) {
	client := b.tool.client
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(client.life, func() { cancel(errClosed) })()
	m, err := b.memoOf(c)
	if err != nil {
		return toolexec.Output{}, b.newError(err, "", "")
	}
	if err := m.next(c); err != nil {
		return toolexec.Output{}, err
	}
	defer client.serial.wait(ctx.Done())()
	for again := false; ; again = true {
		s, err := client.session(ctx)
		if err != nil {
			return toolexec.Output{}, b.newError(err, "", "")
		}
		if err := s.check(ctx, b.tool); err != nil {
			return toolexec.Output{}, b.uncallable(s, err)
		}
		x := &exchange{}
		result, err := b.ask(context.WithValue(ctx, exchangeKey{}, x), s, c, m)
		if asks, ok := errors.AsType[*agent.InputError](err); ok {
			client.resetFailures()
			return toolexec.Output{}, asks
		}
		if wrong, ok := errors.AsType[*inputFaultError](err); ok {
			client.resetFailures()
			return toolexec.Output{}, b.newError(wrong.error, "", "")
		}
		if err == nil {
			client.resetFailures()
			return b.tool.outputOf(result), nil
		}
		if unsent := x.gone.Load() || errors.Is(err, sdk.ErrConnectionClosed) || errors.Is(err, errNotSent); unsent {
			s.over.Store(true)
			if !again && ctx.Err() == nil {
				continue // the server did not run this call, so call again on a new connection
			}
		}
		return toolexec.Output{}, b.explain(ctx, s, x, err)
	}
}

// uncallable returns the error for an unsent call.
func (b *call) uncallable(s *session, err error) *Error {
	if errors.Is(err, errGone) || errors.Is(err, errChanged) {
		e := b.newError(err, "", "")
		e.Kind = agent.KindInvalid
		return e
	}
	return b.newError(err, "", s.lastOutput())
}

// inputFaultError is returned when a server asks for input in an unsupported way.
type inputFaultError struct{ error }

// ask sends the call and waits for the answer. It returns an InputError when the server asks for input that it has not
// got.
func (b *call) ask(ctx context.Context, s *session, c toolexec.Call, m memo) (*sdk.CallToolResult, error) {
	a, leave := s.desk.enter(c.Given)
	defer leave()
	result, err := b.send(ctx, s, c, m)
	if _, refused := errors.AsType[*jsonrpc.Error](err); err != nil && !refused {
		return nil, err
	}
	request, wrong := s.desk.outcome(a)
	if request == nil && wrong == nil {
		request, wrong = s.server.requiredVisit(err, c.Given)
	}
	switch {
	case wrong != nil:
		return nil, &inputFaultError{wrong}
	case request != nil:
		return nil, &agent.InputError{Request: *request, State: memo{Server: s.server.identity()}.encode()}
	case err == nil && (result.NeedsInput() || result.InputRequests != nil):
		err = b.needInput(result, c)
		if _, asks := errors.AsType[*agent.InputError](err); !asks {
			err = &inputFaultError{err}
		}
		return nil, err
	}
	return result, err
}

// send sends the call and waits for the answer. Meanwhile it reports progress to the observer.
func (b *call) send(ctx context.Context, s *session, c toolexec.Call, m memo) (*sdk.CallToolResult, error) {
	token, reports, stop := s.news.follow()
	defer stop()
	params := &sdk.CallToolParams{
		Name: b.tool.name, Arguments: json.RawMessage(b.arguments), Meta: sdk.Meta{IdempotencyKey: c.IdempotencyKey()},
		InputResponses: m.responses(c), RequestState: m.State,
	}
	addTrace(ctx, params.Meta)
	params.SetProgressToken(token)
	type outcome struct {
		result *sdk.CallToolResult
		err    error
	}
	answered := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() { answered <- o }()
		defer recoverPanic(ctx, &o.err)
		o.result, o.err = s.sdk.CallTool(ctx, params)
	}()
	told := 0
	tell := func(p sdk.ProgressNotificationParams) {
		if told++; told > maxReports {
			return
		}
		r := ProgressReported{
			Run: c.State.Run(), Step: c.State.RunStepCount(), Call: c.ToolCall, Server: s.server.Name, Tool: b.tool.name,
			Progress: p.Progress, Total: p.Total,
		}
		if !runctx.IsUnfiltered(c.State, c.Name) {
			r.Message = shortenText(p.Message)
		}
		c.State.Emit(ctx, r)
	}
	for {
		select {
		case p := <-reports:
			tell(p)
		case o := <-answered:
			for len(reports) > 0 && o.err == nil {
				tell(<-reports)
			}
			return o.result, o.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// addTrace adds the call's span, if there is one, to _meta: traceparent and tracestate, according to the OpenTelemetry
// conventions for MCP.
func addTrace(ctx context.Context, meta sdk.Meta) {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	for field, value := range carrier {
		meta[field] = value
	}
}

// explain returns the error for a call without an answer.
func (b *call) explain(ctx context.Context, s *session, x *exchange, err error) *Error {
	if ctx.Err() != nil {
		return b.newError(context.Cause(ctx), "", "")
	}
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok && !slices.Contains(ownCodes, refused.Code) {
		b.tool.client.resetFailures()
		e := b.newError(fmt.Errorf("the server refused the call: %s (code %d)", refused.Message, refused.Code), x.advice(), "")
		if refused.Code == jsonrpc.CodeInvalidParams {
			e.Kind = agent.KindInvalid
		}
		return e
	}
	advice, status := x.advice(), x.status.Load()
	dial, isDial := errors.AsType[*net.OpError](err)
	unreached := isDial && dial.Op == "dial"
	if unreached {
		advice = "is the server running?"
	}
	e := b.newError(err, advice, s.lastOutput())
	e.Lost = !unreached && (status < http.StatusMultipleChoices || status == http.StatusBadGateway || status == http.StatusGatewayTimeout)
	if e.Lost {
		e.text += "; no answer came that can be read, and it is unknown whether the call took effect: find out before you make it again"
	}
	return e
}

func (b *call) newError(err error, advice, said string) *Error {
	return b.tool.client.server.errorOf("calling", b.tool.name, err, advice, said)
}

// advice returns advice for an unreadable answer.
func (x *exchange) advice() string {
	switch status := int(x.status.Load()); {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return fmt.Sprintf("status %d: the server refused access: check Headers", status)
	case status == http.StatusTooManyRequests, status >= 500:
		return fmt.Sprintf("status %d: try again later", status)
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		return fmt.Sprintf("status %d: check the URL", status)
	case status >= 300:
		return fmt.Sprintf("status %d", status)
	}
	return ""
}
