package bash

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// call is a simple command before it is recorded.
type call struct { //nolint:recvcheck // decoding needs a pointer
	words   []Word
	assigns []Assign
	redirs  []Redirect
	name    string
	outside bool // a program starts the command, so it is neither a function nor a builtin
	noFunc  bool // the builtin "command" starts the command, so it is not a function
	index   int  // the command's index in Analysis.Commands
	at      int  // the command's position
	hidden  bool // unknown words follow, as with xargs
	stays   bool // the command's settings persist, as with git config
}

// args returns the words after the command name.
func (k call) args() []Word { return k.words[1:] }

// callExpr walks a simple command: aliases first, then words and redirections, then the assignments before it. An
// assignment without a command changes the shell (x=1); an assignment before a command applies to that command only
// (x=1 cmd).
func (w *walker) callExpr(c ctx, x *syntax.CallExpr, s *syntax.Stmt) {
	if len(x.Args) > 0 {
		w.alias(c, x, s)
	}
	words := w.words(c, x.Args)
	index := len(w.out.Commands)
	if len(words) == 0 {
		index = -1
	}
	redirs := w.redirects(&c, s.Redirs, index)
	w.empties(c, words, redirs, index)
	if len(words) == 0 {
		for _, a := range x.Assigns {
			w.assign(c, a, false)
		}
		return
	}
	k := call{words: words, redirs: redirs, at: c.src.offset(x.Args[0].Pos())}
	for _, r := range redirs {
		if writesOut(r) {
			c.out.lose()
			c.out = nil
		}
	}
	if len(x.Assigns) == 0 {
		w.run(c, k)
		return
	}
	// The assignments apply to this command only.
	saved := c.st.fork()
	for _, a := range x.Assigns {
		if a.Name == nil {
			continue
		}
		number := makesNumber(c.st, a.Value)
		raw, also := w.possibleValue(c, a.Value, false)
		held := makeWord(raw, false, false, "", w.place(c.src.offset(a.Pos())))
		held.also = also
		w.remember(a.Name.Value, also...)
		k.assigns = append(k.assigns, Assign{a.Name.Value, held})
		w.environment(c, a.Name.Value, raw, c.src.offset(a.Pos()), index)
		w.environmentFiles(c, a.Name.Value, k.assigns[len(k.assigns)-1].Value, index)
		w.setVariable(c, a.Name.Value, value{text: raw, exported: true, number: number}, c.src.offset(a.Pos()))
	}
	w.run(c, k)
	for _, a := range k.assigns {
		v := saved.lookup(a.Name)
		if c.st.posix && specialBuiltin(words[0].Text) {
			v = value{text: unknown}
		}
		c.st.own()
		c.st.vars[a.Name] = v
		if a.Name == "IFS" {
			c.st.noFields = saved.noFields
		}
	}
}

// specialBuiltin reports whether POSIX shells keep assignments before this builtin: after x=1 :, x stays 1.
func specialBuiltin(name string) bool {
	switch name {
	case ":", ".", "eval", "exec", "exit", "export", "readonly", "return", "set", "shift", "times", "trap", "unset", "break", "continue", "source":
		return true
	}
	return false
}

// run records a simple command and walks everything that it starts.
func (w *walker) run(c ctx, k call) {
	if len(k.words) == 0 || !w.spend(8+len(k.words)) {
		return
	}
	if len(w.out.Commands) >= maxCommands || c.depth > maxDepth {
		w.exhaust()
		return
	}
	claimAll(k.words)
	c.out.mayHold(c.in.texts()...)
	first := k.words[0]
	cmd := Command{
		Kind: Program, Words: k.words, Args: k.words[1:], Assigns: k.assigns, Redirects: k.redirs,
		Dirs: c.st.dirs, Via: w.steps(c.via), Pos: w.place(k.at),
	}
	k.index = len(w.out.Commands)
	switch {
	case first.Kind == Literal:
		k.name = baseName(first.Text)
	case first.Kind == Partial && !first.Many && strings.Contains(first.Suffix, "/"):
		k.name = baseName(first.Suffix)
	case strings.Contains(first.Suffix, "/") && first.Kind == Partial:
		k.name = baseName(first.Suffix)
		cmd.Kind = Unknown
	default:
		cmd.Kind = Unknown
	}
	cmd.Name = k.name
	var f function
	isFunc := false
	if first.Kind == Literal && !k.outside {
		if !k.noFunc {
			f, isFunc = c.st.funcs[first.Text]
		}
		switch {
		case isFunc:
			cmd.Kind = Function
		case isBuiltin(first.Text):
			cmd.Kind = Builtin
		}
	}
	if cmd.Kind == Program && k.name != "" {
		name, _ := w.toolName(k.name)
		cmd.Listed = isTool(name) && (!strings.Contains(first.raw, "/") || strings.HasPrefix(first.raw, "/bin/") || strings.HasPrefix(first.raw, "/usr/bin/"))
	} else {
		cmd.Listed = cmd.Kind != Unknown
	}
	if w.out.Commands == nil {
		w.out.Commands = make([]Command, 0, 4)
	}
	w.out.Commands = append(w.out.Commands, cmd)
	if cmd.Kind == Unknown {
		w.unknownName(c, k)
		return
	}
	if isFunc {
		w.callFunction(c, k, f)
		if !f.maybe {
			return
		}
	}
	w.handle(c, k, cmd.Kind)
}

// unknownName handles a command whose name is unknown.
func (w *walker) unknownName(c ctx, k call) {
	first := k.words[0]
	detail := "the name of the command is unknown"
	if first.Source != "" && len(first.Source) < 40 {
		detail += ": " + first.Source
	}
	w.opaque(c, k.at, k.index, OpaqueName, detail)
	c.out.lose()
	if k.name != "" {
		w.handle(c, k, Program)
		return
	}
	// After an empty expansion, the next word is the name.
	if first.Many && first.Text == "" && first.Suffix == "" && len(k.words) > 1 && k.words[1].Kind == Literal && !strings.HasPrefix(k.words[1].Text, "-") {
		w.run(c, call{words: k.words[1:], at: k.words[1].Pos.Offset})
	}
}

// handle walks the effects of a command with a known name.
func (w *walker) handle(c ctx, k call, kind Kind) {
	if kind == Builtin {
		for _, a := range k.args() {
			if a.Kind == Pattern && strings.ContainsAny(a.Text, "/~") { // bash reads the folders
				w.file(c, a, Reads, k.index)
			}
		}
		if f := builtinOf(k.name); f != nil {
			f(w, c, k)
		}
		return
	}
	path := k.words[0].Text
	if strings.HasPrefix(path, "/proc/") || strings.HasPrefix(path, "/dev/") {
		w.opaque(c, k.at, k.index, OpaqueName, "the program is named by a path of /proc or /dev")
		k.name = "bash"
	}
	w.print(c, k)
	if strings.Contains(k.words[0].raw, "/") {
		w.file(c, k.words[0], Runs, k.index)
	}
	w.program(c, k)
}

// maxCalls limits how many nested calls of the same function are walked.
const maxCalls = 2

// callFunction walks the bodies that a name may have, with the call's arguments as $1 and so on. Invariant:
// afterwards, the state is valid whichever body ran, and local variables have their outer values.
func (w *walker) callFunction(c ctx, k call, f function) {
	before := len(w.out.Commands)
	for i, body := range f.bodies {
		w.markCalled(body)
		if w.running == nil {
			w.running = map[*syntax.FuncDecl]int{}
		}
		if w.running[body] >= maxCalls {
			w.opaque(c, k.at, k.index, OpaqueLimit, "a function that calls itself")
			continue
		}
		w.running[body]++
		b := c.by(Body, k.words[0].Text, k.at)
		b.src = f.from[i]
		before := c.st.fork()
		params, none, locals := c.st.params, c.st.noParams, c.st.locals
		c.st.params, c.st.noParams, c.st.locals = k.args(), false, map[string]value{}
		w.stmt(b, body.Body)
		if w.jumps(c, body.Body) {
			w.blurLoop(c, []*syntax.Stmt{body.Body})
		}
		for name, v := range c.st.locals {
			c.st.set(name, v)
		}
		c.st.params, c.st.noParams, c.st.locals = params, none, locals
		if f.maybe || len(f.bodies) > 1 {
			c.st.join(before)
		}
		w.running[body]--
	}
	if !f.maybe {
		w.emptiesAfter(c, before, k.redirs, k.index)
	}
}

// alias walks a command whose name is an alias.
func (w *walker) alias(c ctx, x *syntax.CallExpr, s *syntax.Stmt) {
	if len(c.st.aliases) == 0 {
		return
	}
	name := x.Args[0].Lit()
	text, found := c.st.aliases[name]
	if !found || name == "" {
		return
	}
	at := c.src.offset(x.Args[0].Pos())
	rest := c.src.slice(x.Args[0].End(), s.End())
	if !isKnown(text) || strings.HasSuffix(text, " ") || strings.HasSuffix(text, "\\") || strings.Contains(text, "<<") || c.depth > maxDepth/2 {
		w.opaque(c, at, -1, OpaqueSyntax, "an alias that may change how the line is parsed")
		return
	}
	a := c.by(Alias, name, at)
	// Bash does not expand an alias inside its own text; there the name may be another command.
	a.st = c.st.fork()
	a.st.own()
	delete(a.st.aliases, name)
	w.text(a, text+rest, at)
}

// assign walks an assignment without a command, or in declare.
//
//nolint:gocognit // flat: one case for each kind of value
func (w *walker) assign(c ctx, a *syntax.Assign, exported bool) {
	if a.Name == nil {
		return
	}
	name, at := a.Name.Value, c.src.offset(a.Pos())
	if a.Index != nil {
		w.index(c, name, a.Index)
	}
	number := a.Array == nil && makesNumber(c.st, a.Value)
	v := value{exported: exported}
	switch {
	case a.Array != nil:
		v.array = true
		for _, e := range a.Array.Elems {
			if e.Index != nil {
				w.index(c, name, e.Index)
				numbers := makesNumber(c.st, e.Value) && (v.array || v.number)
				held, also := w.possibleValue(c, e.Value, false)
				w.remember(name, append(also, held)...)
				v = value{text: unknown, number: numbers, exported: v.exported}
				continue
			}
			for _, word := range w.words(c, []*syntax.Word{e.Value}) {
				if word.Many || word.Kind == Pattern {
					v = value{text: unknown}
				}
				w.remember(name, append(word.also, word.raw)...)
				if v.array {
					v.list = append(v.list, word.raw)
				}
			}
		}
		if old := c.st.lookup(name); a.Append {
			switch {
			case old.array && v.array:
				v.list = append(append([]string(nil), old.list...), v.list...)
			default:
				v = value{text: unknown}
			}
		}
		if len(v.list) > maxWords {
			v = value{text: unknown}
		}
	case a.Index != nil:
		text, also := w.possibleValue(c, a.Value, false)
		w.remember(name, append(also, text)...)
		if !number && c.st.vars[name].integer {
			w.walkArithmetic(c, text, at)
		}
		v.text, v.number = unknown, number && c.st.numberIn(name)
	default:
		pattern := assignedPattern(c.st, a.Value)
		var also []string
		w.printed = nil
		v.text, also = w.possibleValue(c, a.Value, false)
		if pattern == "" && onlySubstitution(a.Value) != nil && len(w.printed) == 1 {
			pattern, v.split = w.printed[0], true
		}
		v.number = number
		w.remember(name, also...)
		if !a.Append {
			v.pattern = pattern
		}
		if a.Append {
			old := c.st.lookup(name)
			v.number = number && c.st.numberIn(name)
			if c.st.vars[name].integer && !number {
				w.walkArithmetic(c, v.text, at)
			}
			if old.array {
				v.text = unknown
			} else {
				v.text = old.text + v.text
				w.remember(name, v.text)
			}
		}
	}
	if len(v.text) > maxText/4 {
		v.text = unknown
	}
	w.spend(len(v.text) / 64)
	v.exported = v.exported || c.st.vars[name].exported
	w.environment(c, name, v.text, at, -1)
	if v.exported {
		held := makeWord(v.text, false, false, "", w.place(at))
		if !isKnown(v.text) {
			held.also = w.held[name]
		}
		w.environmentFiles(c, name, held, -1)
	}
	if a.Index != nil || a.Append && a.Array == nil {
		c.st.set(name, v)
	} else {
		w.setVariable(c, name, v, at)
	}
	if name == "HOME" {
		c.st.home = v.text
	}
}

// text walks text that bash runs.
func (w *walker) text(c ctx, text string, at int) {
	if strings.TrimSpace(text) == "" || !w.spend(len(text)/8+8) {
		return
	}
	partly := !isKnown(text)
	if partly {
		text = strings.ReplaceAll(text, unknown, "${_}")
	}
	if c.depth > maxDepth/2 || len(text) > maxLine {
		w.opaque(c, at, -1, OpaqueLimit, "text is nested too deep")
		return
	}
	if strings.HasPrefix(w.line[min(at+1, len(w.line)):], text) && !partly {
		at++ // the position after the quote
	}
	verbatim := c.src.verbatim && !partly && strings.HasPrefix(w.line[min(at, len(w.line)):], text)
	stmts, err := w.parse(text)
	c.src = source{text: text, at: at, verbatim: verbatim}
	if err != nil {
		w.opaque(c, at, -1, OpaqueSyntax, "text that is run does not parse: "+err.text)
	}
	w.stmts(c, stmts)
}
