package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
)

// request is the request as it is sent: its head, which is the SDK's, and the messages,
// which were encoded when they were first sent.
func (d *Driver) request(s agent.State, stream bool) ([]byte, []option.RequestOption, error) {
	if err := d.accepts(s.Request()); err != nil {
		return nil, nil, err
	}
	head, headers, err := d.head(s, stream)
	if err != nil {
		return nil, nil, err
	}
	out := append(bytes.TrimSuffix(head, []byte("}")), `,"messages":[`...)
	out, err = d.appendMessages(out, s)
	return append(out, "]}"...), headers, err
}

// accepts says what of a request the driver cannot do.
func (d *Driver) accepts(r agent.Request) error {
	if r.Tools.Len() > 0 && !d.features.Tools {
		return errors.New("the model takes no tools: leave Request.Tools empty")
	}
	if name := string(r.ToolChoice); name != "" && r.ToolChoice != agent.ToolsRequired && r.ToolChoice != agent.ToolsNone &&
		r.Tools.Named(name).IsAbsent() {
		return fmt.Errorf("the tool choice %q is no tool of the request", name)
	}
	return nil
}

// head is everything of a request but the messages.
func (d *Driver) head(s agent.State, stream bool) ([]byte, []option.RequestOption, error) {
	r := s.Request()
	p := sdk.MessageNewParams{Model: d.modelOf(r), MaxTokens: d.maxTokens(r)}
	if t, ok := r.Temperature.Get(); ok {
		p.Temperature = param.NewOpt(t)
	}
	extra, headers, err := options(r)
	if err != nil {
		return nil, nil, err
	}
	system := []string{r.Instructions}
	for _, m := range s.Messages() { // those that stand first are instructions, too
		if m.Role() != agent.RoleSystem {
			break
		}
		system = append(system, m.Text())
	}
	if err := d.form(r, &p, extra, &system); err != nil {
		return nil, nil, err
	}
	if text := strings.Join(lo.Filter(system, func(t string, _ int) bool { return !blank(t) }), "\n\n"); text != "" {
		p.System = []sdk.TextBlockParam{{Text: text}}
	}
	if err := tools(r, &p); err != nil {
		return nil, nil, err
	}
	d.breakpoints(&p)
	if stream {
		extra["stream"] = true
	}
	p.SetExtraFields(extra)
	head, err := p.MarshalJSON()
	return head, headers, err
}

// maxTokens is how long the reply may be.
func (d *Driver) maxTokens(r agent.Request) int64 {
	if r.MaxOutputTokens > 0 {
		return int64(r.MaxOutputTokens)
	}
	return outputLimit(d.modelOf(r))
}

// form asks for the form that the final answer must have: of the service, where it
// can hold an answer to a schema, and of the model in words where not.
func (d *Driver) form(r agent.Request, p *sdk.MessageNewParams, extra map[string]any, system *[]string) error {
	if r.Output == nil || r.Output.Schema == "" {
		return nil
	}
	if !d.features.StructuredOutput {
		*system = append(*system, "Give your final answer as JSON alone, without a word or a fence around it, "+
			"that follows this JSON Schema:\n"+r.Output.Schema)
		return nil
	}
	var schema map[string]any
	if err := json.Unmarshal([]byte(r.Output.Schema), &schema); err != nil {
		return fmt.Errorf("the schema of Request.Output is no JSON object: %w", err)
	}
	// What the service's schemas cannot say goes into their descriptions; Output.Check
	// looks at the answer with the whole schema.
	simple, ok := sdk.BetaJSONSchemaOutputFormat(schema).Schema.(map[string]any)
	if !ok || len(simple) == 0 {
		return errors.New("the schema of Request.Output is no JSON Schema that can be read")
	}
	p.OutputConfig.Format.Schema = simple
	if given, ok := extra["output_config"]; ok { // effort, say, with which it is one object
		fields, err := object(given)
		if err != nil {
			return fmt.Errorf("option \"output_config\": %w", err)
		}
		if _, ok := fields["format"]; ok {
			return errors.New("option \"output_config\" has a format, and so has Request.Output: leave one away")
		}
		p.OutputConfig.SetExtraFields(fields)
		delete(extra, "output_config")
	}
	return nil
}

// object is a value as the members of a JSON object.
func object(v any) (map[string]any, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, errors.New("it is no JSON object")
	}
	return lo.MapValues(fields, func(raw json.RawMessage, _ string) any { return raw }), nil
}

// tools offers the tools and says whether one must be called.
func tools(r agent.Request, p *sdk.MessageNewParams) error {
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
			if !isObject(spec.Parameters) {
				return fmt.Errorf("the parameters of tool %q are no JSON object", spec.Name)
			}
			tool.InputSchema = param.Override[sdk.ToolInputSchemaParam](json.RawMessage(spec.Parameters))
		}
		p.Tools = append(p.Tools, sdk.ToolUnionParam{OfTool: tool})
	}
	switch r.ToolChoice {
	case agent.ToolsAuto:
	case agent.ToolsRequired:
		p.ToolChoice.OfAny = &sdk.ToolChoiceAnyParam{}
	case agent.ToolsNone:
		p.ToolChoice.OfNone = lo.ToPtr(sdk.NewToolChoiceNoneParam())
	default:
		p.ToolChoice.OfTool = &sdk.ToolChoiceToolParam{Name: string(r.ToolChoice)}
	}
	return nil
}

// isObject reports whether a text is one JSON object.
func isObject(text string) bool {
	return strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{") && json.Valid([]byte(text))
}

// breakpoints says up to where the service keeps what it reads.
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

// instead names what is set elsewhere than in Request.Options.
var instead = map[string]string{
	"messages": "the state", "model": "Request.Model", "stream": "Stream", "system": "Request.Instructions",
	"tools": "Request.Tools", "max_tokens": "Request.MaxOutputTokens", "temperature": "Request.Temperature",
}

// options are the settings that the request has for this service: members of the
// body, and "betas", which are a header.
func options(r agent.Request) (map[string]any, []option.RequestOption, error) {
	extra := maps.Collect(r.Options.All())
	for name := range extra {
		if place, ok := instead[name]; ok {
			return nil, nil, fmt.Errorf("option %q would overwrite what the driver sends: it comes from %s", name, place)
		}
	}
	if _, ok := extra["tool_choice"]; ok && r.ToolChoice != agent.ToolsAuto {
		return nil, nil, errors.New("option \"tool_choice\" would overwrite Request.ToolChoice: leave one away")
	}
	var headers []option.RequestOption
	if given, ok := extra["betas"]; ok {
		delete(extra, "betas")
		text, err := json.Marshal(given)
		var names []string
		if err != nil || json.Unmarshal(text, &names) != nil {
			return nil, nil, errors.New("option \"betas\" must be a list of names")
		}
		for _, name := range names {
			headers = append(headers, option.WithHeaderAdd("anthropic-beta", name))
		}
	}
	return extra, headers, nil
}
