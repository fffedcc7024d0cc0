package bash

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/internal/jail"
)

// evaluatedAgain lists lines in which bash runs HIT from a variable's value or a string. HIT creates a file.
var evaluatedAgain = []string{
	`declare -i x='a[$(HIT)]'`, `declare -i x; x='a[$(HIT)]'`, `declare -i x; x+='a[$(HIT)]'`, `typeset -i x='a[$(HIT)]'`, `declare -i x=1; y='a[$(HIT)]'; x=y`,
	`f() { local -i x='a[$(HIT)]'; }; f`, `declare -i x; read x <<<'a[$(HIT)]'`, `declare -i x; printf -v x %s 'a[$(HIT)]'`,
	`declare -i x; for x in 'a[$(HIT)]'; do :; done`, `declare -i x; mapfile -t x <<<'a[$(HIT)]'`, `declare -ai x; mapfile -t x <<<'a[$(HIT)]'`,
	`declare -i x; x=('a[$(HIT)]')`, `declare -i x; : ${x:='a[$(HIT)]'}`, `declare -i x; select x in 'a[$(HIT)]'; do break; done <<<1`,
	`declare -i OPTARG; getopts a: v -a'a[$(HIT)]'`, `declare -i x; while true; do f() { :; }; f; x='a[$(HIT)]'; break; done`,
	`declare -a 'x=($(HIT))'`, `declare -a x; declare x='($(HIT))'`, `x=(1); declare x='($(HIT))'`, `x=(1); declare 'x=($(HIT))'`, `readonly -a 'x=($(HIT))'`,
	`export -a 'x=($(HIT))'`, `declare -A 'x=([$(HIT)]=1)'`, `f() { local -a 'x=($(HIT))'; }; f`, `y='($(HIT))'; declare -a x="$y"`,
	`RANDOM='a[$(HIT)]'`, `SRANDOM='a[$(HIT)]'`, `HISTCMD='a[$(HIT)]'`, `OPTIND='a[$(HIT)]'`, `read RANDOM <<<'a[$(HIT)]'`, `read OPTIND <<<'a[$(HIT)]'`,
	`y='a[$(HIT)]'; OPTIND=$y`, `y='a[$(HIT)]'; RANDOM=$y; :`, `printf -v RANDOM %s 'a[$(HIT)]'`, `for RANDOM in 'a[$(HIT)]'; do :; done`,
	`y='a[$(HIT)]'; ((y))`, `y='a[$(HIT)]'; z=1+y; echo $((z))`, `y='a[$(HIT)]'; echo $[y]`, `y='a[$(HIT)]'; let y`, `y='a[$(HIT)]'; let "z=y"`, `y='a[$(HIT)]'; command let y`,
	`y='a[$(HIT)]'; for ((; y; )); do break; done`, `y='a[$(HIT)]'; : $((1 + $y))`, `read y <<<'a[$(HIT)]'; ((y > 1))`, `y=$(echo 'a[$(HIT)]'); ((y))`,
	`y='a[$(HIT)]'; [[ $y -eq 1 ]]`, `y='a[$(HIT)]'; [[ y -lt 1 ]]`, `y='a[$(HIT)]'; [[ -v $y ]]`, `y='a[$(HIT)]'; test -v "$y"`, `v=-v; y='a[$(HIT)]'; [ "$v" "$y" ]`,
	`y='-v a[$(HIT)]'; [ $y ]`, `y='x -o -v a[$(HIT)]'; [ $y = z ]`, `read y <<<'-v a[$(HIT)]'; [ $y ]`, `read v y <<<'-v a[$(HIT)]'; [ "$v" "$y" ]`,
	`y='a[$(HIT)]'; read "$y" <<<1`, `y='a[$(HIT)]'; printf -v "$y" x`, `y='a[$(HIT)]'; sleep 0 & wait -n -p "$y"`, `y='a[$(HIT)]'; echo ${!y}`,
	`y='a[$(HIT)]'; declare -n r=$y; r=1`, `y='a[$(HIT)]'; x[y]=1`, `y='a[$(HIT)]'; x[$y]=1`, `y='a[$(HIT)]'; declare "x[y]=1"`, `y='a[$(HIT)]'; echo ${x[y]}`,
	`x=(1); y='a[$(HIT)]'; m=([y]=1)`, `y='a[$(HIT)]'; x=abc; echo ${x:y}`, `set -- 1 2; y='a[$(HIT)]'; echo ${@:y}`, `x=(1 2); y='a[$(HIT)]'; unset "x[$y]"`,
	`y='$(HIT)'; declare -A m; unset "m[$y]"`, `exec {a[$(HIT)]}>/dev/null`, `y='a[$(HIT)]'; exec {a[$y]}>/dev/null`, `y='$(HIT)'; echo ${y@P}`,
	`PS4='$(HIT)'; set -x; :`, `PS1='$(HIT)' bash --norc -i <<<:`, `PROMPT_COMMAND=HIT bash --norc -i <<<:`, `compgen -W '$(HIT)'`, `eval 'a[$(HIT)]=1'`,
	`env 'BASH_FUNC_ls%%=() { HIT; }' bash -c ls`, `echo HIT >rc; BASH_ENV=rc bash -c :`, `echo HIT >rc; ENV=./rc sh -ic :`,
	`f() { : $(($1)); }; f 'a[$(HIT)]'`, `set -- 'a[$(HIT)]'; (($1))`, `x=('a[$(HIT)]'); ((x[0]))`, `x=(1 'a[$(HIT)]'); for i in "${x[@]}"; do ((i)); done`,
	`while read n; do ((t += n)); done <<<'a[$(HIT)]'`, `x=1; while true; do ((x)); [ $x = 1 ] || break; x='a[$(HIT)]'; done`, `true && x='a[$(HIT)]' || x=1; ((x))`,
	`if true; then x='a[$(HIT)]'; else x=1; fi; ((x))`, `case 1 in 1) x='a[$(HIT)]';; esac; ((x))`, `f() { x='a[$(HIT)]'; }; x=1; f; ((x))`, `bash -c '(($1))' _ 'a[$(HIT)]'`,
	`env 'x=a[$(HIT)]' bash -c '((x))'`, `export x='a[$(HIT)]'; bash -c '((x))'`, `x='a[$(HIT)]' bash -c '((x))'`, `mapfile -t x <<<'a[$(HIT)]'; ((x[0]))`,
	`read -a x <<<'a[$(HIT)]'; ((x[0]))`, `IFS=, read _ x <<<'1,a[$(HIT)]'; ((x))`, `wc() { echo 'a[$(HIT)]'; }; x=$(wc -l); ((x))`, `seq() { echo 'a[$(HIT)]'; }; for i in $(seq 3); do ((i)); done`,
	`x=1; x+='+a[$(HIT)]'; ((x))`, `y=x; declare "$y=a[\$(HIT)]"; ((x))`, `x=5; printf -v x %s 'a[$(HIT)]'; ((x))`, `x=1; : "${x:+${z:=a[\$(HIT)]}}"; ((z))`,
	// More lines of each kind: attributes, names, tests, arithmetic, indexes, references, text that runs later.
	`declare -i a b; b='a[$(HIT)]'`, `typeset -i x=0; x='b[$(HIT)]'`, `f() { typeset -i y; y='a[$(HIT)]'; }; f`, `integer() { declare -gi z; }; integer; z='a[$(HIT)]'`, `declare -i x y='a[$(HIT)]'`,
	`export -n x; declare -ix x='a[$(HIT)]'`, `readonly x='a[$(HIT)]'; ((x))`, `local() { :; }; declare -i x='a[$(HIT)]'`, `declare -ia x=('a[$(HIT)]')`, `declare -ia x; x[0]='a[$(HIT)]'`, `declare -iA x; x[k]='a[$(HIT)]'`,
	`declare -i x; x=1 y='a[$(HIT)]'; x=y`, `o=-i; declare $o x='a[$(HIT)]'`, `declare -"i" x='a[$(HIT)]'`, `declare {-i,x='a[$(HIT)]'}`, `declare x={1,'a[$(HIT)]'}; ((x))`, `declare -i x={1,'a[$(HIT)]'}`,
	`declare 'a[$(HIT)]=1'`, `export 'a[$(HIT)]'; declare 'a[$(HIT)]=1'`, `declare "a[\$(HIT)]=1"`, `y='a[$(HIT)]=1'; declare "$y"`, `f() { local "$1"; }; f 'a[$(HIT)]=1'`,
	`printf -v 'a[$(HIT)]' x`, `printf -v "a[\$(HIT)]" x`, `y='a[$(HIT)]'; printf -v$y x`, `read 'a[$(HIT)]' <<<1`, `read -r 'a[$(HIT)]' <<<1`, `y='a[$(HIT)]'; read x "$y" <<<'1 2'`, `unset 'a[$(HIT)]'; a=(1); unset 'a[$(HIT)]'`,
	`a=(1); y='a[$(HIT)]'; unset "$y"`, `a=(1); unset -v 'a[$(HIT)]'`, `test -v 'a[$(HIT)]'`, `[ -v 'a[$(HIT)]' ]`, `[[ -v a[$(HIT)] ]]`, `[[ -v 'a[$(HIT)]' ]]`, `[[ x -eq 'a[$(HIT)]' ]]`, `[[ 'a[$(HIT)]' -gt 0 ]]`,
	`[[ 1 -le a[$(HIT)] ]]`, `x='a[$(HIT)]'; [[ x -eq x ]]`, `test 1 -eq 1 -a -v 'a[$(HIT)]'`, `[ ! -v 'a[$(HIT)]' ]`, `[ \( -v 'a[$(HIT)]' \) ]`, `! test -v 'a[$(HIT)]'`, `command test -v 'a[$(HIT)]'`, `builtin [ -v 'a[$(HIT)]' ]`,
	`let 'x=a[$(HIT)]'`, `let x='a[$(HIT)]'`, `let 'a[$(HIT)]++'`, `builtin let 'a[$(HIT)]'`, `(( a[$(HIT)] ))`, `x='a[$(HIT)]'; (( x++ ))`, `x='a[$(HIT)]'; (( y = x ? 1 : 0 ))`, `x='a[$(HIT)]'; (( 1 && x ))`,
	`x='a[$(HIT)]'; echo $(( $x ))`, `x='a[$(HIT)]'; echo $((-x))`, `x='a[$(HIT)]'; echo ${y:$((x))}`, `x='a[$(HIT)]'; y=abc; echo ${y:0:x}`, `x='a[$(HIT)]'; set -- 1; echo ${@:x}`, `x='a[$(HIT)]'; y=(1); echo ${y[@]:x}`,
	`x='a[$(HIT)]'; y=(1); echo ${y[x]}`, `x='a[$(HIT)]'; y[x]=1`, `x='a[$(HIT)]'; y=([x]=1)`, `x='a[$(HIT)]'; y=(1); y+=([x]=1)`, `x='a[$(HIT)]'; declare -a y=([x]=1)`, `x='a[$(HIT)]'; echo {1..2}$[x]`,
	`x='a[$(HIT)]'; for ((i = x; i < 1; i++)); do :; done`, `x='a[$(HIT)]'; for ((i = 0; i < 1; i += x + 1)); do :; done`, `x='$(HIT)'; y=${x@P}`, `x='$(HIT)'; : "${x@P}"`, `x=('$(HIT)'); echo "${x[@]@P}"`, `echo ${HOME/*/$(HIT)}`,
	`x='y[$(HIT)]'; echo ${!x}`, `x='y[$(HIT)]'; : ${!x:-1}`, `declare -n x='a[$(HIT)]'; echo $x`, `declare -n x='a[$(HIT)]'; x=1`, `y='a[$(HIT)]'; declare -n x=y; ((x))`, `f() { local -n r=$1; r=1; }; f 'a[$(HIT)]'`,
	`mapfile -C ./hit -c 1 x <<<1`, `readarray -C 'HIT #' -c 1 x <<<1`, `y='HIT #'; mapfile -C "$y" -c1 x <<<1`, `trap 'eval "$x"' EXIT; x=HIT`, `trap '((x))' EXIT; x='a[$(HIT)]'`,
	`trap '$x' DEBUG; x=HIT; :`, `x='a[$(HIT)]'; exec {x[x]}>/dev/null`, `coproc { :; }; y='a[$(HIT)]'; wait -n -p "$y"`, `sleep 0 & y='a[$(HIT)]'; wait -p "$y" -n`, `sleep 0 & wait -np 'a[$(HIT)]'`, `getopts a 'a[$(HIT)]' -a`,
	`x='a[$(HIT)]' bash -c 'echo $((x))'`, `env x='a[$(HIT)]' bash -c 'let x'`, `export x='a[$(HIT)]'; bash -c '[[ x -eq 1 ]]'`, `bash -c 'echo ${y:$1}' _ 'a[$(HIT)]'`, `x='a[$(HIT)]'; bash <<E
((\$x)); (($x))
E`, `x='a[$(HIT)]'; eval "((x))"`, `PS4='$(HIT)' bash -xc :`, `BASH_ENV=./hit bash -c :`, `SHELLOPTS=xtrace PS4='$(HIT)' bash -c :`, `BASHOPTS=x PS0='$(HIT)' bash --norc -i <<<:`, `HISTTIMEFORMAT='$(HIT)'; PS2='$(HIT)' bash --norc -i <<<'echo \
x'`, `EPOCHSECONDS='a[$(HIT)]'; SECONDS='a[$(HIT)]'; ((SECONDS))`, `SECONDS='a[$(HIT)]'`, `LINENO='a[$(HIT)]'; ((LINENO))`, `BASH_ARGV0='$(HIT)'; eval "$BASH_ARGV0"`, `set -- '(($1))' 'a[$(HIT)]'; eval "$1"; (($2))`, `f() { (($#, $1)); }; f 'a[$(HIT)]'`,
}

// Text that bash evaluates again is opaque. Bash runs each line, to confirm that it is an attack.
func TestWhatIsEvaluatedAgainIsOpaque(t *testing.T) {
	lines := make([]string, len(evaluatedAgain))
	for i, form := range evaluatedAgain {
		lines[i] = strings.ReplaceAll(form, "HIT", "./hit")
		assert.False(t, Analyse(lines[i], Options{}).Clear(), "line %d is clear: %s", i, lines[i])
	}
	ran := 0
	for i, o := range jail.Run(t, jail.Cell{Top: t.TempDir(), Files: map[string]string{"home/hit": "#!/bin/sh\n: >made\n"}}, lines) {
		if _, made := o.Made["made"]; made {
			ran++
		} else {
			t.Logf("does not run here: %s", lines[i])
		}
	}
	t.Logf("bash ran the hidden command in %d of %d lines", ran, len(evaluatedAgain))
	assert.Greater(t, ran*10, len(evaluatedAgain)*9)
}

// Ordinary arithmetic stays clear.
func TestOrdinaryArithmeticIsClear(t *testing.T) {
	for _, line := range []string{
		`for ((i = 0; i < 10; i++)); do echo $i; done`, `i=0; while [ $i -lt 5 ]; do echo $i; i=$((i + 1)); done`, `i=0; while ((i < 5)); do ((i++)); done`,
		`echo $((1 + 2 * 3))`, `x=5; y=$((x * 2)); echo $y`, `n=$(wc -l <a.txt); echo $((n / 2))`, `start=$(date +%s); ls; echo $(($(date +%s) - start))`,
		`for i in {1..20}; do echo $((i * i)); done`, `for i in $(seq 1 100); do echo $((i % 7)); done`, `count=0; for f in *.go; do ((count++)); done; echo $count`,
		`declare -i n=3; n+=1; echo $n`, `let n=1+2; echo $n`, `a=(1 2 3); echo ${a[1]} ${#a[@]} $((a[0] + a[1]))`, `for i in "${!a[@]}"; do echo "${a[$i]}"; done`,
		`declare -A m; m[x]=1; for k in "${!m[@]}"; do echo "${m[$k]}"; done`, `[[ $# -eq 0 ]] && echo none`, `[[ $? -ne 0 ]] && echo failed`, `x=abc; echo ${x:0:2}`,
		`total=0; for n in 1 2 3; do total=$((total + n)); done; echo $total`, `[ "$HOME" = /root ] && echo root`, `[ -n "$X" ] && echo set`, `[ $(ls | wc -l) -gt 3 ] && echo many`,
		`if [ $? -eq 0 ]; then echo ok; fi`, `f() { local n=$1; echo $((n * 2)); }; f 4`, `((n++)); echo $n`, `read -r a b < x; echo "$a $b"`, `test -f x && [ ! -d y ]`,
		`printf -v s '%03d' 7; echo "$s"`, `sleep $((2 * 3))`, `[ "$a" = "$b" ] || [ "$a" -gt 3 ]`, `RANDOM=5; OPTIND=1; echo $((RANDOM % 6))`,
	} {
		a := Analyse(line, Options{})
		assert.True(t, a.Clear(), "%s\n%s", line, told(a))
	}
}
