package mcpproxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/grapnel-go/grapnel/internal/mcpcall"
)

// message is a JSON-RPC message with its bytes.
type message struct {
	raw    []byte
	id     json.RawMessage
	key    string // of a request or response; empty without an ID
	method string // empty for a response
	params json.RawMessage
	result json.RawMessage
	fault  json.RawMessage // the error of a response
}

// The methods and codes that the proxy knows.
const (
	methodCall       = "tools/call"
	methodList       = "tools/list"
	methodInitialize = "initialize"
	methodReady      = "notifications/initialized"
	methodCancel     = "notifications/cancelled"
	methodElicit     = "elicitation/create"

	methodTask       = "tasks/get"
	methodTaskResult = "tasks/result"

	codeInvalid  = -32600
	codeMethod   = -32601
	codeParams   = -32602
	codeInternal = -32603
)

// parse reads a message that all readers understand in the same way.
func parse(raw []byte) (message, error) {
	if start := bytes.TrimSpace(raw); len(start) > 0 && start[0] == '[' {
		return message{}, errors.New("it is a batch, which the protocol has no more: send the messages one by one")
	}
	o, err := mcpcall.ReadObject(raw)
	if err != nil {
		return message{}, err
	}
	if variant := o.Variant("jsonrpc", "id", "method", "params", "result", "error"); variant != "" {
		return message{}, fmt.Errorf("it has the member %q", variant)
	}
	m := message{raw: raw, id: o.Get("id"), params: o.Get("params"), result: o.Get("result"), fault: o.Get("error")}
	m.key = keyOf(m.id)
	isRequest := o.Get("method") != nil
	if isRequest {
		var ok bool
		if m.method, ok = o.Text("method"); !ok || m.method == "" {
			return m, errors.New("its method is no text")
		}
	}
	answers := m.result != nil || m.fault != nil
	switch {
	case m.id != nil && m.key == "" && string(m.id) != "null":
		return m, errors.New("its id is neither a text nor a number")
	case isRequest == answers, m.result != nil && m.fault != nil:
		return m, errors.New("it is neither a request nor a response")
	case answers && m.id == nil:
		return m, errors.New("it answers no request")
	}
	return m, nil
}

// keyOf returns the same text for IDs that are equal.
func keyOf(id json.RawMessage) string {
	var text string
	if json.Unmarshal(id, &text) == nil && string(id) != "null" {
		return "text " + text
	}
	var number json.Number
	if len(id) == 0 || id[0] == '"' || json.Unmarshal(id, &number) != nil || number == "" {
		return ""
	}
	if f, err := number.Float64(); err == nil && f == float64(int64(f)) {
		if n, err := number.Int64(); err == nil {
			return strconv.FormatInt(n, 10)
		}
		return strconv.FormatInt(int64(f), 10)
	}
	return number.String()
}

// answer returns a response with a result.
func answer(id, result json.RawMessage) []byte {
	return mcpcall.Object{{Name: "jsonrpc", Value: mcpcall.JSONOf("2.0")}, {Name: "id", Value: id}, {Name: "result", Value: result}}.JSON()
}

// fault returns a response with an error. A nil ID becomes null.
func fault(id json.RawMessage, code int, text string) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	return mcpcall.Object{
		{Name: "jsonrpc", Value: mcpcall.JSONOf("2.0")}, {Name: "id", Value: id},
		{Name: "error", Value: mcpcall.JSONOf(map[string]any{"code": code, "message": text})},
	}.JSON()
}

// request returns a request of the proxy's own.
func request(id, method string, params json.RawMessage) []byte {
	o := mcpcall.Object{{Name: "jsonrpc", Value: mcpcall.JSONOf("2.0")}}
	if id != "" {
		o = append(o, mcpcall.Member{Name: "id", Value: mcpcall.JSONOf(id)})
	}
	return append(o, mcpcall.Member{Name: "method", Value: mcpcall.JSONOf(method)}, mcpcall.Member{Name: "params", Value: params}).JSON()
}
