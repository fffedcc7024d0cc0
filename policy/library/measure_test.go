package library_test

import (
	"compress/gzip"
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
	"github.com/grapnel-go/grapnel/internal/parts"
)

func TestMeasure(t *testing.T) {
	dir := parts.Recordings(t)
	f, err := os.Open(filepath.Join(dir, "shell.jsonl.gz"))
	require.NoError(t, err)
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	s := bufio.NewScanner(z)
	s.Buffer(nil, 64<<20)
	seen := map[string]bool{}
	var cmds []string
	for s.Scan() {
		var r struct {
			Messages []struct {
				ToolCalls []struct{ Function struct{ Arguments string } } `json:"tool_calls"`
			}
		}
		if json.Unmarshal(s.Bytes(), &r) != nil { continue }
		for _, m := range r.Messages {
			for _, c := range m.ToolCalls {
				var a struct{ Command string }
				if json.Unmarshal([]byte(c.Function.Arguments), &a) == nil && a.Command != "" && !seen[a.Command] {
					seen[a.Command] = true
					cmds = append(cmds, a.Command)
				}
			}
		}
	}
	for _, l := range lines(t, "shell-benign.jsonl") { cmds = append(cmds, l.Cmd) }
	out, _ := os.Create(os.Getenv("MEASURE"))
	defer out.Close()
	for _, p := range []struct{ name string; vars map[string]any }{
		{"workspace", map[string]any{"workspace": "/"}}, {"secrets", nil}, {"network-egress", nil}, {"safe-shell", nil}, {"read-only", nil}, {"git-safety", nil},
	} {
		set := shipped(t, p.name, p.vars)
		n := map[string]int{}
		for _, cmd := range cmds {
			text, _ := json.Marshal(map[string]string{"command": cmd})
			fired := hookstest.FireSet(t, set, hookstest.ToolCall("bash", string(text)))
			if fired.Decision == hooks.Deny || fired.Decision == hooks.Ask || fired.Err != nil {
				n[fired.Hook]++; n["all"]++
				fmt.Fprintf(out, "%s\t%s\t%q\n", p.name, fired.Hook, cmd)
			}
		}
		t.Logf("%-15s of %d: %v", p.name, len(cmds), n)
	}
}
