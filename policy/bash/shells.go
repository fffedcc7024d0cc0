package bash

import (
	"strings"
)

// isShell reports whether the program is a shell.
func isShell(name string) bool {
	switch name {
	case "sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "rbash", "rksh", "pdksh", "lksh", "ksh93", "yash", "posh", "fish", "csh", "tcsh", "xonsh",
		"elvish", "pwsh", "powershell":
		return true
	}
	return false
}

// shell handles sh, bash and others: -c, a file, or the standard input.
//
//nolint:gocognit // flat: one case for each kind of option
func (w *walker) shell(c ctx, k call, name string) {
	switch name {
	case "xonsh", "elvish", "pwsh", "powershell":
		w.foreignShell(c, k, name)
		return
	}
	args := k.args()
	if len(args) == 2 && args[0].Is("-n") && isPlace(args[1]) { // the shell only parses the file
		claimAll(args)
		w.file(c, args[1], Reads, k.index)
		return
	}
	code, file, doubt := -1, false, false
	i := 0
options:
	for ; i < len(args); i++ {
		a := args[i]
		text := a.Text
		if a.Kind == Literal && len(text) > 1 && (text[0] == '-' || text[0] == '+') {
			a.claim()
		}
		switch {
		case a.Kind != Literal:
			if text == "" || text[0] == '-' || text[0] == '+' || a.Many {
				doubt = true
			}
			break options
		case text == "--" || text == "-":
			i++
			break options
		case strings.HasPrefix(text, "--"):
			switch long := text[2:]; long {
			case "rcfile", "init-file":
				if i++; i < len(args) {
					w.file(c, args[i], Runs, k.index)
					w.opaque(c, k.at, k.index, OpaqueFile, "the shell runs a file first: "+args[i].String())
				}
			case "version", "help", "dump-strings", "dump-po-strings":
				return
			case "login", "norc", "noprofile", "posix", "restricted", "verbose", "noediting", "debugger", "debug", "wordexp", "protected",
				"no-config", "private", "interactive", "no-rcs":
			case "command", "init-command":
				if i+1 < len(args) {
					w.opaque(c, k.at, k.index, OpaqueSyntax, "the text is for another shell")
					w.shellCode(c, k, name, args[i+1], nil)
					return
				}
			default:
				doubt = true
			}
		case len(text) > 1 && (text[0] == '-' || text[0] == '+'):
			for _, letter := range text[1:] {
				switch letter {
				case 'c':
					code = 0
				case 's':
					file = true // standard input instead of a file
				case 'o':
					if i++; i < len(args) {
						args[i].claim()
					}
				case 'O':
					i++
					if i < len(args) {
						args[i].claim()
					}
					if i < len(args) && !harmlessOption(args[i]) {
						w.opaque(c, k.at, k.index, OpaqueEnvironment, "-O "+args[i].String()+" may change how the line is parsed")
					}
				case 'C':
					if name == "fish" {
						doubt = true
					}
				}
			}
		default:
			break options
		}
	}
	rest := args[min(i, len(args)):]
	if doubt && (code < 0 || len(rest) == 0 || rest[0].Kind == Literal) {
		w.opaque(c, k.at, k.index, OpaqueText, name+" has an unknown option")
	}
	switch {
	case code == 0 && len(rest) > 0:
		claimAll(rest)
		params := rest[1:]
		if len(params) > 0 {
			w.remember("0", append(params[0].also, params[0].raw)...)
			params = params[1:]
		}
		if hasFunc(rest, func(w Word) bool { return w.Many }) {
			params = nil
			for _, word := range rest[min(2, len(rest)):] {
				w.remember("@", word.also...)
				if word.Kind == Literal {
					w.remember("@", word.raw)
				}
			}
		} else if params == nil {
			params = []Word{}
		}
		w.shellCode(c, k, name, rest[0], params)
	case code == 0:
		if k.hidden {
			w.opaque(c, k.at, k.index, OpaqueText, name+" runs unknown text")
		}
	case len(rest) > 0 && !file:
		script := rest[0]
		if script.Text == "/dev/stdin" || script.Text == "/proc/self/fd/0" || script.Text == "/dev/fd/0" {
			script.claim()
			w.shellInput(c, k, name)
			return
		}
		w.file(c, script, Runs, k.index)
		w.opaque(c, k.at, k.index, fileReason(script), "a file is run as a script: "+script.String())
	default:
		w.shellInput(c, k, name)
	}
}

// shellCode handles the text of sh -c.
func (w *walker) shellCode(c ctx, k call, name string, text Word, params []Word) {
	text.claim()
	raw := text.loose()
	if !isKnown(raw) {
		w.opaque(c, text.Pos.Offset, k.index, OpaqueText, name+" -c runs unknown text")
	}
	e := c.by(Shell, name, k.at)
	e.st = c.st.child()
	e.st.params, e.st.noParams = params, params == nil
	switch name {
	case "bash", "rbash":
		e.st.posix = false
	case "zsh", "fish", "csh", "tcsh":
		if strings.ContainsAny(raw, "$`(){}[]^=~#!*?\\") {
			w.opaque(c, text.Pos.Offset, k.index, OpaqueSyntax, name+" may parse the text differently")
		}
	default:
		e.st.posix = true
	}
	w.text(e, raw, text.Pos.Offset)
}

// shellInput handles a shell that reads its commands from standard input.
func (w *walker) shellInput(c ctx, k call, name string) {
	switch {
	case c.in.kind == piped && c.in.text != "" && isKnown(c.in.text):
		w.shellCode(c, k, name, literalWord(strings.TrimRight(c.in.text, "\n"), w.place(k.at)), nil)
	case c.in.kind == fromFile:
		w.opaque(c, k.at, k.index, OpaqueFile, "a file is run as a script: "+c.in.text)
	case c.in.kind == piped && strings.Trim(c.in.text, unknown) != "":
		w.opaque(c, k.at, k.index, OpaqueInput, name+" runs its input, which is unknown")
		w.shellCode(c, k, name, literalWord(c.in.text, w.place(k.at)), nil)
	default:
		w.opaque(c, k.at, k.index, OpaqueInput, name+" runs its input, which is unknown")
	}
}

// foreignShell handles a shell whose language differs from sh.
func (w *walker) foreignShell(c ctx, k call, name string) {
	for i, a := range k.args() {
		switch strings.ToLower(a.Text) {
		case "--version", "-version", "--help", "-h":
			return
		case "-c", "/c", "-command", "/k", "--commands":
			w.setCode(k, name, joinWords(k.args()[i+1:]))
			w.opaque(c, k.at, k.index, OpaqueCode, name+" code")
			return
		}
	}
	w.opaque(c, k.at, k.index, OpaqueCode, name+" runs code in a language that is not analysed")
}

// setCode records code in another language that a command runs.
func (w *walker) setCode(k call, language, code string) {
	w.out.Commands[k.index].Code = strings.ReplaceAll(code, unknown, "…")
	w.out.Commands[k.index].Language = language
}
