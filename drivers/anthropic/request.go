package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

// request returns the encoded request: the head, built with the SDK, the options, and the messages. Messages are
// encoded when they are first sent.
func (d *Driver) request(s agent.State, stream bool) ([]byte, []option.RequestOption, error) {
	r := s.Request()
	if err := d.accepts(r); err != nil {
		return nil, nil, err
	}
	extra, headers, err := requestOptions(r)
	if err != nil {
		return nil, nil, err
	}
	extra["stream"] = json.RawMessage(strconv.FormatBool(stream)) // also false, because some endpoints stream unless told otherwise
	out, err := d.head(s, extra)
	if err != nil {
		return nil, nil, err
	}
	out = bytes.TrimSuffix(out, []byte("}"))
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		quoted, err := json.Marshal(name)
		if err != nil {
			return nil, nil, err
		}
		out = append(append(append(append(out, ','), quoted...), ':'), extra[name]...)
	}
	out, err = d.appendMessages(append(out, `,"messages":[`...), s)
	return append(out, "]}"...), headers, err
}

// accepts returns an error for a request that the driver does not support.
func (d *Driver) accepts(r agent.Request) error {
	if r.Tools.Len() > 0 && !d.features.Tools {
		return errors.New("the model does not support tools: leave Request.Tools empty")
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

// head returns the request without messages and options. It removes the options from extra that it writes into members
// of the head.
func (d *Driver) head(s agent.State, extra map[string]json.RawMessage) ([]byte, error) {
	r := s.Request()
	p := sdk.MessageNewParams{Model: d.modelOf(r), MaxTokens: d.maxTokens(r)}
	if t, ok := r.Temperature.Get(); ok {
		p.Temperature = param.NewOpt(t)
	}
	system := []string{r.Instructions}
	for _, m := range s.Messages() { // leading system messages are instructions, too
		if m.Role() != agent.RoleSystem {
			break
		}
		system = append(system, m.Text())
	}
	if err := d.form(r, &p, extra, &system); err != nil {
		return nil, err
	}
	if text := strings.Join(lo.Filter(system, func(t string, _ int) bool { return !isBlank(t) }), "\n\n"); text != "" {
		p.System = []sdk.TextBlockParam{{Text: text}}
	}
	if err := d.tools(r, &p); err != nil {
		return nil, err
	}
	d.breakpoints(&p)
	if _, ok := extra["tool_choice"]; ok {
		p.ToolChoice = sdk.ToolChoiceUnionParam{}
	}
	if _, ok := extra["cache_control"]; ok {
		p.CacheControl = sdk.CacheControlEphemeralParam{}
	}
	if d.vertex {
		p.Model, extra["anthropic_version"] = "", json.RawMessage(`"`+vertexVersion+`"`)
	}
	return p.MarshalJSON()
}

// maxTokens returns the maximum length of the reply in tokens.
func (d *Driver) maxTokens(r agent.Request) int64 {
	if r.MaxOutputTokens > 0 {
		return int64(r.MaxOutputTokens)
	}
	return outputLimit(d.modelOf(r))
}

// form sets the final answer's format: a schema that the service enforces or, for models that do not support schemas,
// instructions.
func (d *Driver) form(r agent.Request, p *sdk.MessageNewParams, extra map[string]json.RawMessage, system *[]string) error {
	if r.Output == nil || r.Output.Schema == "" {
		return nil
	}
	if !json.Valid([]byte(r.Output.Schema)) {
		return errors.New("the schema of Request.Output is not JSON")
	}
	if !d.holdsForm(p.Model) {
		*system = append(*system, "Give your final answer as JSON alone, without a word or a fence around it, "+
			"that follows this JSON Schema:\n"+r.Output.Schema)
		return nil
	}
	var schema map[string]any
	if err := json.Unmarshal([]byte(r.Output.Schema), &schema); err != nil {
		return fmt.Errorf("the schema of Request.Output is not a JSON object: %w", err)
	}
	// Constraints that the service's schemas cannot express go into their descriptions. Output.Check checks the answer
	// against the whole schema.
	simple, ok := sdk.BetaJSONSchemaOutputFormat(schema).Schema.(map[string]any)
	if !ok || len(simple) == 0 {
		return errors.New("the schema of Request.Output is not a readable JSON Schema")
	}
	config := map[string]json.RawMessage{} // may already have members such as effort
	if given, ok := extra["output_config"]; ok && (json.Unmarshal(given, &config) != nil || config == nil) {
		return errors.New("option \"output_config\" is not a JSON object")
	}
	if _, ok := config["format"]; ok {
		return errors.New("option \"output_config\" has a format, and so has Request.Output: leave one of them out")
	}
	delete(extra, "output_config")
	format, err := sdk.JSONOutputFormatParam{Schema: simple}.MarshalJSON()
	if err != nil {
		return fmt.Errorf("the schema of Request.Output: %w", err)
	}
	config["format"] = format
	p.OutputConfig = param.Override[sdk.OutputConfigParam](config)
	return nil
}

// holdsForm reports whether the service can enforce a schema for a model's answers.
func (d *Driver) holdsForm(model string) bool {
	if model == d.features.Model {
		return d.features.StructuredOutput
	}
	_, known := limitsOf(model)
	return known
}

// tools sets the tools and the tool choice.
func (d *Driver) tools(r agent.Request, p *sdk.MessageNewParams) error {
	if r.Tools.Len() == 0 {
		return nil
	}
	for _, spec := range r.Tools.All() {
		tool := &sdk.ToolParam{Name: spec.Name}
		if spec.Description != "" {
			tool.Description = param.NewOpt(spec.Description)
		}
		if spec.Parameters == "" {
			tool.InputSchema.Properties = map[string]any{}
		} else {
			schema, err := service.ToolSchema(spec.Parameters)
			if err != nil {
				return fmt.Errorf("the parameters of tool %q %w", spec.Name, err)
			}
			tool.InputSchema = param.Override[sdk.ToolInputSchemaParam](json.RawMessage(schema))
		}
		p.Tools = append(p.Tools, sdk.ToolUnionParam{OfTool: tool})
	}
	single := param.Opt[bool]{}
	if !d.features.ParallelCalls {
		single = param.NewOpt(true)
	}
	switch r.ToolChoice {
	case agent.ToolsAuto:
		if single.Valid() {
			p.ToolChoice.OfAuto = &sdk.ToolChoiceAutoParam{DisableParallelToolUse: single}
		}
	case agent.ToolsRequired:
		p.ToolChoice.OfAny = &sdk.ToolChoiceAnyParam{DisableParallelToolUse: single}
	case agent.ToolsNone:
		p.ToolChoice.OfNone = new(sdk.NewToolChoiceNoneParam())
	default:
		p.ToolChoice.OfTool = &sdk.ToolChoiceToolParam{Name: string(r.ToolChoice), DisableParallelToolUse: single}
	}
	return nil
}

// breakpoints sets the positions up to which the service caches the prompt.
func (d *Driver) breakpoints(p *sdk.MessageNewParams) {
	if d.cache == CacheOff {
		return
	}
	until := sdk.CacheControlEphemeralParam{TTL: sdk.CacheControlEphemeralTTL(d.cache)}
	switch {
	case len(p.System) > 0:
		p.System[len(p.System)-1].CacheControl = until
	case len(p.Tools) > 0:
		p.Tools[len(p.Tools)-1].OfTool.CacheControl = until
	}
	p.CacheControl = until // the service finds the end of the messages itself
}

// instead maps a reserved option to the place where it is set.
var instead = map[string]string{
	"messages": "the state", "model": "Request.Model", "stream": "Stream", "system": "Request.Instructions",
	"tools": "Request.Tools", "max_tokens": "Request.MaxOutputTokens", "temperature": "Request.Temperature",
}

// requestOptions returns the request's options: body members, and the header for "betas".
func requestOptions(r agent.Request) (map[string]json.RawMessage, []option.RequestOption, error) {
	extra := map[string]json.RawMessage{}
	var headers []option.RequestOption
	for name, value := range r.Options.All() {
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, nil, fmt.Errorf("option %q cannot be sent: %w", name, err)
		}
		switch place, set := instead[name]; {
		case set:
			return nil, nil, fmt.Errorf("option %q would overwrite what the driver sends: it comes from %s", name, place)
		case name == "anthropic_version":
			return nil, nil, errors.New("option \"anthropic_version\" would overwrite what the driver sends: the driver sets it")
		case name == "tool_choice" && r.ToolChoice != agent.ToolsAuto:
			return nil, nil, errors.New("option \"tool_choice\" would overwrite Request.ToolChoice: leave one of them out")
		case name == "betas":
			var betas []string
			if json.Unmarshal(raw, &betas) != nil {
				return nil, nil, errors.New("option \"betas\" must be a list of names")
			}
			for _, beta := range betas {
				headers = append(headers, option.WithHeaderAdd("anthropic-beta", beta))
			}
		default:
			extra[name] = raw
		}
	}
	return extra, headers, nil
}
