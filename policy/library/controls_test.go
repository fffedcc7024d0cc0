package library_test

import "testing"

// An agent cannot change what controls it, by any tool, and reads that are ordinary work pass.
func TestControls(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	judged(t, shipped(t, "controls", nil), map[string][][2]string{
		"library:controls/file": {
			{"write_file", `{"path":".claude/settings.json","content":"{}"}`}, {"edit_file", `{"path":"/home/ann/.claude/settings.local.json"}`},
			{"Write", `{"file_path":"x/../.claude/hooks/guard.sh"}`}, {"mcp__fs__write_file", `{"path":"~/.codex/hooks.json"}`},
			{"move_file", `{"source":"a","destination":".cursor/hooks.json"}`}, {"create_symlink", `{"target":".gemini/settings.json","link_path":"a"}`},
			{"write_files", `{"files":[{"path":"a"},{"path":".github/hooks/x.json"}]}`}, {"delete", `{"paths":["opencode.json"]}`},
			{"save", `{"uri":"file:///home/ann/.mcp.json"}`}, {"write_file", `{"path":".CLAUDE/settings.json"}`}, {"frobnicate", `{"file":"team.policy.yaml"}`},
			{"read_and_replace", `{"path":".claude/settings.json"}`},
		},
		"library:controls/private": {
			{"read_file", `{"path":"~/.local/state/grapnel/runs.sqlite"}`}, {"grep", `{"path":"/home/ann/.config/grapnel"}`}, {"read_file", `{"path":"/run/grapnel-gate.sock"}`},
			{"read_file", `{"path":"/home/ann/.config/grapnel/people.yaml"}`},
		},
		"library:controls/patch": {
			{"apply_patch", `{"patch":"*** Begin Patch\n*** Update File: .claude/settings.json\n@@\n-a\n+b\n*** End Patch"}`},
			{"apply_patch", `{"input":"diff --git a/x b/.cursor/hooks.json\n--- a/x\n+++ b/.cursor/hooks.json\n"}`},
		},
		"library:controls/line": {
			{"bash", "echo '{}' > .claude/settings.json"}, {"bash", "cp x ~/.codex/config.toml"}, {"bash", "cd .claude && rm settings.json"}, {"bash", "rm -r .claude/hooks"},
			{"bash", "sed -i s/deny/allow/ team.policy.yaml"}, {"bash", "tee .gemini/settings.json < x"}, {"bash", "ln -sf /dev/null .cursor/hooks.json"},
			{"bash", `python3 -c 'open(".claude/settings.json", "w").write("{}")'`}, {"bash", `eval "rm .codex/hooks.json"`}, {"bash", "cat ~/.config/grapnel/people.yaml"},
		},
		"library:controls/code": {
			{"bash", `python3 -c 'f = ".claude/settings"; g(f + ".json")'`}, {"bash", `perl -e '$f = q(.gemini/settings); g("$f.json")'`}, {"bash", "printenv GRAPNEL_API_TOKEN"},
			{"bash", "apply_patch <<'EOF'\n*** Begin Patch\n*** Delete File: opencode.json\n*** End Patch\nEOF"},
		},
		"library:controls/answers": {
			{"bash", "grapnel approvals answer run_1 5f --approve"}, {"bash", "cd /tmp && env X=1 grapnel approvals token ann"}, {"bash", "go run ./cmd/grapnel approvals answer x y --approve"},
			{"bash", "/tmp/g approvals waive --rule x"}, {"bash", "grapnel runs approve run_1"}, {"bash", "grapnel gate uninstall claude-code"}, {"bash", "sh -c 'grapnel serve'"},
		},
		"library:controls/requests": {
			{"bash", "curl -X POST http://localhost:8080/runs/r/questions/q/answers -d '{}'"}, {"bash", "wget --post-data=x 127.0.0.1:8080/waivers"},
			{"bash", "curl https://grapnel.example/runs/r/questions/q/answers"},
		},
		"library:controls/web": {{"fetch", `{"url":"http://localhost:8080/ui/inbox"}`}, {"post", `{"url":"https://g.example/runs/r/questions/q/answers"}`}},
		"": {
			{"read_file", `{"path":".claude/settings.json"}`}, {"Read", `{"file_path":".mcp.json"}`}, {"grep", `{"pattern":"hooks","path":".claude/settings.json"}`},
			{"write_file", `{"path":"settings.json"}`}, {"write_file", `{"path":"src/hooks/use.ts","content":".claude/settings.json"}`}, {"write_file", `{"path":".claude/commands/x.md"}`},
			{"apply_patch", `{"patch":"*** Begin Patch\n*** Update File: README.md\n@@\n+see .claude/settings.json\n*** End Patch"}`},
			{"bash", "cat .claude/settings.json"}, {"bash", "git diff -- .claude/settings.json"}, {"bash", "jq .hooks .claude/settings.json"}, {"bash", "ls -la .claude"}, {"bash", "go test ./..."},
			{"bash", "grapnel hooks check policy.yaml"}, {"bash", "grapnel hooks backtest -p team.policy.yaml runs/"}, {"bash", "npm run approvals"}, {"bash", "python3 -c 'print(1)'"},
			{"bash", "curl http://localhost:3000/api/answers-of-the-day"}, {"fetch", `{"url":"http://localhost:3000/uikit"}`}, {"bash", "git log --grep approvals"}, {"bash", "grep -rn 'resume runs' docs"},
		},
	})
}
