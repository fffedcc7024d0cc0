package hostgate_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/hostgate"
	"github.com/grapnel-go/grapnel/internal/parts"
)

const pluginTest = `
import { GrapnelGate } from "./plugin.mjs"
const hooks = await GrapnelGate({ directory: "/home/dev" })
for (const command of ["allow", "deny", "rewrite", "empty", "cut", "failed", "other", "killed"]) {
  const given = { command, old: 1 }
  const output = { args: given }
  let said = "runs"
  try { await hooks["tool.execute.before"]({ tool: "bash", sessionID: "s", callID: "c" }, output) } catch (e) { said = e.message }
  console.log(command + ": " + said + " " + JSON.stringify(given) + " " + (output.args === given))
}
const result = { title: "t", output: "key-1", metadata: {} }
try {
  await hooks["tool.execute.after"]({ tool: "bash", sessionID: "s", callID: "c", args: { command: "redact" } }, result)
} catch (e) { console.log(e.message) }
console.log(JSON.stringify(result))
await hooks["chat.message"]({ sessionID: "s" }, { parts: [{ type: "text", text: "failed" }] })
`

const fakeGate = `#!/bin/sh
read -r event
case $event in
*allow*) echo '{"decision":"allow"}' ;;
*deny*) echo '{"decision":"deny","reason":"not that"}' ;;
*rewrite*) echo '{"decision":"allow","args":{"command":"ls"}}' ;;
*redact*) echo '{"decision":"allow","output":{"title":"t","output":"[hidden]"}}' ;;
*cut*) printf '{"decision":"allow"' ;;
*failed*) echo '{"decision":"allow"}'; exit 1 ;;
*other*) echo '{"decision":"ask"}' ;;
*killed*) echo '{"decision":"allow"}'; kill -9 $$ ;;
esac
`

// The plugin runs a call only after an answer that allows it.
func TestPlugin(t *testing.T) {
	node := parts.Command(t, "node", "install Node.js")
	dir := t.TempDir()
	for name, text := range map[string]string{"plugin.mjs": hostgate.Plugin, "test.mjs": pluginTest, "gate": fakeGate} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700))
	}
	run := func(gate string) string {
		c := exec.CommandContext(t.Context(), node, filepath.Join(dir, "test.mjs"))
		c.Env = append(os.Environ(), "GRAPNEL_GATE="+gate)
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	const none = "grapnel gate: not executed: the gate gave no answer"
	assert.Equal(t, `allow: runs {"command":"allow","old":1} true
deny: not that {"command":"deny","old":1} true
rewrite: runs {"command":"ls"} true
empty: `+none+` {"command":"empty","old":1} true
cut: `+none+` {"command":"cut","old":1} true
failed: `+none+` {"command":"failed","old":1} true
other: `+none+` {"command":"other","old":1} true
killed: `+none+` {"command":"killed","old":1} true
{"title":"t","output":"[hidden]"}
`, run(filepath.Join(dir, "gate")))
	missing := run(filepath.Join(dir, "gone"))
	assert.Equal(t, 9, strings.Count(missing, none), "%s", missing)
}
