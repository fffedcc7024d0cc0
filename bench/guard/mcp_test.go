package guard_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	mcpguard "github.com/grapnel-go/grapnel/adapters/mcp"
)

// mcpRun returns a connection with calls.
func mcpRun(tb testing.TB, v variant) func(ctx context.Context) (answers int, err error) {
	tb.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: tool, InputSchema: map[string]any{"type": "object"}},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: result}}}, nil
		})
	if v.noop {
		server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				return next(ctx, method, req)
			}
		})
	}
	if v.guard != nil {
		mcpguard.Serve(v.guard, server)
	}
	return func(ctx context.Context) (answers int, err error) {
		there, here := mcp.NewInMemoryTransports()
		connection, err := server.Connect(ctx, there, nil)
		if err != nil {
			return 0, err
		}
		client, err := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil).Connect(ctx, here, nil)
		if err != nil {
			return 0, err
		}
		for range calls {
			r, err := client.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
			if err != nil {
				return answers, err
			}
			if text, ok := r.Content[0].(*mcp.TextContent); ok && text.Text == result {
				answers++
			}
		}
		if err := client.Close(); err != nil {
			return answers, err
		}
		return answers, connection.Wait()
	}
}

func TestMCP(t *testing.T) {
	for _, v := range variants(t) {
		answers, err := mcpRun(t, v)(t.Context())
		require.NoError(t, err, v.name)
		assert.Equal(t, calls, answers, v.name)
	}
}

func BenchmarkMCP(b *testing.B) {
	for _, v := range variants(b) {
		b.Run(v.name, func(b *testing.B) { measure(b, mcpRun(b, v)) })
	}
}
