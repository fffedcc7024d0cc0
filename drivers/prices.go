package drivers

import (
	"maps"
	"regexp"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// Price is a model's price, in US dollars per million tokens.
type Price struct {
	// Input is the price for input that was not in a cache. Output is the price for output, including reasoning.
	Input, Output float64
	// CacheRead is the price for input read from a cache, CacheWrite for input written to a cache. None means that such
	// input is charged as Input.
	CacheRead, CacheWrite mo.Option[float64]
	// Over, when set, is the price for all tokens when the input is longer than OverTokens.
	Over       *Price
	OverTokens int64
}

// Prices is a table of prices by model. It is immutable and safe for concurrent use. The zero Prices is empty.
type Prices struct {
	asOf   string
	models map[string]Price
}

// NewPrices returns a table of prices by the service's model names. asOf is the day on which the prices were read, such
// as "2026-11-21".
func NewPrices(asOf string, models map[string]Price) Prices {
	return Prices{asOf, maps.Clone(models)}
}

// AsOf returns the day on which the prices were read.
func (p Prices) AsOf() string { return p.asOf }

// dated matches a model name with a version's date or number at the end, as services send it in replies:
// gpt-4o-2024-08-06, claude-sonnet-4-20250514.
var dated = regexp.MustCompile(`^(.+?)-(?:\d{4}-\d{2}-\d{2}|\d{8}|latest|\d{3})$`)

// Of returns a model's price. It returns false when the model is not in the table. Of looks up the full name first, then
// the name without a date, a version number or -latest at its end.
func (p Prices) Of(model string) (Price, bool) {
	if price, ok := p.models[model]; ok {
		return price, true
	}
	if parts := dated.FindStringSubmatch(model); parts != nil {
		price, ok := p.models[parts[1]]
		return price, ok
	}
	return Price{}, false
}

// Cost returns a call's cost in US dollars. It returns None when the model is not in the table.
func (p Prices) Cost(model string, u agent.Usage) mo.Option[float64] {
	price, ok := p.Of(model)
	if !ok {
		return mo.None[float64]()
	}
	return mo.Some(price.costOf(u))
}

func (p Price) costOf(u agent.Usage) float64 {
	if p.Over != nil && u.InputTokens > p.OverTokens {
		return p.Over.costOf(u)
	}
	fresh := max(u.InputTokens-u.CacheReadTokens-u.CacheWriteTokens, 0)
	return (float64(fresh)*p.Input +
		float64(u.CacheReadTokens)*p.CacheRead.OrElse(p.Input) +
		float64(u.CacheWriteTokens)*p.CacheWrite.OrElse(p.Input) +
		float64(u.OutputTokens)*p.Output) / 1e6
}
