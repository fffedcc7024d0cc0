package anthropic

import "regexp"

// limits holds a model's maximum input and output, in tokens.
type limits struct{ context, output int64 }

// models has the limits from https://platform.claude.com/docs/en/models, read on 2026-11-21. All these models can
// follow a JSON schema in their answers.
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

// day matches a version's date at the end of a model name: claude-haiku-4-5-20251001, on Vertex AI
// claude-haiku-4-5@20251001.
var day = regexp.MustCompile(`(-|@)\d{8}$|@default$`)

// limitsOf returns a model's known limits. ok is false for an unknown model.
func limitsOf(model string) (limits, bool) {
	known, ok := models[day.ReplaceAllString(model, "")]
	return known, ok
}

// Default reply lengths in tokens. The API requires a length.
const (
	// usualOutput is the default for known models. It is long enough for an agent that writes files, thinking included,
	// and within every known model's limit.
	usualOutput = 32_000
	// strangeOutput is the default for unknown models.
	strangeOutput = 8_192
	// longOutput is how much a model can write in ten minutes. After that, the service aborts a reply that is not
	// streamed.
	longOutput = 21_333
)

// outputLimit returns the model's maximum reply length when the request does not set one.
func outputLimit(model string) int64 {
	if known, ok := limitsOf(model); ok {
		return min(known.output, usualOutput)
	}
	return strangeOutput
}
