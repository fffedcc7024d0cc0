package registry

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/toolexec"
)

// request applies the definition's settings to a request.
func (d Definition) request(r agent.Request) agent.Request {
	r.MaxOutputTokens = d.MaxOutputTokens
	if d.Temperature != nil {
		r.Temperature = mo.Some(*d.Temperature)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Options)) {
		r.Options = r.Options.With(name, d.Options[name])
	}
	if text := string(d.Output.Schema); text != "" {
		schema, err := toolexec.CompileSchema(text)
		r.Output = &agent.Output{Name: lo.CoalesceOrEmpty(d.Output.Name, "answer"), Schema: text, Check: func(answer string) error {
			if err != nil {
				return err
			}
			return ofAnswer(schema.Validate(TrimFence(answer)))
		}}
	}
	return r
}

// ofAnswer removes the word "arguments" from a checking error, because the model reads it as an error in its answer.
func ofAnswer(err error) error {
	if wrong, ok := errors.AsType[*agent.ArgumentsError](err); ok {
		_, text, _ := strings.Cut(wrong.Error(), ": ")
		return errors.New(text)
	}
	return err
}

// TrimFence returns an answer without the code fence that models often put around JSON. If a definition has an Output,
// the agent checks this text.
func TrimFence(answer string) string {
	text := strings.TrimSpace(answer)
	body, opened := strings.CutPrefix(text, "```")
	body, closed := strings.CutSuffix(body, "```")
	if !opened || !closed {
		return text
	}
	return strings.TrimSpace(strings.TrimPrefix(body, "json"))
}
