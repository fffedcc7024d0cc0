package openai

import (
	"sync"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/drivers"
)

// ListPrices returns OpenAI's prices in the standard service tier. A driver of api.openai.com uses it when
// Config.Prices is None.
//
// The cost of a model that is not in the table is unknown. An example is gpt-5.6-sol, whose reduced price is promised
// only until 2026-11-21. The prices do not include surcharges for regional endpoints, built-in tools, or cache writes
// that are kept for longer than usual.
func ListPrices() drivers.Prices { return listPrices() }

// listPrices was compiled from publications about the vendor's price list,
// https://developers.openai.com/api/docs/pricing. Input and output are as of 2026-10-04, gpt-6.1-terra as of
// 2026-10-26. Cached input for models before gpt-5.6 is as of earlier in that year.
var listPrices = sync.OnceValue(func() drivers.Prices {
	return drivers.NewPrices("2026-10-04", map[string]drivers.Price{
		"gpt-6-astra":   longContextPrice(drivers.Price{Input: 10, CacheRead: mo.Some(1.0), CacheWrite: mo.Some(12.5), Output: 50}),
		"gpt-6.1-sol":   longContextPrice(drivers.Price{Input: 2, CacheRead: mo.Some(0.1), CacheWrite: mo.Some(2.5), Output: 10}),
		"gpt-6.1-terra": longContextPrice(drivers.Price{Input: 1, CacheRead: mo.Some(0.05), CacheWrite: mo.Some(1.25), Output: 5}),
		"gpt-6-sol":     longContextPrice(drivers.Price{Input: 2, CacheRead: mo.Some(0.2), CacheWrite: mo.Some(2.5), Output: 10}),
		"gpt-6-luna":    longContextPrice(drivers.Price{Input: 0.1, CacheRead: mo.Some(0.01), CacheWrite: mo.Some(0.125), Output: 0.5}),
		"gpt-5.6-terra": longContextPrice(drivers.Price{Input: 2, CacheRead: mo.Some(0.2), CacheWrite: mo.Some(2.5), Output: 12}),
		"gpt-5.6-luna":  longContextPrice(drivers.Price{Input: 0.2, CacheRead: mo.Some(0.02), CacheWrite: mo.Some(0.25), Output: 1.2}),
		"gpt-5.5":       longContextPrice(drivers.Price{Input: 5, CacheRead: mo.Some(0.5), Output: 30}),
		"gpt-5.4":       longContextPrice(drivers.Price{Input: 2.5, CacheRead: mo.Some(0.25), Output: 15}),

		"gpt-5.4-mini": {Input: 0.75, CacheRead: mo.Some(0.075), Output: 4.5},
		"gpt-5.4-nano": {Input: 0.2, CacheRead: mo.Some(0.02), Output: 1.25},
		"gpt-5.2":      {Input: 1.75, CacheRead: mo.Some(0.175), Output: 14},
		"gpt-5.1":      {Input: 1.25, CacheRead: mo.Some(0.125), Output: 10},
		"gpt-5":        {Input: 1.25, CacheRead: mo.Some(0.125), Output: 10},
		"gpt-5-mini":   {Input: 0.25, CacheRead: mo.Some(0.025), Output: 2},
		"gpt-5-nano":   {Input: 0.05, CacheRead: mo.Some(0.005), Output: 0.4},

		"gpt-4.1":           {Input: 2, CacheRead: mo.Some(0.5), Output: 8},
		"gpt-4.1-mini":      {Input: 0.4, CacheRead: mo.Some(0.1), Output: 1.6},
		"gpt-4.1-nano":      {Input: 0.1, CacheRead: mo.Some(0.025), Output: 0.4},
		"gpt-4o":            {Input: 2.5, CacheRead: mo.Some(1.25), Output: 10},
		"gpt-4o-2024-05-13": {Input: 5, Output: 15},
		"gpt-4o-mini":       {Input: 0.15, CacheRead: mo.Some(0.075), Output: 0.6},
		"o1":                {Input: 15, CacheRead: mo.Some(7.5), Output: 60},
		"o3":                {Input: 2, CacheRead: mo.Some(0.5), Output: 8},
		"o3-mini":           {Input: 1.1, CacheRead: mo.Some(0.55), Output: 4.4},
		"o4-mini":           {Input: 1.1, CacheRead: mo.Some(0.275), Output: 4.4},
	})
})

// longContextPrice returns the price for a model with long context. If the input is longer than 272,000 tokens, all
// input costs twice as much, and all output costs one and a half times as much.
func longContextPrice(p drivers.Price) drivers.Price {
	double := func(price float64) (float64, bool) { return 2 * price, true }
	over := drivers.Price{
		Input: 2 * p.Input, CacheRead: p.CacheRead.Map(double), CacheWrite: p.CacheWrite.Map(double), Output: 1.5 * p.Output,
	}
	p.Over, p.OverTokens = &over, 272_000
	return p
}
