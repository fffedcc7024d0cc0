package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

// The format is POST /v1/responses in OpenAI's API description (https://github.com/openai/openai-openapi, schemas
// CreateResponse, InputItem, Response and ResponseStreamEvent), like the types in
// github.com/openai/openai-go/v3/responses.

// responsesReserved lists the request members that no option may set.
var responsesReserved = map[string]string{ //nolint:gosec // these tokens are what models count
	"input":                "the driver sends the messages of the run",
	"instructions":         "set agent.Request.Instructions",
	"model":                "set agent.Request.Model",
	"tools":                "set agent.Request.Tools, or the option server_tools for tools that the service runs",
	"stream":               "the run decides whether a reply is streamed",
	"temperature":          "set agent.Request.Temperature",
	"max_output_tokens":    "set agent.Request.MaxOutputTokens",
	"previous_response_id": "each request contains the whole conversation",
	"conversation":         "each request contains the whole conversation",
	"background":           "a step waits for its reply",
}

// encryptedReasoning requests reasoning in a format that can be sent back although the service has not stored it.
const encryptedReasoning = "reasoning.encrypted_content"

// responsesRequest returns a request's body.
func (d *Driver) responsesRequest(model string, s agent.State, stream bool) ([]byte, error) {
	r := s.Request()
	if err := d.fits(r); err != nil {
		return nil, err
	}
	special, err := readSpecial(r.Options)
	if err != nil {
		return nil, err
	}
	var o object
	o.set("model", model)
	o.set("stream", stream) // also false, because some services stream unless told otherwise
	if _, ok := r.Options.Option("store"); !ok {
		o.set("store", false)
	}
	if include := d.include(model, special); len(include) > 0 {
		o.set("include", include)
	}
	if r.Instructions != "" {
		o.set("instructions", r.Instructions)
	}
	if r.MaxOutputTokens > 0 {
		o.set("max_output_tokens", r.MaxOutputTokens)
	}
	if t, ok := r.Temperature.Get(); ok {
		o.set("temperature", t)
	}
	if err := d.setText(&o, r.Output, special.Text); err != nil {
		return nil, err
	}
	tools, err := d.responsesTools(r.Tools, special.Tools)
	if err != nil {
		return nil, err
	}
	if tools != nil {
		setChoice(&o, r.ToolChoice)
		o.raw("tools", tools)
	}
	if err := d.setOptions(&o, r.Options, "server_tools", "include", "text"); err != nil {
		return nil, err
	}
	if o.err != nil {
		return nil, o.err
	}
	return d.appendItems(o.buf, model, s)
}

// setChoice sets the tool choice.
func setChoice(o *object, choice agent.ToolChoice) {
	switch choice {
	case agent.ToolsAuto:
	case agent.ToolsRequired, agent.ToolsNone:
		o.set("tool_choice", choice)
	default:
		o.set("tool_choice", map[string]any{"type": "function", "name": choice})
	}
}

// special contains the options that are not simply members of the request.
type special struct {
	// Tools are tools that the service runs: objects with a type.
	Tools []json.RawMessage `json:"server_tools"`
	// Include lists additional data for the reply; nil when the option is not set.
	Include []string `json:"include"`
	// Text is joined with the answer's format.
	Text map[string]json.RawMessage `json:"text"`
}

func readSpecial(options agent.Options) (special, error) {
	var s special
	for name, to := range map[string]any{"server_tools": &s.Tools, "include": &s.Include, "text": &s.Text} {
		value, ok := options.Option(name)
		if !ok {
			continue
		}
		raw, err := encodeJSON(value)
		if err != nil || json.Unmarshal(raw, to) != nil {
			return s, fmt.Errorf("the option %q is not %s", name, lo.Ternary(name == "text", "an object", "a list"))
		}
	}
	for i, tool := range s.Tools {
		var head struct {
			Type string `json:"type"`
		}
		switch err := json.Unmarshal(tool, &head); {
		case err != nil || head.Type == "":
			return s, fmt.Errorf(`the option "server_tools": tool %d is not an object with a type, such as {"type": "web_search"}`, i)
		case head.Type == "function":
			return s, fmt.Errorf(`the option "server_tools": tool %d is a function, which the service does not run: set agent.Request.Tools`, i)
		}
		if advice, ok := unanswerable[head.Type]; ok {
			return s, fmt.Errorf(`the option "server_tools": tool %d of the type %q is not run by the service: %s`, i, head.Type, advice)
		}
	}
	return s, nil
}

// include returns the additional data that a reply must have: reasoning that can be sent back, if the model reasons,
// and the data in the option. An empty list in the option requests nothing.
func (d *Driver) include(model string, s special) []string {
	if s.Include != nil && len(s.Include) == 0 || !d.reasons(model) {
		return s.Include
	}
	return lo.Uniq(append([]string{encryptedReasoning}, s.Include...))
}

// reasons reports whether the driver requests a model's reasoning and sends earlier reasoning back.
func (d *Driver) reasons(model string) bool { return d.features.Reasoning && isReasoningModel(model) }

// isReasoningModel reports whether a model can reason. OpenAI's models before o1 do not, and the service refuses
// requests for their reasoning ("Encrypted content is not supported with this model").
func isReasoningModel(model string) bool {
	return !lo.SomeBy([]string{"gpt-3.5", "gpt-4", "chatgpt-", "ft:gpt-3.5", "ft:gpt-4"}, func(begins string) bool {
		return strings.HasPrefix(model, begins)
	}) && !strings.HasPrefix(model, "gpt-5-chat")
}

// textFormat is the answer's format.
type textFormat struct {
	Type string `json:"type"`
	*jsonSchemaJSON
}

// setText sets the answer's format and other members of the option "text", such as verbosity.
func (d *Driver) setText(o *object, output *agent.Output, text map[string]json.RawMessage) error {
	if output != nil && output.Schema != "" && d.features.StructuredOutput {
		schema, err := outputSchema(*output, d.vendor)
		if err != nil {
			return err
		}
		if _, ok := text["format"]; ok && schema != nil {
			return errors.New(`the option "text" has a format, and so has agent.Request.Output: leave one of them out`)
		}
		if schema != nil {
			format, err := encodeJSON(textFormat{"json_schema", schema})
			if err != nil {
				return err
			}
			text = lo.Assign(text, map[string]json.RawMessage{"format": format})
		}
	}
	if len(text) > 0 {
		o.set("text", text)
	}
	return nil
}

// responsesTools returns the list of all tools. It returns nil when there are none.
func (d *Driver) responsesTools(tools agent.Tools, ofService []json.RawMessage) ([]byte, error) {
	if tools.Len() == 0 && len(ofService) == 0 {
		return nil, nil
	}
	list := []byte("[]")
	if tools.Len() > 0 {
		own, err := d.tools.of(tools, encodeFunctions)
		if err != nil || len(ofService) == 0 {
			return own, err
		}
		list = slices.Clone(own)
	}
	list = list[:len(list)-1]
	for _, tool := range ofService {
		if len(list) > 1 {
			list = append(list, ',')
		}
		list = append(list, tool...)
	}
	return append(list, ']'), nil
}

// toolFunction is a function that the model may call. Strict is always sent. Without it, the service assumes true and
// refuses schemas that do not follow the strict rules.
type toolFunction struct {
	Type string `json:"type"`
	functionJSON
	Strict bool `json:"strict"`
}

func encodeFunctions(tools agent.Tools) ([]byte, error) {
	functions, err := functionsOf(tools)
	if err != nil {
		return nil, err
	}
	return encodeJSON(lo.Map(functions, func(f functionJSON, _ int) toolFunction { return toolFunction{"function", f, false} }))
}

// appendItems ends a request's object with its messages' items.
func (d *Driver) appendItems(dst []byte, model string, s agent.State) ([]byte, error) {
	size, form := 100, d.messages
	if !d.reasons(model) {
		form = d.bare
	}
	for i, m := range s.Messages() {
		items, err := form.Of(m)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		size += len(items) + 1
	}
	dst = append(slices.Grow(dst, size), `,"input":[`...)
	began := false
	for _, m := range s.Messages() {
		items, err := form.Of(m)
		if err != nil {
			return nil, err
		}
		if items == "" { // an empty reply
			continue
		}
		if began {
			dst = append(dst, ',')
		}
		dst = append(dst, items...)
		began = true
	}
	if !began && s.Request().Instructions != "" { // the service requires some input
		item, err := encodeJSON(inputMessage{Role: "system", Content: s.Request().Instructions})
		if err != nil {
			return nil, err
		}
		dst = append(dst, item...)
	}
	return append(dst, "]}"...), nil
}

// unanswerable maps kinds of calls to advice. The program would have to answer such calls, which drivers cannot do.
// Tools have the same names without "_call".
var unanswerable = map[string]string{
	"custom": "make it a function", "custom_tool_call": "make the tool a function",
	"computer": computerAdvice, "computer_use_preview": computerAdvice, "computer_call": computerAdvice,
	"local_shell": shellAdvice, "local_shell_call": shellAdvice,
	"apply_patch": patchAdvice, "apply_patch_call": patchAdvice,
	"mcp_approval_request": `set require_approval of the MCP tool to "never", or connect the server as a tool of the agent`,
}

const (
	computerAdvice = "leave it out"
	shellAdvice    = "leave it out and give the agent a shell of its own"
	patchAdvice    = "leave it out and give the agent tools for files"
)

// checkAnswerable returns an error for a reply's item that the program would have to answer.
func checkAnswerable(kind string) error {
	if advice, ok := unanswerable[kind]; ok {
		return &service.UnfitError{Err: fmt.Errorf("the reply has an item of the type %q, which only the program could answer: %s", kind, advice)}
	}
	return nil
}
