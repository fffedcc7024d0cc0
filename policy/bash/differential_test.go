package bash

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/parts"
	"github.com/grapnel-go/grapnel/internal/process"
)

var (
	madeLines = flag.Int("lines", 300, "how many made-up lines real bash runs")
	madeSeed  = flag.Uint64("seed", 1, "where the making of lines begins")
)

// The analysis lists every command that bash runs, or says that it is incomplete. Only harmless stand-ins run: PATH
// contains nothing else.
func TestBashRunsNothingElse(t *testing.T) {
	lab := newLaboratory(t)
	text, err := os.ReadFile(filepath.Join("testdata", "corpus.txt"))
	require.NoError(t, err)
	var lines []string
	for entry := range strings.SplitSeq(string(text), "\n---\n") {
		lines = append(lines, strings.Trim(entry, "\n"))
	}
	corpus := len(lines)
	n := *madeLines
	if testing.Short() {
		n /= 5
	}
	r := rand.New(rand.NewPCG(*madeSeed, 0))
	for range n {
		lines = append(lines, makeLine(r))
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	whole, ran := 0, 0
	next := make(chan int)
	for range 2 {
		wg.Go(func() {
			for i := range next {
				a := Analyse(lines[i], Options{Home: lab.home})
				runs := lab.run(t, lines[i])
				mu.Lock()
				if a.Clear() && i >= corpus {
					whole++
				}
				ran += len(runs)
				for _, run := range runs {
					if a.Clear() && !lists(a, run) {
						assert.Fail(t, "bash ran what was not listed", "line %d:\n%s\nran:    %q\nlisted:\n%s", i, lines[i], run, strings.Join(listed(a), "\n"))
					}
				}
				mu.Unlock()
			}
		})
	}
	for i, line := range lines {
		require.NotRegexp(t, leavesTheLaboratory, line, "line %d could start real programs", i)
		next <- i
	}
	close(next)
	wg.Wait()
	t.Logf("%d lines of the corpus and %d made up, of which %d are clear; bash ran %d programs", corpus, n, whole, ran)
	assert.Greater(t, whole*4, n, "the test says nothing if most lines are opaque")
	assert.Greater(t, ran, len(lines)/2)
}

// leavesTheLaboratory matches lines that could find programs outside the laboratory's PATH: absolute paths, another
// or no PATH, login shells.
var leavesTheLaboratory = regexp.MustCompile(
	`(^|[\s"'=:;|&(])/(bin|sbin|usr|etc|opt|lib|root|home|proc|sys)|command +-\w*p|exec +-\w*[cl]|env +(-\w*i|- |--i)|` +
		`(ba)?sh +(-\w*[li]|--login)|PATH|hash -p|enable|kill|/\.\./|chroot|\bsu\b|-delete`)

// lists reports whether the analysis contains the executed command, with words that can match its arguments.
func lists(a Analysis, run []string) bool {
	for c := range a.CommandsNamed(baseName(run[0])) {
		if c.Kind != Unknown && fits(c.Words[1:], run[1:]) {
			return true
		}
	}
	return false
}

func fits(words []Word, args []string) bool {
	if len(words) == 0 {
		return len(args) == 0
	}
	w := words[0]
	if w.Many {
		for n := range len(args) + 1 {
			if n > 0 && !w.matches(args[n-1]) {
				return false
			}
			if fits(words[1:], args[n:]) {
				return true
			}
		}
		return false
	}
	if len(args) == 0 {
		return false
	}
	ok := w.Text == args[0]
	if w.Kind == Partial {
		ok = len(args[0]) >= len(w.Text)+len(w.Suffix) && strings.HasPrefix(args[0], w.Text) && strings.HasSuffix(args[0], w.Suffix)
	}
	return ok && fits(words[1:], args[1:])
}

// matches reports whether the word can expand to arg, perhaps among other arguments.
func (w Word) matches(arg string) bool {
	if w.Kind != Pattern || strings.Contains(w.Text, "(") {
		return true
	}
	if folders, name, found := strings.Cut(w.Text, "**"); found { // any number of folders
		arg, found = strings.CutPrefix(arg+"/", folders)
		if name = strings.TrimPrefix(name, "/"); name == "" {
			return found || arg == folders
		}
		matched, err := filepath.Match(name, filepath.Base(arg))
		return found && matched || err != nil
	}
	matched, err := filepath.Match(w.Text, arg)
	return matched || err != nil || arg == w.Text
}

type laboratory struct{ bash, bin, home, dir string }

func newLaboratory(t *testing.T) laboratory {
	t.Helper()
	lab := laboratory{bash: parts.Command(t, "bash", "install bash"), dir: t.TempDir()}
	lab.bin, lab.home = filepath.Join(lab.dir, "bin"), filepath.Join(lab.dir, "home")
	require.NoError(t, os.Mkdir(lab.bin, 0o755))
	require.NoError(t, os.Mkdir(lab.home, 0o755))
	script := func(name, then string) {
		text := "#!" + lab.bash + "\nprintf -v words '%s\\037' \"$0\" \"$@\"\nprintf '%s\\036' \"$words\" >>\"$STAND_IN_LOG\"\n" + then + "\n"
		parts.WriteExecutable(t, filepath.Join(lab.bin, name), []byte(text))
	}
	for _, name := range []string{"rm", "ls", "git", "foo", "bar", "id", "make", "echoes", "curl", "cp", "r", "m", "-rf"} {
		script(name, "exit 0")
	}
	script("fails", "exit 1")
	// They see only this PATH, so they start only stand-ins.
	for _, name := range []string{"env", "nohup", "timeout", "nice", "xargs", "find", "setsid", "stdbuf", "cat", "flock"} {
		path, err := exec.LookPath(name)
		require.NoError(t, err)
		script(name, "exec "+path+` "$@"`)
	}
	for _, name := range []string{"bash", "sh"} {
		script(name, "exec -a "+name+" "+lab.bash+` "$@"`)
	}
	script("sudo", `while [[ $1 == -* || $1 == *=* ]]; do case $1 in -u) shift 2;; *) shift;; esac; done; exec "$@"`)
	return lab
}

// run returns the stand-ins that the line started, with their arguments.
func (lab laboratory) run(t *testing.T, line string) [][]string {
	t.Helper()
	dir, err := os.MkdirTemp(lab.dir, "work") //nolint:usetesting // removed after each of many lines
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "work", "sub", "sub"), 0o755))
	for _, name := range []string{"a.txt", "b.txt", "sub/c.txt"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "work", name), []byte("one two\n"), 0o600))
	}
	log := filepath.Join(dir, "log")
	// Lines may fail; only the commands that they ran matter. A generated function may call itself, each time in
	// another process.
	_, err = process.Run(t.Context(), process.Command{
		Path: lab.bash, Args: []string{"bash", "--norc", "--noprofile", "-c", line}, Dir: filepath.Join(dir, "work"),
		Env:    []string{"PATH=" + lab.bin, "HOME=" + lab.home, "STAND_IN_LOG=" + log},
		Stdout: io.Discard, Stderr: io.Discard, Timeout: 10 * time.Second, Most: 50,
	})
	require.NoError(t, err)
	// Background processes may end a little later than the shell.
	var written []byte
	for range 3 {
		before := len(written)
		written, _ = os.ReadFile(log)
		if len(written) == before || !strings.ContainsAny(line, "&") {
			break
		}
	}
	var runs [][]string
	for record := range bytes.SplitSeq(written, []byte{0o36}) {
		if len(record) > 0 {
			runs = append(runs, strings.Split(strings.TrimSuffix(string(record), "\x1f"), "\x1f"))
		}
	}
	return runs
}

// makeLine generates a line of bash that starts only stand-ins.
func makeLine(r *rand.Rand) string {
	m := &maker{Rand: r}
	n := 1 + r.IntN(4)
	stmts := make([]string, n)
	for i := range stmts {
		stmts[i] = m.stmt(3)
	}
	return strings.Join(stmts, m.pick("; ", "\n", "\n", " && ", " || ")) + m.pick("", "", "\n", " # rm never")
}

type maker struct {
	*rand.Rand
	functions []string
}

func (m *maker) pick(options ...string) string { return options[m.IntN(len(options))] }

var (
	programNames  = []string{"rm", "ls", "git", "foo", "bar", "id", "make", "curl", "cp"}
	variableNames = []string{"a", "b", "c", "x"}
)

func (m *maker) name() string { return programNames[m.IntN(len(programNames))] }

func (m *maker) variable() string { return variableNames[m.IntN(len(variableNames))] }

// spelled returns a program's name in a random spelling.
func (m *maker) spelled() string {
	n := m.name()
	switch m.IntN(14) {
	case 0:
		return `\` + n
	case 1:
		return "'" + n[:1] + "'" + n[1:]
	case 2:
		return n[:1] + `""` + n[1:]
	case 3:
		return fmt.Sprintf(`$'\x%02x'%s`, n[0], n[1:])
	case 4:
		return fmt.Sprintf(`$'\%03o%s'`, n[0], n[1:])
	case 5:
		return `"` + n + `"`
	case 6:
		return "$" + m.variable()
	case 7:
		return "{" + n + ",-x}"
	case 8:
		return n[:1] + "\\\n" + n[1:]
	case 9:
		return `$"` + n + `"`
	case 10:
		return "${" + m.variable() + ":-" + n + "}"
	}
	return n
}

func (m *maker) word(depth int) string {
	v := m.variable()
	switch m.IntN(34) {
	case 0:
		return "'a b'"
	case 1:
		return `"x $` + v + ` y"`
	case 2:
		return "$" + v
	case 3:
		return `"$` + v + `"`
	case 4:
		if depth > 0 {
			return "$(" + m.stmt(depth-1) + ")"
		}
		return "z"
	case 5:
		if depth > 0 {
			return `"$(` + m.stmt(depth-1) + `)"`
		}
		return "z"
	case 6:
		return "{a,b{1..3}}"
	case 7:
		return "~/x"
	case 8:
		return "*.txt"
	case 9:
		return `$'t\tn\n\'q'`
	case 10:
		return "$((1 + 2))"
	case 11:
		return "${" + v + ":-" + m.pick("d", "d e", `"d e"`, "'q'", "$b") + "}"
	case 12:
		return "${" + v + m.pick("#a", "%b", "^^", ",,", "/a/b", "//m/r", ":1", ":0:1", "+alt", ":+alt w", ":=set") + "}"
	case 13:
		return `"${` + v + m.pick("#a", "%b", "^", "/a/b", ":1:2", ":+alt w", "-un set") + `}"`
	case 14:
		return `"$@"`
	case 15:
		return "$1$2"
	case 16:
		return "${#" + v + "}"
	case 17:
		return `"${arr[@]}"`
	case 18:
		return "${arr[1]}"
	case 19:
		return "a\\ b"
	case 20:
		return `""`
	case 21:
		return "$IFS"
	case 22:
		return "{1..3}"
	case 23:
		return "x{,y}"
	case 24:
		if depth > 0 {
			return "`" + strings.NewReplacer("`", "", `\`, "").Replace(m.name()+" q") + "`"
		}
		return "-f"
	case 25:
		return "$*"
	case 26:
		return `"$*"`
	case 27:
		return "${!" + v + "}"
	}
	return m.pick("foo", "-rf", "x=1", "--all", "/tmp/none", "1", "a", "b.c")
}

func (m *maker) words(depth, most int) string {
	var out []string
	for range m.IntN(most + 1) {
		out = append(out, m.word(depth))
	}
	return strings.Join(out, " ")
}

func (m *maker) simple(depth int) string {
	s := m.spelled()
	if m.IntN(6) == 0 {
		s = m.variable() + "=" + m.pick("foo", "rm", "'r m'", "$a") + " " + s
	}
	s += " " + m.words(depth, 3)
	switch m.IntN(12) {
	case 0:
		s += " >out"
	case 1:
		s += " 2>&1"
	case 2:
		s += ` <<<"$` + m.variable() + `"`
	case 3:
		s = ">out " + s
	}
	return s
}

func quoteForShell(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func (m *maker) stmt(depth int) string {
	if depth <= 0 {
		return m.simple(0)
	}
	d := depth - 1
	v := m.variable()
	switch m.IntN(62) {
	case 0, 1:
		return v + "=" + m.pick("rm", "'rm -x'", "foo", "$a", `"$b $c"`, "$(echo rm)", "ls", "", "~/q", "a:b", "$'r\\x6d'", "*.txt")
	case 2:
		return v + "+=" + m.pick("m", "'  q'", "$a")
	case 3:
		return m.stmt(d) + " | " + m.stmt(d)
	case 4:
		return m.stmt(d) + " && " + m.stmt(d)
	case 5:
		return m.stmt(d) + " || " + m.stmt(d)
	case 6:
		return "( " + m.stmt(d) + " )"
	case 7:
		return "{ " + m.stmt(d) + "; }"
	case 8:
		return "if " + m.pick("true", "false", m.stmt(d), "[ x = y ]", "[[ a == a ]]") + "; then " + m.stmt(d) + "; else " + m.stmt(d) + "; fi"
	case 9:
		return "for " + v + " in " + m.pick(m.words(d, 3), "*.txt", "sub/* *b*") + "; do " + m.stmt(d) + m.pick("", `; ls "$`+v+`"`, `; cp "$`+v+`" "x/$`+v+`.y"`, `; rm "${`+v+`%.txt}.y" "${`+v+`##*/}"`) + "; done"
	case 10:
		return "while read " + v + "; do " + m.stmt(0) + "; done <<<" + m.pick("rm", "'ls x'", `"$a"`)
	case 11:
		return "case " + m.word(0) + " in a) " + m.stmt(d) + ";; *) " + m.stmt(d) + ";; esac"
	case 12:
		name := m.pick("f", "g", "ls")
		m.functions = append(m.functions, name)
		return name + "() { " + m.pick("local "+v+"=$1; ", "", "shift; ") + strings.NewReplacer("f ", "id ", "g ", "id ").Replace(m.simple(d)) + "; }"
	case 13:
		if len(m.functions) > 0 {
			return m.pick(m.functions...) + " " + m.words(d, 2)
		}
		return m.simple(d)
	case 14:
		return "eval " + m.pick(quoteForShell(m.stmt(d)), "$a", `"$a $b"`, "'$a' x", `\$b y`)
	case 15:
		return m.pick("bash", "sh") + " -c " + quoteForShell(m.simple(d)) + m.pick("", " _ p q", " _ 'r s'")
	case 16:
		return m.pick("env", "env -v", "env x=1 y=rm", "nohup", "timeout 5", "timeout -s KILL 5", "nice", "nice -n 3", "stdbuf -o0", "sudo", "sudo -u root", "command", "exec", "builtin", "time", "!", "env -u x", "sudo A=b") + " " + m.simple(0)
	case 17:
		return "echo " + m.words(0, 2) + " | xargs " + m.pick("", "-n1 ", "-I{} ", "-0 ", "-t ", "-r -n 2 ") + m.name() + " " + m.pick("", "x", "{}", "x{}y")
	case 18:
		return "find . " + m.pick("-name '*.txt' ", "-type f ", "") + m.pick("-exec ", "-execdir ") + m.name() + " {} " + m.pick(`\;`, "+", "';'")
	case 19:
		return m.pick("echo ", "printf '%s\\n' ", "printf ") + quoteForShell(m.simple(0)) + " | " + m.pick("bash", "sh", "cat | bash", "bash -s p")
	case 20:
		return "bash <<E\n" + m.simple(0) + "\nE"
	case 21:
		return "bash <<'E'\n" + m.simple(0) + "\nE"
	case 22:
		return "cat <<-E >out\n\t" + m.word(d) + " $(" + m.simple(0) + ")\nE"
	case 23:
		return "arr=(" + m.words(0, 3) + ")"
	case 24:
		return `"${arr[@]}" ` + m.words(0, 1)
	case 25:
		return "set -- " + m.words(0, 3)
	case 26:
		return m.pick(`"$@"`, "$1 x", "$@", `"$1" "$2"`, "$2")
	case 27:
		return "trap " + quoteForShell(m.simple(0)) + " EXIT"
	case 28:
		return "cd " + m.pick("sub", "..", "nowhere", `"$a"`, "sub/sub")
	case 29:
		return "export " + v + "=" + m.pick("rm", "ls", "$a", "'x y'")
	case 30:
		return "printf -v " + v + " " + m.pick("rm", "%s ls", "'%s x' rm", `'\x72m'`, "%s $a")
	case 31:
		return "read " + v + " <<<" + m.pick("rm", "$a", "'ls -x'")
	case 32:
		return "unset " + v
	case 33:
		return "IFS=" + m.pick("x", "/", "''", ":") + m.pick("", "; ") + " " + m.simple(0)
	case 34:
		return m.simple(d) + " <(" + m.simple(0) + ")"
	case 35:
		return "(( " + m.pick("a = 1", "x++", "1 + 1", "b = $(echo 2)") + " )) " + m.pick("&& ", "|| ") + m.simple(0)
	case 36:
		return "alias " + m.pick("foo", "bar") + "=" + m.pick("'rm -q'", "ls", `"$a"`) + "\nfoo x"
	case 37:
		return "shopt -s expand_aliases\nalias foo='rm -q'\nfoo x"
	case 38:
		return "declare " + m.pick("", "-x ", "-i ", "-u ", "-n ", "-r ", "-a ", "-l ") + v + "=" + m.pick("rm", "LS", "a", "b")
	case 39:
		return "until true; do " + m.simple(0) + "; done; for ((i=0; i<2; i++)); do " + m.simple(0) + "; done"
	case 40:
		return "shift" + m.pick("", " 2", " 1")
	case 41:
		return "coproc { " + m.simple(0) + "; }; wait"
	case 42:
		return m.simple(0) + " & wait"
	case 43:
		return "select " + v + " in rm ls; do " + m.simple(0) + "; break; done <<<1"
	case 44:
		return v + "=" + m.pick("rm", "ls", "foo") + " " + m.pick("eval", "bash -c", "sh -c", "env bash -c") + " '$" + v + " $1'"
	case 45:
		return "let " + v + "=1+1; " + m.simple(0)
	case 46:
		return "echo $(" + m.stmt(d) + ")`" + m.name() + "` \"`" + m.name() + " y`\""
	case 47:
		return "hash -r; " + m.simple(0)
	case 48:
		return "x() ( " + m.simple(0) + " ); x y"
	case 49:
		return "[[ -n $(" + m.simple(0) + ") ]] || " + m.simple(0)
	case 50:
		return m.name() + " \\\n  " + m.word(0)
	case 51:
		return "xargs -a a.txt " + m.name()
	case 52:
		return "mapfile -t arr <<<" + m.pick("rm", "$'ls\\nx'")
	}
	return m.simple(d)
}

func TestFits(t *testing.T) {
	some := makeWord(unknown, false, true, "", Pos{})
	assert.True(t, fits([]Word{literalWord("a", Pos{}), some}, []string{"a", "b", "c"}))
	assert.False(t, fits([]Word{literalWord("a", Pos{})}, []string{"a", "b"}))
	assert.True(t, fits([]Word{makeWord("a"+unknown+"z", false, false, "", Pos{})}, []string{"abz"}))
	assert.False(t, slices.Contains(listed(Analyse("ls", Options{})), "rm"))
}
