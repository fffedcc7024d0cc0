package openai

import "github.com/grapnel-go/grapnel/drivers"

// ListPrices is what OpenAI charges for its models.
func ListPrices() drivers.Prices { return drivers.Prices{} }
