//go:build unix

package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/sqlite"
)

const orderForm = `{"type":"object","properties":{
	"address":{"type":"string","title":"Your address","minLength":5},
	"count":{"type":"integer","title":"How many","minimum":1,"maximum":9},
	"size":{"type":"string","title":"Which size","enum":["s","m"],"enumNames":["Small","Medium"]},
	"gift":{"type":"boolean","title":"As a gift"}},"required":["address","count","size","gift"]}`

// shopServer starts an MCP server whose tool asks for an order, and answers with what it got.
func shopServer(t *testing.T) string {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, &mcp.ServerOptions{SupportedProtocolVersions: []string{"2026-07-28"}})
	server.AddTool(&mcp.Tool{Name: "order", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if r.Params.RequestState == "" {
			return &mcp.CallToolResult{RequestState: "asked", InputRequests: mcp.InputRequestMap{
				"order": &mcp.ElicitParams{Mode: "form", Message: "What may we send?", RequestedSchema: json.RawMessage(orderForm)},
			}}, nil
		}
		data, err := json.Marshal(r.Params.InputResponses)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(data)}}}, err
	})
	h := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(h.Close)
	return h.URL
}

// A person at the terminal fills in the form of an MCP server field by field. What does not fit is asked for again, with the
// reason. The audit log of a durable run has the answer.
func TestInputAtATerminal(t *testing.T) {
	t.Parallel()
	type key struct{ press, expect string } // what is pressed after the text has appeared
	for name, tc := range map[string]struct {
		keys    []key
		code    int
		got     string // what the server got
		audited string
	}{
		"filled in": {
			[]key{
				{"y\r", "n = decline"},
				{"Rome\r", "Your address: "}, {"Main Street 1\r", "at least 5"},
				{"many\r", "How many: "}, {"12\r", "must be a number"}, {"3\r", "must be 1 to 9"},
				{"maybe\r", "  As a gift"}, {"no\r", "As a gift: it"},
				{"huge\r", "  Which size"}, {"medium\r", "is not one of"},
			},
			0, `{"order":{"action":"accept","content":{"address":"Main Street 1","count":3,"gift":false,"size":"m"}}}`, "approve",
		},
		"declined":  {[]key{{"n\r", "n = decline"}}, 0, `{"order":{"action":"decline"}}`, "reject_and_continue"},
		"cancelled": {[]key{{"y\r", "n = decline"}, {"\x04", "Your address: "}}, 0, `{"order":{"action":"decline"}}`, "reject_and_continue"},
		"ended":     {[]key{{"e\r", "n = decline"}}, 5, "", "reject"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := modelOf(t, `{"calls": [{"name": "mcp__shop__order", "arguments": {}}]}
{"text": "All done."}`)
			s.log = filepath.Join(t.TempDir(), "asked.jsonl")
			p := command(t, s, "run", "--agent", "shop.yaml", "--durable=runs.db", "go")
			require.NoError(t, os.WriteFile(filepath.Join(p.cmd.Dir, "shop.yaml"), []byte("mcp:\n  shop: {url: '"+shopServer(t)+"'}\n"), 0o600))
			p.atTerminal()
			for _, k := range tc.keys {
				p.expect(k.expect)
				p.press(k.press)
			}
			assert.Equal(t, tc.code, p.code(), p.written())
			asked, err := os.ReadFile(s.log)
			require.NoError(t, err)
			quoted, err := json.Marshal(tc.got)
			require.NoError(t, err)
			assert.Contains(t, string(asked), strings.Trim(string(quoted), `"`))

			store, err := sqlite.Open(t.Context(), filepath.Join(p.cmd.Dir, "runs.db"), sqlite.Options{})
			require.NoError(t, err)
			defer store.Close()
			records, err := store.AuditRecords(t.Context(), durable.AuditFilter{Kind: durable.AuditAnswer})
			require.NoError(t, err)
			assert.Equal(t, []string{tc.audited}, lo.Map(records, func(r durable.AuditRecord, _ int) string {
				told, err := durable.AnsweredOf(r)
				require.NoError(t, err)
				assert.NotEmpty(t, r.By)
				assert.Equal(t, "mcp__shop__order", r.Subject)
				return told.Verdict.String()
			}))
		})
	}
}
