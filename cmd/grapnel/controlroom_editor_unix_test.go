//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/parts"
)

// choose chooses an option of a list, by the beginning of its text.
func (p *person) choose(selector, value string) {
	p.t.Helper()
	p.reach(selector)
	if p.keyboard {
		for _, one := range value {
			p.key(string(one), 0, string(one))
		}
	} else {
		p.Eval(fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.value = %q; e.dispatchEvent(new Event("input", {bubbles: true})); })()`, selector, value), nil)
	}
	p.Wait(fmt.Sprintf(`document.querySelector(%q).value === %q`, selector, value))
}

// CO-31, the editor: a person creates a blueprint, adds a hook with a mistake, reads what is wrong at its field, corrects it, saves, and sees
// the difference between versions. Another person saves at the same time, and nothing is lost.
func TestEditAgents(t *testing.T) {
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
			// A page that scrolls smoothly to a field would move what is pressed next.
			p.Do("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "prefers-reduced-motion", "value": "reduce"}}}, nil)
			const hook = "hooks.on_run_start."
			at := func(kind, path string) string { return fmt.Sprintf("[id='%s-%s']", kind, path) }
			p.Open(h.address)
			p.press("form.signin button")
			p.press(`nav a[href="/ui/agents"]`)
			p.see(`document.title.startsWith("Agents")`)
			p.press(`a[href="/ui/agents/new"]`)
			p.see(`document.title.startsWith("New agent")`)
			p.write(at("f", "name"), "monthly")
			p.choose(at("f", "type"), "procedural")
			p.write(at("f", "command.argv"), "/bin/cat")
			p.press(`[value=add]`)
			p.Wait(`document.querySelector(".hook") !== null`)
			p.write(at("f", hook+"timeout_seconds"), "soon")
			if p.noScript {
				p.press(`[value=check]`)
			}
			p.Wait(includes(at("m", hook+"timeout_seconds"), `got "soon"`))
			p.write(at("f", hook+"timeout_seconds"), "60")
			p.press(`[value=save]`)
			p.Wait(`document.activeElement.id === "mistakes"`)
			p.Wait(includes(at("m", hook+"agent_name"), "missing"))
			if !p.noScript { // axe waits for promises
				assert.Empty(t, p.Axe())
			}
			p.press(fmt.Sprintf(`#mistakes a[href="#f-%sagent_name"]`, hook))
			p.Wait(fmt.Sprintf(`document.activeElement.matches("%s[aria-invalid]")`, at("f", hook+"agent_name")))
			p.choose(at("f", hook+"agent_name"), "report")
			p.press(`[value=save]`)
			p.Wait(`document.title.startsWith("monthly")`)
			p.see(includes("#versions", "It is the first version"))
			p.see(includes("#hooks", "agent report"))

			p.press(`a[href="/ui/agents/monthly/edit"]`)
			p.see(`document.title.startsWith("Edit monthly")`)
			p.write(at("f", "description"), "Once a month")
			if !p.noScript {
				p.Wait(`document.querySelector("#f-text").value.includes("description: Once a month")`)
			}
			_, err := h.api.UpdateBlueprint(t.Context(), "monthly", json.RawMessage(`{"output_schema": {"type": "object"}}`), 1)
			require.NoError(t, err)
			p.press(`[value=save]`)
			p.Wait(`document.activeElement.id === "other"`)
			p.Wait(includes("#other ins", "output_schema"))
			if !p.noScript { // axe waits for promises
				assert.Empty(t, p.Axe())
			}
			p.press(`[value=save]`)
			p.Wait(`document.title.startsWith("monthly")`)
			p.see(includes("#versions ins", "description: Once a month"))
			now, err := h.api.Blueprint(t.Context(), "monthly", 0)
			require.NoError(t, err)
			assert.Equal(t, int64(3), now.Version)
			assert.JSONEq(t, `{"type": "object"}`, string(now.OutputSchema))
			for _, e := range p.Errors() {
				assert.Regexp(t, "409|422", e, "what is wrong with the form")
			}
		})
	}
}
