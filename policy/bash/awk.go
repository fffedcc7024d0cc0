package bash

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// awk walks an awk program and lists the commands, pipes and files in it.
func awk(w *walker, c ctx, k call, _ given) {
	g := parseOptions(k.args(), "+F*v*f^E^i^l^e:W:bcCd?D?ghI?kL?MnNo?OpPrsStV",
		"field-separator* assign* file^ exec^ include^ load^ source* characters-as-bytes traditional copyright dump-variables? debug? gen-pot help "+
			"trace csv lint? bignum use-lc-numeric non-decimal-data pretty-print? optimize no-optimize profile? posix re-interval sandbox lint-old version")
	c = w.options(c, k, g)
	ops := g.operands
	for _, o := range g.options {
		if o.given && (o.name == "v" || o.name == "assign") { // the program may use it as a file name
			_, value, _ := strings.Cut(o.value.raw, "=")
			w.awkValue(c, k, o.value, value)
		}
	}
	var programs []Word
	for _, o := range g.options {
		if o.name == "e" || o.name == "source" {
			programs = append(programs, o.value)
		}
	}
	if len(programs) == 0 && !g.has("f", "file", "E", "exec") && len(ops) > 0 {
		programs, ops = ops[:1], ops[1:]
	}
	claimAll(programs)
	for _, p := range programs {
		w.awkProgram(c, k, p)
	}
	for _, o := range ops {
		if name, _, found := strings.Cut(o.Text, "="); !found || !syntax.ValidName(name) {
			w.file(c, o, Reads, k.index)
		} else {
			w.awkValue(c, k, o, o.raw[len(name)+1:])
			o.claim()
		}
	}
}

// awkValue records an awk variable's value if it looks like a file.
func (w *walker) awkValue(c ctx, k call, word Word, value string) {
	held := makeWord(value, false, false, word.Source, word.Pos)
	for one := range word.alternatives {
		_, text, _ := strings.Cut(one.raw, "=")
		held.also = append(held.also, text)
	}
	if strings.ContainsAny(value, "./~") || len(held.also) > 0 {
		w.perhaps(c, k, held, Uses, true)
	}
}

//nolint:gocognit // flat: one case for each sign that matters
func (w *walker) awkProgram(c ctx, k call, program Word) {
	text := program.loose()
	w.out.Commands[k.index].Code, w.out.Commands[k.index].Language = strings.ReplaceAll(text, unknown, "…"), "awk"
	if !isKnown(text) {
		w.opaque(c, program.Pos.Offset, k.index, OpaqueCode, "unknown awk program")
	}
	tokens, ok := awkTokens(strings.ReplaceAll(text, unknown, " 0 "))
	if !ok {
		w.opaque(c, program.Pos.Offset, k.index, OpaqueCode, "awk program that cannot be parsed")
		return
	}
	printing, depth := false, 0
	for i, t := range tokens {
		next, before := awkToken{}, awkToken{}
		if i+1 < len(tokens) {
			next = tokens[i+1]
		}
		if i > 0 {
			before = tokens[i-1]
		}
		switch {
		case t.kind == awkString && strings.HasPrefix(t.text, "/inet") && !isAwkCommand(before, next):
			w.fileHost(makeWord(t.text+unknown, false, false, "", program.Pos), k.index) // part of a name
		case t.kind == awkName && (t.text == "print" || t.text == "printf"):
			printing, depth = true, 0
		case t.kind == awkName && t.text == "system":
			arg := awkToken{}
			if i+3 < len(tokens) && next.text == "(" && tokens[i+3].text == ")" {
				arg = tokens[i+2]
			}
			w.awkCommand(c, k, program, arg)
		case t.kind == awkName && t.text == "getline":
			w.awkReads(c, k, program, tokens[i+1:])
		case t.kind == awkName && (t.text == "ARGV" || t.text == "ARGC"):
			w.awkHidden(c, k, program, Reads)
		case t.kind == awkSign && (t.text == "@"):
			w.opaque(c, program.Pos.Offset, k.index, OpaqueCode, "awk loads a library or calls a function by a computed name")
		case t.kind == awkSign && (t.text == "|" || t.text == "|&"):
			command := next
			if next.kind == awkName && next.text == "getline" {
				command = before
				if i > 1 && tokens[i-2].kind != awkSign {
					command = awkToken{} // joined from several parts
				}
			} else if i+2 < len(tokens) && !awkEnds(tokens[i+2]) {
				command = awkToken{}
			}
			w.awkCommand(c, k, program, command)
		case t.text == "(" && t.kind == awkSign:
			depth++
		case t.text == ")" && t.kind == awkSign:
			depth--
		case t.kind == awkSign && (t.text == ";" || t.text == "}" || t.text == "\n"):
			printing = false
		case t.kind == awkSign && (t.text == ">" || t.text == ">>") && printing && depth <= 0:
			if next.kind == awkString && (i+2 >= len(tokens) || awkEnds(tokens[i+2])) {
				w.file(c, literalWord(next.text, program.Pos), Writes, k.index)
				if t.text == ">" {
					w.file(c, literalWord(next.text, program.Pos), Empties, k.index)
				}
			} else {
				w.awkHidden(c, k, program, Writes)
			}
		}
	}
}

// awkHidden records a file whose name the program computes.
func (w *walker) awkHidden(c ctx, k call, program Word, access Access) {
	w.file(c, makeWord(unknown, false, false, "", program.Pos), access, k.index)
	w.opaque(c, program.Pos.Offset, k.index, OpaqueCode, "awk computes a file name")
}

// awkReads records the file that getline reads: getline, getline < "x", getline line < "x".
func (w *walker) awkReads(c ctx, k call, program Word, rest []awkToken) {
	depth := 0
	for i, t := range rest {
		switch sign := t.kind == awkSign; {
		case sign && (t.text == "[" || t.text == "("):
			depth++
		case sign && (t.text == "]" || t.text == ")") && depth > 0:
			depth--
		case sign && t.text == "<" && depth == 0:
			if i+1 < len(rest) && rest[i+1].kind == awkString && (i+2 == len(rest) || awkEnds(rest[i+2])) {
				w.file(c, literalWord(rest[i+1].text, program.Pos), Reads, k.index)
				return
			}
			w.awkHidden(c, k, program, Reads)
			return
		case depth == 0 && awkEnds(t):
			return
		}
	}
}

// awkEnds reports whether a token ends an awk statement.
func awkEnds(t awkToken) bool {
	return t.kind == awkSign && (t.text == ";" || t.text == "}" || t.text == "\n" || t.text == ")")
}

// isAwkCommand reports whether a string between two tokens is a complete command for | or |&, or a file for getline.
func isAwkCommand(before, next awkToken) bool {
	pipes := func(t awkToken) bool { return t.kind == awkSign && strings.HasPrefix(t.text, "|") && t.text != "||" }
	return pipes(next) && (before.kind == awkSign || before.text == "") || pipes(before) && (awkEnds(next) || next.text == "") ||
		before.kind == awkSign && before.text == "<" && (awkEnds(next) || next.text == "")
}

// awkCommand walks the command that awk runs: awk '{ system("rm x") }'. A computed command is opaque.
func (w *walker) awkCommand(c ctx, k call, program Word, t awkToken) {
	if t.kind != awkString {
		w.opaque(c, program.Pos.Offset, k.index, OpaqueText, "awk runs unknown text")
		return
	}
	if command := literalWord(t.text, program.Pos); strings.HasPrefix(t.text, "/inet") { // gawk connects to the host
		w.fileHost(command, k.index)
	} else {
		w.shellText(c, k, "awk", command)
	}
}

type awkKind uint8

const (
	awkSign awkKind = iota
	awkName
	awkNumber
	awkString
	awkRegexp
)

type awkToken struct {
	kind awkKind
	text string
}

// awkText returns the value of an awk string, or unknown text if awk implementations disagree about its escapes.
func awkText(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			continue
		}
		i++
		switch {
		case i == len(s):
			return unknown
		case s[i] == 'x':
			if _, digits := parseRadix(s[i+1:], 16, len(s)); digits != 2 {
				return unknown
			}
		case !strings.ContainsRune(`"\abfnrtv01234567`, rune(s[i])):
			return unknown
		}
	}
	text, _ := decodeEscapes(s, inQuotes)
	return text
}

// awkTokens splits a program into tokens. It returns false for text that does not look like awk.
//
//nolint:gocognit // flat: one case for each sign that matters
func awkTokens(text string) ([]awkToken, bool) {
	var tokens []awkToken
	for i := 0; i < len(text); {
		b := text[i]
		switch {
		case b == ' ' || b == '\t' || b == '\r':
			i++
		case b == '\\' && i+1 < len(text) && text[i+1] == '\n':
			i += 2
		case b == '#':
			for i < len(text) && text[i] != '\n' {
				i++
			}
		case b == '"':
			end := closing(text, i+1, '"')
			if end < 0 {
				return nil, false
			}
			tokens = append(tokens, awkToken{awkString, awkText(text[i+1 : end])})
			i = end + 1
		case b == '/' && regexpAllowed(tokens):
			end := closingRegexp(text, i+1)
			if end < 0 {
				return nil, false
			}
			tokens = append(tokens, awkToken{awkRegexp, text[i+1 : end]})
			i = end + 1
		case isAlnum(rune(b)) || b == '_' || b == '.':
			end := i
			for end < len(text) && (isAlnum(rune(text[end])) || text[end] == '_' || text[end] == '.') {
				end++
			}
			kind := awkName
			if b >= '0' && b <= '9' || b == '.' {
				kind = awkNumber
			}
			tokens = append(tokens, awkToken{kind, text[i:end]})
			i = end
		default:
			n := 1
			if i+1 < len(text) {
				switch text[i : i+2] {
				case "||", "&&", "|&", ">>", ">=", "<=", "==", "!=", "++", "--", "+=", "-=", "*=", "%=", "^=", "**", "!~":
					n = 2
				}
			}
			tokens = append(tokens, awkToken{awkSign, text[i : i+n]})
			i += n
		}
	}
	return tokens, true
}

// closing returns the index of the quote that closes an awk string, or -1 if its line has none.
func closing(text string, i int, quote byte) int {
	for ; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '\n':
			return -1
		case quote:
			return i
		}
	}
	return -1
}

// closingRegexp returns the index of the / that closes an awk regular expression. It returns -1 if its line has none,
// or if implementations disagree: /[/]/ ends at different places in gawk and mawk.
func closingRegexp(text string, i int) int {
	bracket := false
	for ; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '\n':
			return -1
		case '[':
			if !bracket {
				bracket = true
				if i+1 < len(text) && text[i+1] == '^' {
					i++
				}
				if i+1 < len(text) && text[i+1] == ']' {
					i++
				}
			}
		case ']':
			bracket = false
		case '/':
			if bracket {
				return -1 // awk implementations disagree
			}
			return i
		}
	}
	return -1
}

// regexpAllowed reports whether a slash after these tokens begins a regular expression; otherwise it divides.
func regexpAllowed(tokens []awkToken) bool {
	if len(tokens) == 0 {
		return true
	}
	last := tokens[len(tokens)-1]
	switch last.kind {
	case awkSign:
		return last.text != ")" && last.text != "]" && last.text != "$" && last.text != "++" && last.text != "--"
	case awkName:
		switch last.text {
		case "print", "printf", "return", "in", "case", "else", "do", "and", "or":
			return true
		}
	}
	return false
}
