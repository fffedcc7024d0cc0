package bash

import (
	"strings"
)

// walkSed reads a sed script: e and s///e run commands, and r, R, w and W name files.
func walkSed(w *walker, c ctx, k call, g given) {
	c = w.options(c, k, g)
	ops := g.operands
	var scripts []Word
	for _, o := range g.options {
		if o.name == "e" || o.name == "expression" {
			scripts = append(scripts, o.value)
		}
	}
	if len(scripts) == 0 && !g.has("f", "file") && len(ops) > 0 {
		scripts, ops = ops[:1], ops[1:]
	}
	claimAll(scripts)
	if !g.has("sandbox") {
		for _, s := range scripts {
			w.sedScript(c, k, s)
		}
	}
	access := Reads
	if g.has("i", "in-place") {
		access = Writes
	}
	for _, o := range ops {
		w.file(c, o, access, k.index)
	}
}

// sedScript walks the commands in a sed script that touch files or run something: r, w, e, s///e, s///w. Invariant: a
// script is opaque unless it is completely understood, in each way in which sed implementations parse it.
func (w *walker) sedScript(c ctx, k call, script Word) {
	text := script.loose()
	sure := false
	found := func(command byte, arg string) {
		word := makeWord(arg, false, false, "", script.Pos)
		switch command {
		case 'r', 'R':
			w.file(c, word, Reads, k.index)
		case 'w', 'W':
			w.file(c, word, Writes, k.index)
		case 'e':
			if arg == "" {
				w.opaque(c, script.Pos.Offset, k.index, OpaqueInput, "sed runs its input")
				return
			}
			w.shellText(c, k, "sed", word)
		case 's':
			w.opaque(c, script.Pos.Offset, k.index, OpaqueInput, "sed runs the result of s///e")
		}
	}
	if isKnown(text) {
		// Sed implementations disagree whether a delimiter in brackets ends an expression.
		readings := []sedReader{{text: text}}
		if strings.Contains(text, "[") {
			readings = append(readings, sedReader{text: text, brackets: true})
		}
		for _, r := range readings {
			sure = r.script(func(byte, string) {}) || sure
		}
		for _, r := range readings {
			r.script(found)
		}
	}
	if !sure {
		w.setCode(k, "sed", text)
		w.opaque(c, script.Pos.Offset, k.index, OpaqueCode, "unknown sed script")
	}
}

// sedReader reads a sed script command by command.
type sedReader struct {
	text     string
	i        int
	brackets bool // ignore delimiters in brackets
}

// peek returns the current byte, and a newline at the end of the script.
func (s *sedReader) peek() byte {
	if s.i < len(s.text) {
		return s.text[s.i]
	}
	return '\n'
}

// script calls found for each command that runs something or names a file. It reports whether it understood the whole
// script.
func (s *sedReader) script(found func(command byte, arg string)) bool {
	for s.i < len(s.text) {
		for s.i < len(s.text) && strings.IndexByte(" \t\n;{}", s.text[s.i]) >= 0 {
			s.i++
		}
		if s.i >= len(s.text) {
			break
		}
		if !s.addresses() {
			return false
		}
		command := s.peek()
		s.i++
		switch command {
		case '{', '}', '=', 'd', 'D', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z', 'F', '\n':
		case '#':
			s.line()
		case 'a', 'i', 'c':
			s.block()
		case ':', 'b', 't', 'T':
			s.until(";\n}")
		case 'q', 'Q', 'l', 'L':
			s.until(";\n}")
		case 'r', 'R', 'w', 'W', 'e':
			found(command, strings.TrimLeft(s.line(), " \t"))
		case 'y':
			delimiter := s.peek()
			s.i++
			from := s.section(delimiter, false)
			if to := s.section(delimiter, false); !from || !to {
				return false
			}
		case 's':
			if !s.substitute(found) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// line returns the rest of the line.
func (s *sedReader) line() string {
	rest := s.text[s.i:]
	if n := strings.IndexByte(rest, '\n'); n >= 0 {
		s.i += n + 1
		return rest[:n]
	}
	s.i = len(s.text)
	return rest
}

// block skips the text after a, i and c, which continues after a backslash at the end of a line.
func (s *sedReader) block() {
	for s.i < len(s.text) {
		if !strings.HasSuffix(s.line(), `\`) {
			return
		}
	}
}

// until moves the reader to the next byte that is in stops.
func (s *sedReader) until(stops string) {
	for s.i < len(s.text) && strings.IndexByte(stops, s.text[s.i]) < 0 {
		s.i++
	}
}

// section skips past the delimiter.
func (s *sedReader) section(delimiter byte, pattern bool) bool {
	if delimiter == '\n' || delimiter == '\\' {
		return false
	}
	for ; s.i < len(s.text); s.i++ {
		switch b := s.text[s.i]; {
		case b == '\\':
			s.i++
		case b == '[' && pattern && s.brackets:
			if end := strings.IndexByte(s.text[min(s.i+2, len(s.text)):], ']'); end >= 0 {
				s.i += 2 + end
			}
		case b == delimiter:
			s.i++
			return true
		}
	}
	return false
}

// substitute reads the rest of s/regexp/replacement/flags. It returns false for unknown flags.
func (s *sedReader) substitute(found func(byte, string)) bool {
	delimiter := s.peek()
	s.i++
	if !s.section(delimiter, true) || !s.section(delimiter, false) {
		return false
	}
	for s.i < len(s.text) {
		switch b := s.text[s.i]; {
		case b == 'w':
			s.i++
			found('w', strings.TrimLeft(s.line(), " \t"))
			return true
		case b == 'e':
			found('s', "")
		case strings.IndexByte("gpiImM0123456789 \t", b) >= 0:
		case strings.IndexByte(";\n}#", b) >= 0:
			return true
		default:
			return false
		}
		s.i++
	}
	return true
}

// addresses skips a command's addresses, which select lines. It reports whether it understood them.
func (s *sedReader) addresses() bool {
	for {
		switch b := s.peek(); {
		case b >= '0' && b <= '9', b == '$', b == ',', b == '!', b == ' ', b == '\t', b == '~', b == '+':
			s.i++
		case b == '/':
			s.i++
			if !s.section('/', true) {
				return false
			}
			for s.peek() == 'I' || s.peek() == 'M' {
				s.i++
			}
		case b == '\\':
			s.i++
			delimiter := s.peek()
			s.i++
			if !s.section(delimiter, true) {
				return false
			}
		default:
			return true
		}
		if s.i >= len(s.text) {
			return true
		}
	}
}
