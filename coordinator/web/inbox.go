package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/internal/rates"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/approval"
	"github.com/grapnel-go/grapnel/internal/markup"
)

const (
	inboxPath = prefix + "inbox"
	// cardsShown is how many open questions a page shows, and decidedShown how many answers.
	cardsShown   = 30
	decidedShown = 50
	// orderedWaits is how many open questions are put in order at a time, a person's own first: a page costs no more than these.
	orderedWaits = 200
	// likeShown is how many former decisions a group shows, of the last likeRead about its tool.
	likeShown = 3
	likeRead  = 50
)

// group are open questions of one rule about calls of one shape.
type group struct {
	id, rule, shape string
	cards           []card
	// isMine is set when the person may answer one of them.
	isMine bool
	// history are the last decisions about like calls.
	history []approval.Decision
}

// inboxPlace is where a page of the inbox begins. Its zero value is the beginning.
type inboxPlace struct {
	// window is the last of the questions before those that are put in order.
	window *durable.Wait
	// last is the last question of the page before. others is set if it was not for the person.
	last   *durable.Wait
	others bool
}

// inboxPage is a page of open questions: those that the person may answer, then the others, each oldest first.
type inboxPage struct {
	groups []*group
	// isLater is set for a page after the first, and next is the address of the next page, if there is one.
	isLater bool
	next    string
	// isCut is set if more questions are open than are put in order.
	isCut bool
	// state is the state of the questions: see stateOf.
	state string
	// unreadable says why questions are missing.
	unreadable []string
}

// readInbox reads a page of open questions from those that openWaits has returned.
func (h *Handler) readInbox(ctx context.Context, v *view, at inboxPlace, waits []durable.Wait) (p inboxPage, err error) {
	waits, p = at.page(v.who, waits)
	known := map[string]*group{}
	for _, w := range waits {
		c, err := h.newCard(ctx, v, w, inboxPath)
		switch {
		case errors.Is(err, durable.ErrNotFound): // its run was deleted
			continue
		case err != nil:
			return p, err
		case c.Status == http.StatusInternalServerError:
			p.unreadable = append(p.unreadable, c.Message)
			continue
		case c.Question == nil || !c.Question.Open(): // answered meanwhile, or too late
			continue
		}
		rule, shape := ruleOf(c.Question), shapeOf(c.Question)
		id := "g-" + hashOf(rule + " " + shape)[:12]
		g := known[id]
		if g == nil {
			g = &group{id: id, rule: rule, shape: shape}
			if g.history, err = h.likeAnswers(ctx, c.Question); err != nil {
				return p, err
			}
			known[id], p.groups = g, append(p.groups, g)
		}
		c.group = id
		g.cards = append(g.cards, c)
		g.isMine = g.isMine || c.CannotApprove == "" || c.Question.Gate != nil && c.CannotReject == ""
	}
	slices.SortStableFunc(p.groups, func(a, b *group) int { return cmp.Compare(lo.Ternary(a.isMine, 0, 1), lo.Ternary(b.isMine, 0, 1)) })
	return p, nil
}

// ruleOf names who asks a question.
func ruleOf(d *approval.Detail) string {
	return strings.Join(lo.Uniq(lo.Map(d.Questions, func(q approval.MessageQuestion, _ int) string { return asker(q) })), ", ")
}

// shapeOf returns the tool of a question with what its calls have in common: the beginning of their only text, or the
// names of their arguments.
func shapeOf(d *approval.Detail) string {
	if isBare(d.Item) {
		return waitTitle(d.Item)
	}
	tool := firstLine(d.Tool)
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(d.Arguments), &object) != nil || len(object) == 0 {
		return tool
	}
	names := slices.Sorted(maps.Keys(object))
	var only string
	if len(names) == 1 && json.Unmarshal(object[names[0]], &only) == nil {
		if first := strings.Fields(only); len(first) > 0 {
			return tool + " " + firstLine(first[0]) + " …"
		}
	}
	return tool + " " + firstLine(strings.Join(names, ", "))
}

// likeAnswers returns the last decisions about calls of the same tool that one of the same rules has asked about.
func (h *Handler) likeAnswers(ctx context.Context, d *approval.Detail) ([]approval.Decision, error) {
	if d.Tool == "" {
		return nil, nil
	}
	records, err := h.o.Store.AuditRecords(ctx, durable.AuditFilter{Kind: durable.AuditAnswer, Subject: d.Tool, Limit: likeRead})
	if err != nil {
		return nil, err
	}
	like := lo.Filter(records, func(r durable.AuditRecord, _ int) bool {
		answered, err := durable.AnsweredOf(r)
		return err == nil && lo.SomeBy(d.Questions, func(q approval.MessageQuestion) bool { return slices.Contains(answered.AskedBy, q.AskedBy) })
	})
	return approval.DecisionsOf(like[:min(len(like), likeShown)]), nil
}

// page returns the questions of a page, which are among waits, and the page without its groups.
func (at inboxPlace) page(who person, waits []durable.Wait) ([]durable.Wait, inboxPage) {
	p := inboxPage{isLater: at != (inboxPlace{}), isCut: len(waits) > orderedWaits}
	waits = waits[:min(len(waits), orderedWaits)]
	mine, others := lo.FilterReject(waits, func(w durable.Wait, _ int) bool { return isFor(who, w) })
	if at.last != nil {
		isBehind := func(w durable.Wait, _ int) bool {
			return cmp.Or(w.Asked.Compare(at.last.Asked), cmp.Compare(w.Run, at.last.Run), cmp.Compare(w.ID, at.last.ID)) > 0
		}
		if at.others {
			mine, others = nil, lo.Filter(others, isBehind)
		} else {
			mine = lo.Filter(mine, isBehind)
		}
	}
	shown := slices.Concat(mine, others)
	switch {
	case len(shown) > cardsShown:
		shown = shown[:cardsShown]
		at.last, at.others = &shown[cardsShown-1], cardsShown > len(mine)
		p.next = inboxPath + "?" + at.values().Encode()
	case p.isCut:
		p.next = inboxPath + "?" + inboxPlace{window: &waits[orderedWaits-1]}.values().Encode()
	}
	p.state = stateOf(shown)
	return shown, p
}

// isFor reports whether a question is one that a person may answer: by its approvers, and whatever they have submitted themselves, which
// the card says.
func isFor(who person, w durable.Wait) bool {
	p := who.principal()
	i, err := durable.InterventionOf(w)
	if p == nil || err != nil {
		return false
	}
	open := durable.OpenQuestions(w, i)
	a := agent.Approval{Verdict: agent.Approve, Identity: p.Name, Roles: p.Roles}
	if _, isGate := durable.GateOf(w, i); isGate {
		a.Verdict = agent.RejectAndEnd
	}
	return lo.EveryBy(open, func(q agent.Question) bool {
		return q.Admits(a) && !lo.SomeBy(q.Answers, func(given agent.Approval) bool { return given.Identity == p.Name })
	})
}

// openWaits returns the oldest open questions after one, unless that is nil: one more than a limit.
func (h *Handler) openWaits(ctx context.Context, after *durable.Wait, limit int) ([]durable.Wait, error) {
	return h.o.Store.OpenWaits(ctx, durable.WaitFilter{Kinds: approval.InboxKinds(), After: after, Limit: limit + 1})
}

// values returns the query of the page at a place.
func (at inboxPlace) values() url.Values {
	values := url.Values{}
	set := func(prefix string, w *durable.Wait) {
		if w != nil {
			values.Set(prefix+"asked", w.Asked.UTC().Format(time.RFC3339Nano))
			values.Set(prefix+"run", string(w.Run))
			values.Set(prefix+"wait", w.ID)
		}
	}
	set("", at.window)
	set("last_", at.last)
	if at.others {
		values.Set("others", "true")
	}
	return values
}

// placeOf returns the place of a page, from its query. What cannot be read is the beginning.
func placeOf(values url.Values) (at inboxPlace) {
	get := func(prefix string) *durable.Wait {
		asked, err := time.Parse(time.RFC3339Nano, values.Get(prefix+"asked"))
		if err != nil {
			return nil
		}
		return &durable.Wait{Asked: asked, Run: agent.RunID(values.Get(prefix + "run")), ID: values.Get(prefix + "wait")}
	}
	at.window, at.last = get(""), get("last_")
	at.others = at.last != nil && values.Get("others") != ""
	return at
}

// countOpen returns how many questions are open, as the navigation shows it: empty for none, or if the store does not answer.
func (h *Handler) countOpen(ctx context.Context) string {
	waits, err := h.openWaits(ctx, nil, cardsShown)
	switch n := len(waits); {
	case err != nil, n == 0:
		return ""
	case n > cardsShown:
		return strconv.Itoa(cardsShown) + "+"
	default:
		return strconv.Itoa(n)
	}
}

// showInbox serves the open questions, or the last answers.
func (h *Handler) showInbox(w http.ResponseWriter, r *http.Request, v *view) {
	v.title, v.part = "Inbox", partInbox
	isDecided := r.URL.Query().Get("show") == "decided"
	v.Put("<h1>Inbox</h1>\n<nav class=\"tabs\" aria-label=\"Which questions\"><ul>\n")
	for _, tab := range []struct {
		title, query string
		current      bool
	}{{"Open", "", !isDecided}, {"Decided", "?show=decided", isDecided}} {
		v.Put(`<li><a href="%s"`, inboxPath+tab.query)
		v.PutIf(tab.current, ` aria-current="page"`)
		v.Put(">%s</a></li>\n", tab.title)
	}
	v.Put("</ul></nav>\n")
	if isDecided {
		h.showDecided(w, r, v)
		return
	}
	at := placeOf(r.URL.Query())
	waits, err := h.openWaits(r.Context(), at.window, orderedWaits)
	var p inboxPage
	if err == nil {
		p, err = h.readInbox(r.Context(), v, at, waits)
	}
	if err != nil {
		h.fail(w, r, v, "listing what waits", err)
		return
	}
	live := at.values()
	live.Set("shown", hashOf(p.state))
	v.live = inboxPath + "/live?" + live.Encode()
	v.putInbox(&v.Page, p)
	reply(w, http.StatusOK, v.render())
}

// putInbox shows the open questions.
func (v *view) putInbox(out *markup.Page, p inboxPage) {
	out.Put("<div id=\"groups\">\n")
	none := lo.Ternary(p.isLater, "No later question waits.", "Nothing waits for a person.")
	out.PutIf(len(p.groups)+len(p.unreadable) == 0, "<p class=\"dim\" id=\"none\">%s</p>\n", none)
	out.PutIf(p.isCut, "<p class=\"dim\">More than %s questions are open: yours come first among the oldest %s, then among the next ones.</p>\n",
		orderedWaits, orderedWaits)
	p.putUnreadable(out)
	for _, g := range p.groups {
		v.putGroup(out, g)
	}
	out.PutIf(p.isLater, "<p class=\"more\"><a class=\"button\" href=\"%s\">Oldest questions</a></p>\n", inboxPath)
	out.PutIf(p.next != "", "<p class=\"more\"><a class=\"button\" href=\"%s\">Later questions</a></p>\n", p.next)
	out.Put("</div>\n")
}

// putUnreadable says which questions are missing.
func (p inboxPage) putUnreadable(out *markup.Page) {
	out.Put("<div id=\"unreadable\">\n")
	for _, why := range p.unreadable {
		out.Put("<p class=\"why failed\">A question cannot be shown, so no person can answer it: cancel its run. %s</p>\n", firstLine(why))
	}
	out.Put("</div>\n")
}

// putGroup shows the open questions of one group.
func (v *view) putGroup(out *markup.Page, g *group) {
	out.Put("<section class=\"group\" id=\"%s\"><h2><code>%s</code> <span class=\"dim\">asked by %s", g.id, g.shape, g.rule)
	out.PutIf(!g.isMine, " · not for you")
	out.Put("</span></h2>\n<div id=\"%s-all\">\n", g.id)
	for _, c := range g.cards {
		v.putCard(out, c)
	}
	out.Put("</div>\n")
	if len(g.history) > 0 {
		out.Put("<details><summary>Former decisions about like calls</summary>\n")
		v.putDecisions(out, g.history)
		out.Put("</details>\n")
	}
	out.Put("</section>\n")
}

// showDecided serves the last answers.
func (h *Handler) showDecided(w http.ResponseWriter, r *http.Request, v *view) {
	f := durable.AuditFilter{Kind: durable.AuditAnswer, Limit: decidedShown}
	f.Before, _ = strconv.ParseInt(r.URL.Query().Get("before"), 10, 64)
	records, err := h.o.Store.AuditRecords(r.Context(), f)
	if err != nil {
		h.fail(w, r, v, "reading what was decided", err)
		return
	}
	all := approval.DecisionsOf(records)
	v.PutIf(len(all) == 0, "<p class=\"dim\">Nothing was decided yet.</p>\n")
	tools := lo.SliceToMap(records, func(r durable.AuditRecord) (string, string) { return string(r.Run) + r.At.String(), r.Subject })
	for _, d := range all {
		v.Put("<section class=\"card\"><h2>%s</h2>\n", firstLine(tools[string(d.Run)+d.At.String()]))
		v.putDecisions(&v.Page, []approval.Decision{d})
		v.Put("</section>\n")
	}
	if len(records) == decidedShown {
		v.Put("<p class=\"more\"><a class=\"button\" href=\"%s\">Older answers</a></p>\n",
			inboxPath+"?"+url.Values{"show": {"decided"}, "before": {strconv.FormatInt(records[len(records)-1].Seq, 10)}}.Encode())
	}
	reply(w, http.StatusOK, v.render())
}

// streamInbox sends questions that are new, have changed, or were answered.
func (h *Handler) streamInbox(w http.ResponseWriter, r *http.Request, v *view) {
	s := openStream(w)
	var shown map[string]card
	var last string
	at := placeOf(r.URL.Query())
	s.follow(h, r, listEvery, "listing what waits", func(ctx context.Context) (bool, error) {
		waits, err := h.openWaits(ctx, at.window, orderedWaits)
		if err != nil {
			return false, err
		}
		now := stateOf(waits)
		if now == last {
			return true, nil
		}
		v.now = time.Now()
		p, err := h.readInbox(ctx, v, at, waits)
		if err != nil {
			return false, err
		}
		if shown == nil && r.URL.Query().Get("shown") != hashOf(p.state) { // something happened before the browser connected
			err = s.send("groups", "", "", func(out *markup.Page) { v.putInbox(out, p) })
		}
		last = now
		shown, err = v.sendInbox(s, p, shown, err)
		return true, err
	})
}

// sendInbox sends what has changed since a page had the cards before, nil if it has these, unless there is an error. It returns the
// cards that the page has now.
func (v *view) sendInbox(s *stream, p inboxPage, before map[string]card, err error) (map[string]card, error) {
	err = cmp.Or(err, s.send("unreadable", "", "", p.putUnreadable))
	shown := map[string]card{}
	for _, g := range p.groups {
		err = cmp.Or(err, v.sendGroup(s, g, before))
		for _, c := range g.cards {
			shown[c.id()] = c
		}
	}
	gone := map[string][]card{} // by group
	for _, id := range slices.Sorted(maps.Keys(before)) {
		if _, still := shown[id]; !still {
			gone[before[id].group] = append(gone[before[id].group], before[id])
		}
	}
	for _, id := range slices.Sorted(maps.Keys(gone)) {
		if !slices.ContainsFunc(p.groups, func(g *group) bool { return g.id == id }) {
			err = cmp.Or(err, s.send(id, "", "", func(out *markup.Page) { putGoneGroup(out, id, gone[id]) }))
			continue
		}
		for _, c := range gone[id] {
			err = cmp.Or(err, s.send(c.id(), "", "", func(out *markup.Page) { putGone(out, c) }))
		}
	}
	return shown, err
}

// sendGroup sends a group that is new, or its cards that have changed.
func (v *view) sendGroup(s *stream, g *group, before map[string]card) error {
	isNew := !lo.SomeBy(g.cards, func(c card) bool { return before[c.id()].Question != nil })
	if isNew && before != nil {
		if err := s.send(g.id, "groups", "", func(out *markup.Page) { v.putGroup(out, g) }); err != nil {
			return err
		}
	}
	for _, c := range g.cards {
		put := func(out *markup.Page) { v.putCard(out, c) }
		if isNew {
			s.note(c.id(), put)
		} else if err := s.send(c.id(), g.id+"-all", "", put); err != nil {
			return err
		}
	}
	return nil
}

// stateOf returns a text that changes when open questions do.
func stateOf(waits []durable.Wait) string {
	var b strings.Builder
	for _, w := range waits {
		isLate := !w.Deadline.IsZero() && !time.Now().Before(w.Deadline)
		b.WriteString(string(w.Run) + " " + w.ID + " " + strconv.Itoa(len(w.Partial)) + " " + strconv.FormatBool(isLate) + "\n")
	}
	return b.String()
}

// putGoneGroup shows in the place of a group that none of its questions are open any more.
func putGoneGroup(out *markup.Page, id string, cards []card) {
	out.Put("<section class=\"group\" id=\"%s\">\n", id)
	for _, c := range cards {
		putGone(out, c)
	}
	out.Put("</section>\n")
}

// putGone shows in the place of a card that its question is not open any more.
func putGone(out *markup.Page, c card) {
	out.Put("<section class=\"card\" id=\"%s\"><p class=\"dim\">“%s” was answered, or is not asked any more. "+
		"<a href=\"%s\">What was decided</a></p></section>\n",
		c.id(), firstLine(c.Question.Tool), inboxPath+"?show=decided")
}

// answersAt returns a page of package approval for people who are signed in.
func (h *Handler) answersAt(page string) func(http.ResponseWriter, *http.Request, *view) {
	return func(w http.ResponseWriter, r *http.Request, v *view) {
		if v.who.principal() == nil {
			v.title = "An operator can answer"
			run := runPath(agent.RunID(r.URL.Query().Get("run")))
			v.Put("<h1>%s</h1>\n<p>Your token has the role %s. <a href=\"%s\">The run</a></p>\n", v.title, string(v.who.Role), run)
			reply(w, http.StatusForbidden, v.render())
			return
		}
		h.serveAnswers(w, r, v, linksPath+page)
	}
}

// serveAnswers serves a page of package approval for a person, who is the zero value for a link.
func (h *Handler) serveAnswers(w http.ResponseWriter, r *http.Request, v *view, path string) {
	in := r.Clone(context.WithValue(r.Context(), viewKey{}, v))
	in.URL.Path = path
	h.answers.ServeHTTP(w, in)
}

type viewKey struct{}

// viewOf returns the view of a request to a page of package approval.
func viewOf(ctx context.Context) *view {
	v, ok := ctx.Value(viewKey{}).(*view)
	if !ok {
		return &view{now: time.Now()}
	}
	return v
}

// linksPath begins the links in notices. Programs answer below it, too, with a token.
const linksPath = "/approvals/"

// serveLinks serves links to one question, and programs. A cookie does not count here.
func (h *Handler) serveLinks(w http.ResponseWriter, r *http.Request) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	v := &view{now: time.Now()}
	if ok {
		var err error
		if v.who, err = h.tokenOf(r.Context(), hashOf(strings.TrimSpace(token))); err != nil && !errors.Is(err, errSignedOut) {
			h.fail(w, r, v, "looking a token up", err)
			return
		}
	} else if rest := strings.TrimPrefix(r.URL.Path, linksPath); r.Method == http.MethodGet && !approval.WantsJSON(r) && (rest == "" || rest == "wait") {
		at := inboxPath
		if rest != "" {
			at += "/wait?" + r.URL.RawQuery
		}
		http.Redirect(w, r, at, http.StatusSeeOther) //nolint:gosec // at is below /ui/
		return
	}
	client := v.who.client()
	if v.who.Role == "" {
		client = "link " + rates.AddressOf(r)
	}
	switch {
	case h.rates.Allow(client):
		h.serveAnswers(w, r, v, r.URL.Path)
	case approval.WantsJSON(r):
		w.Header().Set("Retry-After", "1")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write([]byte(`{"message":"` + tooMany + `"}`))
	default:
		refuseRate(w, v)
	}
}

// identifyAuthor returns who answers, for package approval.
func identifyAuthor(r *http.Request) (approval.Principal, error) {
	if p := viewOf(r.Context()).who.principal(); p != nil {
		return *p, nil
	}
	return approval.Principal{}, approval.ErrUnidentified
}

// recordAnswer returns the context of an answer, which is stored with an entry of the coordinator's audit log.
func (h *Handler) recordAnswer(
	ctx context.Context, author *approval.Principal, run agent.RunID, what string,
) (storing context.Context, finish func() error) {
	if h.o.Coordinator == nil {
		return ctx, func() error { return nil }
	}
	if author == nil {
		what += " by a link"
	}
	who := viewOf(ctx).who
	storing, store := h.o.Coordinator.WithAuditEntry(ctx, wire.AuditEntry{
		By: who.Name, TokenID: who.ID, Operation: "answer", Path: linksPath, Run: run, Detail: what,
	})
	return storing, func() error { return store(durable.ErrConflict) } // an answer that changed nothing
}
