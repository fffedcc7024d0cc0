package anthropic

import "regexp"

// limits are the maximum input and output of a model, in tokens.
type limits struct{ context, output int64 }

// models has the limits from https://platform.claude.com/docs/en/models, read on 2026-11-21. Every model in
// it can follow a JSON schema in its answers.
var models = map[string]limits{
	"claude-fable-5-1":  {1_000_000, 128_000},
	"claude-fable-5":    {1_000_000, 128_000},
	"claude-opus-5-5":   {1_000_000, 128_000},
	"claude-opus-5":     {1_000_000, 128_000},
	"claude-opus-4-8":   {1_000_000, 128_000},
	"claude-opus-4-7":   {1_000_000, 128_000},
	"claude-opus-4-6":   {1_000_000, 128_000},
	"claude-opus-4-5":   {200_000, 64_000},
	"claude-sonnet-5-5": {1_000_000, 128_000},
	"claude-sonnet-5":   {1_000_000, 128_000},
	"claude-sonnet-4-6": {1_000_000, 128_000},
	"claude-sonnet-4-5": {200_000, 64_000},
	"claude-haiku-5-5":  {1_000_000, 128_000},
	"claude-haiku-4-5":  {200_000, 64_000},
}

// day matches the date of a version at the end of a model's name: claude-haiku-4-5-20251001, on Vertex AI
// claude-haiku-4-5@20251001.
var day = regexp.MustCompile(`(-|@)\d{8}$|@default$`)

// limitsOf returns the known limits of a model; ok is false for an unknown model.
func limitsOf(model string) (limits, bool) {
	known, ok := models[day.ReplaceAllString(model, "")]
	return known, ok
}

// Default lengths of a reply, which the API requires, in tokens.
const (
	// usualOutput is the default for known models: long enough for an agent that writes files, thinking
	// included, and within the limit of every known model.
	usualOutput = 32_000
	// strangeOutput is the default for unknown models.
	strangeOutput = 8_192
	// longOutput is how much a model can write in ten minutes, after which the service aborts a reply that
	// is not streamed.
	longOutput = 21_333
)

// outputLimit returns the maximum length of a reply of the model when the request does not set one.
func outputLimit(model string) int64 {
	if known, ok := limitsOf(model); ok {
		return min(known.output, usualOutput)
	}
	return strangeOutput
}
