package backtest

import (
	"strings"

	"github.com/grapnel-go/grapnel/internal/markup"
)

// html returns the page up to its data and its script. It escapes text from recordings. The elements' classes are
// constants of this package.
func (d pageData) html() string {
	var p markup.Page
	p.Put(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="%s">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>%s</title>
<style>%s</style>
</head>
<body>
<header>
<h1>%s</h1>
<p class="soft">%s</p>`, d.Guard, d.Title, markup.HTML(pageCSS), d.Title, d.Summary)
	for _, w := range d.Warnings {
		p.Put("\n<p class=\"card warn\">%s</p>", w)
	}
	if len(d.Policies) > 1 {
		p.Put("\n<nav aria-label=\"policies\">")
		for _, policy := range d.Policies {
			p.Put(`<button type="button">%s</button>`, policy.Name)
		}
		p.Put("</nav>")
	}
	p.Put("\n</header>\n<main>")
	for i, policy := range d.Policies {
		policy.write(&p, i > 0)
	}
	if d.Diff != nil {
		d.Diff.write(&p)
	}
	p.Put(`
<section id="runs">
<h2>The runs behind the numbers</h2>
<p class="note">Click a number above to see its runs. A replay cannot know what the model would have done after its first denied call:
what follows is marked.</p>
<div id="what"></div>
<noscript><p class="card warn">The runs and their transcripts are shown by a script that stands in this file. Nothing is loaded from anywhere.</p></noscript>
<div id="explorer"><div id="list" class="card"></div><div id="told" class="card"></div></div>
</section>
</main>
<footer>`)
	for _, line := range d.Legend {
		p.Put("\n<p>%s</p>", line)
	}
	p.Put("\n</footer>\n")
	return p.String()
}

func (s pagePolicy) write(p *markup.Page, hidden bool) {
	p.Put("\n<section class=\"policy")
	p.PutIf(hidden, " hidden")
	p.Put("\">\n<div class=\"tiles\">")
	for _, t := range s.Tiles {
		p.Put("\n<div class=\"tile %s\"><b>", t.Class)
		if t.What != "" {
			p.Put(`<button type="button" class="n" data-what="%s">%s</button>`, t.What, t.Value)
		} else {
			p.Put("%s", t.Value)
		}
		p.Put("</b><span>%s</span><span>%s</span></div>", t.Name, t.Detail)
	}
	p.Put("\n</div>\n<div class=\"two\">")
	for _, c := range s.Charts {
		c.write(p)
	}
	p.Put("\n</div>")
	for _, t := range s.Tables {
		p.Put("\n<div class=\"card\"><h3>%s</h3>", t.Title)
		t.write(p)
		p.Put("</div>")
		p.PutIf(t.Note != "", `<p class="note">%s</p>`, t.Note)
		p.Put("</div>")
	}
	p.Put("\n</section>")
}

func (c pageChart) write(p *markup.Page) {
	p.Put("\n<div class=\"card\"><h3>%s</h3>", c.Title)
	if c.Plot != "" {
		p.Put("%s", c.Plot)
	} else {
		p.Put("\n<div class=\"bars\">")
		for _, b := range c.Bars {
			b.write(p)
		}
		p.Put("\n</div>")
	}
	if len(c.Legend) > 0 {
		p.Put(`<div class="legend">`)
		for _, effect := range c.Legend {
			p.Put(`<span><i class="b-%s"></i>%s</span>`, effect, strings.ReplaceAll(effect, "_", " "))
		}
		p.Put("</div>")
	}
	p.PutIf(c.Note != "", `<p class="note">%s</p>`, c.Note)
	p.Put("\n</div>")
}

func (b pageBar) write(p *markup.Page) {
	p.PutIf(b.Head != "", `<div class="head">%s</div>`, b.Head)
	class := "name"
	if b.Kind {
		class = "kind"
	}
	p.Put("\n<div class=\"%s\" title=\"%s\">%s</div>\n", class, b.Name, b.Name)
	p.Put(`<svg class="bar" role="img" aria-label="%s: %s"><rect class="track" width="100%%" height="100%%" rx="3"/>`, b.Name, b.Value)
	for _, part := range b.Parts {
		p.Put(`<rect class="f-%s" x="%s%%" width="%s%%" height="100%%" rx="2"><title>%s</title></rect>`, part.Class, part.From, part.Width, part.Title)
	}
	p.Put("</svg>\n<div class=\"value\">%s</div>", b.Value)
}

// write writes the table without closing its scrollable element.
func (t pageTable) write(p *markup.Page) {
	p.Put("<div class=\"scroll\"><table>\n<thead><tr>")
	for _, n := range t.Names {
		p.Put("<th")
		p.PutIf(n.Left, ` class="l"`)
		p.Put(">%s</th>", n.Text)
	}
	p.Put("</tr></thead>\n<tbody>")
	for _, r := range t.Rows {
		p.Put("\n<tr")
		p.PutIf(r.All, ` class="all"`)
		p.Put(">")
		for _, c := range r.Cells {
			c.write(p)
		}
		p.Put("</tr>")
	}
	p.Put("\n</tbody></table>")
}

func (c pageCell) write(p *markup.Page) {
	p.Put("<td")
	p.PutIf(c.Class != "", ` class="%s"`, c.Class)
	p.PutIf(c.Title != "", ` title="%s"`, c.Title)
	p.Put(">")
	if c.What != "" {
		p.Put(`<button type="button" class="n" data-what="%s" data-by="%s" data-key="%s">%s</button>`, c.What, c.By, c.Key, c.Text)
	} else {
		p.Put("%s", c.Text)
	}
	p.PutIf(c.Small != "", "<small>%s</small>", c.Small)
	p.Put("</td>")
}

func (d pageDiff) write(p *markup.Page) {
	p.Put("\n<section class=\"card\"><h2>%s</h2><p class=\"note\">%s</p>", d.Title, d.Note)
	if d.Table != nil {
		d.Table.write(p)
		p.Put("</div>\n<p><button type=\"button\" class=\"n\" data-what=\"changed\">The runs behind this</button></p>")
	}
	p.Put("\n</section>")
}
