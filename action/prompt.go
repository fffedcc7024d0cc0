package action

import (
	"cmp"
	"time"
)

// Prompt is a model that judges by a rule. It says allow or deny, and why; deny is the strongest no that the point has. See
// package hooks/judge for what it is shown and how.
type Prompt struct {
	// Rule says, for the model, what is allowed and what is not. Required.
	Rule string
	// Model is its name at the service; empty means the driver's default.
	Model string
	// Timeout is how long it may take. Zero means DefaultPromptTimeout.
	Timeout time.Duration
	// MaxBytes is how long what it is shown may be. Zero means DefaultMaxBytes.
	MaxBytes int
}

var _ Declared = Prompt{}

// Type is "prompt".
func (Prompt) Type() string { return "prompt" }

// Limit is how long Do may take.
func (p Prompt) Limit() time.Duration { return cmp.Or(p.Timeout, DefaultPromptTimeout) + ending }

// Lint finds nothing.
func (Prompt) Lint() []Warning { return nil }

// Validate finds what is wrong with it.
func (p Prompt) Validate() error {
	var wrong problems
	if p.Rule == "" {
		wrong.say("rule", "it is missing: say what is allowed and what is not")
	}
	wrong.size("max_bytes", p.MaxBytes)
	wrong.times(map[string]time.Duration{"timeout": p.Timeout})
	return wrong.join()
}
