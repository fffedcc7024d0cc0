package bash

import (
	"slices"
	"strings"
)

// language describes an interpreter and its options; the mark "!" means code on the line.
type language struct {
	name        string
	short, long string
	module      string // the option that names a module to run
	help        string // options that only print information
	subs        bool   // the first operand may be a sub-command: deno run
}

// languageOf returns an interpreter's options: which take code (-c, -e), files or modules.
func languageOf(name string) (language, bool) {
	switch name {
	case "python", "pypy", "ipython":
		return language{name: "python", short: "+bBdEhiIOPqRsSuvVx3?c=m=W:X:Q:", long: "help version check-hash-based-pycs: help-env help-xoptions " +
			"help-all", module: "m", help: "h V help version"}, true
	case "perl":
		return language{name: "perl", short: "+acfhnpsStTuUvwWXd!D?i?l0F?CV?x?e!E!I:m!M!", long: "help", help: "h v V help"}, true
	case "ruby", "jruby", "truffleruby":
		return language{name: "ruby", short: "+aclnpsSvwhUyF?i?0K?TWx?C@e!E:I:r:",
			long: "copyright debug disable? enable? encoding? external-encoding? internal-encoding? help jit version verbose yjit",
			help: "h v version help"}, true
	case "node", "nodejs", "bun", "tsx", "ts-node":
		return language{name: "javascript", short: "+hvcie!p!r^C:", long: "eval! print! require^ import^ loader^ experimental-loader^ check " +
			"interactive test watch inspect? inspect-brk? input-type: env-file< max-old-space-size? version help no-warnings trace-warnings " +
			"experimental-strip-types no-deprecation stack-trace-limit? enable-source-maps expose-gc run:", help: "h v version help",
			subs: name == "bun"}, true
	case "deno":
		return language{name: "javascript", short: "+hVAq", long: "allow-all allow-net? allow-read? allow-write? allow-run? allow-env? version help " +
			"unstable quiet", help: "h V version help", subs: true}, true
	case "php", "php-cgi":
		return language{name: "php", short: "+aehilmnsvwqCr!R!B!E!F^f^c^d:z:t:S:", long: "run! process-code! process-begin! process-end! file^ define: " +
			"php-ini^ version help modules info ini syntax-check", help: "h v i m version help"}, true
	case "lua", "luajit", "luau":
		return language{name: "lua", short: "+ivEWe!l^j:b", help: "v"}, true
	case "tclsh", "wish", "guile", "racket", "scheme", "sbcl", "clisp", "julia", "groovy", "scala", "swift", "elixir", "iex", "erl", "escript",
		"jshell", "osascript", "ocaml", "runghc", "runhaskell",
		"crystal", "nim", "raku", "rakudo", "janet", "fennel", "kotlin", "kotlinc", "clojure", "clj", "bb", "lein", "coffee", "gjs", "qjs", "d8",
		"pwsh-preview", "xsltproc", "gforth", "picolisp", "emacs-batch", "gawk-language", "ghc":
		return language{name: name, short: "+e!E!c!p!x!P!L!l:f^hvV", long: "eval! print! expr! execute! command! load^ script^ version help",
			help: "h v V version help"}, true
	}
	return language{}, false
}

// language handles an interpreter that runs code on the line, a file, or its input.
//
//nolint:gocognit // flat: one case for each kind of option
func (w *walker) language(c ctx, k call, l language) {
	args := k.args()
	if l.name == "perl" || l.name == "ruby" {
		args = withoutNumbers(args)
	}
	g := parseOptions(args, l.short, l.long)
	code, hasCode := "", false
	for _, o := range g.options {
		if !o.given {
			continue
		}
		switch {
		case o.mark == '!' && (o.name == "M" || o.name == "m" || o.name == "d") && l.name == "perl":
			// The value is a module name; with other characters it is code.
			if strings.Trim(o.value.raw, "-ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_:") != "" &&
				strings.ContainsAny(o.value.raw, " ;({"+unknown) {
				code, hasCode = joinCode(code, o.value.loose()), true
			}
		case o.mark == '!':
			code, hasCode = joinCode(code, o.value.loose()), true
		case o.mark == '=' && o.name == l.module:
			// python -m module runs installed code, as a program does.
			w.module(c, k, o.value, g)
			return
		case o.mark == '=':
			code, hasCode = o.value.loose(), true
		case o.mark == '^':
			w.file(c, o.value, Runs, k.index)
		case o.mark == '@':
			w.file(c, o.value, Reads, k.index)
		}
	}
	if hasCode {
		if w.code(c, k, l, code) {
			for _, o := range g.options {
				o.value.claim()
			}
			return
		}
		for _, o := range g.options {
			if o.given && strings.IndexByte("!=", o.mark) >= 0 {
				w.perhaps(c, k, o.value, Uses, false)
			}
		}
		return
	}
	if l.help != "" {
		for help := range strings.SplitSeq(l.help, " ") {
			if g.has(help) {
				return
			}
		}
	}
	if g.doubt {
		w.opaque(c, k.at, k.index, OpaqueOption, "unknown option of "+k.name)
	}
	ops := g.operands
	if l.subs && len(ops) > 0 && ops[0].Kind == Literal && !strings.ContainsAny(ops[0].Text, "./") {
		ops[0].claim()
		w.out.Commands[k.index].Sub, w.out.Commands[k.index].Args = ops[0].Text, ops[1:]
		if ops[0].Text == "eval" || ops[0].Text == "repl" {
			w.setCode(k, l.name, joinWords(ops[1:]))
			w.opaque(c, k.at, k.index, OpaqueCode, l.name+" code")
		}
		return
	}
	switch {
	case len(ops) > 0 && !ops[0].Is("-") && ops[0].Text != "/dev/stdin" && ops[0].Text != "/dev/fd/0" && ops[0].Text != "/proc/self/fd/0":
		if strings.HasPrefix(ops[0].Text, "/dev/fd/") {
			w.opaque(c, k.at, k.index, OpaqueInput, k.name+" runs its input, which is unknown")
			return
		}
		w.file(c, ops[0], Runs, k.index)
		if ops[0].Many && ops[0].Text == "" {
			w.opaque(c, k.at, k.index, OpaqueOption, "the arguments of "+k.name+" are unknown")
		}
	case k.hidden:
		w.opaque(c, k.at, k.index, OpaqueOption, "the arguments of "+k.name+" are unknown")
	case l.name == "javascript" && g.has("test") && c.in.kind == inherited: // it finds the tests itself
	case g.has("v", "V") && c.in.kind == inherited:
	case c.in.kind == piped && c.in.text != "" && isKnown(c.in.text):
		w.code(c, k, l, c.in.text)
	default:
		w.opaque(c, k.at, k.index, OpaqueInput, k.name+" runs its input, which is unknown")
	}
}

// code records code on the line and reports whether it only computes. Otherwise, it is opaque.
func (w *walker) code(c ctx, k call, l language, code string) bool {
	w.setCode(k, l.name, code)
	var reads []string
	computes := false
	switch p := (pythonReader{text: code}); {
	case !isKnown(code) || len(code) > maxPython || !w.spend(len(code)/8):
	case l.name == "python":
		computes = p.computes()
		reads = p.reads
	case l.name == "javascript":
		if found := printsJSON().FindStringSubmatch(code); found != nil {
			computes, reads = true, found[2:3]
		}
	}
	if !computes {
		w.opaque(c, k.at, k.index, OpaqueCode, l.name+" code")
	}
	for _, name := range reads {
		w.file(c, literalWord(name, w.place(k.at)), Reads, k.index)
	}
	return computes
}

// printsJSON matches JavaScript that prints part of a file: console.log(require('./package.json').version).
var printsJSON = lazyRegexp(`^ *(console\.log\( *)?require\(['"](\.{1,2}/[A-Za-z0-9_./-]+\.json)['"]\)(\.[A-Za-z0-9_]+|\[['"][^'"\\]*['"]\])* *\)? *;? *$`)

// withoutNumbers removes the values of -0, -l, -C, -W and -T from clusters, so that the options after them can be
// parsed: perl -l0ne x, ruby -W0e x.
func withoutNumbers(args []Word) []Word {
	short := slices.Clone(args)
	for i, a := range args {
		if a.Is("--") {
			break
		}
		if a.Kind != Literal || len(a.Text) < 3 || a.Text[0] != '-' || a.Text[1] == '-' {
			continue
		}
		if text := clusterNumbers().ReplaceAllString(a.Text, "$1$2"); text != a.Text && !strings.ContainsAny(text[:min(2, len(text))], "eEIMmFixDV") {
			short[i].Text, short[i].raw = text, text
		}
	}
	return short
}

var clusterNumbers = lazyRegexp(`^(-[acfhlnpsStTuUvwWX0C]*?[0lCWT])(?:[0-9]+|x[0-9A-Fa-f]+|[IOEioDASL]+)([acfhlnpsStTuUvwWXeE0].*)?$`)

// joinCode joins the code from several options: perl -e 'a' -e 'b'.
func joinCode(a, b string) string {
	if a == "" {
		return b
	}
	return a + "\n" + b
}

// module handles python -m. Some modules run code in their arguments.
func (w *walker) module(c ctx, k call, module Word, g given) {
	if module.Kind == Literal {
		module.claim()
	}
	if len(g.operands) > 0 {
		w.out.Commands[k.index].Sub, w.out.Commands[k.index].Args = module.Text, g.operands[1:]
	}
	switch {
	case module.Kind != Literal:
		w.opaque(c, k.at, k.index, OpaqueName, "the Python module that runs is unknown")
	case module.Text == "timeit", module.Text == "code", module.Text == "pdb", module.Text == "idlelib", module.Text == "asyncio", module.Text == "IPython":
		w.setCode(k, "python", joinWords(g.operands))
		w.opaque(c, k.at, k.index, OpaqueCode, "python code")
	}
}
