package mcpguard

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/guard"
	"github.com/grapnel-go/grapnel/internal/mcpcall"
)

// Serve guards all tool calls that server receives. Call it before server gets other middleware, which is then outside
// of the guard, and once.
func Serve(g *guard.Guard, server *mcp.Server) {
	s := &serving{guard: g}
	server.AddReceivingMiddleware(s.handle)
}

// serving holds the sessions of a server's connections.
type serving struct {
	guard    *guard.Guard
	sessions sync.Map // *mcp.ServerSession to *connection
}

// connection opens its session at the first call.
type connection struct {
	once    sync.Once
	session *guard.Session
}

const methodCallTool = "tools/call"

func (s *serving) handle(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method != methodCallTool {
			return next(ctx, method, req)
		}
		call, ok := req.(*mcp.CallToolRequest)
		if !ok || call.Params == nil || call.Session == nil {
			return nil, fmt.Errorf("guard: a tool call of an unknown form, %T, is refused", req)
		}
		return s.answer(ctx, call, func(ctx context.Context, params *mcp.CallToolParamsRaw) (mcp.Result, error) {
			judged := *call
			judged.Params = params
			return next(ctx, method, &judged)
		})
	}
}

// sessionFor returns the session of the call's connection.
func (s *serving) sessionFor(ctx context.Context, call *mcp.CallToolRequest) *guard.Session {
	known, _ := s.sessions.LoadOrStore(call.Session, new(connection))
	c, _ := known.(*connection)
	c.once.Do(func() {
		ctx := context.WithoutCancel(ctx)
		id := call.Session.ID()
		alone := id == "" && call.Extra != nil && call.Extra.Header != nil // stateless HTTP
		if id == "" {
			id = "mcp"
			if call.Extra != nil && call.Extra.TokenInfo != nil {
				id += "/" + call.Extra.TokenInfo.UserID
			}
		}
		c.session = s.guard.Session(ctx, id)
		if alone {
			c.session.MissCalls()
		}
		go func() { // ends with the connection
			_ = call.Session.Wait()
			s.sessions.Delete(call.Session)
			_ = c.session.Close(ctx)
		}()
	})
	return c.session
}

// answer returns the tool's result, or asks the client's user.
func (s *serving) answer(
	ctx context.Context, call *mcp.CallToolRequest, next func(context.Context, *mcp.CallToolParamsRaw) (mcp.Result, error),
) (mcp.Result, error) {
	params := *call.Params
	c := mcpcall.Call{Tool: params.Name, Arguments: string(params.Arguments), State: params.RequestState}
	if given, ok := params.InputResponses[mcpcall.ApprovalInput]; ok {
		c.Answer = mcpcall.JSONOf(given)
	}
	client := mcpcall.Client{TakesInputRequests: roundTrips(call.Session), Elicit: func(ctx context.Context, form json.RawMessage) (json.RawMessage, error) {
		params := new(mcp.ElicitParams)
		if err := json.Unmarshal(form, params); err != nil {
			return nil, err
		}
		answer, err := call.Session.Elicit(ctx, params)
		return mcpcall.JSONOf(answer), err
	}}
	if call.Extra != nil && call.Extra.TokenInfo != nil {
		client.Identity = call.Extra.TokenInfo.UserID
	}
	own, text := (*mcp.CallToolResult)(nil), json.RawMessage(nil)
	answered, err := mcpcall.Answer(ctx, s.sessionFor(ctx, call), c, client, func(ctx context.Context, r mcpcall.Request) (json.RawMessage, error) {
		judged := params
		judged.Arguments, judged.RequestState = json.RawMessage(r.Arguments), r.State
		if r.DropsInput {
			judged.InputResponses = nil
		}
		result, err := next(ctx, &judged)
		if err != nil {
			return nil, err
		}
		var ok bool
		if own, ok = result.(*mcp.CallToolResult); !ok || own == nil {
			return nil, fmt.Errorf("the tool returned a %T", result)
		}
		text, err = json.Marshal(own)
		return text, err
	})
	switch {
	case err != nil:
		return nil, err
	case own != nil && bytes.Equal(answered, text):
		return own, nil
	}
	return readResult(answered)
}

// roundTrips reports whether the client's protocol has input requests in results.
func roundTrips(s *mcp.ServerSession) bool {
	init := s.InitializeParams()
	return init == nil || init.ProtocolVersion >= "2026-07-28"
}

func readResult(text json.RawMessage) (*mcp.CallToolResult, error) {
	r := new(mcp.CallToolResult)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("guard: the result has no valid form any more: %w", err)
	}
	return r, nil
}

// Call makes a client's tool call in a guard's session. Call.ID is the model's ID of the call, and Call.Token and
// Call.Answers answer its AskError. Tool and Arguments come from params, which is not changed. It returns
// the errors that guard.Do returns.
func Call(
	ctx context.Context, s *guard.Session, client *mcp.ClientSession, c guard.Call, params *mcp.CallToolParams,
) (*mcp.CallToolResult, error) {
	c.Tool = params.Name
	if params.Arguments != nil {
		text, err := json.Marshal(params.Arguments)
		if err != nil {
			return nil, fmt.Errorf("guard: the arguments of tool %q: %w", params.Name, err)
		}
		c.Arguments = string(text)
	}
	shape := mcpcall.NewShape()
	r, err := guard.Do(ctx, s, c, func(ctx context.Context, arguments string) (result, error) {
		judged := *params
		judged.Arguments = json.RawMessage(arguments)
		own, err := client.CallTool(ctx, &judged)
		if err != nil {
			return result{}, err
		}
		text, err := json.Marshal(own)
		return result{own, text}, err
	}, guard.Shape[result]{
		Read:   func(r result) (agent.Content, error) { return shape.Read(r.text) },
		Write:  func(r *agent.ToolResult) result { return result{text: shape.Write(r)} },
		Failed: func(r result) bool { return r.own.IsError },
	})
	if r.own != nil || r.text == nil {
		return r.own, err
	}
	filtered, failed := readResult(r.text)
	if failed != nil {
		return nil, failed
	}
	return filtered, err
}

// result is a result with its JSON. A filtered one has only that.
type result struct {
	own  *mcp.CallToolResult
	text json.RawMessage
}
