package bash

import (
	"slices"
	"strings"

	"github.com/samber/lo"
)

// walkSudo handles sudo and doas. With -s or -i the words are passed to a shell; with -e they are files.
func walkSudo(w *walker, c ctx, k call, g given) {
	t, _ := toolOf(k.name)
	if k.name != "doas" {
		t, _ = toolOf("sudo")
	}
	if g.has("e", "edit") {
		for _, o := range g.operands {
			w.file(c, o, Writes, k.index)
		}
		return
	}
	if o, found := g.last("R", "chroot"); found && o.given {
		t.via = Container
	}
	if g.has("s", "shell", "i", "login") {
		if len(g.operands) == 0 {
			w.shellInput(c, k, k.name)
			return
		}
		// sudo escapes the words for the shell, so each stays one word.
		c = w.options(c, k, g)
		w.walkOperands(c, k, t, g)
		return
	}
	w.tool(c, k, t, g)
}

// walkEnv walks env's command. With -S, env splits one word into a whole command.
func walkEnv(w *walker, c ctx, k call, g given) {
	t, _ := toolOf("env")
	o, found := g.last("S", "split-string")
	if !found || !o.given {
		if g.has("i", "ignore-environment") || hasFunc(g.operands, func(w Word) bool { return w.Is("-") }) {
			c.st = c.st.fork()
			c.st.own()
			for name, v := range c.st.vars {
				v.exported = false
				c.st.vars[name] = v
			}
		}
		if len(g.operands) > 0 && g.operands[0].Is("-") {
			g.operands = g.operands[1:]
		}
		w.tool(c, k, t, g)
		return
	}
	raw := o.value.loose()
	if !isKnown(raw) || strings.ContainsAny(raw, "\\$") {
		w.opaque(c, o.value.Pos.Offset, k.index, OpaqueText, "env -S splits unknown text")
	}
	stmts, err := w.parse(strings.ReplaceAll(raw, unknown, "${_}"))
	if err != nil || len(stmts) != 1 {
		w.opaque(c, o.value.Pos.Offset, k.index, OpaqueText, "env -S splits text by its own rules")
		return
	}
	var words []Word
	for word := range strings.FieldsSeq(raw) {
		if strings.ContainsAny(word, `"'`) {
			w.opaque(c, o.value.Pos.Offset, k.index, OpaqueText, "env -S splits text by its own rules")
			word = strings.Trim(word, `"'`)
		}
		words = append(words, makeWord(word, false, false, "", o.value.Pos))
	}
	g.options = nil
	g.operands = append(words, g.operands...)
	if len(g.operands) > 0 && strings.HasPrefix(g.operands[0].Text, "-") {
		g = parseOptions(g.operands, t.short, t.long)
	}
	w.tool(c, k, t, g)
}

// walkWatch walks the words of watch as shell text or, with -x, as a command.
func walkWatch(w *walker, c ctx, k call, g given) {
	roles := "X"
	if g.has("x", "exec") {
		roles = "x"
	}
	w.walkOperands(c, k, tool{operands: roles}, g)
}

// orShell handles a wrapper that starts a shell if no command is given.
func orShell(w *walker, c ctx, k call, g given) {
	if len(g.operands) == 0 {
		w.shellInput(c, k, k.name)
		return
	}
	t := plainWrapper(k.name)
	t.special = nil
	w.tool(c, k, t, g)
}

// walkDoubtful handles a wrapper with options that are not modelled.
func walkDoubtful(w *walker, c ctx, k call, _ given) {
	if len(k.args()) == 0 || len(k.args()) == 1 && (k.args()[0].Is("--version") || k.args()[0].Is("--help")) {
		return
	}
	w.opaque(c, k.at, k.index, OpaqueOption, k.name+" starts a program by its own rules")
	for i, a := range k.args() {
		if a.Kind == Literal && a.Text != "" && a.Text[0] != '-' && !strings.Contains(a.Text, "=") {
			w.run(c.by(Wrapper, k.name, k.at), call{words: k.args()[i:], at: a.Pos.Offset, outside: true})
			return
		}
	}
}

// walkSu walks su -c 'text' user as shell text.
func walkSu(w *walker, c ctx, k call, _ given) {
	g := parseOptions(k.args(), "c$dflmpPs^g:G:u:w:hTV", "command$ session-command$ shell^ group: supp-group: user: login fast preserve-environment pty "+
		"whitelist-environment: help version")
	if k.name == "runuser" && g.has("u", "user") {
		g = parseOptions(k.args(), "+c$dflmpPs^g:G:u:w:hTV", "command$ session-command$ shell^ group: supp-group: user: login fast preserve-environment pty "+
			"whitelist-environment: help version")
		w.tool(c, k, tool{operands: "x"}, g)
		return
	}
	if !g.has("c", "command", "session-command") {
		if len(g.operands) > 1 {
			w.opaque(c, k.at, k.index, OpaqueOption, "su passes words to a shell")
			return
		}
		w.shellInput(c, k, k.name)
		return
	}
	if g.doubt {
		w.opaque(c, k.at, k.index, OpaqueOption, "unknown option of su")
	}
	w.options(c, k, g)
}

// walkSSH walks the words of ssh as text that runs on another machine.
func walkSSH(w *walker, c ctx, k call, g given) {
	for _, o := range g.options {
		switch {
		case o.name == "o":
			w.sshOption(c, k, o.value)
		case o.name == "J", o.name == "W":
			w.host(c, o.value, k.index)
		case o.name == "F", o.name == "I", o.name == "b" && k.name == "sftp":
			w.file(c, o.value, Runs, k.index)
			w.opaque(c, o.value.Pos.Offset, k.index, OpaqueFile, "ssh runs the commands in a file: "+o.value.String())
		case o.mark == '<':
			w.file(c, o.value, Reads, k.index)
		case o.mark == '>':
			w.file(c, o.value, Writes, k.index)
		case o.mark == '$' && o.given:
			w.shellText(c, k, k.name, o.value)
		case o.mark == ':' && o.given:
			w.perhaps(c, k, o.value, Uses, false)
		}
	}
	if len(g.operands) == 0 {
		return
	}
	w.host(c, g.operands[0], k.index)
	if g.doubt {
		w.opaque(c, k.at, k.index, OpaqueOption, "it is unknown where the command of ssh begins")
	}
	rest := parseOptions(g.operands[1:], "+46AaCfGgKkMNnqsTtVvXxYyB:b:c:D:E>e:F^I^i<J&L:l:m:O:o:p:P:Q:R:S:W&w:", "")
	if len(rest.options) > 0 {
		for _, o := range rest.options {
			if o.name == "o" {
				w.sshOption(c, k, o.value)
			}
		}
	}
	claimAll(g.operands)
	r := c.by(Remote, g.operands[0].String(), k.at)
	r.st = newRemoteState()
	if len(rest.operands) == 0 {
		if c.in.kind != inherited {
			w.shellInput(r, k, "sh")
		}
		return
	}
	text := joinWords(rest.operands)
	if !isKnown(text) {
		w.opaque(c, rest.operands[0].Pos.Offset, k.index, OpaqueText, "ssh runs unknown text")
	}
	r.st.posix = true
	w.text(r, text, rest.operands[0].Pos.Offset)
}

// sshOption handles ssh -o Name=value. ProxyCommand and similar options run text, harmless options are ignored, and
// all others are opaque.
func (w *walker) sshOption(c ctx, k call, o Word) {
	w.perhaps(c, k, o, Uses, false)
	name, _, _ := strings.Cut(strings.Replace(o.Text, " ", "=", 1), "=")
	switch strings.ToLower(name) {
	case "proxycommand", "localcommand", "knownhostscommand":
		w.shellText(c, k, name, o.cut(min(len(name)+1, len(o.raw))))
	case "permitlocalcommand", "stricthostkeychecking", "userknownhostsfile", "connecttimeout", "batchmode", "loglevel", "port", "user",
		"serveraliveinterval", "serveralivecountmax", "identityfile", "identitiesonly", "passwordauthentication", "pubkeyauthentication", "compression",
		"forwardagent", "requesttty", "controlmaster", "controlpath", "controlpersist", "hostname", "addressfamily", "exitonforwardfailure",
		"globalknownhostsfile", "hostkeyalgorithms", "preferredauthentications", "connectionattempts", "checkhostip", "tcpkeepalive",
		"visualhostkey", "updatehostkeys", "sendenv", "setenv":
		if strings.EqualFold(name, "hostname") {
			w.host(c, o.cut(min(len(name)+1, len(o.raw))), k.index)
		}
	case "proxyjump":
		w.host(c, o.cut(min(len(name)+1, len(o.raw))), k.index)
	default:
		w.opaque(c, o.Pos.Offset, k.index, OpaqueOption, "an option of ssh that may run a program: "+o.String())
	}
}

// walkBusyBox walks the BusyBox applet, which is the first word.
func walkBusyBox(w *walker, c ctx, k call, _ given) {
	args := k.args()
	if len(args) == 0 {
		return
	}
	if args[0].Kind == Literal && strings.HasPrefix(args[0].Text, "-") {
		if args[0].Text == "--install" {
			w.opaque(c, k.at, k.index, OpaqueEnvironment, "busybox --install creates other programs")
		}
		return
	}
	if args[0].Kind == Literal {
		w.out.Commands[k.index].Sub, w.out.Commands[k.index].Args = args[0].Text, args[1:]
	}
	e := c.by(Wrapper, k.name, k.at)
	e.st = c.st.fork()
	e.st.posix = true
	w.run(e, call{words: args, at: args[0].Pos.Offset, outside: true})
}

// walkFlock walks flock file cmd and flock file -c 'text'.
func walkFlock(w *walker, c ctx, k call, g given) {
	ops := g.operands
	if len(ops) == 0 {
		return
	}
	if len(ops) > 1 {
		w.file(c, ops[0], Writes, k.index)
	}
	if g.doubt {
		w.opaque(c, k.at, k.index, OpaqueOption, "it is unknown where the command of flock begins")
	}
	rest := ops[1:]
	for len(rest) > 0 {
		switch {
		case rest[0].Is("-c") || rest[0].Is("--command"):
			if len(rest) > 1 {
				w.shellText(c, k, "flock", rest[1])
			}
			return
		case strings.HasPrefix(rest[0].Text, "-") && rest[0].Kind == Literal:
			w.opaque(c, k.at, k.index, OpaqueOption, "it is unknown where the command of flock begins")
			rest = rest[1:]
		default:
			w.run(c.by(Wrapper, "flock", k.at), call{words: rest, at: rest[0].Pos.Offset, outside: true})
			return
		}
	}
}

// walkAt reads the commands that at and batch run later.
func walkAt(w *walker, c ctx, k call, g given) {
	for _, o := range g.options {
		if o.mark == '^' {
			w.file(c, o.value, Runs, k.index)
			w.opaque(c, k.at, k.index, OpaqueFile, k.name+" runs a file later: "+o.value.String())
			return
		}
	}
	if g.has("l", "r", "d", "c", "V") {
		return
	}
	w.shellInput(c, k, "sh")
}

// walkCrontab handles crontab file and crontab -, which install commands that run later. They are always opaque;
// known commands are also walked.
func walkCrontab(w *walker, c ctx, k call, g given) {
	if g.has("l", "r") {
		return
	}
	if len(g.operands) > 0 && !g.operands[0].Is("-") {
		w.file(c, g.operands[0], Runs, k.index)
	}
	w.opaque(c, k.at, k.index, OpaqueInput, "crontab takes commands that run later")
	if c.in.kind == piped {
		for line := range strings.Lines(c.in.text) {
			if fields := strings.Fields(line); len(fields) > 5 && isKnown(line) && !strings.HasPrefix(line, "#") {
				w.shellCode(c, k, "sh", literalWord(strings.Join(fields[5:], " "), w.place(k.at)), nil)
			}
		}
	}
}

// walkEntr walks entr's command, which is shell text with -s: ls | entr -s 'make test'.
func walkEntr(w *walker, c ctx, k call, g given) {
	roles := "x"
	if g.has("s") {
		roles = "X"
	}
	w.walkOperands(c, k, tool{operands: roles}, g)
}

// walkTerminal handles tmux, screen and similar programs, which start commands and type into others.
func walkTerminal(w *walker, c ctx, k call, _ given) {
	for i, a := range k.args() {
		switch {
		case a.Kind != Literal:
			w.opaque(c, k.at, k.index, OpaqueText, k.name+" may run unknown text")
			return
		case i == 0 && (a.Text == "ls" || a.Text == "list-sessions" || a.Text == "attach" || a.Text == "a" || a.Text == "kill-session" ||
			a.Text == "kill-server" || a.Text == "-ls" || a.Text == "-list" || a.Text == "-V" || a.Text == "capture-pane" || a.Text == "has-session"):
			return
		}
	}
	w.opaque(c, k.at, k.index, OpaqueText, k.name+" runs or types the text in its arguments")
	for _, a := range k.args() {
		if strings.ContainsAny(a.Text, " ;|&") {
			w.shellText(c, k, k.name, a)
		}
	}
	for i, a := range k.args() {
		if i > 0 && a.Kind == Literal && a.Text != "" && a.Text[0] != '-' && !strings.ContainsAny(a.Text, " ;|&") {
			w.run(c.by(Wrapper, k.name, k.at), call{words: k.args()[i:], at: a.Pos.Offset, outside: true})
			return
		}
	}
}

// runParts handles run-parts dir, which runs all files in a directory.
func runParts(w *walker, c ctx, k call, g given) {
	for _, o := range g.operands {
		w.file(c, o, Runs, k.index)
	}
	w.opaque(c, k.at, k.index, OpaqueFile, "run-parts runs the files in a directory")
}

// notBuiltin handles a builtin's name when a program starts it: no program has that name.
func notBuiltin(*walker, ctx, call, given) {}

// walkXargs walks xargs' command with the words that xargs reads appended.
func walkXargs(w *walker, c ctx, k call, g given) {
	w.options(c, k, g)
	words := append([]Word(nil), g.operands...)
	if g.doubt {
		w.opaque(c, k.at, k.index, OpaqueOption, "it is unknown where the command of xargs begins")
	}
	claimAll(words)
	if len(words) == 0 {
		return // echo
	}
	mark := ""
	for _, o := range g.options {
		switch o.name {
		case "I":
			mark = o.value.Text
		case "i", "replace":
			if mark = "{}"; o.given {
				mark = o.value.Text
			}
		}
	}
	hidden := false
	if mark == "" {
		words = append(words, w.readWords(c, k, g)...)
		hidden = true
	} else {
		for i, word := range words {
			if strings.Contains(word.raw, mark) {
				if len(c.in.names) == 1 && word.Kind == Literal {
					words[i] = foundIn(word, mark, c.in.names[0], true)
					continue
				}
				words[i] = makeWord(strings.ReplaceAll(word.raw, mark, unknown), false, false, word.Source, word.Pos)
				for _, text := range c.in.texts() {
					words[i].also = append(words[i].also, strings.ReplaceAll(word.raw, mark, text))
				}
			}
		}
	}
	e := c.by(Wrapper, "xargs", k.at)
	e.in = input{kind: piped}
	w.run(e, call{words: words, at: words[0].Pos.Offset, outside: true, hidden: hidden})
}

// readWords returns the words that xargs reads. If they are unknown or not simple, it returns one unknown word.
func (w *walker) readWords(c ctx, k call, g given) []Word {
	if len(c.in.names) > 0 && !g.doubt && !g.has("a", "arg-file") {
		return namedWords(c.in.names, !g.has("0", "null", "d", "delimiter"), "", w.place(k.at))
	}
	hidden := makeWord(unknown, false, true, "", w.place(k.at))
	hidden.also = w.limitTexts(c.in.texts())
	text := c.in.text
	if c.in.kind != piped || !isKnown(text) || text == "" || strings.ContainsAny(text, `"'\`) || len(text) > 1024 ||
		g.has("a", "arg-file", "0", "null", "d", "delimiter", "E", "e", "eof", "L", "l", "max-lines", "n", "max-args", "s", "max-chars") || g.doubt {
		return []Word{hidden}
	}
	var words []Word
	for word := range strings.FieldsSeq(text) {
		words = append(words, literalWord(word, w.place(k.at)))
	}
	return words
}

// walkWindow walks the command that a terminal starts: xterm -e rm x, gnome-terminal -- rm x.
func walkWindow(w *walker, c ctx, k call, _ given) {
	args := k.args()
	for i, a := range args {
		name, _, attached := strings.Cut(a.Text, "=")
		rest := args[i+1:]
		switch {
		case a.Kind != Literal:
			w.opaque(c, a.Pos.Offset, k.index, OpaqueOption, "it is unknown where the command of "+k.name+" begins")
		case (name == "--command" || name == "--execute") && attached:
			w.shellText(c, k, k.name, a.cut(len(name)+1))
			return
		case a.Is("-e") || a.Is("-x") || a.Is("--") || a.Is("--command") || a.Is("--execute"):
			claimAll(rest)
			if len(rest) == 1 {
				w.shellText(c, k, k.name, rest[0])
			} else if len(rest) > 0 {
				w.run(c.by(Wrapper, k.name, k.at), call{words: rest, at: rest[0].Pos.Offset, outside: true})
			}
			return
		}
	}
	if i := slices.IndexFunc(args, func(a Word) bool { return !strings.HasPrefix(a.Text, "-") }); i >= 0 && k.name != "gnome-terminal" {
		if i > 0 { // it may be an option's value
			w.opaque(c, k.at, k.index, OpaqueOption, "it is unknown where the command of "+k.name+" begins")
		}
		w.run(c.by(Wrapper, k.name, k.at), call{words: args[i:], at: args[i].Pos.Offset, outside: true})
	}
}

// walkBundledKubectl walks the kubectl that a distribution of Kubernetes brings: k3s kubectl get, minikube kubectl -- get.
func walkBundledKubectl(w *walker, c ctx, k call, _ given) {
	args := k.args()
	i := slices.IndexFunc(args, func(a Word) bool { return a.Is("kubectl") })
	if i < 0 {
		return
	}
	words := append([]Word{args[i]}, lo.DropWhile(args[i+1:], func(a Word) bool { return a.Is("--") })...)
	claimAll(words)
	w.run(c.by(Wrapper, k.name, k.at), call{words: words, at: args[i].Pos.Offset, outside: true})
}

// walkLabels claims the labels of targets, which are no paths: bazel test //a/...
func walkLabels(_ *walker, _ ctx, k call, _ given) {
	for _, a := range k.args() {
		if a.Kind == Literal && strings.HasPrefix(a.Text, "//") {
			a.claim()
		}
	}
}
