package gemini

import (
	"strconv"
	"strings"
)

// The limits for Gemini 2.5 and 3 models, in tokens.
const (
	contextTokens   = 1_048_576
	maxOutputTokens = 65_536
)

// modelGeneration returns the number of a model's generation, 3 for "gemini-3.8-flash". It returns zero when the name
// does not contain it.
func modelGeneration(model string) int {
	name, ok := strings.CutPrefix(bareModel(model), "gemini-")
	if !ok {
		return 0
	}
	end := strings.IndexFunc(name, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(name)
	}
	n, _ := strconv.Atoi(name[:end])
	return n
}

// isEarlyModel reports whether the model is older than the third generation. Such models cannot follow an output schema
// when a request has tools, cannot see images in a tool's answer, and do not require call signatures.
func isEarlyModel(model string) bool {
	n := modelGeneration(model)
	return n == 1 || n == 2
}

// modelPath returns a model's path at the service.
func modelPath(model string) string {
	if strings.HasPrefix(model, "models/") || strings.HasPrefix(model, "tunedModels/") {
		return model
	}
	return "models/" + model
}

// bareModel returns a model's name without the prefix models/.
func bareModel(model string) string { return strings.TrimPrefix(model, "models/") }
