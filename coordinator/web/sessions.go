package web

import (
	"net/http"
	"net/url"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
)

func sessionPath(id agent.SessionID) string { return prefix + "sessions/" + url.PathEscape(string(id)) }

// hookedShown is of how many runs of a session its page lists the runs that their hooks have started.
const hookedShown = 20

// showSession serves the runs of a session, newest first, with those that hooks and the session have started.
func (h *Handler) showSession(w http.ResponseWriter, r *http.Request, v *view) {
	s, err := h.o.Coordinator.Session(r.Context(), agent.SessionID(r.PathValue("id")))
	if err != nil {
		h.fail(w, r, v, "reading a session", err)
		return
	}
	v.title, v.part = firstLine(s.AgentName)+" session", partRuns
	v.Put("<p class=\"path\"><a href=\"%s\">Runs</a> / session <code>%s</code></p>\n<div class=\"title\"><h1>%s</h1>",
		prefix+"runs", cutText(string(s.SessionID), lineLen), cutText(s.AgentName, lineLen))
	putStatus(&v.Page, string(s.Status))
	v.Put("</div>\n")
	if s.ParentSessionID != "" {
		v.Put("<p>Started by <a href=\"%s\">session <code>%s</code></a>", sessionPath(s.ParentSessionID), cutText(string(s.ParentSessionID), lineLen))
		v.PutIf(len(s.Runs) > 0 && s.Runs[len(s.Runs)-1].ExecutionMode == wire.AsyncCallback, ", which is told how it ends")
		v.Put("</p>\n")
	}
	v.Put("<section><h2>Runs</h2>\n<ul class=\"rows tree\">\n")
	rows, err := h.rowsOf(r.Context(), s.Runs)
	for i, run := range s.Runs {
		var hooked []row
		if err == nil && i < hookedShown && run.HasHooks {
			var list wire.RunList
			if list, err = h.o.Coordinator.ListRuns(r.Context(), wire.RunFilter{Parent: string(run.RunID), Limit: childrenShown}); err == nil {
				hooked, err = h.rowsOf(r.Context(), list.Runs)
			}
		}
		if err != nil {
			h.fail(w, r, v, "reading a session", err)
			return
		}
		v.putRow(&v.Page, rows[i])
		if len(hooked) > 0 {
			v.Put("<li>")
			v.putRows(&v.Page, "hooks-"+string(run.RunID), hooked)
			v.Put("</li>\n")
		}
	}
	v.Put("</ul></section>\n")
	if len(s.Children) > 0 {
		children, err := h.rowsOf(r.Context(), s.Children)
		if err != nil {
			h.fail(w, r, v, "reading a session", err)
			return
		}
		v.Put("<section><h2>Runs that it started</h2>\n")
		v.putRows(&v.Page, "children", children)
		v.Put("</section>\n")
	}
	reply(w, http.StatusOK, v.render())
}
