package openai

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

// toolForms caches the last few encoded tool lists, so that a list is encoded once and not with every step. The zero
// value is ready to use.
type toolForms struct {
	mu   sync.Mutex
	last []toolForm // the most recently used comes first
}

type toolForm struct {
	specs []agent.ToolSpec
	text  []byte
}

// keptForms is the number of cached lists. Agents that share a driver, and hooks that sometimes change the tools, use
// more than one.
const keptForms = 8

// of returns the list encoded by encode, which must always be the same func. The caller must not change the text.
func (f *toolForms) of(tools agent.Tools, encode func(agent.Tools) ([]byte, error)) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	form, i, ok := lo.FindIndexOf(f.last, func(form toolForm) bool { return form.are(tools) })
	if ok {
		f.last = slices.Delete(f.last, i, i+1)
	} else {
		text, err := encode(tools)
		if err != nil {
			return nil, err
		}
		form.text = text
		for _, spec := range tools.All() {
			form.specs = append(form.specs, spec)
		}
	}
	f.last = slices.Insert(f.last, 0, form)
	f.last = f.last[:min(len(f.last), keptForms)]
	return form.text, nil
}

// are reports whether the form belongs to these tools. The comparison is fast, because equal strings usually share
// their memory.
func (f toolForm) are(tools agent.Tools) bool {
	if len(f.specs) != tools.Len() {
		return false
	}
	for i, spec := range tools.All() {
		if f.specs[i] != spec {
			return false
		}
	}
	return true
}

type toolJSON struct {
	Type     string       `json:"type"`
	Function functionJSON `json:"function"`
}

// functionJSON contains the schema as raw JSON, because a map would lose member order and digits of numbers.
type functionJSON struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

func encodeTools(tools agent.Tools) ([]byte, error) {
	functions, err := functionsOf(tools)
	if err != nil {
		return nil, err
	}
	return encodeJSON(lo.Map(functions, func(f functionJSON, _ int) toolJSON { return toolJSON{"function", f} }))
}

// functionsOf returns the tools as both APIs describe them.
func functionsOf(tools agent.Tools) ([]functionJSON, error) {
	var list []functionJSON
	for _, spec := range tools.All() {
		schema, err := service.ToolSchema(spec.Parameters)
		if err != nil {
			return nil, fmt.Errorf("the parameters of tool %q %w", spec.Name, err)
		}
		list = append(list, functionJSON{spec.Name, spec.Description, json.RawMessage(schema)})
	}
	return list, nil
}
