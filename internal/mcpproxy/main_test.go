//go:build unix

package mcpproxy_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/guard"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/mcpproxy"
	"github.com/grapnel-go/grapnel/policy"
)

// serverEnv makes of the test binary a server; its value is the server's mode. logEnv is the file in which it writes what
// it has received.
const (
	serverEnv = "GRAPNEL_PROXIED_MCP"
	logEnv    = "GRAPNEL_PROXIED_LOG"
)

func TestMain(m *testing.M) {
	switch mode := os.Getenv(serverEnv); mode {
	case "":
		goleak.VerifyTestMain(m)
	case "sdk":
		if err := newServer(os.Getenv(logEnv)).Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	default:
		serveRaw(mode)
	}
}

// command returns the test binary as a server.
func command(t testing.TB, mode, log string) []string {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	return []string{"env", serverEnv + "=" + mode, logEnv + "=" + log, program}
}

const secret = "AKIA" + "IOSFODNN7EXAMPLQ"

// newServer returns a server with tools, which appends each call to a file.
func newServer(log string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "till", Version: "1"}, &mcp.ServerOptions{Instructions: "Pay."})
	object := map[string]any{"type": "object"}
	add := func(name string, f func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error)) {
		s.AddTool(&mcp.Tool{Name: name, Description: "Does " + name + ".", InputSchema: object}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			note(log, name+" "+string(r.Params.Arguments))
			return f(ctx, r)
		})
	}
	add("pay", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{
			Content:           []mcp.Content{&mcp.TextContent{Text: "paid " + string(r.Params.Arguments)}},
			StructuredContent: map[string]any{"paid": r.Params.Arguments},
		}, nil
	})
	add("read", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{
			Content: []mcp.Content{
				&mcp.TextContent{Text: "the key is " + secret},
				&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///x", Text: secret}},
			},
			StructuredContent: map[string]any{"key": secret, "n": 12},
			Meta:              mcp.Meta{"note": secret},
		}, nil
	})
	add("slow", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Message: "half", Progress: 1})
		<-ctx.Done()
		note(log, "cancelled")
		return nil, ctx.Err()
	})
	add("fails", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, fmt.Errorf("no, and the key is %s", secret)
	})
	return s
}

func note(log, text string) {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, _ = f.WriteString(text + "\n")
		_ = f.Close()
	}
}

// fixture is a proxy's configuration with what it has said.
type fixture struct {
	mcpproxy.Config

	log string // the file with what the server has received
}

func (f fixture) received(t testing.TB) []string {
	t.Helper()
	text, err := os.ReadFile(f.log)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// newFixture returns a proxy with a policy. Pins in a folder that is empty are off.
func newFixture(t testing.TB, folder, rules string, extra ...hooks.Hook) fixture {
	t.Helper()
	f := fixture{log: filepath.Join(t.TempDir(), "received")}
	c := guard.Config{Name: "till", Approver: agent.ParkApprover, Hooks: extra}
	if rules != "" {
		path := filepath.Join(t.TempDir(), "policy.yaml")
		require.NoError(t, os.WriteFile(path, []byte("policy: till\nhooks:\n"+rules), 0o600))
		p, err := policy.LoadFiles(path)
		require.NoError(t, err)
		c.Rules = p
	}
	g, err := guard.New(c)
	require.NoError(t, err)
	t.Cleanup(g.Cancel)
	pins, err := mcpproxy.OpenPins(folder, "till", "the till")
	require.NoError(t, err)
	lines := make(chan string, 1000)
	f.Config = mcpproxy.Config{Name: "till", Guard: g, Pins: pins, Log: func(format string, args ...any) {
		select {
		case lines <- fmt.Sprintf(format, args...):
		default:
		}
	}}
	t.Cleanup(func() {
		for len(lines) > 0 {
			t.Log(<-lines)
		}
	})
	return f
}

// way is a way from the client through the proxy to the server.
type way string

const (
	stdio    way = "stdio"
	toHTTP   way = "stdio to HTTP"
	overHTTP way = "HTTP to HTTP"
)

var ways = []way{stdio, toHTTP, overHTTP}

// connect connects an SDK's client through the proxy with an SDK's server.
func (f fixture) connect(t testing.TB, w way, version string, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	var transport mcp.Transport
	switch w {
	case stdio:
		transport = f.pipe(t, func(ctx context.Context, client *mcpproxy.Stdio) error {
			return mcpproxy.Serve(ctx, f.Config, client, command(t, "sdk", f.log), os.Stderr)
		})
	case toHTTP:
		remote := mcpproxy.NewRemote(f.serve(t, version), nil)
		transport = f.pipe(t, func(ctx context.Context, client *mcpproxy.Stdio) error {
			return mcpproxy.ServeRemote(ctx, f.Config, client, remote)
		})
	case overHTTP:
		handler := mcpproxy.NewHandler(t.Context(), f.Config, mcpproxy.NewRemote(f.serve(t, version), nil))
		server := httptest.NewServer(handler)
		t.Cleanup(func() {
			server.CloseClientConnections()
			server.Close()
			handler.Close()
		})
		transport = &mcp.StreamableClientTransport{Endpoint: server.URL}
	}
	client, err := mcp.NewClient(&mcp.Implementation{Name: "model", Version: "1"}, o).Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// serve serves the SDK's server over HTTP, and returns its address.
func (f fixture) serve(t testing.TB, version string) string {
	t.Helper()
	server := newServer(f.log)
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: version >= "2026"})
	s := httptest.NewServer(handler)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

// pipe returns a transport to a proxy over pipes. The proxy must end when the client closes it.
func (f fixture) pipe(t testing.TB, run func(context.Context, *mcpproxy.Stdio) error) mcp.Transport {
	t.Helper()
	in, requests := io.Pipe()
	answers, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(context.WithoutCancel(t.Context()), &mcpproxy.Stdio{In: in, Out: out})
		_ = out.Close()
		ended <- err
	}()
	t.Cleanup(func() {
		_ = requests.Close()
		require.NoError(t, <-ended)
	})
	return &mcp.IOTransport{Reader: answers, Writer: requests}
}

// textOf returns a result as JSON, after its texts.
func textOf(t testing.TB, r *mcp.CallToolResult) string {
	t.Helper()
	text, err := json.Marshal(r)
	require.NoError(t, err)
	return string(text)
}

// rawClient speaks with a proxied server line by line.
type rawClient struct {
	t     testing.TB
	in    io.WriteCloser
	out   *bufio.Reader
	ended chan error
}

// raw starts a proxy in front of a raw server. Without a proxy, the server is started alone.
func (f fixture) raw(t testing.TB, mode string, proxied bool) *rawClient {
	t.Helper()
	c := &rawClient{t: t, ended: make(chan error, 1)}
	f.start(t, c, command(t, mode, f.log), proxied)
	return c
}

func (f fixture) start(t testing.TB, c *rawClient, argv []string, proxied bool) {
	t.Helper()
	answers, out := io.Pipe()
	c.out = bufio.NewReaderSize(answers, 1<<20)
	if !proxied {
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Stdout, cmd.Stderr = out, os.Stderr
		var err error
		c.in, err = cmd.StdinPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		go func() { c.ended <- cmd.Wait(); _ = out.Close() }()
		return
	}
	in, requests := io.Pipe()
	c.in = requests
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(cancel)
	go func() {
		c.ended <- mcpproxy.Serve(ctx, f.Config, &mcpproxy.Stdio{In: in, Out: out}, argv, os.Stderr)
		_ = in.Close()
		_ = out.Close()
	}()
}

func (c *rawClient) say(lines ...string) {
	c.t.Helper()
	for _, line := range lines {
		_, err := io.WriteString(c.in, line+"\n")
		require.NoError(c.t, err)
	}
}

func (c *rawClient) hear() string {
	c.t.Helper()
	line, err := c.out.ReadString('\n')
	require.NoError(c.t, err, line)
	return strings.TrimSuffix(line, "\n")
}

// close ends the input, and returns the proxy's error and the last lines.
func (c *rawClient) close() (string, error) {
	_ = c.in.Close()
	rest, _ := io.ReadAll(c.out)
	return string(rest), <-c.ended
}

// serveRaw is a server that is no good one.
func serveRaw(mode string) {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	say := func(format string, args ...any) { fmt.Printf(format+"\n", args...) }
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimSuffix(line, "\n")
		note(os.Getenv(logEnv), line)
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Name string `json:"name"`
			} `json:"params"`
		}
		_ = json.Unmarshal([]byte(line), &m)
		if m.ID == nil || m.Method == "" {
			continue
		}
		switch {
		case mode == "odd":
			say(`{ "jsonrpc":"2.0","method":"notifications/odd", "params":{"of":%s, "x":1e2,"text":"\u003c\/é"} }`, m.ID)
			say(`{"id":%s,"result":{"content":[{"text":"\u0041 <b>","type":"text","later":[1.0]}],"more":{"a":null}, "isError":false,"_meta":{"z":1}},"jsonrpc":"2.0","extra":true}`, m.ID)
		case m.Method == "tools/list":
			tools, _ := os.ReadFile(os.Getenv(logEnv) + ".tools")
			say(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[%s]}}`, m.ID, strings.TrimSpace(string(tools)))
		case m.Method != "tools/call":
			say(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
		case mode == "hostile":
			attack(m.Params.Name, m.ID, say)
		}
	}
}

// attack answers a call badly.
func attack(name string, id json.RawMessage, say func(string, ...any)) {
	good := `{"content":[{"type":"text","text":"good"}]}`
	switch name {
	case "dies":
		os.Exit(3)
	case "hangs":
	case "child": // leaves a process behind that holds the output
		cmd := exec.Command("sleep", "1000") //nolint:noctx // it must survive
		cmd.Stdout = os.Stdout
		_ = cmd.Start()
		say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%d"}]}}`, id, cmd.Process.Pid)
	case "twice":
		say(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, good)
		say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}`, id, secret)
	case "unknown":
		say(`{"jsonrpc":"2.0","id":"other","result":{"content":[{"type":"text","text":"%s"}]}}`, secret)
		say(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, good)
	case "twisted":
		for _, line := range []string{
			`{"jsonrpc":"2.0","id":%s,"id":7,"result":{"content":[{"type":"text","text":"SECRET"}]}}`,
			`{"jsonrpc":"2.0","id":%s,"Result":{"content":[{"type":"text","text":"SECRET"}]}}`,
			`[{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"SECRET"}]}}]`,
			`{"jsonrpc":"2.0","id":%s,"method":"x","result":{"content":[{"type":"text","text":"SECRET"}]}}`,
			`hello %s SECRET`, "\xff%s",
		} {
			say(strings.ReplaceAll(line, "SECRET", secret), id)
		}
		say(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, good)
	case "hidden":
		say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"x","note":"%s"},{"type":"odd","\u0078":"%s"}],"structuredContent":{"k":"%s"},"later":"%s","_meta":{"m":["%s"]}}}`,
			id, secret, strings.Replace(secret, "A", `\u0041`, 1), secret, secret, secret)
	case "fault":
		say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-5,"message":"key %s","data":{"k":"%s"}}}`, id, secret, secret)
	case "asks":
		say(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"input_required","inputRequests":{},"content":[{"type":"text","text":"%s"}]}}`, id, secret)
	case "big":
		say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}`, id, strings.Repeat("x", 10<<20))
	case "huge":
		say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}`, id, strings.Repeat("x", 20<<20))
	case "floods":
		for i := range 20_000 {
			say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"n":%d}}`, i)
		}
		say(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, good)
	case "requests": // asks the client, with the ID of the client's own request
		say(`{"jsonrpc":"2.0","id":%s,"method":"elicitation/create","params":{"message":"Approve?"}}`, id)
		say(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, good)
	default:
		say(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, good)
	}
}
