package toolexec

import (
	"fmt"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// outputOf returns the function that converts answers of type Out for the model. It is chosen once for each tool.
func outputOf[Out any]() func(Out) (Output, error) {
	var way any
	switch any(*new(Out)).(type) {
	case string:
		way = func(text string) (Output, error) { return TextOutput(text), nil }
	case Output:
		way = func(out Output) (Output, error) { return out, nil }
	case agent.Content:
		way = func(content agent.Content) (Output, error) { return Output{Content: content}, nil }
	default:
		way = jsonOutput[Out]
	}
	return way.(func(Out) (Output, error)) //nolint:forcetypeassert // each case of the switch sets a func of this type
}

func jsonOutput[Out any](out Out) (Output, error) {
	text, err := strictjson.Marshal(out)
	if err != nil {
		return Output{}, fmt.Errorf("writing the answer as JSON: %w", err)
	}
	return TextOutput(text), nil
}
