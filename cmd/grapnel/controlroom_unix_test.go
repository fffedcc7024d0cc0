//go:build unix

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/client"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// house is "grapnel serve" with blueprints, and a model that answers when the test lets it.
type house struct {
	t *testing.T
	// dir is the folder of the service. Hooks before runs decide when it has the file "decide".
	dir     string
	think   chan struct{} // each lets the model begin one run
	api     *client.Client
	url     string // of the service
	address string // that it prints for a browser
}

var (
	printedAddress = regexp.MustCompile(`(http://\S+)/ui/sign-in\?code=\w+`)
	printedToken   = regexp.MustCompile(`Its token, until it stops: (\w+)`)
)

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{t: t, dir: t.TempDir(), think: make(chan struct{}, 100)}
	model := httptest.NewServer(http.HandlerFunc(h.answer))
	t.Cleanup(model.Close)
	t.Cleanup(func() { close(h.think) })
	p := command(t, nil, "serve", "--store", "runs.db", "--listen", "127.0.0.1:0", "--pipelines", "pipelines", "--model", "openai/gpt-5-mini")
	p.cmd.Dir = h.dir
	p.cmd.Env = append(p.cmd.Env, "OPENAI_API_KEY=sk-1", "OPENAI_BASE_URL="+model.URL+"/v1")
	p.start()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-ended
	})
	require.Eventually(t, func() bool { return printedAddress.MatchString(p.written()) && printedToken.MatchString(p.written()) }, patience, 20*time.Millisecond)
	found, token := printedAddress.FindStringSubmatch(p.written()), printedToken.FindStringSubmatch(p.written())
	h.address, h.url = found[0], found[1]
	var err error
	h.api, err = client.New(client.Options{URL: h.url, Token: token[1]})
	require.NoError(t, err)
	start := hookOf(`while [ ! -e decide ]; do sleep 0.02; done; case "$(cat)" in
		*May*) echo '{"action": "block", "block_reason": "The books of May are closed: choose June"}';; *) echo '{"action": "continue"}';; esac`, "block")
	files, err := json.Marshal(map[string]string{
		"pipeline.yaml": `
name: release
stages:
  - {name: plan, command: {argv: [./plan.sh]}, termination: {type: fixed, iterations: 1}}
  - {name: work, command: {argv: [./plan.sh]}, termination: {type: fixed, iterations: 1}}
hooks:
  on_stage_complete:
    - {type: gate, by: person, reason: "Is the plan for Friday good?", await: true, when: '${STAGE} == "plan"'}
`,
		"plan.sh": "#!/bin/sh\necho planned\n",
	})
	require.NoError(t, err)
	for _, text := range []string{
		`{"name": "tidier", "type": "autonomous", "agent": {"tools": ["shell"]}, "hooks": {"on_run_start": ` + start + `, "on_tool_call": [
			{"id": "no-delete", "match": {"tool": "bash"}, "when": "args.command.contains(\"rm \")", "decision": "deny", "reason": "it deletes files: ${args.command}"},
			{"id": "short", "match": {"tool": "bash"}, "when": "args.command == \"ls\"", "decision": "rewrite", "set": {"command": "'ls -1'"}},
			{"id": "publish", "match": {"tool": "bash"}, "when": "args.command.contains(\"publish\")", "decision": "ask", "reason": "it publishes the folder"}]}}`,
		`{"name": "release", "type": "pipeline", "pipeline": {"files": ` + string(files) + `}}`,
		`{"name": "report", "type": "procedural", "command": {"argv": ["/bin/cat"]}}`,
	} {
		_, err := h.api.CreateBlueprint(t.Context(), json.RawMessage(text))
		require.NoError(t, err)
	}
	return h
}

// answer is the model: it looks, wants to delete and to publish, and is done.
func (h *house) answer(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Messages []struct {
			Role string `json:"role"`
		} `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	seen := 0
	for _, m := range in.Messages {
		if m.Role == "tool" {
			seen++
		}
	}
	if seen == 0 {
		<-h.think
	}
	bash := func(command string) []call {
		arguments, _ := json.Marshal(map[string]string{"command": command})
		return []call{{Name: "bash", Arguments: arguments}}
	}
	turns := []turn{
		{Text: "I look around.", Calls: bash("ls")},
		{Text: "The old build is in the way.", Calls: bash("rm -rf build")},
		{Text: "Then I leave it, and publish what is there.", Calls: bash("./publish --all")},
		{Text: "The folder is tidy, and its draft is published."},
	}
	whole(w, turns[min(seen, len(turns)-1)])
}

func (h *house) submit(name, parameters string) agent.RunID {
	h.t.Helper()
	run, err := h.api.Submit(h.t.Context(), wire.RunRequest{AgentName: name, Parameters: json.RawMessage(parameters)})
	require.NoError(h.t, err)
	return run.RunID
}

// decide lets the hooks before runs decide.
func (h *house) decide() {
	h.t.Helper()
	require.NoError(h.t, os.WriteFile(filepath.Join(h.dir, "decide"), nil, 0o600))
}

// person uses the pages: with a mouse, with a keyboard alone, or without JavaScript.
type person struct {
	*parts.Browser

	t        *testing.T
	keyboard bool
	noScript bool
}

// see waits until the page shows something.
func (p *person) see(what string) {
	p.t.Helper()
	if !p.noScript {
		p.Wait(what)
		return
	}
	for until := time.Now().Add(4 * patience); ; {
		var shown bool
		p.Eval(what, &shown)
		if shown {
			return
		}
		require.True(p.t, time.Now().Before(until), "the page never became %s", what)
		p.Eval("window.old = true", nil)
		p.Do("Page.reload", nil, nil)
		p.Wait(replaced)
	}
}

// go to an element: with the keyboard by Tab alone.
func (p *person) reach(selector string) {
	p.t.Helper()
	p.Wait(fmt.Sprintf(`document.querySelector(%q)?.checkVisibility()`, selector))
	if !p.keyboard {
		p.Eval(fmt.Sprintf(`document.querySelector(%q).focus()`, selector), nil)
		return
	}
	for range 200 {
		var there bool
		if p.Eval(fmt.Sprintf(`document.activeElement?.matches(%q) ?? false`, selector), &there); there {
			return
		}
		p.key("Tab", 9, "")
	}
	require.Fail(p.t, "the keyboard does not reach it", selector)
}

func (p *person) key(name string, code int, text string) {
	p.t.Helper()
	p.Do("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": name, "code": name, "windowsVirtualKeyCode": code, "text": text}, nil)
	p.Do("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": name, "code": name, "windowsVirtualKeyCode": code}, nil)
}

// press presses a link, a button or a summary.
func (p *person) press(selector string) {
	p.t.Helper()
	if p.keyboard {
		p.reach(selector)
		p.key("Enter", 13, "\r")
		return
	}
	p.Wait(fmt.Sprintf(`document.querySelector(%q)?.checkVisibility()`, selector))
	if !p.noScript { // at once: the page may change between looking and pressing
		p.Eval(fmt.Sprintf(`document.querySelector(%q).click()`, selector), nil)
		return
	}
	for until := time.Now().Add(4 * patience); ; {
		var at struct {
			X, Y  float64
			Leads bool // to another page
		}
		p.Eval(fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.scrollIntoView({block: "center", behavior: "instant"});
			window.old = true; const r = e.getBoundingClientRect(), v = visualViewport;
			return {x: (r.x + r.width / 2 - v.offsetLeft) * v.scale, y: (r.y + r.height / 2 - v.offsetTop) * v.scale, leads: e.matches("a:not([href^='#']), button")}; })()`, selector), &at)
		for _, kind := range []string{"mousePressed", "mouseReleased"} {
			p.Do("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1}, nil)
		}
		if at.Leads {
			p.Wait(replaced)
			return
		}
		require.True(p.t, time.Now().Before(until), "it does not open: %s", selector)
		// A browser may scroll to the target of its address late, so that the element is no longer there.
		var missed bool
		if p.Eval(fmt.Sprintf(`document.querySelector(%q)?.closest("summary")?.parentElement.open === false`, selector), &missed); !missed {
			return
		}
	}
}

// replaced is whether another page has taken the place of the one that was marked as old.
const replaced = `window.old === undefined`

// write replaces what a field has.
func (p *person) write(selector, text string) {
	p.t.Helper()
	p.reach(selector)
	p.Do("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": "a", "code": "KeyA", "modifiers": 2, "commands": []string{"selectAll"}}, nil)
	p.Do("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": "a", "code": "KeyA", "modifiers": 2}, nil)
	p.Do("Input.insertText", map[string]any{"text": text}, nil)
}

func status(want string) string {
	return fmt.Sprintf(`document.querySelector("#head .status")?.textContent === %q`, want)
}

func includes(selector, text string) string {
	return fmt.Sprintf(`(document.querySelector(%q)?.textContent ?? "").includes(%q)`, selector, text)
}

// CO-31: a person submits the first run and looks while it is blocked, reads why, opens the decision, submits another run, watches it, approves a call with
// other arguments, and sees the difference. So with a mouse, with a keyboard alone, and without JavaScript.
func TestControlRoom(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]*person{"mouse": {}, "keyboard": {keyboard: true}, "without JavaScript": {noScript: true}} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			p.t, p.Browser = t, parts.Chromium(t)
			p.Size(1280, 800, false)
			if p.noScript {
				p.Size(390, 844, false)
				p.Do("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
			}
			stays := func() { p.Eval(`window.stays = true`, nil) }
			stayed := func() {
				var still bool
				p.Eval(`window.stays === true`, &still)
				assert.True(t, still || p.noScript, "the page changes by itself")
			}
			p.Open(h.address)
			p.press("form.signin button")
			p.see(`document.title.startsWith("Now")`)
			p.press(`details:has([name=agent_name][value=tidier]) > summary`)
			p.write(`form:has([value=tidier]) textarea[name="input.prompt"]`, "Tidy the books of May")
			p.press(`form:has([value=tidier]) button`)
			p.see(`location.pathname.startsWith("/ui/runs/run_")`)
			var blocked string
			p.Eval(`location.pathname`, &blocked)
			p.press(`nav a[href="/ui/runs"]`)
			p.see(`document.title.startsWith("Runs")`)
			p.press(fmt.Sprintf(`a.row[href=%q]`, blocked))
			p.see(status("hooking"))
			stays()
			h.decide()
			p.see(status("blocked"))
			stayed()
			p.see(includes(".verdict.denied .why", "The books of May are closed: choose June"))
			p.see(`document.querySelectorAll("#chart .mark.denied").length === 1`)
			p.press(".verdict.denied a")
			p.see(`document.querySelector(":target")?.textContent.includes("The books of May are closed") ?? false`)

			p.press(`details:has(> form[action$="/again"]) > summary`)
			p.write("textarea[name=parameters]", `{"prompt": "Tidy the books of June"}`)
			p.press(`form[action$="/again"] button`)
			p.see(fmt.Sprintf(`location.pathname !== %q`, blocked))
			p.see(status("running"))
			stays()
			h.think <- struct{}{}
			p.see(includes("#entries", "it deletes files: rm -rf build"))
			p.see(status("waiting"))
			p.see(`document.querySelector("[data-card]") !== null`)
			stayed()
			p.see(includes("[data-card]", "./publish --all"))
			p.press("[data-card] details summary")
			p.write("textarea[name=arguments]", `{"command": "echo publish the draft"}`)
			p.press("[value=edit]")
			p.see(status("completed"))
			var got struct{ Removed, Added, Result string }
			p.Eval(`({
				removed: [...document.querySelectorAll("#entries del")].map((e) => e.textContent).join(""), added: [...document.querySelectorAll("#entries ins")].map((e) => e.textContent).join(""),
				result: document.querySelector("#result").textContent,
			})`, &got)
			assert.Contains(t, got.Removed, "./publish --all")
			assert.Contains(t, got.Added, "echo publish the draft")
			assert.Contains(t, got.Result, "its draft is published")
			assert.Empty(t, p.Errors())

			// A gate of a pipeline asks in its own words.
			h.submit("release", "{}")
			p.press(`nav a[href="/ui/inbox"]`)
			p.see(includes("[data-card] h2", "Is the plan for Friday good?"))
			p.press("[data-card] [value=approve]")
			p.see(`document.querySelector("[data-card]") === null`)
			p.press(`nav a[href="/ui/runs"]`)
			p.see(includes("#rows > li:first-child .what", "release"))
			p.see(includes("#rows > li:first-child .status", "completed"))
			assert.Empty(t, p.Errors())
		})
	}
}

// pictures are the screenshots of docs/coordinator.md: a page, its width, and whether it is dark.
var pictures = map[string]string{
	"now": "now-1280-light", "runs": "runs-1280-light", "run": "run-1280-light", "blocked": "blocked-390-light", "inbox": "inbox-1280-light",
	"question": "question-390-dark", "session": "session-1280-light", "dark": "completed-1280-dark", "rules": "rules-1280-light", "pipeline": "pipeline-1280-light", "editor": "editor-1280-dark",
}

// screenshots is the variable for a folder. If it is set, TestScreenshots writes all its pictures there, and replaces those in the docs.
const screenshots = "GRAPNEL_SCREENSHOTS"

// TestScreenshots takes the screenshots in the docs of the real service, and checks that the docs show them. With the variable it takes
// one of every page, in two sizes, light and dark.
func TestScreenshots(t *testing.T) {
	t.Parallel()
	h, p := newHouse(t), &person{t: t, Browser: parts.Chromium(t)}
	h.decide()
	p.Do("Emulation.setScrollbarsHidden", map[string]any{"hidden": true}, nil)
	p.Open(h.address)
	paths := map[string]string{"sign-in": "/ui/sign-in"}
	take := func(names ...string) map[string][]byte {
		taken := map[string][]byte{}
		for _, name := range names {
			for _, size := range [][2]int{{390, 844}, {1280, 800}} {
				for theme, dark := range map[string]bool{"light": false, "dark": true} {
					of := fmt.Sprintf("%s-%d-%s", name, size[0], theme)
					if os.Getenv(screenshots) == "" && !slices.Contains(slices.Collect(maps.Values(pictures)), of) { // the others are for people to look at
						continue
					}
					p.Size(size[0], size[1], dark)
					p.Open(h.url + paths[name])
					p.Eval(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))`, nil)
					var shot struct{ Data []byte }
					p.Do("Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
					taken[of] = smallPNG(t, shot.Data)
				}
			}
		}
		return taken
	}
	all := take("sign-in")
	p.Open(h.address)
	p.press("form.signin button")
	p.see(`document.title.startsWith("Now")`)

	maps.Copy(paths, map[string]string{
		"now": "/ui/", "runs": "/ui/runs", "submit": "/ui/submit", "inbox": "/ui/inbox", "decided": "/ui/inbox?show=decided", "nothing": "/ui/nothing",
		"agents": "/ui/agents", "agent": "/ui/agents/tidier", "editor": "/ui/agents/tidier/edit", "rules": "/ui/rules", "runners": "/ui/runners", "audit": "/ui/audit",
		"whatif": "/ui/whatif?agent=tidier",
	})
	at := func(name string, id agent.RunID, until string) {
		paths[name] = "/ui/runs/" + string(id)
		p.Open(h.url + paths[name])
		p.see(status(until))
	}
	h.think <- struct{}{}
	at("completed", h.submit("tidier", `{"prompt": "Tidy the books of April"}`), "waiting")
	p.press("[data-card] [value=approve]")
	p.see(`document.querySelector("[data-card]") === null`)
	at("completed", agent.RunID(strings.TrimPrefix(paths["completed"], "/ui/runs/")), "completed")
	at("report", h.submit("report", `{"month": "April"}`), "completed")
	at("blocked", h.submit("tidier", `{"prompt": "Tidy the books of May"}`), "blocked")
	h.think <- struct{}{}
	at("run", h.submit("tidier", `{"prompt": "Tidy the books of June"}`), "waiting")
	at("pipeline", h.submit("release", "{}"), "waiting")
	at("new", h.submit("tidier", `{"prompt": "Tidy the books of July"}`), "running")
	p.Open(h.url + paths["run"])
	var found struct{ Question, Session string }
	p.Eval(`({question: document.querySelector("[data-card] h2 a").getAttribute("href"), session: document.querySelector(".facts a[href^='/ui/sessions/']").getAttribute("href")})`, &found)
	paths["question"], paths["session"] = found.Question, found.Session
	maps.Copy(all, take("now", "runs", "submit", "inbox", "decided", "nothing", "completed", "blocked", "run", "pipeline", "new", "question", "session",
		"agents", "agent", "editor", "rules", "runners", "audit", "whatif"))

	docs := filepath.Join(parts.Root(), "docs")
	if dir := os.Getenv(screenshots); dir != "" {
		require.NoError(t, os.MkdirAll(dir, 0o750))
		for name, picture := range all {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o600))
		}
		for name, of := range pictures {
			require.NoError(t, os.WriteFile(filepath.Join(docs, "images", "control-room-"+name+".png"), all[of], 0o644))
		}
	}
	text, err := os.ReadFile(filepath.Join(docs, "coordinator.md"))
	require.NoError(t, err)
	for name, of := range pictures {
		assert.NotEmpty(t, all[of], of)
		assert.True(t, bytes.Contains(text, []byte("](images/control-room-"+name+".png)")), "docs/coordinator.md does not show %s", name)
	}
	there, err := filepath.Glob(filepath.Join(docs, "images", "control-room-*.png"))
	require.NoError(t, err)
	assert.Len(t, there, len(pictures), "make screenshots writes them")
	for _, e := range p.Errors() {
		assert.Contains(t, e, "404", "one page does not exist")
	}
}

// smallPNG returns a picture with 256 colours: the most frequent ones.
func smallPNG(t *testing.T, data []byte) []byte {
	t.Helper()
	full, err := png.Decode(bytes.NewReader(data))
	require.NoError(t, err)
	box, counts := full.Bounds(), map[color.RGBA]int{}
	pixel := func(x, y int) color.RGBA { return color.RGBAModel.Convert(full.At(x, y)).(color.RGBA) }
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			counts[pixel(x, y)]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	require.Greater(t, len(colours), 10, "an empty page")
	var palette color.Palette
	for _, c := range colours[:min(256, len(colours))] {
		palette = append(palette, c)
	}
	small, nearest := image.NewPaletted(box, palette), map[color.RGBA]uint8{}
	for _, c := range colours {
		nearest[c] = uint8(palette.Index(c))
	}
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			small.SetColorIndex(x, y, nearest[pixel(x, y)])
		}
	}
	var out bytes.Buffer
	require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, small))
	return out.Bytes()
}
