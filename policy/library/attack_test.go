package library_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
	"github.com/grapnel-go/grapnel/internal/jail"
)

func TestMain(m *testing.M) { jail.Main(m) }

// everyAttack is set by "make attack". It tries all forms in all spellings, which takes a quarter of an hour, instead
// of a sample.
const everyAttack = "GRAPNEL_ATTACK_ALL"

// Contents of files that no line may read: files beside the workspace, and secrets in it.
const (
	canary = "canary-7f3a"
	secret = "secret-19c4"
)

// evilHost is the machine that no line may reach.
const evilHost = "evil.example"

// spellings lists ways to write a word.
var spellings = []func(word string) string{
	func(p string) string { return p },
	func(p string) string { return `"` + p + `"` },
	func(p string) string { return "'" + p + "'" },
	func(p string) string { return `\` + p },
	func(p string) string { return p[:1] + `""` + p[1:] },
	func(p string) string { return fmt.Sprintf(`$'\x%x'%s`, p[0], p[1:]) },
	func(p string) string { return "${NONE:-" + p + "}" },
	func(p string) string { return "${NONE-" + p + "}" },
	func(p string) string { return "${NONE:=" + p + "}" },
	func(p string) string { return "${PWD:+" + p + "}" },
	func(p string) string { return "${PWD+\"" + p + "\"}" },
	func(p string) string { return "${PWD/*/" + p + "}" },
	func(p string) string { return "${PWD//*/" + p + "}" },
	func(p string) string { return "$(echo " + p + ")" },
	func(p string) string { return "`printf %s " + p + "`" },
	func(p string) string { return "$(printf %s%s " + p[:1] + " " + p[1:] + ")" },
	func(p string) string { return "{" + p + ",a}" },
}

// fileSpellings lists ways to write a path that begins with "../".
var fileSpellings = append(slices.Clone(spellings),
	func(p string) string { return "./" + p },
	func(p string) string { return "sub/../" + p },
	func(p string) string { return strings.Replace(p, "/", "//", 1) },
	func(p string) string { return "$PWD/" + p },
	func(p string) string { return "~+/" + p },
	func(p string) string { return "link/" + strings.TrimPrefix(p, "../out/") },
	func(p string) string { return "lin?/" + strings.TrimPrefix(p, "../out/") },
	func(p string) string { return "[l]ink/" + strings.TrimPrefix(p, "../out/") },
	func(p string) string { return strings.Replace(p, "out", "o?t", 1) },
	func(p string) string { return "${PWD%/*}/" + strings.TrimPrefix(p, "../") },
	func(p string) string { return "${PWD%home}" + strings.TrimPrefix(p, "../") },
)

// wrappings lists ways to run a line.
var wrappings = []func(line string) string{
	func(l string) string { return l },
	func(l string) string { return "true && " + l },
	func(l string) string { return "( " + l + "\n)" },
	func(l string) string { return "f() { " + l + "\n}; f" },
	func(l string) string { return "if true; then " + l + "\nfi" },
	func(l string) string { return "for i in 1; do " + l + "\ndone" },
	func(l string) string { return "eval " + quoteShell(l) },
	func(l string) string { return "bash -c " + quoteShell(l) },
	func(l string) string { return "env bash -c " + quoteShell(l) },
	func(l string) string { return "echo $(" + l + "\n)" },
	func(l string) string { return "bash <<'E'\n" + l + "\nE" },
	func(l string) string { return "while true; do " + l + "\nbreak; done" },
	func(l string) string { return "case x in x) " + l + "\n;; esac" },
	func(l string) string { return "set -- x; " + l },
	func(l string) string { return "trap " + quoteShell(l) + " EXIT" },
}

func quoteShell(line string) string { return "'" + strings.ReplaceAll(line, "'", `'\''`) + "'" }

// attackPlaces matches the placeholders in a form.
var attackPlaces = regexp.MustCompile(`PATH|DIR|ABS|HOST`)

// fillForm replaces the placeholders in a form. A form with a quoted placeholder takes plain words.
func fillForm(form string, spell func(string) string, path, dir, absolute string) string {
	if path == "" {
		path, dir = "none", "none" // these forms have no such placeholder
	}
	for _, at := range attackPlaces.FindAllStringIndex(form, -1) {
		before := strings.NewReplacer(`\'`, "", `\"`, "").Replace(form[:at[0]])
		if strings.Count(before, "'")%2 == 1 || strings.Count(before, `"`)%2 == 1 || strings.Contains(before, "\n") {
			spell = func(p string) string { return p }
		}
	}
	return strings.NewReplacer("TMPDIR", "TMPDIR", "CDPATH", "CDPATH", "GIT_DIR", "GIT_DIR", "PGHOST=", "PGHOST=", "API_HOST=", "API_HOST=", "GH_HOST=", "GH_HOST=",
		"DOCKER_HOST", "DOCKER_HOST", "PATH", spell(path), "DIR", spell(dir), "ABS", absolute, "HOST", spell(evilHost)).Replace(form)
}

// readForms reads the attack forms in files of testdata/attacks, one per line; ⏎ stands for a line end, and # begins
// a comment.
func readForms(t *testing.T, names ...string) []string {
	t.Helper()
	var forms []string
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join("testdata", "attacks", name+".txt"))
		require.NoError(t, err)
		forms = append(forms, lo.Filter(strings.Split(strings.TrimSpace(string(text)), "\n"), func(l string, _ int) bool { return l != "" && !strings.HasPrefix(l, "# ") })...)
	}
	return lo.Map(lo.Uniq(forms), func(form string, _ int) string { return strings.ReplaceAll(form, "⏎", "\n") })
}

// attack describes the attacks that one policy must stop.
type attack struct {
	policy string
	vars   map[string]any
	forms  []string
	spell  []func(string) string
	path   string
	dir    string
	// hurts reports whether a line did harm that the policy must prevent.
	hurts func(jail.Outcome) bool
}

// newCell returns a workspace with the files that the attacks need, secrets in it, and a folder beside it.
func newCell(top string) jail.Cell {
	return jail.Cell{
		Top: top, Hosts: []string{evilHost}, Limit: time.Second,
		Files: map[string]string{
			"home/a": "one\ntwo\n", "home/b": "b\n", "home/p.po": "msgid \"\"\nmsgstr \"\"\n", "home/d.patch": "--- a\n+++ a\n@@ -1,2 +1,2 @@\n-one\n+ONE\n two\n",
			"home/sub/": "", "home/sub2/": "", "home/prod.key": secret + "\n", "home/.env": secret + "\n", "home/.ssh/id_rsa": secret + "\n",
			"out/secret": canary + "\n", "out/dir/mk": "x:\n\ttouch made\n", "out/dir/secret2": canary,
		},
		Links: map[string]string{"home/link": "../out"},
		Setup: "git init -q --template= . && git config user.name x && git config user.email x@x.example && git config commit.gpgsign false && " +
			"git add a && git commit -q -m x",
	}
}

// shows reports whether a line's output contains a text, ignoring white space.
func shows(o jail.Outcome, what string) bool {
	for _, text := range append(lo.Values(o.Made), o.Output) {
		if strings.Contains(strings.NewReplacer(" ", "", "\n", "", "\x00", "", "\t", "").Replace(text), what) {
			return true
		}
	}
	return false
}

// allowsLine reports whether a policy lets a shell tool run a line without approval.
func allowsLine(t *testing.T, set hooks.Set, line string) bool {
	t.Helper()
	text, err := json.Marshal(map[string]string{"command": line})
	require.NoError(t, err)
	fired := hookstest.FireSet(t, set, hookstest.ToolCall("bash", string(text)))
	return fired.Err == nil && (fired.Decision == hooks.Pass || fired.Decision == hooks.Allow)
}

// Each policy judges attacks in many spellings. Lines that it allows run in a jail, and must do no harm that the
// policy must prevent. Some stopped lines run, too, to confirm that they are attacks.
func TestAttackLinesHurtNothing(t *testing.T) {
	all := os.Getenv(everyAttack) != ""
	top := t.TempDir()
	cell := newCell(top)
	for name, text := range cell.Files { // policies read the disk
		path := filepath.Join(top, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path+"x"), 0o700))
		if !strings.HasSuffix(name, "/") {
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		}
	}
	require.NoError(t, os.Symlink("../out", filepath.Join(top, "home", "link")))
	home := filepath.Join(top, "home")
	reading, writing, reaching := readForms(t, "reading"), readForms(t, "writing"), readForms(t, "reaching")
	showsSecret := func(o jail.Outcome) bool { return shows(o, secret) }
	for _, a := range []attack{
		{
			policy: "workspace", vars: map[string]any{"workspace": home, "readable": []any{"/usr", "/bin", "/dev/null"}, "writable": []any{"/dev/null"}},
			forms: slices.Concat(reading, writing), spell: fileSpellings, path: "../out/secret", dir: "../out/dir",
			hurts: func(o jail.Outcome) bool { return shows(o, canary) || o.Changed },
		},
		{policy: "secrets", forms: reading, spell: spellings, path: "prod.key", dir: ".ssh", hurts: showsSecret},
		{policy: "secrets", forms: reading, spell: spellings, path: ".env", dir: ".ssh", hurts: showsSecret},
		{policy: "safe-shell", forms: reading, spell: spellings, path: ".ssh/id_rsa", dir: ".ssh", hurts: showsSecret},
		{policy: "network-egress", vars: map[string]any{"hosts": []any{"localhost", "good.example"}}, forms: reaching, spell: spellings, hurts: func(o jail.Outcome) bool { return len(o.Reached) > 0 }},
		{
			policy: "read-only", forms: slices.Concat(writing, reaching), spell: fileSpellings, path: "sub/../new", dir: "sub/.",
			hurts: func(o jail.Outcome) bool { return len(o.Made) > 0 || o.Changed || len(o.Reached) > 0 },
		},
	} {
		t.Run(a.policy+a.path[strings.LastIndexByte(a.path, '/')+1:], func(t *testing.T) { a.run(t, cell, all) })
	}
}

// run judges the lines, and runs the allowed ones and some of the others.
func (a attack) run(t *testing.T, cell jail.Cell, all bool) {
	t.Helper()
	passed, stopped, judged := a.judge(t, all)
	lines := slices.Concat(passed, stopped)
	hurt := 0
	for i, o := range jail.Run(t, cell, lines) {
		switch did := a.hurts(o); {
		case i < len(passed):
			assert.False(t, did, "%s lets through what hurts: %s\n%+v", a.policy, lines[i], o)
			if testing.Verbose() {
				t.Logf("is let through: %s", lines[i])
			}
		case did:
			hurt++
		}
	}
	assert.Positive(t, hurt, "none of the lines that %s stops is an attack", a.policy)
	t.Logf("%d lines, of which %d are let through and %d of %d stopped ones hurt when bash ran them", judged, len(passed), hurt, len(stopped))
}

// judge returns the lines that the policy allows, some of the lines that it stops, and the number of judged lines.
func (a attack) judge(t *testing.T, all bool) (passed, stopped []string, judged int) {
	t.Helper()
	set := shipped(t, a.policy, a.vars)
	for i, form := range a.forms {
		if !all && i%6 != 0 {
			continue
		}
		try := func(line string) {
			judged++
			if allowsLine(t, set, line) {
				passed = append(passed, line)
			} else if all || i%24 == 0 {
				stopped = append(stopped, line)
			}
		}
		for j, spell := range a.spell {
			if all || j == i/6%len(a.spell) {
				line := fillForm(form, spell, a.path, a.dir, "$PWD/"+a.path)
				try(line)
				if all {
					try(wrappings[(i+j)%len(wrappings)](line))
				}
			}
		}
	}
	passed = lo.Uniq(passed)
	if all {
		stopped = lo.Filter(lo.Uniq(stopped), func(_ string, i int) bool { return i%16 == 0 })
	}
	return passed, stopped, judged
}
