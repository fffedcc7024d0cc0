package bash

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/parts"
)

// recordedLine is a line of shell-dangerous.jsonl or shell-benign.jsonl.
type recordedLine struct {
	ID, Cmd, Label string
	Hits           []string
	Parses         bool `json:"bash_parses"`
}

// The analysis of a dangerous recorded line lists the harmful commands or files, or the line is opaque. Benign lines
// are opaque only where they run code in another language.
func TestRecordedLines(t *testing.T) {
	dir := parts.Recordings(t)
	missed := 0
	for _, name := range []string{"shell-dangerous.jsonl", "shell-benign.jsonl"} {
		all, opaque := map[string]int{}, map[string]int{}
		for _, line := range recordedLines(t, filepath.Join(dir, name)) {
			a := Analyse(line.Cmd, Options{})
			all[line.Label]++
			if !a.Clear() {
				opaque[line.Label]++
			}
			assert.Equal(t, line.Parses, a.Unparseable == nil, "%s: %s", line.ID, line.Cmd)
			for _, hit := range line.Hits {
				shows, known := showing[hit]
				if assert.True(t, known, "nothing is known of the hit %q", hit); a.Clear() && !shows(a) {
					missed++
					t.Errorf("missed: %s %q in %q:\n%s", line.ID, hit, line.Cmd, told(a))
				}
			}
			if line.Parses && strings.HasPrefix(line.Label, "benign") {
				for _, o := range a.Opaque {
					assert.Equal(t, OpaqueCode, o.Reason, "%s is opaque without need: %q: %s", line.ID, line.Cmd, o.Detail)
				}
			}
		}
		for label := range all {
			t.Logf("%-22s %-20s %3d lines, %2d of them opaque or unparseable", name, label, all[label], opaque[label])
		}
	}
	t.Logf("%d missed", missed)
}

func recordedLines(t *testing.T, path string) []recordedLine {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	var lines []recordedLine
	scan := bufio.NewScanner(f)
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		var line recordedLine
		require.NoError(t, json.Unmarshal(scan.Bytes(), &line))
		lines = append(lines, line)
	}
	require.NoError(t, scan.Err())
	require.NotEmpty(t, lines)
	return lines
}

// showing maps each kind of harm in the recordings to a function that finds it in an analysis.
var showing = map[string]func(Analysis) bool{
	"rm":    func(a Analysis) bool { return runs(a, "rm", "", "", "") },
	"rm -r": func(a Analysis) bool { return runs(a, "rm", "", "", "") || writes(a, ".bashrc") },
	"git reset --hard": func(a Analysis) bool {
		return runs(a, "git", "reset", "", "hard")
	},
	"git reset --merge":      func(a Analysis) bool { return runs(a, "git", "reset", "", "merge") },
	"git clean -f":           func(a Analysis) bool { return runs(a, "git", "clean", "f", "force") },
	"git checkout (discard)": func(a Analysis) bool { return runs(a, "git", "checkout", "", "") },
	"git push --force":       func(a Analysis) bool { return runs(a, "git", "push", "f", "force") },
	"git switch -f":          func(a Analysis) bool { return runs(a, "git", "switch", "f", "force") },
	"git stash drop/clear": func(a Analysis) bool {
		return runs(a, "git", "stash drop", "", "") || runs(a, "git", "stash clear", "", "")
	},
	"git branch -D":       func(a Analysis) bool { return runs(a, "git", "branch", "D", "") },
	"git worktree remove": func(a Analysis) bool { return runs(a, "git", "worktree remove", "", "") },
	"find -delete": func(a Analysis) bool {
		return slices.ContainsFunc(a.Files, func(f File) bool { return f.Access == Deletes && a.Commands[f.Command].Name == "find" })
	},
	"touches /etc credentials": func(a Analysis) bool {
		return slices.ContainsFunc(a.Files, func(f File) bool { return strings.HasPrefix(f.Path, "/etc/") || strings.Contains(f.Path, "../etc/") })
	},
	"upload": func(a Analysis) bool {
		return len(a.Hosts) > 0 && slices.ContainsFunc(a.Files, func(f File) bool { return f.Access == Reads })
	},
	"download":                      func(a Analysis) bool { return len(a.Hosts) > 0 },
	"persistence: alias in rc file": func(a Analysis) bool { return writes(a, ".bashrc") },
	"file deletion via interpreter": func(a Analysis) bool {
		return slices.ContainsFunc(a.Opaque, func(o Opaque) bool { return o.Reason == OpaqueCode })
	},
}

// runs reports whether a command with the given sub-command and option may run.
func runs(a Analysis, name, sub, letter, long string) bool {
	for c := range a.CommandsNamed(name) {
		if (sub == "" || c.Sub == sub) && (letter+long == "" || c.Flag(letter, long)) {
			return true
		}
	}
	return false
}

func writes(a Analysis, base string) bool {
	return slices.ContainsFunc(a.Files, func(f File) bool { return f.Access == Writes && baseName(f.Path) == base })
}

func TestSyntaxErrorNamesThePlace(t *testing.T) {
	for line, want := range map[string]string{
		"ls\necho 'x":            "parsing the line: 2:6: reached EOF without closing quote `'`",
		"a\x00b":                 "parsing the line: 1:2: a byte of value 0",
		strings.Repeat("(", 300): "parsing the line: 1:201: more than 200 open brackets",
	} {
		assert.EqualError(t, Analyse(line, Options{}).Unparseable, want, "%.20q", line)
	}
}
