package gemini

import (
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/drivers"
)

// ListPrices returns Google's prices on the day that AsOf names. They are the paid tier at
// https://ai.google.dev/gemini-api/docs/pricing, for text, images and video, as repeated by https://models.dev and
// others in October 2026. If a price ends on a known day, the table has the next price, so that cost limits are not too
// high. Gemini 3.8 Flash costs half until the end of 2026, Gemini 4 Argon until the end of November.
//
// The table does not include storage for caches that were created by hand. It does not include sound either, which
// costs more than text for some models. The cost of a reply to a request with sound is unknown.
func ListPrices() drivers.Prices {
	pro25, pro31 := listPrice(1.25, 10, 0.125), listPrice(2, 12, 0.20)
	over25, over31 := listPrice(2.50, 15, 0.25), listPrice(4, 18, 0.40)
	pro25.OverTokens, pro25.Over = 200_000, &over25
	pro31.OverTokens, pro31.Over = 200_000, &over31
	return drivers.NewPrices("2026-10-20", map[string]drivers.Price{
		"gemini-4-argon":         listPrice(4, 20, 0.20),
		"gemini-3.8-flash":       listPrice(1.50, 7.50, 0.15),
		"gemini-3.7-flash":       listPrice(1.50, 7.50, 0.15),
		"gemini-3.5-flash":       listPrice(1.50, 9, 0.15),
		"gemini-3.1-pro-preview": pro31,
		"gemini-3.1-flash-lite":  listPrice(0.25, 1.50, 0.025),
		"gemini-3-flash-preview": listPrice(0.50, 3, 0.05),
		"gemini-2.5-pro":         pro25,
		"gemini-2.5-flash":       listPrice(0.30, 2.50, 0.03),
		"gemini-2.5-flash-lite":  listPrice(0.10, 0.40, 0.01),
	})
}

func listPrice(input, output, cacheRead float64) drivers.Price {
	return drivers.Price{Input: input, Output: output, CacheRead: mo.Some(cacheRead)}
}
