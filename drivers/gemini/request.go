package gemini

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

// ofRequest lists the options that are members of the request. All others are members of its generationConfig.
var ofRequest = []string{"cachedContent", "labels", "safetySettings", "serviceTier", "store"}

// elsewhere maps names that an option must not have to advice.
var elsewhere = map[string]string{ //nolint:gosec // these tokens are what models count
	"contents":           "the messages are those of the run",
	"systemInstruction":  "set agent.Request.Instructions",
	"tools":              "set agent.Request.Tools",
	"toolConfig":         "set agent.Request.ToolChoice",
	"model":              "set agent.Request.Model",
	"generationConfig":   "set each of its members as an option",
	"temperature":        "set agent.Request.Temperature",
	"maxOutputTokens":    "set agent.Request.MaxOutputTokens",
	"responseJsonSchema": "set agent.Request.Output",
	"responseSchema":     "set agent.Request.Output",
	"responseFormat":     "set agent.Request.Output",
	"candidateCount":     "a step has one reply",
	"continuationToken":  "a step has one request",
}

// body returns a request's body without its contents, and the contents. Messages are encoded when they are first sent.
func (d *Driver) body(model string, s agent.State) (body map[string]any, contents []byte, err error) {
	if strings.ContainsAny(model, "?&#%") || strings.Contains(model, "..") {
		return nil, nil, fmt.Errorf("%q is not a model name", model)
	}
	r := s.Request()
	system := []string{r.Instructions}
	if contents, err = d.contents(model, s, &system); err != nil {
		return nil, nil, err
	}
	body = map[string]any{}
	settings := map[string]any{}
	if r.MaxOutputTokens > 0 {
		settings["maxOutputTokens"] = r.MaxOutputTokens
	}
	if t, ok := r.Temperature.Get(); ok {
		settings["temperature"] = t
	}
	if err := d.output(model, r, settings, &system); err != nil {
		return nil, nil, err
	}
	if err := addOptions(r, body, settings); err != nil {
		return nil, nil, err
	}
	if err := d.tools(r, body); err != nil {
		return nil, nil, err
	}
	if len(settings) > 0 {
		body["generationConfig"] = settings
	}
	if system = lo.Compact(system); len(system) > 0 {
		body["systemInstruction"] = map[string]any{
			"parts": lo.Map(system, func(text string, _ int) part { return part{Text: &text} }),
		}
	}
	return body, contents, nil
}

// output sets the answer's format: a schema that the service enforces or, for models that do not support schemas,
// instructions.
func (d *Driver) output(model string, r agent.Request, settings map[string]any, system *[]string) error {
	if r.Output == nil || r.Output.Schema == "" {
		return nil
	}
	if !json.Valid([]byte(r.Output.Schema)) {
		return errors.New("the schema of agent.Request.Output is not JSON")
	}
	if !d.features.StructuredOutput || r.Tools.Len() > 0 && isEarlyModel(model) {
		*system = append(*system, "Give your final answer as JSON alone, without a word or a fence around it, "+
			"that follows this JSON Schema:\n"+r.Output.Schema)
		return nil
	}
	settings["responseMimeType"] = "application/json"
	settings["responseJsonSchema"] = json.RawMessage(r.Output.Schema)
	return nil
}

// addOptions adds this service's options to the request or to its settings.
func addOptions(r agent.Request, body, settings map[string]any) error {
	for name, value := range r.Options.All() {
		if why, ok := elsewhere[name]; ok {
			return fmt.Errorf("option %q would overwrite what the driver sends: %s", name, why)
		}
		if _, ok := settings[name]; ok {
			return fmt.Errorf("option %q is set by the request already: leave one of them out", name)
		}
		text, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("option %q cannot be encoded as JSON: %w", name, err)
		}
		lo.Ternary(slices.Contains(ofRequest, name), body, settings)[name] = json.RawMessage(text)
	}
	return nil
}

type declaration struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parametersJsonSchema,omitempty"`
}

// tools sets the tools and the tool choice.
func (d *Driver) tools(r agent.Request, body map[string]any) error {
	if r.Tools.Len() == 0 {
		if r.ToolChoice != agent.ToolsAuto && r.ToolChoice != agent.ToolsNone {
			return fmt.Errorf("the tool choice is %q, but the request has no tools", r.ToolChoice)
		}
		return nil
	}
	if !d.features.Tools {
		return fmt.Errorf("the request has tools, which %s does not accept", d)
	}
	declared := make([]declaration, 0, r.Tools.Len())
	for _, spec := range r.Tools.All() {
		schema := spec.Parameters
		if schema != "" {
			var err error
			if schema, err = service.ToolSchema(schema); err != nil {
				return fmt.Errorf("the parameters of tool %q %w", spec.Name, err)
			}
		}
		declared = append(declared, declaration{spec.Name, spec.Description, json.RawMessage(schema)})
	}
	body["tools"] = []any{map[string]any{"functionDeclarations": declared}}

	calling := map[string]any{}
	switch r.ToolChoice {
	case agent.ToolsAuto:
		return nil // the default
	case agent.ToolsNone:
		calling["mode"] = "NONE"
	case agent.ToolsRequired:
		calling["mode"] = "ANY"
	default:
		if _, ok := r.Tools.ByName(string(r.ToolChoice)); !ok {
			return fmt.Errorf("the tool choice %q is not a tool of the request", r.ToolChoice)
		}
		calling["mode"], calling["allowedFunctionNames"] = "ANY", []string{string(r.ToolChoice)}
	}
	body["toolConfig"] = map[string]any{"functionCallingConfig": calling}
	return nil
}
