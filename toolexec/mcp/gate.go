package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// gate is between a connection and the session. It passes on the messages that the session waits for, forwards progress
// to its call in order, and drops everything else, up to a limit. It reads the next message only after it has handled
// the last one, so a server cannot fill the memory with unsolicited messages.
type gate struct {
	sdk.Transport
	sdk.Connection

	news   *news
	most   int          // maximum noise in bytes
	agreed func(string) // called with the protocol version

	mu      sync.Mutex
	awaited map[jsonrpc.ID]string // our requests' methods
	asked   int                   // number of the server's unanswered requests
	noise   int                   // unsolicited bytes since the last answer
}

// maxNoise limits a server's unsolicited bytes, as a multiple of the maximum message length. maxAsked limits the
// server's requests whose answers it has not read.
const (
	maxNoise = 4
	maxAsked = 64
)

// ownCodes lists the codes that the SDK uses for its own errors: closing on either side, and failed sends. A server may
// use them for other errors, which must not be mistaken for a closed connection.
var ownCodes = []int64{-32003, -32004, -32005}

func newGate(t sdk.Transport, s Server, n *news, agreed func(version string)) *gate {
	return &gate{Transport: t, news: n, most: maxNoise * s.MaxMessageBytes, agreed: agreed, awaited: map[jsonrpc.ID]string{}}
}

// Connect opens the connection behind the gate.
func (g *gate) Connect(ctx context.Context) (sdk.Connection, error) {
	var err error
	g.Connection, err = g.Transport.Connect(ctx)
	return g, err
}

// Write passes every message on, and records requests and answers.
func (g *gate) Write(ctx context.Context, m jsonrpc.Message) error {
	g.mu.Lock()
	switch m := m.(type) {
	case *jsonrpc.Request:
		if m.IsCall() {
			g.awaited[m.ID] = m.Method
		}
	case *jsonrpc.Response:
		g.asked--
	}
	g.mu.Unlock()
	return g.Connection.Write(ctx, m)
}

// Read returns the next message that the session waits for.
func (g *gate) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		m, err := g.Connection.Read(ctx)
		if err != nil {
			return nil, err
		}
		if wanted, err := g.judge(m); wanted || err != nil {
			return m, err
		}
	}
}

// judge reports whether to pass the message to the session. It returns an error when other messages reach their limit.
func (g *gate) judge(m jsonrpc.Message) (wanted bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch m := m.(type) {
	case *jsonrpc.Response:
		if wanted = g.answers(m); !wanted {
			g.noise += len(m.Result)
		}
	case *jsonrpc.Request:
		switch g.noise += len(m.Params); {
		case m.IsCall():
			g.asked++
			wanted = true
			if m.Method == methodElicit && !g.isCalling() { // decided here, in message order
				m.Method = methodNoCall
			}
		case m.Method == "notifications/progress":
			var params sdk.ProgressNotificationParams
			if json.Unmarshal(m.Params, &params) == nil {
				g.news.forwardProgress(&params)
			}
		case m.Method == "notifications/tools/list_changed":
			wanted = g.news.toolsChanged()
		}
	}
	g.noise += 32 // for the message itself
	switch {
	case g.asked > maxAsked:
		return false, fmt.Errorf("it sent %d requests without reading the answers", g.asked)
	case g.noise > g.most:
		return false, fmt.Errorf("it sent %d bytes that do not answer a request", g.noise)
	}
	return wanted, nil
}

// methodElicit is the method with which a server asks a person. methodNoCall replaces it outside of calls, so that it
// is refused.
const (
	methodElicit = "elicitation/create"
	methodNoCall = "elicitation/create outside of a call"
)

// isCalling reports whether a tool call has no answer yet.
func (g *gate) isCalling() bool {
	for _, method := range g.awaited {
		if method == "tools/call" {
			return true
		}
	}
	return false
}

// answers reports whether the message answers a request from the session.
func (g *gate) answers(m *jsonrpc.Response) bool {
	method, ok := g.awaited[m.ID]
	if !ok {
		return false
	}
	delete(g.awaited, m.ID)
	g.noise = 0
	if refused, ok := errors.AsType[*jsonrpc.Error](m.Error); ok && slices.Contains(ownCodes, refused.Code) {
		m.Error = &jsonrpc.Error{Code: -32000, Message: fmt.Sprintf("%s (it says code %d)", refused.Message, refused.Code)}
	}
	var result struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	if method == "initialize" && json.Unmarshal(m.Result, &result) == nil {
		g.agreed(result.ProtocolVersion)
	}
	return true
}
