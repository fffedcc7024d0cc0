package anthropic

import "regexp"

// limits is how much a model reads and writes at most, in tokens.
type limits struct{ context, output int64 }

// models is what https://platform.claude.com/docs/en/models says of the models,
// read on 2026-11-21. Every model in it holds answers to a JSON schema.
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

// day is the day of a version behind a model's name: claude-haiku-4-5-20251001, on Vertex AI claude-haiku-4-5@20251001.
var day = regexp.MustCompile(`(-|@)\d{8}$|@default$`)

// limitsOf returns the known limits of a model; ok is false for an unknown model.
func limitsOf(model string) (limits, bool) {
	known, ok := models[day.ReplaceAllString(model, "")]
	return known, ok
}

// The API wants to be told how long a reply may be.
const (
	// usualOutput is how long it may be by default: long enough for an agent
	// that writes files, thinking included, and within what every known model can.
	usualOutput = 32_000
	// strangeOutput is the same for a model of which nothing is known.
	strangeOutput = 8_192
	// longOutput is how much can be written in ten minutes, after which the service
	// gives up a reply that is not streamed.
	longOutput = 21_333
)

// outputLimit returns how long a reply of the model may be when the request does not say.
func outputLimit(model string) int64 {
	if known, ok := limitsOf(model); ok {
		return min(known.output, usualOutput)
	}
	return strangeOutput
}
