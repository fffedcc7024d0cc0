package web

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/internal/markup"
)

//go:embed style.css
var styleText string

//go:embed page.js
var scriptText string

// assets are the files that pages load. Their names change with their content, so that browsers keep them.
var assets = func() map[string]asset {
	all := map[string]asset{}
	for _, a := range []asset{{kind: "text/css; charset=utf-8", text: styleText}, {kind: "text/javascript; charset=utf-8", text: scriptText}} {
		sum := sha256.Sum256([]byte(a.text))
		a.name = hex.EncodeToString(sum[:6])
		all[a.name] = a
	}
	return all
}()

type asset struct{ name, kind, text string }

func assetPath(text string) string {
	for name, a := range assets {
		if a.text == text {
			return prefix + "asset/" + name
		}
	}
	panic("no such asset")
}

var stylePath, scriptPath = assetPath(styleText), assetPath(scriptText)

// serveAsset serves the style sheet or the script.
func serveAsset(w http.ResponseWriter, r *http.Request) {
	a, ok := assets[r.PathValue("name")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write([]byte(a.text))
}

// The parts of the control room, as its navigation names them.
const (
	partNow   = "Now"
	partRuns  = "Runs"
	partInbox = "Inbox"
	partRules = "Rules"
	partAudit = "Audit"
)

// view is one page for one person.
type view struct {
	markup.Page

	title string
	part  string
	who   person
	now   time.Time
	// key is the idempotency key of the forms on the page.
	key string
	// streams says that the page is sent piece by piece, and shown so.
	streams bool
	// live is the address of the page's stream; empty for none.
	live string
	// open is how many questions are open: see countOpen.
	open string
}

// readsRuns reports whether the person may see runs, and not the inbox alone.
func (v *view) readsRuns() bool { return v.who.Role != "" && v.who.Role != approver }

func (v *view) isOperator() bool { return v.who.Role == wire.Operator || v.who.Role == wire.Admin }

// sprite has the icons. Shape and colour differ, so that neither is needed alone.
const sprite = `<svg width="0" height="0" class="sprite" aria-hidden="true"><defs>
<symbol id="i-denied" viewBox="0 0 16 16"><path fill="currentColor" d="M5 0h6l5 5v6l-5 5H5l-5-5V5z"/><path class="cut" d="M5 5l6 6m0-6l-6 6"/></symbol>
<symbol id="i-withheld" viewBox="0 0 16 16"><rect fill="currentColor" width="16" height="16" rx="3"/><path class="cut" d="M4 8h8"/></symbol>
<symbol id="i-asked" viewBox="0 0 16 16"><circle fill="currentColor" cx="8" cy="8" r="8"/>
<path class="cut" d="M5.8 6.2c0-3 4.4-3 4.4-.2 0 1.7-2.2 1.5-2.2 3.200M8 11.600v.6"/></symbol>
<symbol id="i-rewrote" viewBox="0 0 16 16"><path fill="currentColor" d="M8 0l8 8-8 8-8-8z"/><path class="cut" d="M4.5 9c1.5-3 2.5-3 3.5-1s2 2 3.5-1"/></symbol>
<symbol id="i-failed" viewBox="0 0 16 16"><path fill="currentColor" d="M8 0l8 15H0z"/><path class="cut" d="M8 5.500v4M8 12v.6"/></symbol>
<symbol id="i-shadow" viewBox="0 0 16 16"><circle class="dash" cx="8" cy="8" r="7"/><path class="line" d="M5.5 5.500l5 5m0-5l-5 5"/></symbol>
<symbol id="i-passed" viewBox="0 0 16 16"><circle fill="currentColor" cx="8" cy="8" r="4"/></symbol>
<symbol id="i-running" viewBox="0 0 16 16"><circle class="line" cx="8" cy="8" r="4"/></symbol>
<pattern id="idle" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="hatch" width="2" height="6"/></pattern>
</defs></svg>`

// logo is the anchor of the name.
const logo = `<svg width="20" height="20" viewBox="0 0 20 20" aria-hidden="true" class="logo">
<path d="M10 3v14M4 9c0 5 3 8 6 8s6-3 6-8M2 11l2-2.500L6.5 11M13.5 11L16 8.500l2 2.500M8 3h4"/></svg>`

// render returns the page around its content. Browsers that know rel="expect" show it when it is whole: parts would be laid out
// differently, and move.
func (v *view) render() string {
	var p markup.Page
	p.Put(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<title>%s · Grapnel</title>
%s<link rel="stylesheet" href="%s">
<script defer src="%s"></script>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
%s
<div class="frame">
`, v.title, lo.Ternary(v.streams, "", markup.HTML("<link rel=\"expect\" href=\"#end\" blocking=\"render\">\n")), stylePath, scriptPath, markup.HTML(sprite))
	if v.who.Role != "" {
		v.putNavigation(&p)
	}
	p.Put(`<main id="main" tabindex="-1"`)
	p.PutIf(v.live != "", ` data-live="%s"`, v.live)
	p.Put(">\n%s</main>\n</div>\n<i id=\"end\" hidden></i>\n</body>\n</html>\n", markup.HTML(v.String()))
	return p.String()
}

func (v *view) putNavigation(p *markup.Page) {
	p.Put(`<header class="side"><a class="brand" href="%s">%s Grapnel</a>
<nav aria-label="Control room"><ul>
`, prefix, markup.HTML(logo))
	link := func(name, at string) {
		p.Put(`<li><a href="%s"`, at)
		p.PutIf(name == v.part, ` aria-current="page"`)
		p.Put(">%s", name)
		if name == partInbox {
			putOpen(p, v.open)
		}
		p.Put("</a></li>\n")
	}
	if v.readsRuns() {
		link(partNow, prefix)
		link(partRuns, prefix+"runs")
	}
	link(partInbox, inboxPath)
	if v.readsRuns() {
		link(partAgents, agentsPath)
		link(partRunners, runnersPath)
		link(partRules, rulesPath)
	}
	if v.who.Role == wire.Admin {
		link(partAudit, auditPath)
	}
	p.Put(`</ul></nav>
<form method="post" action="%s" class="who"><p><b>%s</b> %s</p><button>Sign out</button></form></header>
`, prefix+"sign-out", cutText(v.who.Name, lineLen), string(v.who.Role))
}

// putOpen shows how many questions are open.
func putOpen(p *markup.Page, open string) {
	p.Put(`<span id="open">`)
	p.PutIf(open != "", `<span class="hide">, open questions: </span><b>%s</b>`, open)
	p.Put("</span>")
}
