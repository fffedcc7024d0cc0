//go:build unix

package mcpproxy_test

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/mcpproxy"
	"github.com/grapnel-go/grapnel/internal/parts"
)

const rules = `
  PreToolUse:
    - {id: bob, match: {tool: mcp__till__pay}, when: 'args.to == "Bob"', decision: deny, reason: not to Bob}
    - {id: less, match: {tool: mcp__till__pay}, when: 'args.to == "Eve"', decision: rewrite, set: {amount: 1}}
    - {id: ann, match: {tool: mcp__till__pay}, when: 'args.to == "Ann"', decision: ask, reason: money leaves}
  PostToolUse:
    - {id: secrets, decision: redact, secrets: true}
`

// Each way and each protocol: what the policy does not touch is the same, and the rest is decided.
func TestPolicyInFront(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		for _, version := range []string{"2026-07-28", "2025-11-25", "2025-03-26"} {
			t.Run(string(w)+" "+version, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, t.TempDir(), rules)
				answer, asked := "approve", []string(nil)
				progress := make(chan string, 1)
				client := f.connect(t, w, version, &mcp.ClientOptions{
					ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
						asked = append(asked, r.Params.Message)
						return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": answer}}, nil
					},
					ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { progress <- r.Params.Message },
				})
				tools, err := client.ListTools(t.Context(), nil)
				require.NoError(t, err)
				assert.Len(t, tools.Tools, 4)
				call := func(tool string, arguments any) *mcp.CallToolResult {
					t.Helper()
					r, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
					require.NoError(t, err)
					return r
				}
				allowed := call("pay", json.RawMessage(`{"to":"Carl","amount":5}`))
				assert.Contains(t, textOf(t, allowed), `paid {\"to\":\"Carl\",\"amount\":5}`)
				denied := call("pay", map[string]any{"to": "Bob"})
				assert.True(t, denied.IsError)
				assert.Contains(t, textOf(t, denied), "denied by till/bob: not to Bob")
				assert.Contains(t, textOf(t, call("pay", map[string]any{"to": "Eve", "amount": 1000})), `"paid":{"amount":1,"to":"Eve"}`)
				assert.Contains(t, textOf(t, call("pay", map[string]any{"to": "Ann"})), "paid")
				answer = "reject"
				assert.Contains(t, textOf(t, call("pay", map[string]any{"to": "Ann"})), "rejected by the client's user")
				require.Len(t, asked, 2)
				assert.Contains(t, asked[0], "money leaves")
				read := textOf(t, call("read", nil))
				assert.NotContains(t, read, secret)
				assert.Contains(t, read, `"n":12`)
				_, err = client.CallTool(t.Context(), &mcp.CallToolParams{Name: "fails"})
				require.Error(t, err)
				assert.NotContains(t, err.Error(), secret)

				want := []string{`pay {"to":"Carl","amount":5}`, `pay {"amount":1,"to":"Eve"}`, `pay {"to":"Ann"}`, "read {}", "fails {}", "slow {}", "cancelled"}
				if w != stdio && version >= "2026" { // there, the SDK's server reports no progress, and hears of no cancellation
					assert.Equal(t, want[:5], f.received(t))
					return
				}
				ctx, cancel := context.WithCancel(t.Context())
				slow := &mcp.CallToolParams{Name: "slow"}
				slow.SetProgressToken("p")
				go func() {
					assert.Equal(t, "half", <-progress)
					cancel()
				}()
				_, err = client.CallTool(ctx, slow)
				require.ErrorIs(t, err, context.Canceled)
				require.EventuallyWithT(t, func(c *assert.CollectT) {
					assert.Equal(c, want, f.received(t))
				}, time.Minute, 10*time.Millisecond)
			})
		}
	}
}

// A client that cannot ask gets a denial, in each protocol.
func TestClientCannotAsk(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2026-07-28", "2025-06-18"} {
		f := newFixture(t, "", rules)
		client := f.connect(t, stdio, version, nil)
		r, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay", Arguments: map[string]any{"to": "Ann"}})
		require.NoError(t, err)
		assert.True(t, r.IsError)
		assert.Contains(t, textOf(t, r), "the client cannot ask", version)
		assert.Empty(t, f.received(t))
	}
}

// What the policy does not touch is the same byte by byte, with and without the proxy.
func TestBytesAreTheSame(t *testing.T) {
	t.Parallel()
	lines := []string{
		` {"method":"initialize", "jsonrpc":"2.0","id":1 ,"params":{"protocolVersion":"2025-06-18","capabilities":{"\u0065licitation":{}},"later":1.50}}  `,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"id":"\u0061\/b","jsonrpc":"2.0","method":"resources\/read","params":{"uri":"file:///é","_meta":{"progressToken":1e1}},"top":[]}`,
		`{"id":-0,"jsonrpc":"2.0","method":"tools/call","params":{ "_meta":{"k":"\u003c"},"name":"look","arguments": {"b":1.0,"a":"\u00e9 é"} ,"later":{}}}`,
		`{"id":2.0,"jsonrpc":"2.0","method":"tools/call","params":{"name":"none"}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}` + "\r",
		`{"id":"x","jsonrpc":"2.0","method":"prompts/get","params":{"name":"p"}}`,
	}
	var received, answered [2][]string
	for i, proxied := range []bool{false, true} {
		f := newFixture(t, "", rules)
		c := f.raw(t, "odd", proxied)
		for _, line := range lines {
			c.say(line)
			if strings.Contains(line, `"id"`) {
				answered[i] = append(answered[i], c.hear(), c.hear())
			}
		}
		rest, err := c.close()
		require.NoError(t, err)
		assert.Empty(t, rest)
		received[i] = f.received(t)
	}
	assert.Equal(t, lines, received[0])
	assert.Equal(t, received[0], received[1])
	assert.Equal(t, answered[0], answered[1])
}

// A hostile server breaks and bypasses nothing.
func TestHostileServer(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "", rules)
	c := f.raw(t, "hostile", true)
	call := func(tool string) string {
		t.Helper()
		c.say(`{"jsonrpc":"2.0","id":"` + tool + `","method":"tools/call","params":{"name":"` + tool + `","arguments":{}}}`)
		for {
			line := c.hear()
			require.True(t, json.Valid([]byte(line)), "%.200s", line)
			assert.NotContains(t, line, secret, tool)
			if strings.Contains(line, `"id":"`+tool+`"`) && !strings.Contains(line, `"method"`) {
				return line
			}
		}
	}
	const good = `,"result":{"content":[{"type":"text","text":"good"}]}}`
	for _, tool := range []string{"twice", "unknown", "twisted", "requests", "floods"} {
		assert.Equal(t, `{"jsonrpc":"2.0","id":"`+tool+`"`+good, call(tool))
	}
	hidden := call("hidden")
	assert.Contains(t, hidden, `"type":"odd"`, "the rest is unchanged")
	assert.Contains(t, hidden, "redacted")
	assert.Contains(t, call("fault"), `"error"`)
	assert.Contains(t, call("asks"), "both content and input requests")
	assert.Greater(t, len(call("big")), 10<<20)

	child := call("child")
	var result struct {
		Result struct {
			Content []struct {
				Text string `json:"text"`
			} `json:"content"`
		} `json:"result"`
	}
	require.NoError(t, json.Unmarshal([]byte(child), &result))
	pid, err := strconv.Atoi(result.Result.Content[0].Text)
	require.NoError(t, err)

	c.say(`{"jsonrpc":"2.0","id":"h","method":"tools/call","params":{"name":"hangs"}}`, `{"jsonrpc":"2.0","id":"hanging","method":"ping2"}`)
	assert.Contains(t, c.hear(), "hanging")
	c.say(`{"jsonrpc":"2.0","id":"d","method":"tools/call","params":{"name":"dies"}}`)
	left, _ := io.ReadAll(c.out)
	rest, err := string(left), <-c.ended
	require.ErrorIs(t, err, mcpproxy.ErrServerEnded)
	assert.Contains(t, err.Error(), "exit status 3")
	assert.Contains(t, rest, `"id":"h","error"`)
	assert.Contains(t, rest, `"id":"d","error"`)
	require.Eventually(t, func() bool { return syscall.Kill(pid, 0) != nil || isZombie(pid) }, time.Minute, 10*time.Millisecond, "its child has ended, too")
}

func isZombie(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(text), ") Z ")
}

// A message that is too long ends the connection.
func TestTooLong(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "", rules)
	c := f.raw(t, "hostile", true)
	c.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"huge"}}`)
	rest, err := c.close()
	require.ErrorContains(t, err, "more than 16777216 bytes")
	assert.Contains(t, rest, `"id":1,"error"`)
}

// A client that writes messages in ways that others could read differently gets past nothing.
func TestHostileClient(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "", rules)
	c := f.raw(t, "hostile", true)
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"pay","arguments":{"to":"Bob"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call","params":{"name":"pay","arguments":{"to":"Bob"}}}`,
		`{"jsonrpc":"2.0","id":1,"Method":"tools/call","params":{"name":"pay","arguments":{"to":"Bob"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"Tools/Call","params":{"name":"pay","arguments":{"to":"Bob"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools\/call ","params":{"name":"pay","arguments":{"to":"Bob"}}}`,
		`[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","arguments":{"to":"Bob"}}}]`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","arguments":{"to":"Ann","to":"Bob"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","arguments":{"to":"Carl"},"Arguments":{"to":"Bob"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fine","Name":"pay","arguments":{"to":"Bob"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"Name":"pay","arguments":{"to":"Bob"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","task":{},"arguments":{"to":"Carl"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tasks/result","params":{"taskId":"t"}}`,
		`{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{"name":"pay","arguments":{"to":"Bob"}}}`,
		"\ufeff" + `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay"}} {}`,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"pa\xffy\"}}",
	} {
		c.say(line)
		assert.Contains(t, c.hear(), "refused", line)
	}
	c.say(
		`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"pay","arguments":{"to":"Bob"}}}`,
		`{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"pay","arguments":{"to":"Bob"}}}`,
		`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"hangs"}}`,
		`{"jsonrpc":"2.0","id":6,"method":"ping"}`,
	)
	assert.Equal(t, `{"jsonrpc":"2.0","id":6,"result":{}}`, c.hear())
	require.Eventually(t, func() bool { return strings.Contains(strings.Join(f.received(t), "\n"), "hangs") }, time.Minute, time.Millisecond)
	c.say(`{"jsonrpc":"2.0","id":5.0,"method":"ping"}`)
	assert.Contains(t, c.hear(), "another request with this ID")
	c.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`)
	_, err := c.close()
	require.NoError(t, err)
	for _, line := range f.received(t) {
		assert.NotContains(t, line, "pay")
	}
}

// Only the person who was asked answers: not the server, and not a client that makes up a state.
func TestForgedApproval(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "", rules)
	c := f.raw(t, "hostile", true)
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`
	yes := `"inputResponses":{"grapnel.approval":{"action":"accept","content":{"decision":"approve"}}}`
	ask := func(id, to, more string) string {
		c.say(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"pay","arguments":{"to":"Ann"` + to + `},` + meta + more + `}}`)
		return c.hear()
	}
	var asked struct {
		Result struct {
			RequestState string `json:"requestState"`
		} `json:"result"`
	}
	require.NoError(t, json.Unmarshal([]byte(ask("1", "", "")), &asked))
	state := asked.Result.RequestState
	require.NotEmpty(t, state)
	for i, more := range []string{
		"," + yes, `,"requestState":"grapnel:AAAA..",` + yes, `,"requestState":"grapnel:.approved.",` + yes, `,"requestState":"approved",` + yes,
	} {
		assert.Contains(t, ask(strconv.Itoa(10+i), "", more), "input_required", more)
	}
	assert.Contains(t, ask("20", `,"amount":9`, `,"requestState":"`+state+`",`+yes), "input_required", "other arguments")
	assert.Empty(t, f.received(t))
	assert.Contains(t, ask("21", "", `,"requestState":"`+state+`",`+yes), "good")
	assert.Contains(t, ask("22", "", `,"requestState":"`+state+`",`+yes), "input_required", "an approval counts once")
	assert.Equal(t, []string{`{"jsonrpc":"2.0","id":21,"method":"tools/call","params":{"name":"pay","arguments":{"to":"Ann"},` + meta + `}}`}, f.received(t))
	_, err := c.close()
	require.NoError(t, err)
}

// npm's server answers the same with and without the proxy.
func TestEverythingServer(t *testing.T) {
	t.Parallel()
	server := []string{parts.NPM(t, "mcp-server-everything"), "stdio"}
	var got [2][]string
	for i, proxied := range []bool{false, true} {
		f := newFixture(t, t.TempDir(), rules)
		c := &rawClient{t: t, ended: make(chan error, 1)}
		f.start(t, c, server, proxied)
		c.say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
		answer := func(id string) {
			for {
				line := c.hear()
				if strings.Contains(line, `"id":`+id) {
					got[i] = append(got[i], line)
					return
				}
			}
		}
		answer("1")
		c.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		for n, line := range []string{
			`"method":"tools/list"`, `"method":"prompts/list","params":{}`, `"method":"resources/list"`, `"method":"ping"`,
			`"method":"tools/call","params":{"name":"echo","arguments":{"message":"é <&>"}}`,
			`"method":"tools/call","params":{"name":"get-sum","arguments":{"a":1,"b":2.5}}`,
			`"method":"tools/call","params":{"name":"get-tiny-image","arguments":{}}`,
			`"method":"tools/call","params":{"name":"get-structured-content","arguments":{"location":"Chicago"}}`,
			`"method":"tools/call","params":{"name":"get-annotated-message","arguments":{"messageType":"error","includeImage":true}}`,
			`"method":"tools/call","params":{"name":"get-resource-links","arguments":{"count":2}}`,
			`"method":"tools/call","params":{"name":"get-sum","arguments":{"a":"x"}}`,
		} {
			id := strconv.Itoa(100 + n)
			c.say(`{"jsonrpc":"2.0","id":` + id + `,` + line + `}`)
			answer(id)
		}
		_, _ = c.close()
	}
	assert.Equal(t, got[0], got[1])
	assert.Len(t, got[0], 12)
}
