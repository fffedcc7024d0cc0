package bash

import (
	"slices"
	"strconv"
	"strings"

	"github.com/samber/lo"
	"mvdan.cc/sh/v3/syntax"
)

// isBuiltin reports whether name is a builtin of bash.
func isBuiltin(name string) bool {
	switch name {
	case ".", ":", "[", "alias", "bg", "bind", "break", "builtin", "caller", "cd", "command", "compgen", "complete", "compopt",
		"continue", "declare", "dirs", "disown", "echo", "enable", "eval", "exec", "exit", "export", "false", "fc", "fg",
		"getopts", "hash", "help", "history", "jobs", "kill", "let", "local", "logout", "mapfile", "popd", "printf", "pushd",
		"pwd", "read", "readarray", "readonly", "return", "set", "shift", "shopt", "source", "suspend", "test", "times",
		"trap", "true", "type", "typeset", "ulimit", "umask", "unalias", "unset", "wait":
		return true
	}
	return false
}

// builtinOf returns the handler of a builtin that runs, changes or writes something. It returns nil for other
// builtins.
func builtinOf(name string) func(w *walker, c ctx, k call) {
	switch name {
	case "eval":
		return evalBuiltin
	case "source", ".":
		return sourceBuiltin
	case "command", "builtin":
		return command
	case "exec":
		return execBuiltin
	case "trap":
		return trap
	case "alias":
		return aliasBuiltin
	case "unalias":
		return unalias
	case "cd", "pushd":
		return cd
	case "popd":
		return popd
	case "echo":
		return echo
	case "printf":
		return printf
	case "export", "declare", "typeset", "local", "readonly":
		return declare
	case "read", "wait":
		return read
	case "mapfile", "readarray":
		return mapfile
	case "unset":
		return unset
	case "set":
		return setBuiltin
	case "shift":
		return shift
	case "getopts":
		return getoptsBuiltin
	case "let":
		return let
	case "test", "[":
		return testBuiltin
	case "hash":
		return hash
	case "enable":
		return enable
	case "shopt":
		return shopt
	case "bind", "complete", "compgen":
		return runsText
	case "jobs":
		return jobs
	case "fc":
		return fc
	case "history":
		return history
	case "pwd":
		return pwd
	case "type", "help", "times", "dirs", "umask", "ulimit", "caller":
		return writesSomething
	}
	return nil
}

// writesSomething handles builtins that only print unknown text: times, ulimit, caller.
func writesSomething(_ *walker, c ctx, _ call) { c.out.lose() }

// evalBuiltin walks the arguments of eval, joined by blanks: eval "rm" '$x'. Unknown text is opaque and makes all
// variables unknown.
func evalBuiltin(w *walker, c ctx, k call) {
	args := k.args()
	if len(args) > 0 && args[0].Is("--") {
		args = args[1:]
	}
	if len(args) == 0 {
		return
	}
	text := joinWords(args)
	e := c.by(Eval, "eval", k.at)
	if !isKnown(text) {
		w.opaque(c, k.at, k.index, OpaqueText, "eval of unknown text")
		e.st = c.st.fork()
		w.text(e, text, args[0].Pos.Offset)
		c.st.forget()
		return
	}
	w.text(e, text, args[0].Pos.Offset)
}

// sourceBuiltin handles source and ".". The file runs in this shell, so the state is unknown afterwards.
func sourceBuiltin(w *walker, c ctx, k call) {
	args := k.args()
	if len(args) > 0 && args[0].Is("--") {
		args = args[1:]
	}
	if len(args) == 0 {
		return
	}
	w.file(c, args[0], Runs, k.index)
	w.opaque(c, k.at, k.index, fileReason(args[0]), "a file is run as a script: "+args[0].String())
	c.out.lose()
	c.st.forget()
}

// fileReason returns why a file that is run as commands is opaque. The file may be a pipe.
func fileReason(file Word) Reason {
	if strings.HasPrefix(file.Text, "/dev/") || strings.HasPrefix(file.Text, "/proc/") {
		return OpaqueInput
	}
	return OpaqueFile
}

// command handles the builtins command and builtin, which run a command and ignore functions with that name.
func command(w *walker, c ctx, k call) {
	args := k.args()
	for i, a := range args {
		switch {
		case a.Kind != Literal:
			w.run(c.by(Wrapper, k.name, k.at), call{words: args[i:], at: a.Pos.Offset, noFunc: true})
			return
		case a.Text == "--":
		case k.name == "command" && len(a.Text) > 1 && a.Text[0] == '-':
			if strings.Trim(a.Text[1:], "pvV") != "" {
				return // an error
			}
			if strings.ContainsAny(a.Text, "vV") {
				if rest := args[i+1:]; a.Is("-v") && len(rest) == 1 && isPlace(rest[0]) && !strings.Contains(rest[0].Text, "/") && !isBuiltin(rest[0].Text) &&
					c.st.funcs[rest[0].Text].bodies == nil && c.st.aliases[rest[0].Text] == "" {
					c.out.add("/usr/bin/" + rest[0].Text + "\n")
					return
				}
				c.out.lose()
				return
			}
		default:
			w.run(c.by(Wrapper, k.name, k.at), call{words: args[i:], at: a.Pos.Offset, noFunc: true})
			return
		}
	}
}

// execBuiltin handles exec as a wrapper: exec -a name rm x.
func execBuiltin(w *walker, c ctx, k call) {
	g := parseOptions(k.args(), "+cla:", "")
	if len(g.operands) == 0 {
		return
	}
	if g.doubt {
		w.opaque(c, k.at, k.index, OpaqueOption, "it is unknown where the command of exec begins")
	}
	w.run(c.by(Wrapper, "exec", k.at), call{words: g.operands, at: g.operands[0].Pos.Offset, outside: true})
}

// trap walks the text that a signal runs: trap 'rm -r "$t"' EXIT. It runs at an unknown time, so variables are
// unknown. A trap on DEBUG, or one that changes the shell, makes the rest of the line opaque.
func trap(w *walker, c ctx, k call) {
	args := k.args()
	for len(args) > 0 && args[0].Kind == Literal && len(args[0].Text) > 1 && args[0].Text[0] == '-' {
		if args[0].Text != "--" {
			c.out.lose()
			return // -l, -p
		}
		args = args[1:]
	}
	if len(args) < 2 || args[0].Is("-") || args[0].Is("") {
		return
	}
	e := c.by(Eval, "trap", k.at)
	e.st = c.st.fork()
	e.st.forget()
	e.out = nil
	text := args[0].loose()
	if !isKnown(text) {
		w.opaque(c, k.at, k.index, OpaqueText, "trap runs unknown text")
	}
	listed := len(w.out.Commands)
	w.text(e, text, args[0].Pos.Offset)
	w.traps = append(w.traps, trapped{e, text, args[0].Pos.Offset})
	changes := strings.ContainsAny(text, "=(") || slices.ContainsFunc(w.out.Commands[listed:], func(run Command) bool {
		return run.Kind != Program && run.Name != "echo" && run.Name != "exit" && run.Name != "true"
	})
	for _, signal := range args[1:] {
		switch name := strings.TrimPrefix(strings.ToUpper(signal.Text), "SIG"); {
		case signal.Kind == Literal && (name == "EXIT" || name == "0"): // nothing runs after this trap
		case signal.Kind != Literal, name == "DEBUG", changes:
			w.opaque(c, k.at, k.index, OpaqueEnvironment, "a trap changes the shell's state between commands")
		}
	}
}

// trapped is text that runs later, with the variables at that time.
type trapped struct {
	c    ctx
	text string
	at   int
}

// walkTraps walks trap texts again at the end, when all variables that the line sets are known. It lists no new
// commands, but text that bash evaluates again may now be opaque.
func (w *walker) walkTraps() {
	if len(w.traps) == 0 {
		return
	}
	commands, files, hosts := len(w.out.Commands), len(w.out.Files), len(w.out.Hosts)
	for _, t := range w.traps[:min(len(w.traps), maxWalks)] {
		t.c.st = t.c.st.fork()
		for name, texts := range w.held {
			if slices.ContainsFunc(texts, func(text string) bool { return !integer().MatchString(text) }) {
				t.c.st.set(name, value{text: unknown})
			}
		}
		w.text(t.c, t.text, t.at)
	}
	w.out.Commands, w.out.Files, w.out.Hosts = w.out.Commands[:commands], w.out.Files[:files], w.out.Hosts[:hosts]
	for i := range w.out.Opaque {
		if w.out.Opaque[i].Command >= commands {
			w.out.Opaque[i].Command = -1
		}
	}
}

// aliasBuiltin walks an alias's text and keeps it for later lines: alias ll='ls -l'.
func aliasBuiltin(w *walker, c ctx, k call) {
	for _, a := range k.args() {
		name, _, found := strings.Cut(a.Text, "=")
		if !found {
			if a.Kind != Literal {
				w.opaque(c, a.Pos.Offset, k.index, OpaqueText, "an alias for unknown text")
			}
			c.out.lose()
			continue
		}
		text := a.cut(len(name) + 1).loose()
		e := c.by(Alias, name, a.Pos.Offset)
		e.st = c.st.fork()
		e.st.forget()
		e.out = nil
		if !isKnown(text) {
			w.opaque(c, a.Pos.Offset, k.index, OpaqueText, "an alias for unknown text")
		}
		w.text(e, text, a.Pos.Offset)
		c.st.own()
		if c.st.aliases == nil {
			c.st.aliases = map[string]string{}
		}
		c.st.aliases[name] = text
	}
}

// unalias makes an alias unknown: bash reads a whole line before it removes the alias.
func unalias(_ *walker, c ctx, k call) {
	c.st.own()
	for _, a := range k.args() {
		if _, found := c.st.aliases[a.Text]; found {
			c.st.aliases[a.Text] = unknown // on the same line, the alias may still apply
		}
	}
}

// cd follows cd and pushd. Afterwards the shell is in the target directory or, if cd failed, in the old one. cd - and
// pushd +1 lead to an unknown directory.
func cd(_ *walker, c ctx, k call) {
	c.out.lose()
	var target *Word
	for i, a := range k.args() {
		if a.Kind == Literal && len(a.Text) > 1 && (a.Text[0] == '-' || a.Text[0] == '+') && a.Text != "--" {
			if k.name == "pushd" {
				c.st.enter(makeWord(unknown, false, true, "", k.words[0].Pos))
				return
			}
			continue
		}
		if a.Is("--") {
			continue
		}
		target = &k.args()[i]
		break
	}
	switch {
	case target != nil:
		c.st.enter(*target)
		if target.Text == "-" {
			c.out.lose()
		}
	case k.name == "cd":
		c.st.enter(makeWord(c.st.lookup("HOME").text, false, false, "", k.words[0].Pos))
	default:
		c.st.enter(makeWord(unknown, false, true, "", k.words[0].Pos))
	}
}

// popd leads to an unknown directory.
func popd(_ *walker, c ctx, k call) {
	c.out.lose()
	c.st.enter(makeWord(unknown, false, true, "", k.words[0].Pos))
}

// pwd adds the directory to the output if it is known: cd /a && sh -c "$(pwd)/x".
func pwd(_ *walker, c ctx, _ call) {
	if text := c.st.lookup("PWD").text; isKnown(text) && c.out != nil {
		c.out.add(text + "\n")
		return
	}
	c.out.lose()
}

// echo adds its words to the command's output, as in echo 'rm x' | sh. Other shells treat options and backslashes
// differently, so their output is unknown.
func echo(_ *walker, c ctx, k call) {
	if c.out == nil {
		return
	}
	args := k.args()
	if names := echoNames(args); len(names) > 0 {
		c.out.list(names)
		return
	}
	newline, escaped := true, false
	for _, a := range args {
		c.out.mayHold(a.also...)
		if a.Kind == Pattern {
			c.out.mayHold(a.Text)
		}
	}
	for len(args) > 0 && args[0].Kind == Literal && len(args[0].Text) > 1 && args[0].Text[0] == '-' &&
		strings.Trim(args[0].Text[1:], "neE") == "" {
		for _, letter := range args[0].Text[1:] {
			switch letter {
			case 'n':
				newline = false
			case 'e':
				escaped = true
			case 'E':
				escaped = false
			}
		}
		if c.st.posix {
			c.out.lose() // some shells print it
		}
		args = args[1:]
	}
	if len(args) > 0 && args[0].Kind != Literal && strings.HasPrefix(args[0].Text+"-", "-") {
		c.out.lose() // it may be an option
	}
	text := joinWords(args)
	if c.st.posix && strings.ContainsRune(text, '\\') {
		c.out.lose()
		return
	}
	if escaped {
		var ended bool
		if text, ended = decodeEscapes(text, inEcho); ended {
			newline = false
		}
	}
	if newline {
		text += "\n"
	}
	c.out.add(text)
}

// printf adds the formatted text to the output, or sets the variable in printf -v x. The variable's name may have an
// index: -v 'a[$(id)]'.
func printf(w *walker, c ctx, k call) {
	args := k.args()
	if len(args) > 1 && strings.HasPrefix(args[0].Text, "-v") {
		name := args[0].cut(min(2, len(args[0].raw)))
		rest := args[1:]
		if args[0].Is("-v") {
			name, rest = args[1], args[2:]
		}
		out := &output{}
		e := c
		e.out = out
		formatPrintf(e, rest)
		for _, a := range rest {
			out.mayHold(append(slices.Clip(a.also), strings.Fields(a.raw)...)...)
		}
		if base, _, _ := strings.Cut(name.Text, "["); !isKnown(out.text) || base != name.Text {
			w.remember(base, append(out.also, input{kind: piped, text: out.text}.texts()...)...)
		}
		switch {
		case name.Kind == Literal && syntax.ValidName(name.Text):
			w.setVariable(c, name.Text, value{text: lo.Ternary(c.st.posix, unknown, out.text)}, k.at) // some shells have no -v
			w.environment(c, name.Text, out.text, k.at, k.index)
		case name.Kind == Literal:
			w.walkName(c, name.Text, name.Pos.Offset)
			base, _, _ := strings.Cut(name.Text, "[")
			c.st.set(base, value{text: unknown})
		default:
			w.opaque(c, k.at, k.index, OpaqueText, "printf sets an unknown variable")
			c.st.forget()
		}
		return
	}
	if c.out != nil {
		for _, a := range args {
			c.out.mayHold(append(slices.Clip(a.also), strings.Fields(a.raw)...)...)
		}
		formatPrintf(c, args)
	}
}

// formatPrintf writes printf's output if its format is simple.
//
//nolint:gocognit // flat: one case for each verb
func formatPrintf(c ctx, args []Word) {
	if len(args) > 0 && args[0].Is("--") {
		args = args[1:]
	}
	if len(args) == 0 {
		return
	}
	format, values := args[0].loose(), args[1:]
	if c.st.posix && dashDiffers(format, values) || !isKnown(format) || args[0].Kind != Literal || hasFunc(values, func(w Word) bool { return w.Many }) {
		c.out.lose()
		return
	}
	for round := 0; round == 0 || len(values) > 0; round++ {
		before := len(values)
		for rest := format; rest != ""; {
			plainText, verb, found := strings.Cut(rest, "%")
			text, _ := decodeEscapes(plainText, inFormat)
			c.out.add(text)
			if !found {
				break
			}
			if verb == "" {
				c.out.lose()
				return
			}
			if verb[0] == '%' {
				c.out.add("%")
				rest = verb[1:]
				continue
			}
			arg := ""
			if len(values) > 0 {
				arg, values = values[0].loose(), values[1:]
			}
			switch verb[0] {
			case 's':
			case 'd':
				if n, err := strconv.Atoi(arg); err != nil || strconv.Itoa(n) != arg {
					arg = unknown
				}
			case 'b':
				var ended bool
				if arg, ended = decodeEscapes(arg, inB); ended {
					c.out.add(arg)
					return
				}
			default:
				c.out.lose()
				return
			}
			c.out.add(arg)
			rest = verb[1:]
		}
		if len(values) == before || round > maxWords {
			break
		}
	}
}

// dashDiffers reports whether other implementations of printf treat the escapes differently.
func dashDiffers(format string, values []Word) bool {
	differs := func(text string) bool {
		for i := strings.IndexByte(text, '\\'); i >= 0; i = strings.IndexByte(text, '\\') {
			if i+1 == len(text) || !strings.ContainsRune(`\abfnrtv01234567`, rune(text[i+1])) {
				return true
			}
			text = text[i+2:]
		}
		return false
	}
	return differs(format) || strings.Contains(format, "%b") && hasFunc(values, func(w Word) bool { return differs(w.Text) })
}

// declClause handles declare, export, local and readonly, which the parser parses separately.
func (w *walker) declClause(c ctx, x *syntax.DeclClause, redirs []Redirect) {
	at := c.src.offset(x.Pos())
	name := x.Variant.Value
	words := []Word{makeWord(name, false, false, name, w.place(at))}
	k := call{name: name, at: at, redirs: redirs}
	var plainArgs []*syntax.Assign
	for _, a := range x.Args {
		switch {
		case a.Naked && a.Name == nil:
			words = w.appendWords(c, words, a.Value)
		case a.Naked:
			words = append(words, makeWord(a.Name.Value, false, false, a.Name.Value, w.place(c.src.offset(a.Pos()))))
		default:
			plainArgs = append(plainArgs, a)
		}
	}
	k.words = words
	odd, exported := declared(words[1:], name)
	for _, a := range plainArgs {
		w.localName(c, name, a.Name.Value)
		w.attributes(c, words[1:], a.Name.Value)
		before := c.st.vars[a.Name.Value]
		w.assign(c, a, exported)
		if a.Value != nil {
			w.assignBraces(c, a)
		}
		if a.Array == nil {
			w.quotedArray(c, k, before, makeWord(c.st.vars[a.Name.Value].text, false, false, "", w.place(c.src.offset(a.Pos()))))
		}
		raw := "=…"
		if v := c.st.lookup(a.Name.Value); !v.array && a.Array == nil {
			raw = "=" + v.text
		}
		k.words = append(k.words, makeWord(a.Name.Value+raw, false, false, c.src.slice(a.Pos(), a.End()), w.place(c.src.offset(a.Pos()))))
		switch {
		case odd:
			c.st.set(a.Name.Value, value{text: unknown, odd: true, number: c.st.numberIn(a.Name.Value)})
		case c.st.posix && (name == "declare" || name == "typeset"): // not all shells have these builtins
			w.blurName(c, a.Name.Value)
		}
	}
	if f, found := c.st.funcs[name]; found {
		w.callFunction(c, call{words: k.words, at: at, index: len(w.out.Commands)}, f)
	}
	k.index = len(w.out.Commands)
	w.out.Commands = append(w.out.Commands, Command{
		Name: name, Kind: Builtin, Words: k.words, Args: k.words[1:], Redirects: redirs, Dirs: c.st.dirs, Via: w.steps(c.via), Pos: w.place(at),
	})
	naked := k
	naked.words = words
	declare(w, c, naked)
}

// assignBraces handles declare x={a,b}, which bash expands to declare x=a x=b: braces expand in assignments that are
// arguments.
func (w *walker) assignBraces(c ctx, a *syntax.Assign) {
	all := w.braces(c, a.Value)
	if len(all) < 2 {
		return
	}
	for _, parts := range all {
		text, also := w.possibleValue(c, &syntax.Word{Parts: parts}, false)
		w.remember(a.Name.Value, append(also, text)...)
		w.environment(c, a.Name.Value, text, c.src.offset(a.Pos()), -1)
	}
	c.st.set(a.Name.Value, value{text: unknown})
}

// declared reads the options of declare. It reports whether assigning to the variables does more than set them, as
// with declare -i, and whether the variables are exported.
func declared(args []Word, name string) (odd, exported bool) {
	exported, odd = name == "export", name == "readonly"
	for _, a := range args {
		if len(a.Text) < 2 || a.Text[0] != '-' && a.Text[0] != '+' {
			odd = odd || a.Many
			continue
		}
		odd = odd || a.Kind != Literal || strings.ContainsAny(a.Text[1:], "niluctraAgI")
		exported = exported || strings.Contains(a.Text, "x")
	}
	return odd, exported
}

// localName saves a variable's value outside the function, to restore it at the function's end.
func (w *walker) localName(c ctx, builtin, name string) {
	if c.st.locals == nil || builtin == "export" || builtin == "readonly" {
		return
	}
	if _, found := c.st.locals[name]; !found {
		c.st.locals[name] = c.st.lookup(name)
	}
}

// declare works like declClause for words: command export a=b, declare "$x".
//
//nolint:gocognit // flat: one step after the other for each word
func declare(w *walker, c ctx, k call) {
	odd, exported := declared(k.args(), k.name)
	if k.name != "export" && k.name != "readonly" && hasFunc(k.args(), func(w Word) bool {
		return strings.HasPrefix(w.Text, "-") && strings.ContainsRune(w.Text, 'n')
	}) {
		w.opaque(c, k.at, k.index, OpaqueEnvironment, "a variable that refers to another variable")
		c.st.forget()
	}
	functions := false
	for _, a := range k.args() {
		if a.Kind == Literal && len(a.Text) > 1 && (a.Text[0] == '-' || a.Text[0] == '+') {
			functions = functions || strings.ContainsAny(a.Text, "fF")
			if strings.ContainsRune(a.Text, 'p') {
				c.out.lose()
			}
			continue
		}
		name, _, assigned := strings.Cut(a.Text, "=")
		if a.Kind != Literal && (!assigned || !syntax.ValidName(strings.TrimSuffix(name, "+"))) {
			w.opaque(c, a.Pos.Offset, k.index, OpaqueText, "an unknown variable is set")
			c.st.forget()
			continue
		}
		w.walkName(c, strings.TrimSuffix(name, "+"), a.Pos.Offset)
		name, _, indexed := strings.Cut(strings.TrimSuffix(name, "+"), "[")
		if functions || !syntax.ValidName(name) {
			continue
		}
		w.localName(c, k.name, name)
		w.attributes(c, k.args(), name)
		v := c.st.lookup(name)
		switch {
		case assigned:
			w.quotedArray(c, k, c.st.vars[name], a.cut(strings.IndexByte(a.Text, '=')+1))
			v = value{text: a.cut(strings.IndexByte(a.Text, '=') + 1).loose()}
			if indexed || strings.Contains(a.Text[:strings.IndexByte(a.Text, '=')], "+") || strings.HasPrefix(v.text, "(") {
				v.text = unknown
			}
			w.environment(c, name, v.text, a.Pos.Offset, k.index)
			if exported {
				w.environmentFiles(c, name, a.cut(strings.IndexByte(a.Text, '=')+1), k.index)
			}
		case exported && !v.exported && !functions:
			held := makeWord(v.text, false, false, a.Source, a.Pos)
			held.also = w.held[name]
			w.environmentFiles(c, name, held, k.index)
		case c.st.locals != nil && (k.name == "local" || k.name == "declare" || k.name == "typeset"):
			v = value{}
		}
		if c.st.posix && k.name != "export" && k.name != "readonly" {
			v.text = unknown // some shells lack declare, and some start a local variable with its outer value
		}
		v.odd, v.exported = odd, exported
		if assigned {
			w.setVariable(c, name, v, a.Pos.Offset)
		} else {
			v.number = v.number || odd && v.isNumber()
			c.st.set(name, v)
		}
	}
	if len(k.args()) == 0 {
		c.out.lose()
	}
}

// read makes the variables that read or wait -p sets unknown.
func read(w *walker, c ctx, k call) {
	g := parseOptions(k.args(), "ersa:d:i:n:N:p:t:u:f", "")
	names := g.operands
	if k.name == "wait" {
		g, names = parseOptions(k.args(), "fnp:", ""), nil
	}
	for _, o := range g.options {
		if o.name == "a" && k.name != "wait" || o.name == "p" && k.name == "wait" {
			names = append(names, o.value)
		}
	}
	c.st.set("REPLY", value{text: unknown})
	w.rememberRead(c, append(slices.Clip(names), literalWord("REPLY", k.words[0].Pos)))
	w.setUnknown(c, k, names)
}

// rememberRead records the strings in the line that a command may read into variables.
func (w *walker) rememberRead(c ctx, names []Word) {
	if c.in.kind != piped || !w.spend(len(c.in.text)/16+1) {
		return
	}
	marks := w.fieldMarks(c)
	for _, n := range names {
		name, _, _ := strings.Cut(n.Text, "[")
		w.remember(name, c.in.texts()...)
		for _, text := range append([]string{c.in.text}, c.in.also...) {
			for line := range strings.SplitSeq(text, "\n") {
				w.remember(name, strings.TrimSpace(line))
				w.remember(name, piecesOf(line, marks)...)
			}
		}
	}
}

// setUnknown handles builtins that set variables to their input: read x, read 'a[i]'. The names may have indexes,
// which bash evaluates.
func (w *walker) setUnknown(c ctx, k call, names []Word) {
	for _, n := range names {
		if n.Kind != Literal {
			w.opaque(c, n.Pos.Offset, k.index, OpaqueText, "an unknown variable is set")
			c.st.forget()
			continue
		}
		w.walkName(c, n.Text, n.Pos.Offset)
		name, _, _ := strings.Cut(n.Text, "[")
		if syntax.ValidName(name) {
			w.environment(c, name, unknown, n.Pos.Offset, k.index)
			w.setVariable(c, name, value{text: unknown}, n.Pos.Offset)
			w.blurName(c, name)
			if k.name == "read" && len(names) == 1 && len(c.in.names) == 1 && name == n.Text {
				c.st.set(name, value{text: unknown, pattern: c.in.names[0], split: true})
			}
		}
	}
}

// mapfile handles mapfile and readarray: the array is unknown, and -C runs text.
func mapfile(w *walker, c ctx, k call) {
	g := parseOptions(k.args(), "td:n:O:s:u:C!c:", "")
	if o, found := g.last("C"); found {
		e := c.by(Eval, k.name, k.at)
		if !isKnown(o.value.loose()) {
			w.opaque(c, k.at, k.index, OpaqueText, "mapfile -C runs unknown text")
		}
		w.text(e, o.value.loose()+" "+unknown, o.value.Pos.Offset)
		w.opaque(c, k.at, k.index, OpaqueText, "mapfile -C runs text with unknown words")
	}
	if len(g.operands) == 0 {
		c.st.set("MAPFILE", value{text: unknown})
	}
	w.rememberRead(c, append(slices.Clip(g.operands), literalWord("MAPFILE", k.words[0].Pos)))
	w.setUnknown(c, k, g.operands)
}

// unset removes variables and functions: unset x, unset -f f, unset 'a[i]'. Bash evaluates the index.
func unset(w *walker, c ctx, k call) {
	functions := false
	for _, a := range k.args() {
		switch {
		case a.Kind == Literal && len(a.Text) > 1 && a.Text[0] == '-':
			functions = functions || strings.ContainsRune(a.Text, 'f')
		case a.Kind != Literal:
			w.opaque(c, a.Pos.Offset, k.index, OpaqueText, "an unknown variable is unset")
			c.st.forget()
		default:
			w.walkName(c, a.Text, a.Pos.Offset)
			if f, found := c.st.funcs[a.Text]; found {
				c.st.own()
				f.maybe = true
				c.st.funcs[a.Text] = f
			}
			name, _, indexed := strings.Cut(a.Text, "[")
			if functions || !syntax.ValidName(name) {
				continue
			}
			v := value{odd: c.st.lookup(name).odd}
			if indexed || v.odd || c.st.locals != nil {
				v.text = unknown
			}
			c.st.set(name, v)
			if name == "IFS" {
				c.st.noFields = true
			}
		}
	}
}

// setBuiltin handles set: the positional parameters (set -- a b) and options that change how bash parses words (set
// -k).
func setBuiltin(w *walker, c ctx, k call) {
	args := k.args()
	if len(args) == 0 {
		c.out.lose()
	}
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a.Is("--"), a.Is("-"):
			if a.Text == "--" || i+1 < len(args) {
				c.st.params, c.st.noParams = args[i+1:], false
			}
			return
		case len(a.Text) > 1 && (a.Text[0] == '-' || a.Text[0] == '+') && a.Kind == Literal:
			if strings.HasSuffix(a.Text, "o") && i+1 < len(args) {
				i++
				w.setOption(c, k, args[i])
			}
			if strings.ContainsAny(a.Text[1:], "akB") {
				w.opaque(c, a.Pos.Offset, k.index, OpaqueEnvironment, "set "+a.Text+" changes how words are parsed")
			}
		default:
			if a.Kind != Literal && strings.HasPrefix(a.Text+"-", "-") {
				c.st.noParams = true
				return
			}
			c.st.params, c.st.noParams = args[i:], false
			return
		}
	}
}

// setOption records the effect of set -o with the given name.
func (w *walker) setOption(c ctx, k call, name Word) {
	if name.Is("posix") || name.Kind != Literal {
		c.st.posix = true
	}
	if name.Is("allexport") || name.Is("keyword") || name.Is("braceexpand") {
		w.opaque(c, name.Pos.Offset, k.index, OpaqueEnvironment, "set -o "+name.Text+" changes how words are parsed")
	}
}

// shift drops the first n positional parameters.
func shift(_ *walker, c ctx, k call) {
	n := 1
	if args := k.args(); len(args) > 0 {
		var err error
		if n, err = strconv.Atoi(args[0].Text); err != nil || args[0].Kind != Literal {
			c.st.noParams = true
			return
		}
	}
	if c.st.noParams || n < 0 || hasFunc(c.st.params, mayBeSeveral) {
		c.st.noParams = true
		return
	}
	if n <= len(c.st.params) {
		c.st.params = c.st.params[n:]
	}
}

// getoptsBuiltin makes the variables that getopts sets unknown.
func getoptsBuiltin(w *walker, c ctx, k call) {
	if args := k.args(); len(args) > 1 {
		w.setUnknown(c, k, args[1:2])
		w.setVariable(c, "OPTARG", value{text: unknown}, k.at)
	}
}

// let walks arithmetic: let 'i = a[$(id)]'. Afterwards all names in it hold unknown numbers.
func let(w *walker, c ctx, k call) {
	for _, a := range k.args() {
		w.walkArithmetic(c, a.loose(), a.Pos.Offset)
		name := a.Text[:max(strings.IndexFunc(a.Text, func(r rune) bool { return r != '_' && !isAlnum(r) }), 0)]
		switch {
		case syntax.ValidName(name):
			c.st.set(name, value{text: unknown, number: true})
		case a.Kind != Literal:
			c.st.forget()
		}
		for _, part := range strings.FieldsFunc(a.Text, func(r rune) bool { return r != '_' && !isAlnum(r) }) {
			if syntax.ValidName(part) {
				c.st.set(part, value{text: unknown, number: true})
			}
		}
	}
}

// isAlnum reports whether r is an ASCII letter or digit.
func isAlnum(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
}

// testBuiltin handles test and [. test -v expands an index. An unknown word may be -v, and a word that is split may
// contain both -v and a name.
func testBuiltin(w *walker, c ctx, k call) {
	for i, a := range k.args() {
		before := k.words[i]
		switch {
		case a.Many && a.mayBeginWithV(a.Text[:min(len(a.Text), 2)]):
			w.opaque(c, a.Pos.Offset, k.index, OpaqueText, "an unquoted word may become -v and a name with an index, which test expands: "+a.Source)
		case i == 0 || isTestOperator(a) || a.Is("]"):
		case before.Is("-v") || before.Is("-R") || before.mayBeginWithV(before.Text) && !a.number && a.Kind != Pattern:
			w.walkName(c, a.loose(), a.Pos.Offset)
		}
	}
}

// mayBeginWithV reports whether an unknown word that begins with begin may be -v.
func (w Word) mayBeginWithV(begin string) bool {
	return w.Kind == Partial && !w.number && (begin == "" || begin == "-" || begin == "-v")
}

// isTestOperator reports whether test takes the word as a binary operator.
func isTestOperator(a Word) bool {
	switch a.Text {
	case "=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef", "-a", "-o":
		return a.Kind == Literal
	}
	return false
}

// walkName walks text that bash takes as a variable name, and whose index it expands.
func (w *walker) walkName(c ctx, text string, at int) {
	name, index, indexed := strings.Cut(text, "[")
	switch {
	case !isKnown(name):
		w.opaque(c, at, -1, OpaqueText, "unknown variable: its name may have an index, which bash expands")
	case indexed:
		if index = strings.TrimSuffix(index, "]"); index == "@" || index == "*" {
			return
		}
		if c.st.vars[name].assoc && isKnown(index) && !strings.ContainsAny(index, "$`\\") {
			return
		}
		if !isKnown(index) {
			w.opaque(c, at, -1, OpaqueText, "bash expands an unknown index of an array")
			return
		}
		w.walkArithmetic(c, text, at)
	}
}

// attributes records the options of declare that change assignments to a variable.
func (w *walker) attributes(c ctx, options []Word, name string) {
	v, changes := c.st.lookup(name), false
	for _, o := range options {
		if o.Kind == Literal && len(o.Text) > 1 && o.Text[0] == '-' {
			v.integer = v.integer || strings.ContainsRune(o.Text, 'i')
			v.assoc = v.assoc || strings.ContainsRune(o.Text, 'A')
			changes = changes || strings.ContainsAny(o.Text, "iA")
		}
	}
	if changes {
		v.odd = c.st.vars[name].odd
		c.st.set(name, v)
	}
}

// quotedArray handles a quoted array value: declare -a 'x=($(id))' expands the text between the parentheses.
func (w *walker) quotedArray(c ctx, k call, before value, text Word) {
	raw := text.loose()
	array := before.array || before.text == unknown && !before.number || hasFunc(k.args(), func(o Word) bool {
		return strings.HasPrefix(o.Text, "-") && strings.ContainsAny(o.Text, "aA") || o.Kind != Literal && o.Text == ""
	})
	if strings.HasPrefix(raw, "(") && strings.ContainsAny(raw, "$`[<>\\"+unknown) || array && strings.HasPrefix(raw, unknown) && !text.number {
		w.opaque(c, text.Pos.Offset, k.index, OpaqueText, k.name+" expands the value of an array again")
	}
}

// hash makes hash -p opaque: after hash -p /tmp/x ls, ls runs /tmp/x.
func hash(w *walker, c ctx, k call) {
	for _, a := range k.args() {
		if strings.HasPrefix(a.Text, "-") && strings.ContainsRune(a.Text, 'p') || a.Kind != Literal {
			w.opaque(c, k.at, k.index, OpaqueEnvironment, "hash -p makes a name run another program")
			return
		}
	}
}

// enable makes changes to the list of builtins opaque: enable -n echo, enable -f lib.so x.
func enable(w *walker, c ctx, k call) {
	if len(k.args()) > 0 {
		w.opaque(c, k.at, k.index, OpaqueEnvironment, "enable changes the set of builtins")
	}
}

// shopt makes options opaque that change how bash parses the line. It follows lastpipe: with it, … | read x sets x in
// this shell.
func shopt(w *walker, c ctx, k call) {
	for _, a := range k.args() {
		switch {
		case a.Is("lastpipe"):
			c.st.lastPipe = true
		case harmlessOption(a):
		case a.Kind == Literal && strings.HasPrefix(a.Text, "-"):
		default:
			w.opaque(c, k.at, k.index, OpaqueEnvironment, "shopt "+a.String()+" may change how the line is parsed")
		}
	}
	c.out.lose()
}

// harmlessOption reports whether a shopt option does not affect the analysis. dotglob does, because * then also
// matches hidden files.
func harmlessOption(w Word) bool {
	switch w.Text {
	case "expand_aliases", "extglob", "nullglob", "globstar", "nocaseglob", "nocasematch", "failglob", "inherit_errexit", "checkwinsize",
		"histappend", "cmdhist":
		return w.Kind == Literal
	}
	return false
}

// runsText handles bind -x, complete -C, and compgen -C and -W.
func runsText(w *walker, c ctx, k call) {
	c.out.lose()
	for _, a := range k.args() {
		if a.Kind != Literal {
			w.opaque(c, k.at, k.index, OpaqueText, k.name+" may run unknown text")
			return
		}
		if strings.HasPrefix(a.Text, "-") && strings.ContainsAny(a.Text, "xCWfF") || k.name == "bind" {
			w.opaque(c, k.at, k.index, OpaqueText, k.name+" may run text later, when it is used")
			return
		}
	}
}

// jobs walks the command of jobs -x.
func jobs(w *walker, c ctx, k call) {
	c.out.lose()
	if args := k.args(); len(args) > 1 && strings.HasPrefix(args[0].Text, "-") && strings.ContainsRune(args[0].Text, 'x') {
		w.run(c.by(Wrapper, "jobs", k.at), call{words: args[1:], at: args[1].Pos.Offset})
	}
}

// fc handles fc, which runs commands from the history. It is opaque unless it only lists them.
func fc(w *walker, c ctx, k call) {
	c.out.lose()
	if args := k.args(); len(args) == 0 || !strings.HasPrefix(args[0].Text, "-l") {
		w.opaque(c, k.at, k.index, OpaqueText, "fc runs commands from the history")
	}
}

// history makes the options that read or write the history file opaque.
func history(w *walker, c ctx, k call) {
	c.out.lose()
	for _, a := range k.args() {
		if strings.HasPrefix(a.Text, "-") && strings.ContainsAny(a.Text, "anrw") {
			w.opaque(c, k.at, k.index, OpaqueEnvironment, "history reads or writes the history file")
		}
	}
}
