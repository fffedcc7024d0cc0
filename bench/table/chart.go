package table

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Chart returns an SVG with a bar for the time of a step of each contender, at 100 steps, on a logarithmic scale. It
// is legible on light and dark backgrounds.
func (f Found) Chart() string {
	const (
		width, left, right = 760.0, 150.0, 90.0
		top, row, bar      = 44.0, 26.0, 16.0
	)
	var shown []Contender
	least, most := math.Inf(1), 0.0
	for _, c := range f.plan.Contenders {
		if ns := f.time(c.Name, hundred); c.Telemetry == nil && ns > 0 {
			shown = append(shown, c)
			least, most = min(least, ns), max(most, ns)
		}
	}
	if len(shown) == 0 {
		return ""
	}
	low, high := math.Floor(math.Log10(least)), math.Ceil(math.Log10(most))
	if low == math.Log10(least) { // a bar must have a length
		low--
	}
	x := func(ns float64) float64 { return left + (math.Log10(ns)-low)/(high-low)*(width-left-right) }
	bottom := top + row*float64(len(shown))

	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="system-ui, sans-serif" font-size="13" role="img">
<title>What a step costs, on a logarithmic scale</title>
<style>
text { fill: #24292f } .dim { fill: #57606a; font-size: 11px } line { stroke: #d0d7de } rect { fill: #8c959f } .ours { fill: #0969da }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .dim { fill: #9198a1 } line { stroke: #3d444d } rect { fill: #656c76 } .ours { fill: #4493f8 }
}
</style>
<text x="0" y="16" font-weight="600">A step: one model turn and one tool call, at 100 steps (logarithmic)</text>
`, width, bottom+14)
	for decade := low; decade <= high; decade++ {
		at := x(math.Pow(10, decade))
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%.0f" x2="%.1f" y2="%.0f"/><text class="dim" x="%.1f" y="%.0f" text-anchor="middle">%s</text>`+"\n",
			at, top-4, at, bottom, at, top-9, decadeText(decade))
	}
	for i, c := range shown {
		y, ns := top+row*float64(i), f.time(c.Name, hundred)
		class := ""
		if c.Name == "grapnel" {
			class = ` class="ours"`
		}
		fmt.Fprintf(&b, `<text x="%.0f" y="%.0f" text-anchor="end">%s</text>`, left-10, y+17, html.EscapeString(c.Name))
		fmt.Fprintf(&b, `<rect%s x="%.0f" y="%.0f" width="%.1f" height="%.0f" rx="2"/>`, class, left, y+4, x(ns)-left, bar)
		fmt.Fprintf(&b, `<text x="%.1f" y="%.0f">%s</text>`+"\n", x(ns)+6, y+17, nanoseconds(ns))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// decadeText returns a power of ten nanoseconds as text.
func decadeText(decade float64) string {
	units := []string{"ns", "µs", "ms", "s"}
	n := int(decade)
	unit := min(max(0, n/3), len(units)-1)
	return fmt.Sprintf("%.0f %s", math.Pow(10, decade-float64(3*unit)), units[unit])
}
