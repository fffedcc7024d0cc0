package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/approval"
	"github.com/grapnel-go/grapnel/internal/inputform"
	"github.com/grapnel-go/grapnel/internal/invisible"
	"github.com/grapnel-go/grapnel/internal/markup"
)

const (
	submitPath = prefix + "submit"
	// agentsShown is how many blueprints a page offers to submit runs of.
	agentsShown = 20
)

// showSubmit serves the forms that submit runs.
func (h *Handler) showSubmit(w http.ResponseWriter, r *http.Request, v *view) {
	var all []wire.Stored
	var err error
	if name := r.URL.Query().Get("name"); name != "" {
		all = make([]wire.Stored, 1)
		all[0], err = h.o.Coordinator.Blueprint(r.Context(), name, 0)
	} else {
		all, err = h.o.Coordinator.ListBlueprints(r.Context(), r.URL.Query().Get("after"), agentsShown)
	}
	if err != nil {
		h.fail(w, r, v, "listing blueprints", err)
		return
	}
	v.title, v.part = "New run", partRuns
	v.Put("<h1>%s</h1>\n", v.title)
	v.putAgents(&v.Page, all)
	reply(w, http.StatusOK, v.render())
}

// readFirst returns blueprints for the form of the first run. A page without runs is shown without it if they cannot be read.
func (h *Handler) readFirst(ctx context.Context, v *view) []wire.Stored {
	if !v.isOperator() {
		return nil
	}
	all, err := h.o.Coordinator.ListBlueprints(ctx, "", agentsShown)
	if err != nil && ctx.Err() == nil {
		h.o.Log.WarnContext(ctx, "control room: listing blueprints", "error", err)
	}
	return all
}

// putFirst says how to submit the first run.
func (v *view) putFirst(out *markup.Page, all []wire.Stored) {
	out.Put("<div id=\"none\"><p>No run was submitted yet.</p>\n")
	if v.isOperator() {
		v.putAgents(out, all)
	}
	out.Put("</div>\n")
}

// putAgents shows a form for each blueprint.
func (v *view) putAgents(out *markup.Page, all []wire.Stored) {
	if len(all) == 0 {
		out.Put(`<p>Store a blueprint first, with this server in GRAPNEL_SERVER and a token in GRAPNEL_TOKEN:</p>
<pre tabindex="0">grapnel blueprints apply report.yaml</pre>
`)
	}
	for i, b := range all {
		out.Put("<details class=\"card new\"")
		out.PutIf(len(all) == 1, " open")
		out.Put(`><summary><b>%s</b> <span class="dim">%s</span></summary>
<form method="post" action="%s" autocomplete="off">
<input type="hidden" name="key" value="%s"><input type="hidden" name="agent_name" value="%s">
`, cutText(b.Name, lineLen), firstLine(b.Description), prefix+"runs", v.key+"-"+b.Name, b.Name)
		putParameters(out, fmt.Sprintf("new-%d", i), &b.Blueprint)
		out.Put("<p><button class=\"yes\">Submit the run</button></p></form></details>\n")
	}
	if len(all) == agentsShown {
		out.Put("<p class=\"more\"><a class=\"button\" href=\"%s\">More blueprints</a></p>\n",
			submitPath+"?"+url.Values{"after": {all[agentsShown-1].Name}}.Encode())
	}
}

// formOf returns the fields for the parameters of a blueprint; ok is false if only JSON can have them.
func formOf(b *wire.Blueprint) (f inputform.Form, ok bool) {
	f, err := inputform.Parse(coordinator.ParametersSchema(b))
	return f, err == nil && len(f.Fields) > 0
}

// putParameters shows the fields for the parameters of a blueprint.
func putParameters(out *markup.Page, id string, b *wire.Blueprint) {
	form, ok := formOf(b)
	if !ok {
		putJSON(out, id, "{}")
		return
	}
	for i, f := range form.Fields {
		values := lo.Filter(f.Initial(), func(one string, _ int) bool { return one == invisible.Escape(one) }) // a field shows no escapes
		if id := fmt.Sprintf("%s-%d", id, i); f.Name == "prompt" && f.Kind == inputform.Text {
			out.Put(`<p><label for="%s">%s</label><textarea id="%s" name="%s" rows="3">
%s</textarea></p>
`, id, invisible.Escape(f.Label()), id, approval.InputField+f.Name, strings.Join(values, ""))
		} else {
			putField(out, id, f, values)
		}
	}
}

// putJSON shows a field for parameters as JSON.
func putJSON(out *markup.Page, id, text string) {
	out.Put(`<p><label for="%s">Parameters</label><textarea id="%s" name="parameters" rows="6" spellcheck="false" class="code">
%s</textarea></p>
`, id, id, text)
}

// submitRun submits a run of a blueprint, or another run of the blueprint of a run, with its labels.
func (h *Handler) submitRun(ctx context.Context, v *view, id string, form url.Values) (string, error) {
	in := wire.RunRequest{AgentName: form.Get("agent_name"), Parameters: json.RawMessage(form.Get("parameters")), IdempotencyKey: form.Get("key")}
	if id != "" {
		before, err := h.o.Coordinator.Run(ctx, agent.RunID(id))
		if err != nil {
			return "", err
		}
		in.AgentName, in.Labels, in.Demands = before.AgentName, before.Labels, before.Demands
	} else if !form.Has("parameters") {
		var err error
		if in.Parameters, err = h.parametersIn(ctx, in.AgentName, form); err != nil {
			return "", err
		}
	}
	run, err := h.o.Coordinator.Submit(ctx, in, v.who.Name)
	return runPath(run.ID), err
}

// parametersIn returns the parameters from the fields for a blueprint.
func (h *Handler) parametersIn(ctx context.Context, name string, form url.Values) (json.RawMessage, error) {
	b, err := h.o.Coordinator.Blueprint(ctx, name, 0)
	if errors.Is(err, durable.ErrNotFound) {
		return nil, nil // Submit says so
	}
	if err != nil {
		return nil, err
	}
	f, ok := formOf(&b.Blueprint)
	if !ok { // its schema is another one than the form had
		return nil, nil
	}
	texts := map[string][]string{}
	for field, values := range form {
		if of, ok := strings.CutPrefix(field, approval.InputField); ok {
			texts[of] = lo.Map(values, func(one string, _ int) string { return strings.ReplaceAll(one, "\r\n", "\n") })
		}
	}
	content, problems := f.Content(texts)
	if len(problems) > 0 {
		return nil, &coordinator.InvalidError{Fields: lo.Map(problems, func(p inputform.Problem, _ int) coordinator.FieldError {
			return coordinator.FieldError{Field: cmp.Or(p.Field, "parameters"), Message: p.Text}
		})}
	}
	return json.RawMessage(content), nil
}
