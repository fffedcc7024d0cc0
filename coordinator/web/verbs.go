package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/approval"
	"github.com/grapnel-go/grapnel/internal/markup"
)

// verb is what an operator does with a form. It returns the path of the page that shows what it did.
type verb func(ctx context.Context, v *view, id string, form url.Values) (string, error)

// verbBytes is how long a form may be.
const verbBytes = 1 << 20

// operation returns the handler of a verb, under the name that it has in the API.
func (h *Handler) operation(name string, do verb) func(http.ResponseWriter, *http.Request, *view) {
	return func(w http.ResponseWriter, r *http.Request, v *view) {
		r.Body = http.MaxBytesReader(w, r.Body, verbBytes)
		err := r.ParseForm()
		var at string
		switch {
		case err != nil:
			err = errForm
		case !v.isOperator():
			err = errRole
		default:
			retry := wire.RetryRequest{PastHook: r.PostForm.Get("past"), Reason: r.PostForm.Get("reason")}
			detail := cmp.Or(r.PostForm.Get("agent_name"), signalDetail(r), retry.Detail())
			ctx, finish := h.o.Coordinator.WithAuditEntry(r.Context(), wire.AuditEntry{
				By: v.who.Name, TokenID: v.who.ID, Operation: name, Path: r.URL.Path, Detail: detail,
			})
			at, err = do(ctx, v, r.PathValue("id"), r.PostForm)
			err = errors.Join(err, finish(err))
		}
		status := http.StatusUnprocessableEntity
		invalid, isInvalid := errors.AsType[*coordinator.InvalidError](err)
		switch {
		case err == nil:
			http.Redirect(w, r, at, http.StatusSeeOther)
			return
		case isInvalid:
			err = invalid
		case errors.Is(err, errRole):
			status = http.StatusForbidden
		case errors.Is(err, durable.ErrEnded):
			status, err = http.StatusConflict, errEnded
		case errors.Is(err, coordinator.ErrKeyUsed):
			status = http.StatusConflict
		case !errors.Is(err, errForm):
			h.fail(w, r, v, name, err)
			return
		}
		v.title = "Nothing was changed"
		v.Put("<h1>%s</h1>\n<p class=\"text bad\" role=\"alert\">%s</p>\n<p>Go back to change what you sent, or to <a href=\"%s\">all runs</a>.</p>\n",
			v.title, cutText(err.Error(), reasonLen), prefix+"runs")
		reply(w, status, v.render())
	}
}

var (
	errForm  = errors.New("the form cannot be read, or is too large")
	errRole  = errors.New("this needs a token with the role operator")
	errEnded = errors.New("the run has ended already")
)

// stopRun stops a run.
func (h *Handler) stopRun(ctx context.Context, v *view, id string, form url.Values) (string, error) {
	run := agent.RunID(id)
	return runPath(run), h.o.Coordinator.Stop(ctx, run, strings.TrimSpace(form.Get("reason")), v.who.Name)
}

// retryRun submits a run again, perhaps past the hook that has blocked it.
func (h *Handler) retryRun(ctx context.Context, v *view, id string, form url.Values) (string, error) {
	again, err := h.o.Coordinator.Retry(ctx, agent.RunID(id), wire.RetryRequest{
		IdempotencyKey: form.Get("key"), PastHook: form.Get("past"), Reason: form.Get("reason"),
	}, v.who.Name)
	return runPath(again.ID), err
}

// resumeSession submits the next run of a session.
func (h *Handler) resumeSession(ctx context.Context, v *view, id string, form url.Values) (string, error) {
	prompt := strings.ReplaceAll(form.Get("prompt"), "\r\n", "\n")
	next, err := h.o.Coordinator.Resume(ctx, agent.SessionID(id), wire.ResumeRequest{Prompt: prompt, IdempotencyKey: form.Get("key")}, v.who.Name)
	return runPath(next.ID), err
}

// isRetryable reports whether a run can be retried.
func isRetryable(r wire.Run) bool {
	return (r.Status == wire.Failed || r.Status == wire.Stopped) && r.Hook == ""
}

// putPast shows how an operator lets the run pass the hook that has blocked it.
func (p *runPage) putPast(out *markup.Page) {
	hook, ok := lo.Find(p.run.Hooks, wire.HookEvent.BlocksRun)
	if !ok || !p.isOperator() || !isRetryable(p.run.Run) {
		return
	}
	out.Put(`<details class="verb"><summary class="button">Let it through</summary>
<form method="post" action="%s/retry" class="card" autocomplete="off">
<input type="hidden" name="key" value="%s"><input type="hidden" name="past" value="%s">
<p class="dim">A new run with the same parameters, about which this hook is not asked. All other hooks are.</p>
<p><label for="past-why">Reason <span class="dim">for the audit log, and shown with the run</span></label>
<input id="past-why" name="reason" maxlength="256" required></p>
<p><button class="yes">Submit it past the hook</button></p></form></details>
`, runPath(p.run.RunID), p.key+"-past", hook.Hook)
}

// putRetries shows which run this one retries, and which retry it.
func (p *runPage) putRetries(out *markup.Page) {
	put := func(before string, id agent.RunID, r wire.Run) {
		out.Put("<p class=\"retry\">%s <a href=\"%s\"><code>%s</code></a>", before, runPath(id), shortID(id))
		out.PutIf(r.PastHook != "", ", past the hook <code>%s</code>, by %s: <span class=\"text\">%s</span>",
			cutText(r.PastHook, lineLen), cutText(r.SubmittedBy, lineLen), cutText(r.Because, reasonLen))
		out.Put("</p>\n")
	}
	if p.run.RetryOf != "" {
		put("A retry of", p.run.RetryOf, p.run.Run)
	}
	for _, r := range p.run.Retries {
		put("Tried again:", r.RunID, r)
	}
}

// putVerbs shows what an operator may do with a run.
func (p *runPage) putVerbs(out *markup.Page) {
	r := p.run
	if !p.isOperator() || r.Stage != "" {
		return
	}
	begin := func(name, path string) {
		out.Put(`<details class="verb"><summary class="button">%s</summary><form method="post" action="%s" class="card" autocomplete="off">
<input type="hidden" name="key" value="%s">
`, name, path, p.key)
	}
	end := func(name string) { out.Put("<p><button class=\"yes\">%s</button></p></form></details>\n", name) }
	out.Put("<div class=\"verbs\">")
	switch ended := isEnded(r.Status); {
	case !ended:
		begin("Stop", runPath(r.RunID)+"/stop")
		out.Put(`<p><label for="stop-why">Reason</label><input id="stop-why" name="reason" maxlength="1000"></p>` + "\n")
		end("Stop the run")
		p.putPausing(begin, end, out)
	case r.Type == wire.Autonomous && r.Hook == "":
		begin("Continue", sessionPath(r.SessionID)+"/resume")
		out.Put(`<p><label for="prompt">What the agent is told next</label><textarea id="prompt" name="prompt" rows="3" required></textarea></p>` + "\n")
		end("Submit the next run")
	}
	if isRetryable(r.Run) {
		begin("Retry", runPath(r.RunID)+"/retry")
		out.Put("<p class=\"dim\">A new run of version %s with the same parameters and labels.</p>\n", r.Version)
		end("Submit the run again")
	}
	if r.Hook == "" {
		parameters := r.OriginalParameters
		if len(parameters) == 0 {
			parameters = r.Parameters
		}
		begin("Run with other parameters", runPath(r.RunID)+"/again")
		putJSON(out, "again", approval.Arguments(parameters).Text())
		end("Submit a new run")
	}
	out.Put("</div>\n")
}
