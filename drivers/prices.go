package drivers

import (
	"maps"
	"regexp"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// Price is the price of a model, in US dollars per million tokens.
type Price struct {
	// Input is the price of input that was not in a cache, Output the price of output, reasoning included.
	Input, Output float64
	// CacheRead is the price of input read from a cache, CacheWrite of input written to a cache. None
	// means that such input is charged as Input.
	CacheRead, CacheWrite mo.Option[float64]
	// Over, when set, is the price of all tokens of a call whose input is longer than OverTokens.
	Over       *Price
	OverTokens int64
}

// Prices is a table of prices by model. It is immutable and safe for concurrent use; the zero Prices is
// empty.
type Prices struct {
	asOf   string
	models map[string]Price
}

// NewPrices returns a table of prices by the service's names for its models. AsOf is the day on which the
// prices were read, such as "2026-11-21".
func NewPrices(asOf string, models map[string]Price) Prices {
	return Prices{asOf, maps.Clone(models)}
}

// AsOf returns the day on which the prices were read.
func (p Prices) AsOf() string { return p.asOf }

// dated matches a model's name with the date or number of its version at the end, as services send it in
// replies: gpt-4o-2024-08-06, claude-sonnet-4-20250514.
var dated = regexp.MustCompile(`^(.+?)-(?:\d{4}-\d{2}-\d{2}|\d{8}|latest|\d{3})$`)

// Of returns the price of a model; None when it is not in the table. Of looks up the full name first, then
// the name without a date, a version number or -latest at its end.
func (p Prices) Of(model string) mo.Option[Price] {
	if price, ok := p.models[model]; ok {
		return mo.Some(price)
	}
	if parts := dated.FindStringSubmatch(model); parts != nil {
		if price, ok := p.models[parts[1]]; ok {
			return mo.Some(price)
		}
	}
	return mo.None[Price]()
}

// Cost returns the cost of a call of a model, in US dollars; None when the model is not
// in the table.
func (p Prices) Cost(model string, u agent.Usage) mo.Option[float64] {
	price, ok := p.Of(model).Get()
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
