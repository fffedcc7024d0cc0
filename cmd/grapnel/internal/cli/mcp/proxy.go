package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/agents"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/worker"
	"github.com/grapnel-go/grapnel/guard"
	"github.com/grapnel-go/grapnel/hooks/audit"
	"github.com/grapnel-go/grapnel/internal/mcpproxy"
	"github.com/grapnel-go/grapnel/telemetry"
	"github.com/grapnel-go/grapnel/toolexec/mcp"
)

// New returns the group of commands about MCP servers.
func New(std console.Streams) *cobra.Command {
	return console.Group(&cobra.Command{
		Use:   "mcp",
		Short: "Put policies in front of MCP servers",
	}, newProxy(std), newPins(std), newAccept(std), newForget(std))
}

// proxy holds the flags of grapnel mcp proxy.
type proxy struct {
	std console.Streams

	policies []string
	name     string
	pins     string
	audit    string
	content  bool
	url      string
	headers  []string
	listen   string
	trace    string
	asJSON   bool
}

func newProxy(std console.Streams) *cobra.Command {
	o := &proxy{std: std}
	c := &cobra.Command{
		Use:   "proxy --policy FILE -- SERVER [ARG...]",
		Short: "Stand between an MCP client and a server, and judge each tool call",
		Long: `proxy starts an MCP server, or connects to one with --url, and passes on what the client on standard input and output says
to it. Messages pass as they are. Tool calls are judged by the policies, under the names mcp__NAME__TOOL: a denied call does not
reach the server, and its answer is a result with isError. Rewritten arguments are what the server gets, and results pass filters.
Decision "ask" asks the client's user. A client that cannot ask gets a denial.

The tools of the first list are accepted. A tool that is new or has changed later is hidden and not called until a person runs
"grapnel mcp accept". Tools whose names imitate others are refused.

With --listen, clients connect over HTTP to http://ADDRESS/mcp, and each gets a session of its own.`,
		Example: `  grapnel mcp proxy --policy ours.yaml -- mcp-server-filesystem /srv
  grapnel mcp proxy --policy ours.yaml --url https://example.com/mcp --header 'Authorization: Bearer ${TOKEN}'`,
		RunE: func(c *cobra.Command, args []string) error {
			return console.WithTelemetry(c.Context(), o.trace, std.Err, func(ctx context.Context) error { return o.run(ctx, args) })
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.SetInterspersed(false)
	f.StringArrayVarP(&o.policies, "policy", "p", nil, "a policy `file`, or library:NAME; may be given several times")
	f.StringVar(&o.name, "name", "", "the server's `name` in the names of its tools; otherwise its program's or host's")
	f.StringVar(&o.url, "url", "", "the `address` of a server over streamable HTTP, in place of a command")
	f.StringArrayVar(&o.headers, "header", nil, "a `header` for the server's address, such as 'Authorization: Bearer ${TOKEN}' with an environment variable")
	f.StringVar(&o.listen, "listen", "", "with --url: serve clients over HTTP at this loopback `address`, such as localhost:8425")
	f.StringVar(&o.pins, "pins", "", "the `folder` with accepted tools, or off; otherwise one of the user's state")
	f.StringVar(&o.audit, "audit", "", "append calls, results and decisions to an audit log in this `file`")
	f.BoolVar(&o.content, "audit-content", false, "the audit log also has arguments and results as text, for hooks backtest")
	f.StringVar(&o.trace, "trace", "", "write OpenTelemetry spans to this `file`")
	f.BoolVar(&o.asJSON, "json", false, "write what happens as JSON lines to standard error")
	return c
}

func (o *proxy) run(ctx context.Context, command []string) (err error) {
	name, identity, err := o.server(command)
	if err != nil {
		return console.Usage(err)
	}
	c := mcpproxy.Config{Name: name, Log: o.log}
	var log *audit.Log
	if o.audit != "" {
		if log, err = audit.Open(o.audit, audit.Options{Content: o.content}); err != nil {
			return console.Usage(err)
		}
		defer func() { err = errors.Join(err, log.Err(), log.Close()) }()
	}
	if c.Guard, err = o.newGuard(ctx, name, log); err != nil {
		return err
	}
	defer c.Guard.Cancel()
	folder, err := folderOf(o.pins)
	if err != nil {
		return err
	}
	if c.Pins, err = mcpproxy.OpenPins(folder, name, identity); err != nil {
		return console.Usage(err)
	}
	ctx, release := console.WithInterrupt(ctx, func() {}, func() {})
	defer release()
	return console.InterruptedOr(ctx, o.serve(ctx, c, command))
}

// server returns the server's name and what identifies it.
func (o *proxy) server(command []string) (name, identity string, err error) {
	switch {
	case o.url == "" && len(command) == 0:
		return "", "", errors.New("no server: give its command after --, or its address with --url")
	case o.url != "" && len(command) > 0:
		return "", "", fmt.Errorf("--url and the command %q exclude each other", command[0])
	case o.listen != "" && o.url == "":
		return "", "", errors.New("--listen requires --url: a command serves one client, over standard input and output")
	case o.url == "" && len(o.headers) > 0:
		return "", "", errors.New("--header requires --url")
	case o.content && o.audit == "":
		return "", "", errors.New("--audit-content requires --audit")
	}
	if o.url != "" {
		u, err := url.Parse(o.url)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return "", "", errors.New("--url must be a whole http or https address")
		}
		name, identity = u.Hostname(), o.url
	} else {
		name, identity = programOf(command), strings.Join(command, "\x00")
	}
	if o.name != "" {
		name = o.name
	} else {
		name = plainName(name)
	}
	if _, err := mcp.ToolName(name, ""); err != nil {
		return "", "", fmt.Errorf("the server name %q: %w: set one with --name", name, err)
	}
	return name, identity, nil
}

// runners are programs that run the server named by a later argument.
const runners = " npx bunx uvx pipx pnpm npm yarn node deno bun python python3 uv go docker podman env sh bash "

// programOf returns the name of the program in a command.
func programOf(command []string) string {
	for _, word := range command {
		base := strings.TrimSuffix(filepath.Base(word), ".exe")
		switch {
		case strings.Contains(runners, " "+base+" "), strings.HasPrefix(word, "-"), strings.Contains(word, "="),
			slices.Contains([]string{"run", "exec", "dlx", "x"}, word):
			continue
		}
		if at := strings.LastIndex(base, "@"); at > 0 { // a version
			base = base[:at]
		}
		base, _, _ = strings.Cut(base, ":") // a tag
		return strings.TrimSuffix(base, path.Ext(base))
	}
	return filepath.Base(command[0])
}

// plainName makes a name a part of tool names.
func plainName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			return r
		}
		return '_'
	}, name)
	for strings.Contains(name, "__") {
		name = strings.ReplaceAll(name, "__", "_")
	}
	return strings.Trim(name[:min(len(name), 32)], "_")
}

// headersOf parses the flags --header. A value may name environment variables.
func headersOf(texts []string) (http.Header, error) {
	out := http.Header{}
	for _, text := range texts {
		name, value, ok := strings.Cut(text, ":")
		if !ok || name == "" || strings.ContainsAny(name, " \t\r\n") {
			return nil, errors.New("--header must be NAME: VALUE")
		}
		missing := ""
		value = os.Expand(strings.TrimSpace(value), func(variable string) string {
			v, set := os.LookupEnv(variable)
			if !set {
				missing = variable
			}
			return v
		})
		if missing != "" {
			return nil, fmt.Errorf("--header %s: the environment variable %s is not set", name, missing)
		}
		out.Add(name, value)
	}
	return out, nil
}

// folderOf returns the folder with pins; empty when they are off.
func folderOf(flag string) (string, error) {
	switch flag {
	case "off":
		return "", nil
	case "":
		state, err := storage.StateFolder()
		if err != nil {
			return "", console.Usagef("the default folder of pins is unknown (%w): set one with --pins", err)
		}
		return filepath.Join(state, "mcp"), nil
	}
	return flag, nil
}

// newGuard returns the guard with the policies and the audit log.
func (o *proxy) newGuard(ctx context.Context, name string, log *audit.Log) (*guard.Guard, error) {
	p, err := agents.LoadPolicies(o.policies, "", nil)
	if err != nil {
		return nil, err
	}
	if p == nil && log == nil {
		return nil, console.Usagef("no policy: name a file with --policy, such as --policy ours.yaml or --policy library:secrets")
	}
	c := guard.Config{
		Name: name, Approver: agent.ParkApprover,
		Recorder: telemetry.New(telemetry.Config{Content: telemetry.ContentFromEnv(), Reasons: console.TracesRuns(ctx)}),
	}
	if p != nil {
		host := p.Host()
		host.Approver = agents.NoTerminal
		c.Rules = p.WithHost(host)
	}
	if log != nil {
		c.Hooks = log.CallHooks()
	}
	g, err := guard.New(c)
	if err != nil {
		return nil, console.Usage(err)
	}
	if unasked := g.UnaskedHooks(); len(unasked) > 0 {
		o.log("these rules are never asked, because a proxy sees only tool calls: %s", strings.Join(unasked, ", "))
	}
	return g, nil
}

// log writes a line for people, or a JSON object.
func (o *proxy) log(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !o.asJSON {
		console.WriteWrapped(o.std.Err, "grapnel: ", "  ", text)
		return
	}
	_ = json.NewEncoder(o.std.Err).Encode(struct { //nolint:errchkjson // a log line
		Time    time.Time `json:"time"`
		Message string    `json:"message"`
	}{time.Now().UTC(), text})
}

// serve passes messages on until the client or the server has ended.
func (o *proxy) serve(ctx context.Context, c mcpproxy.Config, command []string) error {
	client := &mcpproxy.Stdio{In: o.std.In, Out: o.std.Out}
	if o.url == "" {
		return mcpproxy.Serve(ctx, c, client, command, o.std.Err)
	}
	headers, err := headersOf(o.headers)
	if err != nil {
		return console.Usage(err)
	}
	remote := mcpproxy.NewRemote(o.url, headers)
	if o.listen == "" {
		return mcpproxy.ServeRemote(ctx, c, client, remote)
	}
	listener, err := worker.ListenLocally(ctx, "--listen", o.listen)
	if err != nil {
		return console.Usage(err)
	}
	handler := mcpproxy.NewHandler(ctx, c, remote)
	mux := http.NewServeMux()
	mux.Handle("/mcp", handler)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	o.log("listening on http://%s/mcp", listener.Addr())
	err = server.Serve(listener)
	handler.Close()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
