//go:build unix

package mcp_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// hostileServer is an MCP server that does wrong what can be done wrong: by its mode before a tool is called, by the
// tool's name then.
type hostileServer struct {
	mode string
	in   *bufio.Scanner
	echo string // the schema of echo; empty when it has gone
}

func newHostile(mode string) *hostileServer {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	return &hostileServer{mode: mode, in: in, echo: `{"type":"object"}`}
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Cursor    string          `json:"cursor"`
		Meta      struct {
			Token string `json:"progressToken"`
			Key   string `json:"grapnel/idempotency-key"`
			Trace string `json:"traceparent"`
		} `json:"_meta"`
	} `json:"params"`
}

func (h *hostileServer) serve() {
	switch h.mode {
	case "exit":
		fmt.Fprintln(os.Stderr, "no configuration found, token is hunter2-hunter2")
		os.Exit(7)
	case "silent":
		h.sulk()
	case "moody", "tired":
		if _, err := os.Stat(os.Getenv("MOOD")); err == nil {
			if h.mode == "tired" {
				os.Exit(9)
			}
			h.echo = `{"type":"object","required":["more"]}`
		}
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
	case "chatty":
		for {
			fmt.Println("Server is running! Have a nice day.")
		}
	}
	for h.in.Scan() {
		var m message
		if json.Unmarshal(h.in.Bytes(), &m) == nil {
			h.handle(m)
		}
	}
	if h.mode == "stubborn" {
		h.sulk()
	}
}

// sulk does nothing for ever. It sleeps: a program that waits for a channel alone is ended by
// Go as deadlocked, unless it has cgo.
func (*hostileServer) sulk() {
	for {
		time.Sleep(time.Hour)
	}
}

func (h *hostileServer) handle(m message) {
	switch m.Method {
	case "initialize":
		switch h.mode {
		case "modern":
			h.fail(m.ID, -32601, "method not found")
		case "null":
			h.result(m.ID, `null`)
		case "refuse":
			h.fail(m.ID, -32000, "not today, hunter2-hunter2")
		default:
			h.result(m.ID, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},
				"serverInfo":{"name":"h","version":"1"},"instructions":"Be careful."}`)
		}
	case "server/discover":
		h.result(m.ID, `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)
	case "tools/list":
		h.list(m)
	case "tools/call":
		h.call(m)
	}
}

func (h *hostileServer) list(m message) {
	const schema = `"inputSchema":{"type":"object"}`
	switch h.mode {
	case "curious":
		h.result(m.ID, `{"tools":[{"name":"t","description":`+strconv.Quote(h.ask(`"first"`, `{"message":"Who are you?"}`))+`,`+schema+`}]}`)
	case "no-list":
	case "endless":
		h.result(m.ID, `{"tools":[],"nextCursor":"again"}`)
	case "many":
		h.result(m.ID, `{"tools":[`+strings.TrimSuffix(strings.Repeat(`{"name":"t",`+schema+`},`, 1001), ",")+`]}`)
	case "long":
		h.result(m.ID, `{"tools":[{"name":"t`+m.Params.Cursor+`","description":"`+strings.Repeat("x", 100_000)+`",`+schema+`}],"nextCursor":"`+m.Params.Cursor+`1"}`)
	case "twins":
		h.result(m.ID, `{"tools":[{"name":"a",`+schema+`},{"name":"a",`+schema+`},{"name":"b",`+schema+`}]}`)
	case "nameless":
		h.result(m.ID, `{"tools":[{`+schema+`},null]}`)
	case "odd":
		h.result(m.ID, `{"tools":[{"name":"a.b",`+schema+`},{"name":"a/b",`+schema+`},{"name":"x y\u0000ä",`+schema+`},
			{"name":"`+strings.Repeat("long", 50)+`",`+schema+`}]}`)
	case "schemas":
		h.result(m.ID, `{"tools":[{"name":"number","inputSchema":7},{"name":"array","inputSchema":{"type":"array"}},{"name":"fine",`+schema+`}]}`)
	case "unreadable":
		h.result(m.ID, `{"tools":"none"}`)
	default:
		tools := []string{
			`{"name":"lie","outputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]},` + schema + `}`,
			`{"name":"die-softly","annotations":{"readOnlyHint":true},` + schema + `}`,
		}
		if h.echo != "" {
			tools = append(tools, `{"name":"echo","inputSchema":`+h.echo+`}`)
		}
		for name := range strings.FieldsSeq("hang die garbage wrongid huge flood noise null badcontent change drop pings nasty deaf " +
			"patient closing refuse fork daemon close everything structured error " +
			"interrogate late bigform") {
			tools = append(tools, `{"name":"`+name+`",`+schema+`}`)
		}
		h.result(m.ID, `{"tools":[`+strings.Join(tools, ",")+`]}`)
	}
}

func (h *hostileServer) call(m message) {
	ok := func() { h.text(m.ID, "done") }
	switch m.Params.Name {
	case "echo":
		h.text(m.ID, strings.TrimSpace(string(m.Params.Arguments)+" "+m.Params.Meta.Key+" "+m.Params.Meta.Trace))
	case "hang":
		var in struct{ Mark string }
		if _ = json.Unmarshal(m.Params.Arguments, &in); in.Mark != "" {
			_ = os.WriteFile(in.Mark, nil, 0o600)
		}
	case "die":
		fmt.Fprintln(os.Stderr, "boom: hunter2-hunter2")
		os.Exit(3)
	case "die-softly": // and work the second time
		var in struct{ Mark string }
		_ = json.Unmarshal(m.Params.Arguments, &in)
		if _, err := os.Stat(in.Mark); err != nil {
			_ = os.WriteFile(in.Mark, nil, 0o600)
			os.Exit(3)
		}
		ok()
	case "garbage":
		fmt.Println("Debug: here I am\n{\"half\":\n[]\n{\"jsonrpc\":\"1.0\",\"id\":1}\n" + strings.Repeat("[", 5000))
		ok()
	case "wrongid":
		h.text(json.RawMessage(`"4711"`), "for another call")
	case "huge":
		h.text(m.ID, strings.Repeat("x", 1<<20))
	case "flood":
		for i := 0; ; i++ {
			h.progress(m, i)
		}
	case "noise":
		for {
			fmt.Println("noise, noise, noise")
		}
	case "lie":
		h.result(m.ID, `{"content":[{"type":"text","text":"n is many"}],"structuredContent":{"n":"many"}}`)
	case "null":
		h.result(m.ID, `null`)
	case "badcontent":
		h.result(m.ID, `{"content":[null,{"type":"smell"}]}`)
	case "change":
		h.echo = `{"type":"object","properties":{"all":{"type":"boolean"}}}`
		h.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		ok()
	case "drop":
		h.echo = ""
		h.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":null}`)
		ok()
	case "pings":
		for i := 0; ; i++ {
			h.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i))
		}
	case "nasty":
		for _, method := range []string{"notifications/elicitation/complete", "notifications/progress", "notifications/cancelled",
			"notifications/message", "notifications/resources/updated", "notifications/nothing", "notifications/tools/list_changed"} {
			h.say(`{"jsonrpc":"2.0","method":"` + method + `","params":null}`)
			h.say(`{"jsonrpc":"2.0","method":"` + method + `"}`)
		}
		for i, method := range []string{"sampling/createMessage", "elicitation/create", "roots/list", "completion/complete", "nothing", "ping"} {
			h.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":"q%d","method":%q,"params":null}`, i, method))
		}
		h.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":["?"],"progress":1e308}}`)
		ok()
	case "deaf":
		h.sulk()
	case "patient": // until the call is cancelled
		var in struct{ Mark string }
		_ = json.Unmarshal(m.Params.Arguments, &in)
		_ = os.WriteFile(in.Mark+".asked", nil, 0o600)
		for h.in.Scan() {
			if strings.Contains(h.in.Text(), "notifications/cancelled") {
				_ = os.WriteFile(in.Mark, h.in.Bytes(), 0o600)
				return
			}
		}
	case "refuse":
		h.fail(m.ID, -32602, "no such thing, hunter2-hunter2")
	case "closing":
		h.fail(m.ID, -32004, "closed on Sundays")
	case "fork", "daemon":
		child := exec.Command("sleep", "600") //nolint:noctx // it is to be left behind
		if m.Params.Name == "daemon" {
			child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		}
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		_ = child.Start()
		h.text(m.ID, fmt.Sprint(child.Process.Pid))
	case "close":
		os.Stdout.Close()
		h.sulk()
	case "everything":
		h.result(m.ID, `{"content":[{"type":"text","text":"one"},{"type":"text","text":"two"},
			{"type":"image","data":"aW1n","mimeType":"image/png"},{"type":"audio","data":"YXVk","mimeType":"audio/mpeg"},
			{"type":"resource_link","uri":"file:///a","name":"a","mimeType":"text/plain"},
			{"type":"resource","resource":{"uri":"file:///b","text":"bee"}},
			{"type":"resource","resource":{"uri":"file:///dir/c.bin","blob":"Ymlu"}},
			{"type":"resource","resource":{"uri":"file:///d","mimeType":"image/gif","blob":"Z2lm"}},
			{"type":"resource"}],"structuredContent":{"n":1}}`)
	case "interrogate": // with another question after each answer
		for i := range 200 {
			h.ask(fmt.Sprintf(`"q%d"`, i), fmt.Sprintf(`{"message":"Question %d?"}`, i))
		}
		ok()
	case "bigform":
		h.ask(`"big"`, `{"message":"Fill in","requestedSchema":{"type":"object","properties":{"a":{"type":"string","description":"`+strings.Repeat("x", 40<<10)+`"}}}}`)
		ok()
	case "late": // asks when its call is over
		var in struct{ Mark string }
		_ = json.Unmarshal(m.Params.Arguments, &in)
		ok()
		for {
			if _, err := os.Stat(in.Mark); err == nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
		_ = os.WriteFile(in.Mark+".tmp", []byte(h.ask(`"late"`, `{"message":"And now?"}`)), 0o600)
		_ = os.Rename(in.Mark+".tmp", in.Mark+".said")
	case "error":
		h.result(m.ID, `{"content":[],"isError":true}`)
	case "structured":
		h.result(m.ID, `{"content":[],"structuredContent":{"n":1}}`)
	}
}

func (*hostileServer) say(line string) {
	if _, err := fmt.Println(strings.ReplaceAll(line, "\n", " ")); err != nil {
		os.Exit(1)
	}
}

// ask sends a question to the client, and returns the answer.
func (h *hostileServer) ask(id, params string) string {
	h.say(`{"jsonrpc":"2.0","id":` + id + `,"method":"elicitation/create","params":` + params + `}`)
	for h.in.Scan() {
		if strings.Contains(h.in.Text(), `"id":`+id) {
			return h.in.Text()
		}
	}
	return ""
}

func (h *hostileServer) progress(m message, i int) {
	h.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%q,"progress":%d,"message":"on it"}}`, m.Params.Meta.Token, i))
}

func (h *hostileServer) result(id json.RawMessage, result string) {
	h.say(`{"jsonrpc":"2.0","id":` + string(id) + `,"result":` + result + `}`)
}

func (h *hostileServer) text(id json.RawMessage, text string) {
	quoted, _ := json.Marshal(text)
	h.result(id, `{"content":[{"type":"text","text":`+string(quoted)+`}]}`)
}

func (h *hostileServer) fail(id json.RawMessage, code int, text string) {
	h.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, id, code, text))
}
