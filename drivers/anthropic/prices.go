package anthropic

import (
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/drivers"
)

// ListPrices returns Anthropic's prices on the day that AsOf names. It is the table at
// https://platform.claude.com/docs/en/about-claude/pricing with the lower price for cache reads by Claude Sonnet 5.5 (7
// October 2026). Cache writes are priced for five minutes. Writes for an hour cost twice the input; the driver accounts
// for that when a reply reports such writes.
func ListPrices() drivers.Prices {
	fable := listPrice(10, 50, 1, 12.50)
	opus := listPrice(5, 25, 0.50, 6.25)
	sonnet := listPrice(3, 15, 0.30, 3.75)
	haiku55 := listPrice(0.10, 0.50, 0.01, 0.125)
	over := listPrice(0.50, 2.50, 0.05, 0.625)
	haiku55.OverTokens, haiku55.Over = 100_000, &over
	return drivers.NewPrices("2026-10-24", map[string]drivers.Price{
		"claude-fable-5-1":  listPrice(10, 50, 0.25, 12.50),
		"claude-mythos-5-1": listPrice(10, 50, 0.25, 12.50),
		"claude-fable-5":    fable,
		"claude-mythos-5":   fable,
		"claude-opus-5-5":   listPrice(4, 20, 0.20, 5),
		"claude-opus-5":     opus,
		"claude-opus-4-8":   opus,
		"claude-opus-4-7":   opus,
		"claude-opus-4-6":   opus,
		"claude-opus-4-5":   opus,
		"claude-sonnet-5-5": listPrice(2, 10, 0.10, 2.50),
		"claude-sonnet-5":   listPrice(2, 10, 0.20, 2.50),
		"claude-sonnet-4-6": sonnet,
		"claude-sonnet-4-5": sonnet,
		"claude-haiku-5-5":  haiku55,
		"claude-haiku-4-5":  listPrice(1, 5, 0.10, 1.25),
	})
}

func listPrice(input, output, cacheRead, cacheWrite float64) drivers.Price {
	return drivers.Price{Input: input, Output: output, CacheRead: mo.Some(cacheRead), CacheWrite: mo.Some(cacheWrite)}
}
