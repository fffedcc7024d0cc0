package bash

import (
	"slices"
	"strings"
)

// An option grammar is two strings. The short one works as in getopt, with one of the marks below after each option
// that takes a value; a "+" at the start means that options end at the first operand. The long one lists names
// separated by blanks, each with such a mark at its end; a single "-" among them means that long names may also begin
// with one dash.
//
//	:  a value of no interest: a number, a name
//	?  a value that must be attached, if present
//	<  a file that is read          >  a file that is written
//	^  a file whose content runs    @  a directory that is entered
//	!  code in the tool's language  $  shell text that is run
//	&  a host or URL                =  the first word of a command, which takes all following words
//	%  a file that names other files, which are read
//	*  text that is never a file, such as a pattern or a delimiter
//	/  a pattern for names of files that are read
//
// The value of an option marked ":" still counts as a file if it looks like a path.
const valueMarks = ":?<>^@!$&=%*/"

// option is one option on the line.
type option struct {
	name string // such as "f" or "force"
	// written is a long name as given, if it is abbreviated or unknown.
	written string
	mark    byte // the value's mark; 0 if the option takes no value
	value   Word
	given   bool // the option has a value
}

// given holds a command's options and operands.
type given struct {
	options  []option
	operands []Word
	at       int  // the index of the first operand among the arguments, if options end there
	doubt    bool // an option is unknown, or it is unclear whether a word is an option
}

// has reports whether one of the options was given.
func (g *given) has(names ...string) bool {
	_, found := g.last(names...)
	return found
}

// last returns the last of the given options with one of the names.
func (g *given) last(names ...string) (option, bool) {
	for _, o := range slices.Backward(g.options) {
		if slices.Contains(names, o.name) {
			return o, true
		}
	}
	return option{}, false
}

// parseOptions parses arguments, without the command name, by a grammar.
func parseOptions(args []Word, short, long string) given {
	first := strings.HasPrefix(short, "+")
	oneDash := strings.HasPrefix(long, "- ")
	var g given
	unsure := false // the previous option is unknown, so the next word may be its value
	for i := 0; i < len(args); i++ {
		a := args[i]
		text := a.Text
		switch {
		case a.Is("--"):
			g.operands = append(g.operands, args[i+1:]...)
			if first {
				g.at = i + 1
			}
			return g
		case a.Kind != Literal && text == "":
			g.doubt = true // it may be an option
			fallthrough
		case len(text) < 2 && (a.Kind == Literal || text != "-"), text[0] != '-':
			if a.Many {
				g.doubt = true
			}
			if first {
				g.operands, g.at = args[i:], i
				return g
			}
			a.afterUnknown = unsure
			unsure = false
			g.operands = append(g.operands, a)
			continue
		}
		doubted := g.doubt
		g.doubt = false
		var took int
		switch {
		case text == "-": // a dash and unknown text
			g.doubt = true
		case text[1] == '-':
			took = g.long(a, 2, args[i+1:], long)
		case oneDash && len(text) > 2 && isLong(text[1:], long):
			took = g.long(a, 1, args[i+1:], long)
		default:
			took = g.cluster(a, args[i+1:], short)
		}
		unsure, g.doubt = g.doubt && took == 0, g.doubt || doubted
		i += took
		if n := len(g.options); n > 0 && g.options[n-1].mark == '=' && g.options[n-1].given {
			g.at, g.operands = i, args[i:]
			return g
		}
	}
	g.at = len(args)
	return g
}

// isLong reports whether a word is a long option in the grammar, or an unambiguous prefix of one.
func isLong(text, long string) bool {
	name, _, _ := strings.Cut(text, "=")
	_, _, found := findLong(name, long)
	return found
}

// findLong returns a long option by its name or a prefix. If the prefix is ambiguous, it prefers an option that takes
// a value.
func findLong(name, long string) (full string, mark byte, found bool) {
	for entry := range strings.SplitSeq(long, " ") {
		if !strings.HasPrefix(entry, name) || entry == "" || entry == "-" {
			continue
		}
		var m byte
		bare := strings.TrimRight(entry, valueMarks)
		if len(bare) < len(entry) {
			m = entry[len(bare)]
		}
		if bare == name {
			return bare, m, true
		}
		if !found || m != 0 {
			full, mark, found = bare, m, true
		}
	}
	return full, mark, found
}

// long reads a long option: --name, --name=value, or --name value. Rest holds the words after the option, and long
// returns how many of them it used. An option that is not in the grammar sets doubt.
func (g *given) long(a Word, dashes int, rest []Word, long string) int {
	name, _, attached := strings.Cut(a.Text[dashes:], "=")
	if a.Kind == Partial && !attached {
		g.doubt = true
		return 0
	}
	full, mark, found := findLong(name, long)
	o := option{name: full, mark: mark}
	if full != name {
		o.written = name
	}
	if !found {
		o.name = name
	}
	switch {
	case !found:
		g.doubt = true
		if attached {
			o.value, o.given = a.cut(dashes+len(name)+1), true
		}
	case attached:
		o.value, o.given = a.cut(dashes+len(name)+1), true
	case mark == 0 || mark == '?':
		a.claim()
	case len(rest) > 0:
		a.claim()
		o.value, o.given = rest[0], true
		if rest[0].Many {
			g.doubt = true
		}
		g.options = append(g.options, o)
		return 1
	}
	g.options = append(g.options, o)
	return 0
}

// cluster reads letters after one dash: -xvf file, -n5. The first letter that takes a value ends the cluster. It
// returns how many words of rest it used.
func (g *given) cluster(a Word, rest []Word, short string) int {
	all := true // all letters so far are in the grammar
	for j := 1; j < len(a.Text); j++ {
		letter := a.Text[j]
		at := strings.IndexByte(short, letter)
		o := option{name: a.Text[j : j+1]}
		if at < 0 || strings.IndexByte(valueMarks+"+", letter) >= 0 {
			g.doubt, all = true, false
			g.options = append(g.options, o)
			continue
		}
		if at+1 < len(short) && strings.IndexByte(valueMarks, short[at+1]) >= 0 {
			o.mark = short[at+1]
		}
		switch {
		case o.mark == 0:
			g.options = append(g.options, o)
			continue
		case j+1 < len(a.Text) || a.Kind != Literal:
			o.value, o.given = a.cut(j+1), true
		case o.mark != '?' && len(rest) > 0:
			if all {
				a.claim()
			}
			o.value, o.given = rest[0], true
			g.doubt = g.doubt || rest[0].Many
			g.options = append(g.options, o)
			return 1
		}
		g.options = append(g.options, o)
		return 0
	}
	if a.Kind != Literal {
		g.doubt = true // more letters may follow
	} else if all {
		a.claim()
	}
	return 0
}
