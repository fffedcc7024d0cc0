//go:build unix

package web_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/api"
	"github.com/grapnel-go/grapnel/coordinator/web"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// enter signs in as a person does: opens the printed address and presses the button.
func enter(b *parts.Browser, r *room) {
	b.Open(r.url + web.SignInPath(r.pages.NewCode()))
	b.Eval(`document.querySelector("form").requestSubmit()`, nil)
	b.Wait(`location.pathname === "/ui/" && document.readyState === "complete"`)
}

// Every page, on a desk and a phone, light and dark: axe-core finds nothing, and nothing sticks out.
func TestPagesInABrowser(t *testing.T) {
	b := parts.Chromium(t)
	for _, r := range []*room{
		newRoom(t, &stored{run: wire.RunDetail{Run: wire.Run{RunID: "run_1", AgentName: "tidier", Status: wire.Failed, Blocked: true, Labels: map[string]string{"team": "finance"}}, Parameters: []byte(`{"prompt":"tidy"}`)}, events: told("")}),
		hostile(t, wire.Completed), hostile(t, wire.Failed), newRoom(t, nil),
	} {
		b.Do("Network.clearBrowserCookies", nil, nil)
		paths := []string{"/ui/sign-in", "/ui/", "/ui/runs", "/ui/audit", "/ui/rules", "/ui/rules/hits?hook=ours%2Fno-delete", "/ui/runs/run_1", "/ui/runs/run_1?read=1", "/ui/inbox", "/ui/whatif?file=library:secrets"}
		if r.hostile != nil {
			paths = append(paths, "/ui/agents", "/ui/agents/x", "/ui/agents/x/edit", "/ui/agents/new", "/ui/runners", "/ui/submit", "/ui/sessions/x", "/ui/inbox?show=decided", r.hostile.at(0), r.hostile.link(2))
		}
		for _, path := range paths {
			if path == "/ui/" {
				enter(b, r)
			}
			for _, width := range []int{390, 1280} {
				for _, dark := range []bool{false, true} {
					about := fmt.Sprint(path, " ", width, " dark ", dark)
					b.Size(width, 800, dark)
					b.Open(r.url + path)
					b.Eval(`document.querySelectorAll("details.new").forEach((e) => e.open = true)`, nil)
					assert.Empty(t, b.Axe(), about)
					var page struct{ Wide, Alien float64 }
					b.Eval(`({
						wide: document.documentElement.scrollWidth - innerWidth,
						alien: document.querySelectorAll("script:not([src^='/ui/asset/']), img, iframe, style, base, [onerror]").length +
							[...document.links].filter(a => a.host !== location.host).length,
					})`, &page)
					assert.LessOrEqual(t, page.Wide, 0.0, "%s: it scrolls sideways", about)
					assert.Zero(t, page.Alien, "%s: hostile text became markup", about)
				}
			}
		}
		for _, e := range b.Errors() {
			assert.Contains(t, e, "404", "the last room has no such run")
		}
	}
}

// key presses a key, and types its text if it has one.
func key(b *parts.Browser, name, text string) {
	b.Do("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": name, "text": text}, nil)
	b.Do("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": name}, nil)
}

// The keys: a question is approved, and the next, which appears by itself, is rejected with a reason. What a person
// types stays while the page changes.
func TestAnswerByKeyboard(t *testing.T) {
	b, r := parts.Chromium(t), newRoom(t, nil)
	b.Size(1280, 800, false)
	enter(b, r)
	first := r.ask(agent.Question{Reason: "it publishes"}, "", `{"command":"git push"}`)
	for _, one := range []string{"g", "i"} {
		key(b, one, one)
	}
	b.Wait(`location.pathname === "/ui/inbox" && document.querySelector("[data-card]") != null && document.readyState === "complete"`)
	key(b, "?", "?")
	b.Wait(`document.querySelector("dialog#keys").open`)
	assert.Empty(t, b.Axe())
	key(b, "a", "a")
	key(b, "?", "?")
	b.Wait(`!document.querySelector("dialog#keys").open`)
	key(b, "j", "j")
	key(b, "Enter", "\r")
	b.Wait(`location.pathname === "/ui/inbox/wait" && document.readyState === "complete"`)
	for _, one := range []string{"g", "i"} {
		key(b, one, one)
	}
	b.Wait(`location.pathname === "/ui/inbox" && document.querySelector("[data-card]") != null && document.readyState === "complete"`)
	key(b, "j", "j")
	key(b, "a", "a")
	b.Wait(`document.activeElement.value === "approve"`)
	b.Eval(`window.answered = false`, nil) // until another page is loaded: a stream may replace the card before
	key(b, "Enter", "\r")
	b.Wait(`window.answered === undefined && location.pathname === "/ui/inbox" && document.querySelector("[data-card]") === null && document.readyState === "complete"`)
	assert.Equal(t, agent.StatusDone, first.goOn().Status())
	assert.Len(t, first.ran, 1)

	second := r.ask(agent.Question{Reason: "it deletes", Quorum: 2}, "", `{"command":"rm -rf build"}`)
	b.Wait(`document.querySelector("[data-card]") != null`)
	key(b, "j", "j")
	key(b, "r", "r")
	b.Wait(`document.activeElement.matches("[data-reason]")`)
	key(b, "Escape", "")
	b.Wait(`document.activeElement.matches("[data-card]")`)
	key(b, "r", "r")
	b.Wait(`document.activeElement.matches("[data-reason]")`)
	for _, one := range "no y" {
		key(b, string(one), string(one))
	}
	_, err := durable.Decide(t.Context(), r.store, second.waits[0], agent.Approval{
		Verdict: agent.Approve, By: "bob", Identity: "bob", Covers: []string{second.notice.Calls[0].Questions[0].ID()},
	})
	require.NoError(t, err)
	b.Wait(`document.querySelector("[data-card]").textContent.includes("1 of 2 approvals")`)
	b.Wait(`document.activeElement.matches("[data-reason]") && document.activeElement.value === "no y"`)
	b.Eval(`document.querySelector("[value=reject_and_continue]").focus()`, nil)
	key(b, "Enter", "\r")
	b.Wait(`document.querySelector("[data-card]") === null && document.readyState === "complete"`)
	assert.Equal(t, agent.StatusDone, second.goOn().Status())
	assert.Empty(t, second.ran)

	b.Open(r.url + "/ui/runs")
	r.submit(wire.RunRequest{AgentName: "plain"}) // it appears by itself
	b.Wait(`document.querySelector("#rows > li:first-child b")?.textContent === "plain"`)
	key(b, "j", "j")
	b.Wait(`document.activeElement.matches("#rows > li:first-child a")`)
	key(b, "/", "/")
	b.Wait(`document.activeElement.name === "q" && document.activeElement.value === ""`)
	assert.Empty(t, b.Errors())
}

// inPieces serves pages as a slow network does: the browser has the beginning for a while before it has the rest.
func inPieces(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Accept"), "text/html") {
			handler.ServeHTTP(w, r)
			return
		}
		page := httptest.NewRecorder()
		handler.ServeHTTP(page, r)
		maps.Copy(w.Header(), page.Header())
		w.WriteHeader(page.Code)
		for piece := range slices.Chunk(page.Body.Bytes(), 700) {
			_, _ = w.Write(piece)
			_ = http.NewResponseController(w).Flush()
			time.Sleep(20 * time.Millisecond)
		}
	})
}

// Nothing moves that a person is reading: neither while a page is loaded, however slowly, nor when the first and later steps of a
// run arrive.
func TestNothingShifts(t *testing.T) {
	b, events := parts.Chromium(t), told("")
	moved := func(about string) {
		t.Helper()
		var all []string
		b.Eval(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(window.moved.splice(0)))))`, &all)
		assert.Empty(t, all, about)
	}
	watch := func() {
		b.Eval(`window.moved = []; const at = (r) => [r.x, r.y, r.width, r.height]; new PerformanceObserver((list) => {
			for (const e of list.getEntries()) moved.push([e.value, ...e.sources.map((s) => [s.node?.id || s.node?.className || s.node?.nodeName, ...at(s.previousRect), "to", ...at(s.currentRect)].join(" "))].join(", "));
		}).observe({type: "layout-shift", buffered: true})`, nil)
	}
	rules := []wire.RuleView{
		{Hook: "agent.tidier/check", Point: "RunStart"}, {Hook: "ours/no-delete", Point: "PreToolUse"}, {Hook: "ours/offline", Point: "PreToolUse"},
		{Hook: "ours/inside", Point: "PreToolUse"}, {Hook: "ours/publish", Point: "PreToolUse"}, {Hook: "ours/secrets", Point: "PostToolUse"},
		{Hook: "ours/judge", Point: "PreInference"},
	}
	for _, width := range []int{390, 1280} {
		for _, known := range [][]wire.RuleView{rules, nil} { // a program's hooks are not known before they decide
			run := wire.Run{RunID: "run_1", AgentName: "tidier", Type: wire.Autonomous, Status: wire.Running, HasHooks: true, SessionID: "x"}
			fake := &growing{stored: stored{run: wire.RunDetail{Run: run, Rules: known}, session: wire.Session{SessionID: "x", AgentName: "tidier", Status: wire.Running, Runs: []wire.Run{run}}}}
			r := newRoom(t, fake)
			slow := httptest.NewServer(inPieces(api.Handler(r.c, api.Options{Token: secret, Pages: r.pages})))
			t.Cleanup(func() {
				slow.CloseClientConnections()
				slow.Close()
			})
			r.url = slow.URL
			l, err := r.store.Begin(t.Context(), durable.Job{ID: "run_1"}, "one", time.Hour)
			require.NoError(t, err)
			b.Do("Network.clearBrowserCookies", nil, nil)
			b.Size(width, 800, false)
			enter(b, r)
			open := func(path string) {
				b.Open(r.url + path)
				watch()
				moved(fmt.Sprintf("%d %s with %d events", width, path, len(fake.events)))
			}
			open("/ui/runs/run_1")
			for _, next := range []struct {
				events int
				shown  string
			}{{2, "continue"}, {5, "busy"}, {6, "I remove it"}, {10, "denied by ours/no-delete"}, {13, "a.txt"}, {len(events) - 1, "no answer"}} {
				fake.grow(events[:next.events])
				require.NoError(t, r.store.Commit(t.Context(), l, durable.Commit{Events: []durable.Event{{Name: "tick", Data: fmt.Append(nil, next.events)}}}))
				b.Wait(fmt.Sprintf(`document.querySelector("#entries").textContent.includes(%q)`, next.shown))
				moved(fmt.Sprintf("%d, when %q arrives", width, next.shown))
			}
			if known == nil {
				continue
			}
			a := r.ask(agent.Question{Reason: "it publishes"}, "", `{"command":"git push"}`)
			for _, path := range []string{"/ui/", "/ui/runs", "/ui/audit", "/ui/rules", "/ui/rules/hits?hook=x", "/ui/agents", "/ui/agents/x", "/ui/agents/x/edit", "/ui/runners", "/ui/submit", "/ui/runs/run_1", "/ui/sessions/x", "/ui/inbox", "/ui/inbox?show=decided", a.at(0), a.link(0), "/ui/nothing"} {
				open(path)
			}
			b.Do("Network.clearBrowserCookies", nil, nil)
			open("/ui/sign-in")
		}
	}
	for _, e := range b.Errors() {
		assert.Contains(t, e, "404", "one page does not exist")
	}
}

// growing is a coordinator with one run, whose events the test sets.
type growing struct {
	stored

	mu sync.Mutex
}

func (g *growing) grow(events []wire.EventView) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.events = events
}

func (g *growing) ListEvents(ctx context.Context, id agent.RunID, after int64, limit int) ([]wire.EventView, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stored.ListEvents(ctx, id, after, limit)
}
