package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
)

// chatReserved lists the request members that no option may set.
var chatReserved = map[string]string{ //nolint:gosec // these tokens are what models count
	"messages":              "the driver sends the messages of the run",
	"model":                 "set agent.Request.Model",
	"tools":                 "set agent.Request.Tools",
	"functions":             "set agent.Request.Tools",
	"function_call":         "set agent.Request.ToolChoice",
	"stream":                "the run decides whether a reply is streamed",
	"temperature":           "set agent.Request.Temperature",
	"max_tokens":            "set agent.Request.MaxOutputTokens",
	"max_completion_tokens": "set agent.Request.MaxOutputTokens",
	"n":                     "a step has one reply",
}

// request returns a request's body. Messages and tools are encoded when they are first sent.
func (d *Driver) request(model string, s agent.State, stream bool) ([]byte, error) {
	r := s.Request()
	if err := d.fits(r); err != nil {
		return nil, err
	}
	var o object
	o.set("model", model)
	o.set("stream", stream) // also false, because some services stream unless told otherwise
	if stream && !d.dialect.NoStreamUsage {
		o.set("stream_options", map[string]bool{"include_usage": true})
	}
	if r.MaxOutputTokens > 0 {
		o.set(d.dialect.MaxTokens, r.MaxOutputTokens)
	}
	if t, ok := r.Temperature.Get(); ok {
		o.set("temperature", t)
	}
	if r.Tools.Len() > 0 {
		switch r.ToolChoice {
		case agent.ToolsAuto:
		case agent.ToolsRequired, agent.ToolsNone:
			o.set("tool_choice", r.ToolChoice)
		default:
			o.set("tool_choice", map[string]any{"type": "function", "function": map[string]any{"name": r.ToolChoice}})
		}
	}
	if r.Output != nil && r.Output.Schema != "" && d.features.StructuredOutput {
		schema, err := outputSchema(*r.Output, d.vendor)
		if err != nil {
			return nil, err
		}
		if schema != nil {
			o.set("response_format", formatJSON{"json_schema", schema})
		}
	}
	if err := d.setOptions(&o, r.Options); err != nil {
		return nil, err
	}
	if r.Tools.Len() > 0 {
		tools, err := d.tools.of(r.Tools, encodeTools)
		if err != nil {
			return nil, err
		}
		o.raw("tools", tools)
	}
	if o.err != nil {
		return nil, o.err
	}
	return d.appendMessages(o.buf, s)
}

// setOptions adds the options to a request, except those named in but.
func (d *Driver) setOptions(o *object, options agent.Options, but ...string) error {
	for name, value := range options.All() {
		switch why, reserved := d.api.reserved[name]; {
		case reserved:
			return fmt.Errorf("the option %q cannot be set: %s", name, why)
		case slices.Contains(but, name):
			continue
		case slices.Contains(o.names, name):
			return fmt.Errorf("the option %q is set by the request already: leave one of them out", name)
		}
		o.set(name, value)
	}
	return nil
}

// appendMessages adds the messages and the end of a request's object. It allocates the memory first, because some
// requests have megabytes, which a growing buffer would copy repeatedly.
func (d *Driver) appendMessages(dst []byte, s agent.State) ([]byte, error) {
	size := 2*len(s.Request().Instructions) + 100
	for _, m := range s.Messages() {
		text, err := d.messages.Of(m)
		if err != nil {
			return nil, err
		}
		size += len(text) + 1
	}
	dst = append(slices.Grow(dst, size), `,"messages":[`...)
	if text := s.Request().Instructions; text != "" {
		instructions, err := encodeJSON(map[string]string{"role": d.dialect.Instructions, "content": text})
		if err != nil {
			return nil, err
		}
		dst = append(dst, instructions...)
		dst = append(dst, ',')
	}
	before := len(dst)
	dst, err := d.messages.AppendMessages(dst, s)
	if err != nil {
		return nil, err
	}
	if len(dst) == before && dst[before-1] == ',' {
		dst = dst[:before-1] // instructions, but no messages yet
	}
	return append(dst, "]}"...), nil
}

// fits returns an error for a request that the endpoint does not support.
func (d *Driver) fits(r agent.Request) error {
	if r.Tools.Len() > 0 && !d.features.Tools {
		return fmt.Errorf("the request has tools, which %s does not accept", d)
	}
	switch r.ToolChoice {
	case agent.ToolsAuto, agent.ToolsNone:
		return nil
	case agent.ToolsRequired:
		if r.Tools.Len() == 0 {
			return errors.New("a tool call is required, but the request has no tools")
		}
		return nil
	}
	if _, ok := r.Tools.ByName(string(r.ToolChoice)); !ok {
		return fmt.Errorf("the tool choice %q is not a tool of the request", r.ToolChoice)
	}
	return nil
}

// object is a JSON object that is being written, without its closing brace.
type object struct {
	buf   []byte
	names []string
	err   error
}

func (o *object) set(name string, value any) {
	text, err := encodeJSON(value)
	if err != nil {
		o.err = errors.Join(o.err, fmt.Errorf("the value of %q cannot be encoded as JSON: %w", name, err))
		return
	}
	o.raw(name, text)
}

func (o *object) raw(name string, text []byte) {
	quoted, _ := encodeJSON(name)
	o.buf = append(o.buf, lo.Ternary(len(o.buf) == 0, "{", ",")...)
	o.buf = append(o.buf, quoted...)
	o.buf = append(o.buf, ':')
	o.buf = append(o.buf, text...)
	o.names = append(o.names, name)
}

// encodeJSON encodes a value as JSON without escaping characters for HTML.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}
