package yamlfile

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// At returns the place in the file of the byte at an offset in the node's text, for errors of another parser. It
// takes quotes, escapes, indents and folded lines into account. An offset past the end means the end. For a node that
// is not a text, At returns the node's place.
func (n Node) At(offset int) Place {
	if n.Kind() != TextNode || n.y.Value == "" {
		return n.Place()
	}
	offset = max(0, min(offset, len(n.y.Value)))
	switch {
	case n.y.Style&yaml.LiteralStyle != 0:
		return n.inLiteral(offset)
	case n.y.Style&yaml.FoldedStyle != 0:
		return n.inFolded(offset)
	}
	w := walker{file: n.file, style: n.y.Style, line: n.y.Line, left: []rune(n.file.line(n.y.Line))}
	w.advance(n.y.Column - 1)
	if n.y.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
		w.advance(1)
	}
	for value := n.y.Value; len(n.y.Value)-len(value) < offset; {
		r, size := utf8.DecodeRuneInString(value)
		if r == ' ' || r == '\n' {
			if w.fold() {
				value = strings.TrimLeft(value, " \n")
				continue
			}
		}
		w.rune()
		value = value[size:]
	}
	w.settle()
	return n.file.At(Position{w.line, w.column + 1}).Wide(1)
}

// inLiteral returns the place of a byte in a literal block, whose lines are the text's lines, indented.
func (n Node) inLiteral(offset int) Place {
	before := n.y.Value[:offset]
	start := strings.LastIndexByte(before, '\n') + 1
	text, _, _ := strings.Cut(n.y.Value[start:], "\n")
	line := n.y.Line + 1 + strings.Count(before, "\n")
	indent := max(utf8.RuneCountInString(n.file.line(line))-utf8.RuneCountInString(text), 0)
	return n.file.At(Position{line, indent + utf8.RuneCountInString(before[start:]) + 1}).Wide(1)
}

// inFolded returns the place of a byte in a folded block. Each line of the block is a part of the text, surrounded by
// blanks.
func (n Node) inFolded(offset int) Place {
	value, at := n.y.Value, 0
	place := n.Place().Position
	for line := n.y.Line + 1; line <= len(n.file.lines); line++ {
		source := n.file.line(line)
		text := strings.TrimLeft(source, " ")
		at += prefixLength(value[at:], " \n")
		if !strings.HasPrefix(value[at:], text) {
			break // below the block
		}
		within := max(min(offset-at, len(text)), 0)
		if text != "" {
			place = Position{line, prefixLength(source, " ") + utf8.RuneCountInString(text[:within]) + 1}
		}
		if at += len(text); offset < at {
			break
		}
	}
	return n.file.At(place).Wide(1)
}

// prefixLength returns the length of the longest prefix that contains only the given characters.
func prefixLength(text, characters string) int {
	return len(text) - len(strings.TrimLeft(text, characters))
}

// walker walks through a text's source, one rune of the text at a time.
type walker struct {
	file   *File
	style  yaml.Style
	line   int
	column int // from zero
	left   []rune
}

func (w *walker) advance(by int) {
	by = min(by, len(w.left))
	w.left, w.column = w.left[by:], w.column+by
}

func (w *walker) blank() bool { return strings.TrimLeft(string(w.left), " \t") == "" }

// nextLine moves to the first rune on a later line.
func (w *walker) nextLine() bool {
	for next := w.line + 1; next <= len(w.file.lines); next++ {
		text := []rune(w.file.line(next))
		w.line, w.column, w.left = next, 0, text
		if !w.blank() {
			w.advance(len(text) - len([]rune(strings.TrimLeft(string(text), " \t"))))
			return true
		}
	}
	return false
}

// fold skips a line end, which the text contains as a blank or as line ends.
func (w *walker) fold() bool { return w.blank() && w.nextLine() }

// settle moves to the next rune if it is on a later line.
func (w *walker) settle() {
	if w.blank() || w.style&yaml.DoubleQuotedStyle != 0 && string(w.left) == `\` {
		w.nextLine()
	}
}

// rune skips the source of one rune.
func (w *walker) rune() {
	switch {
	case len(w.left) == 0:
		w.nextLine()
		w.advance(1)
	case w.style&yaml.SingleQuotedStyle != 0 && w.left[0] == '\'':
		w.advance(2)
	case w.style&yaml.DoubleQuotedStyle != 0 && w.left[0] == '\\':
		w.escape()
	default:
		w.advance(1)
	}
}

// escape skips a backslash and the rest of its escape.
func (w *walker) escape() {
	if len(w.left) == 1 { // the line continues below
		w.nextLine()
		w.rune()
		return
	}
	digits := map[rune]int{'x': 2, 'u': 4, 'U': 8}[w.left[1]]
	first := w.left[:min(2+digits, len(w.left))]
	w.advance(len(first))
	if high, err := strconv.ParseUint(string(first[2:]), 16, 32); err == nil && high >= 0xd800 && high < 0xdc00 &&
		len(w.left) >= 6 && w.left[0] == '\\' && w.left[1] == 'u' {
		w.advance(6) // the second half of a surrogate pair
	}
}
