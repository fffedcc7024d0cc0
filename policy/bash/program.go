package bash

import (
	"strings"
)

// tool describes a known program: its options and its operands.
//
// Operands is a string with a letter for each operand: r is a file that is read, w a file that is written, d a file that
// is deleted, e a file that is run; h is a host or URL; p is a path on a host, or a file (p> is written); -
// is something else; = is any number of NAME=value; x is the first word of a command that takes all following words;
// X is shell text in all following words. A "*" repeats the letter before it, and a letter after the star is the last
// operand. Operands without a letter are not claimed: see leftovers.
type tool struct {
	short, long string
	operands    string
	// special, unless nil, handles the words that the table cannot describe.
	special func(w *walker, c ctx, k call, g given)
	// claims means that words that are not in the table are not files.
	claims bool
	// looks means that the program only reads.
	looks bool
	// via is the kind of step to the command that the tool starts; empty means Wrapper.
	via StepKind
}

// program walks a program's effects.
func (w *walker) program(c ctx, k call) {
	name, known := w.toolName(k.name)
	if sub, dashed := strings.CutPrefix(name, "git-"); dashed && gitKnows(sub) { // git-push is git push
		words := []Word{literalWord("git", k.words[0].Pos), literalWord(sub, k.words[0].Pos)}
		e := c.by(Alias, k.words[0].Text, k.at)
		e.depth += 20
		w.run(e, call{words: append(words, k.args()...), at: k.at, outside: true})
		return
	}
	k.markWords()
	switch name {
	case "basename", "dirname", "realpath", "readlink", "ls": // they print their arguments, in full or in part
		for _, a := range k.args() {
			c.out.mayHold(append(a.also, strings.ReplaceAll(a.raw, unknown, ""))...)
		}
	}
	access, listed := w.handleProgram(c, k, name, known)
	w.leftovers(c, k, access, listed)
}

// handleProgram walks a program according to its table. It returns the access to assume for words that no handler
// claimed, and whether the program has a table.
func (w *walker) handleProgram(c ctx, k call, name string, known bool) (access Access, listed bool) {
	for _, a := range k.args() {
		if a.Is("--") {
			break
		}
		if a.Kind == Pattern && strings.HasPrefix(a.Text, "-") && !isOptionValue(name, a.prefix()) {
			w.opaque(c, a.Pos.Offset, k.index, OpaqueOption, "a pattern that may match options")
		}
	}
	if s, found := subcommandsOf(name); found {
		return w.subcommand(c, k, s), false
	}
	if l, found := languageOf(name); found {
		w.language(c, k, l)
		return Uses, false
	}
	if isShell(name) {
		w.shell(c, k, name)
		return Uses, true
	}
	if !known {
		w.checkCompiler(c, k, name)
		return Uses, false
	}
	t, _ := toolOf(name)
	g := parseOptions(k.args(), t.short, t.long)
	if t.special != nil {
		t.special(w, c, k, g)
	} else {
		w.tool(c, k, t, g)
	}
	if t.claims {
		claimAll(k.args())
	}
	if t.looks {
		return Reads, true
	}
	return Uses, true
}

// isOptionValue reports whether the text before a pattern is a whole option, so that only its value is unknown:
// --include=*.go, -F[/:].
func isOptionValue(name, text string) bool {
	if strings.Contains(text, "=") {
		return true
	}
	short := "F:v:" // awk
	if name != "awk" && name != "gawk" && name != "mawk" {
		t, _ := toolOf(name)
		short = t.short
	}
	for _, letter := range text[1:] {
		if at := strings.IndexRune(short, letter); at < 0 {
			return false
		} else if at+1 < len(short) && strings.IndexByte(valueMarks, short[at+1]) >= 0 {
			return true
		}
	}
	return false
}

// checkCompiler records compiler options that name programs or code for the compiler to run.
func (w *walker) checkCompiler(c ctx, k call, name string) {
	switch name {
	case "gcc", "cc", "g++", "c++", "clang", "clang++", "cpp", "gfortran", "ld", "rustc", "tcc":
	default:
		return
	}
	for _, a := range k.args() {
		option := strings.TrimLeft(a.Text, "-")
		for _, begins := range []string{"wrapper", "fplugin", "specs", "load", "Xclang", "B", "plugin", "fuse-ld", "C linker", "Clinker", "Zcodegen-backend"} {
			if strings.HasPrefix(a.Text, "-") && strings.HasPrefix(option, begins) {
				w.opaque(c, a.Pos.Offset, k.index, OpaqueCode, name+" runs what its option "+a.Text+" says")
			}
		}
	}
}

// toolName returns the name under which the tables list a program: python for python3.11, sed for gsed.
func (w *walker) toolName(name string) (string, bool) {
	if isTool(name) {
		_, known := toolOf(name)
		return name, known
	}
	trimmed := strings.TrimSuffix(strings.ToLower(name), ".exe")
	if i := strings.IndexByte(trimmed, '.'); i > 0 {
		if rest := trimmed[i+1:]; rest == "openbsd" || rest == "traditional" || rest == "basic" || rest == "tiny" || rest == "nox" || rest == "gtk3" {
			trimmed = trimmed[:i]
		}
	}
	for _, candidate := range []string{trimmed, strings.TrimRight(trimmed, "0123456789.-"), strings.TrimPrefix(trimmed, "g")} {
		if isTool(candidate) {
			_, known := toolOf(candidate)
			return candidate, known
		}
	}
	return name, false
}

// isTool reports whether any table contains the program.
func isTool(name string) bool {
	if _, found := toolOf(name); found {
		return true
	}
	if _, found := subcommandsOf(name); found {
		return true
	}
	_, found := languageOf(name)
	return found || isShell(name)
}

// urlStart returns the index of a URL in a word such as --url=http://x.
func urlStart(text string) int {
	i := strings.Index(text, "://")
	for i > 0 && (isAlnum(rune(text[i-1])) || text[i-1] == '+') {
		i--
	}
	return i
}

// tool handles a program as its table describes.
func (w *walker) tool(c ctx, k call, t tool, g given) {
	c = w.options(c, k, g)
	w.walkOperands(c, k, t, g)
}

// options records the files, hosts and commands in option values.
func (w *walker) options(c ctx, k call, g given) ctx {
	for _, o := range g.options {
		if !o.given {
			continue
		}
		switch o.mark {
		case '<':
			w.file(c, o.value, Reads, k.index)
		case '%': // the file lists other files
			w.file(c, o.value, Reads, k.index)
			w.namesFromInput(c, k)
		case ':', '?':
			if o.value.claimed == nil || !*o.value.claimed {
				w.perhaps(c, k, o.value, Uses, strings.Contains(o.value.raw, ".") && !strings.Contains(o.value.raw, "="))
			}
		case '*':
			o.value.claim()
		case '/':
			o.value.claim()
			pattern := o.value
			if _, glob, typed := strings.Cut(pattern.Text, ":"); typed && o.name == "type-add" {
				pattern = literalWord(glob, pattern.Pos)
			}
			if o.name == "iglob" || g.has("glob-case-insensitive") {
				pattern = makeWord(strings.ToLower(pattern.raw), false, false, pattern.Source, pattern.Pos)
			}
			w.namedFiles(c, k, "", pattern)
		case '>':
			if k.name == "strace" && strings.IndexAny(o.value.Text, "|!") == 0 { // the value is a command to write to
				w.shellText(c, k, k.name, o.value.cut(1))
				continue
			}
			w.file(c, o.value, Writes, k.index)
		case '^':
			w.file(c, o.value, Runs, k.index)
			w.opaque(c, o.value.Pos.Offset, k.index, OpaqueFile, k.name+" runs the commands in a file: "+o.value.String())
		case '@':
			w.file(c, o.value, Reads, k.index)
			c.st = c.st.fork()
			c.st.enter(o.value)
			c.st.dirs, c.st.cdOK, c.st.cdFail = orUnknown(c.st.cdOK), nil, nil
		case '&':
			w.host(c, o.value, k.index)
		case '!':
			o.value.claim()
			w.opaque(c, o.value.Pos.Offset, k.index, OpaqueCode, k.name+" runs the text of its option -"+o.name)
		case '$':
			w.shellText(c, k, k.name, o.value)
		}
	}
	return c
}

// shellText walks text that a program passes to a shell.
func (w *walker) shellText(c ctx, k call, name string, text Word) {
	text.claim()
	raw := text.loose()
	if !isKnown(raw) {
		w.opaque(c, text.Pos.Offset, k.index, OpaqueText, name+" runs unknown text")
	}
	e := c.by(Shell, name, k.at)
	e.st = c.st.child()
	e.st.noParams = isShell(name)
	w.text(e, raw, text.Pos.Offset)
}

// child returns a new shell's state.
func (s *state) child() *state {
	f := &state{home: s.home, dirs: s.dirs, aliases: nil, posix: s.posix}
	for name, v := range s.vars {
		if v.exported && !v.array {
			f.set(name, value{text: v.text, exported: true})
		} else if name == "HOME" {
			f.set(name, value{text: v.text, exported: true})
		}
	}
	f.noFields = false // a shell sets IFS itself
	delete(f.vars, "IFS")
	for name, g := range s.funcs {
		if f.funcs == nil {
			f.funcs = map[string]function{}
		}
		g.maybe = true // the new shell has the function only if it was exported
		f.funcs[name] = g
	}
	return f
}

//nolint:gocognit // flat: one case for each role
func (w *walker) walkOperands(c ctx, k call, t tool, g given) {
	roles := t.operands
	ops := g.operands
	var last string
	if i := strings.IndexByte(roles, '*'); i >= 0 && i+1 < len(roles) {
		roles, last = roles[:i+1], roles[i+1:]
	}
	role := byte(0)
	j := 0
	for i := 0; i < len(ops); i++ {
		if ops[i].afterUnknown && !t.claims { // the word may be the unknown option's value
			w.file(c, ops[i], Uses, k.index)
		}
		star := j+1 < len(roles) && roles[j+1] == '*'
		if j < len(roles) && roles[j] != '*' {
			role = roles[j]
		} else if j >= len(roles) && !strings.HasSuffix(roles, "*") {
			role = 0
		}
		if last != "" && i == len(ops)-1 && (i > 0 || g.has("t", "target-directory")) {
			if !g.has("t", "target-directory") {
				role = last[0]
				if strings.HasPrefix(last, "p") {
					w.remotePath(c, ops[i], Writes, k.index)
					return
				}
			}
		}
		switch role {
		case '=':
			name, _, assigned := strings.Cut(ops[i].Text, "=")
			if assigned && name != "" {
				ops[i].claim()
				c = w.walkAssignment(c, k, name, ops[i])
				continue
			}
			j++
			i--
			continue
		case 'x':
			w.walkWrapped(c, k, t, g, ops[i:])
			return
		case 'X':
			if g.doubt {
				w.opaque(c, k.at, k.index, OpaqueOption, "it is unknown where the command of "+k.name+" begins")
			}
			claimAll(ops[i:])
			text := makeWord(joinWords(ops[i:]), false, false, "", ops[i].Pos)
			w.shellText(w.through(c, k, t), k, k.name, text)
			return
		case '-':
			ops[i].claim()
		case 'r':
			w.file(c, ops[i], Reads, k.index)
		case 'w':
			w.file(c, ops[i], Writes, k.index)
		case 'd':
			w.file(c, ops[i], Deletes, k.index)
		case 'e':
			w.file(c, ops[i], Runs, k.index)
		case 'h':
			w.host(c, ops[i], k.index)
		case 'p':
			w.remotePath(c, ops[i], Reads, k.index)
		}
		if !star {
			j++
		}
	}
}

// walkAssignment reads NAME=value before the command of env or sudo.
func (w *walker) walkAssignment(c ctx, k call, name string, word Word) ctx {
	v := word.cut(len(name) + 1)
	w.environment(c, name, v.loose(), word.Pos.Offset, k.index)
	w.environmentFiles(c, name, v, k.index)
	c.st = c.st.fork()
	c.st.set(name, value{text: v.loose(), exported: true})
	return c
}

// through returns c with the step to the command that k's program starts.
func (w *walker) through(c ctx, k call, t tool) ctx {
	kind := t.via
	if kind == "" {
		kind = Wrapper
	}
	return c.by(kind, k.name, k.at)
}

// walkWrapped walks the command that a wrapper starts.
func (w *walker) walkWrapped(c ctx, k call, t tool, g given, words []Word) {
	if g.doubt {
		w.opaque(c, k.at, k.index, OpaqueOption, "it is unknown where the command of "+k.name+" begins")
	}
	if len(words) == 0 {
		return
	}
	claimAll(words)
	e := w.through(c, k, t)
	if t.via == Remote || t.via == Container {
		e.st = newRemoteState()
	}
	w.run(e, call{words: words, at: words[0].Pos.Offset, outside: true})
}

// newRemoteState returns the state of a shell on another machine.
func newRemoteState() *state { return &state{home: unknown, noParams: true} }
