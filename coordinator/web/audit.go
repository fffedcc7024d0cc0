package web

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
)

const (
	auditPath = prefix + "audit"
	// entriesShown is how many entries of the audit log a page lists.
	entriesShown = 50
)

// auditQueryOf returns the filter of a page of the audit log.
func auditQueryOf(values url.Values) wire.AuditFilter {
	get := func(name string) string { return strings.TrimSpace(values.Get(name)) }
	return wire.AuditFilter{
		By: get("by"), Operation: get("operation"), Run: get("run"), Status: get("status"), Before: get("before"), Limit: entriesShown,
	}
}

// auditAddress returns the address of a page of the audit log.
func auditAddress(f wire.AuditFilter) string {
	values := url.Values{}
	for name, value := range map[string]string{"by": f.By, "operation": f.Operation, "run": f.Run, "status": f.Status, "before": f.Before} {
		if value != "" {
			values.Set(name, value)
		}
	}
	return auditPath + "?" + values.Encode()
}

// showAudit serves who has changed what, newest first, to admins.
func (h *Handler) showAudit(w http.ResponseWriter, r *http.Request, v *view) {
	v.title, v.part = "Audit", partAudit
	if v.who.Role != wire.Admin {
		v.Put("<h1>Audit</h1>\n<p role=\"alert\">Only admins read the audit log.</p>\n")
		reply(w, http.StatusForbidden, v.render())
		return
	}
	f := auditQueryOf(r.URL.Query())
	list, err := h.o.Coordinator.Audit(r.Context(), f)
	if err != nil {
		h.fail(w, r, v, "reading the audit log", err)
		return
	}
	v.Put("<h1>Audit</h1>\n<form class=\"filters\" role=\"search\" action=\"%s\">\n", auditPath)
	for _, field := range []struct{ name, title, value string }{
		{"by", "By", f.By}, {"operation", "Operation", f.Operation}, {"run", "Run", f.Run}, {"status", "ok, failed, 409 …", f.Status},
	} {
		v.Put(`<label><span class="hide">%s</span><input name="%s" value="%s" placeholder="%s" autocomplete="off" spellcheck="false"></label>
`, field.title, field.name, cutText(field.value, lineLen), field.title)
	}
	v.Put("<button>Search</button></form>\n")
	if len(list.Entries) == 0 {
		v.Put("<p class=\"dim\" id=\"none\">No entry matches here.</p>\n")
	}
	v.Put("<ul class=\"rows\" id=\"log\">\n")
	for _, e := range list.Entries {
		v.putAudited(e)
	}
	v.Put("</ul>\n")
	if list.Next != "" {
		f.Before = list.Next
		v.Put("<p class=\"more\"><a class=\"button\" href=\"%s\">Older entries</a></p>\n", auditAddress(f))
	}
	reply(w, http.StatusOK, v.render())
}

// putAudited shows an entry of the audit log.
func (v *view) putAudited(e wire.AuditEntry) {
	kind, words := passed, "done"
	if e.Status != "ok" {
		kind, words = failed, "not done, "+cutText(e.Status, lineLen)
	}
	by := e.By
	if by == "" {
		by = "a link"
	}
	v.Put("<li class=\"entry\"><p class=\"what %s\">%s<span><b>%s</b> by %s: %s</span></p>\n<p class=\"dim\">%s ", string(kind), icon(kind),
		cutText(e.Operation, lineLen), cutText(by, lineLen), words, formatWhen(e.Time, v.now))
	v.Put("<code>%s</code> %s</p>\n", cutText(e.Path, lineLen), firstLine(e.Detail))
	if run := runOfEntry(e); run != "" {
		v.Put("<p><a class=\"button\" href=\"%s\">Run %s</a></p>\n", runPath(run), cutText(string(run), lineLen))
	}
	v.Put("</li>\n")
}

// runOfEntry returns the run that an entry names; empty for none.
func runOfEntry(e wire.AuditEntry) agent.RunID {
	if e.Run != "" {
		return e.Run
	}
	for part := range strings.SplitSeq(e.Path, "/") {
		if strings.HasPrefix(part, "run_") {
			return agent.RunID(part)
		}
	}
	return ""
}
