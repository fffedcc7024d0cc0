package einoguard

import (
	"github.com/cloudwego/eino/schema"

	"github.com/grapnel-go/grapnel/agent"
)

// Seal seals a tool.
var Seal = seal

// NewTranscript returns a converter of a run's messages.
var NewTranscript = newTranscript

// Convert converts messages.
func (x *transcript) Convert(messages []*schema.Message) []agent.Message { return x.convert(messages) }
