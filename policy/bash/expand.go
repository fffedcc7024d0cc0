package bash

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/samber/lo"
	"mvdan.cc/sh/v3/syntax"
)

// words expands a list of words.
func (w *walker) words(c ctx, list []*syntax.Word) []Word {
	out := make([]Word, 0, len(list))
	for _, word := range list {
		if !w.spend(1) {
			break
		}
		out = w.appendWords(c, out, word)
	}
	return out
}

// appendWords expands one word: to itself, to no word, or to several words.
func (w *walker) appendWords(c ctx, out []Word, word *syntax.Word) []Word {
	pos := w.place(c.src.offset(word.Pos()))
	written := c.src.slice(word.Pos(), word.End())
	if lit, ok := plain(word); ok {
		return append(out, Word{Kind: Literal, Text: lit, Source: written, Pos: pos, raw: lit})
	}
	for _, parts := range w.braces(c, word) {
		b := builder{w: w, pos: pos, source: written, fields: !c.st.noFields}
		if c.st.noFields {
			b.marks = w.fieldMarks(c)
		}
		number := makesNumber(c.st, &syntax.Word{Parts: parts})
		b.parts(c, parts, false, true)
		before := len(out)
		out = b.finish(out)
		for i := before; number && i < len(out); i++ {
			out[i].number = true
		}
	}
	return out
}

// plain returns the text of a word without quotes and expansions.
func plain(word *syntax.Word) (string, bool) {
	if len(word.Parts) != 1 {
		return "", false
	}
	lit, ok := word.Parts[0].(*syntax.Lit)
	if !ok || strings.ContainsAny(lit.Value, "\\*?[{") || lit.Value == "" || lit.Value[0] == '~' || strings.Contains(lit.Value, "=~") {
		return "", false
	}
	return lit.Value, true
}

// oneWord expands the word of a redirection, which must expand to exactly one word.
func (w *walker) oneWord(c ctx, word *syntax.Word) Word {
	words := w.appendWords(c, nil, word)
	if len(words) == 1 {
		return words[0]
	}
	return makeWord(unknown, false, true, c.src.slice(word.Pos(), word.End()), w.place(c.src.offset(word.Pos())))
}

// value expands a word that is not split: an assigned value or, if quoted is set, a here-document's text.
func (w *walker) value(c ctx, word *syntax.Word, quoted bool) string {
	text, _ := w.possibleValue(c, word, quoted)
	return text
}

// possibleValue returns a word's value. If it is unknown, the second result lists possible values from the line.
func (w *walker) possibleValue(c ctx, word *syntax.Word, quoted bool) (string, []string) {
	if word == nil {
		return "", nil
	}
	if len(word.Parts) == 1 {
		if lit, ok := word.Parts[0].(*syntax.Lit); ok && !strings.ContainsAny(lit.Value, "\\~") {
			return lit.Value, nil
		}
	}
	b := builder{w: w, whole: true, fields: true}
	b.parts(c, word.Parts, quoted, true)
	if isKnown(string(b.buf)) {
		return string(b.buf), nil
	}
	return string(b.buf), b.possibleTexts()
}

// builder builds the words into which one word expands.
type builder struct {
	w      *walker
	pos    Pos
	source string
	whole  bool   // the word is not split
	fields bool   // IFS has its default value
	marks  string // the known values that IFS may have
	buf    []byte
	begun  bool // a word has begun, even if it is empty
	glob   bool
	here   bool // the word begins with a quoted ~
	open   bool // the word has an unquoted [
	many   bool
	breaks bool // blanks in a matched name end the word
	named  []name
	may    []possible
	ready  []Word
}

// possible is an unknown part of a word, with its possible values.
type possible struct {
	from, to int
	texts    []string
}

// name is part of a word that matches a known pattern, such as the variable of a loop over files.
type name struct {
	from, to int // the pattern's position in the word
	text     string
}

// finish returns out with the builder's words appended.
func (b *builder) finish(out []Word) []Word {
	b.flush()
	return append(out, b.ready...)
}

// flush ends the current word: in a"$@"b, a$1 ends and $2 begins.
func (b *builder) flush() {
	b.settle()
	if len(b.buf) > 0 || b.begun {
		word := makeWord(string(b.buf), b.glob, b.many, b.source, b.pos)
		word.here = b.here
		word.Split = b.breaks && word.Kind == Pattern
		if word.Kind == Partial {
			word.also = b.possibleTexts()
		}
		b.ready = append(b.ready, word)
	}
	b.buf, b.begun, b.glob, b.here, b.open, b.many, b.breaks, b.named, b.may = b.buf[:0], false, false, false, false, false, false, nil, nil
}

// maxPossible is the maximum number of a word's possible values. With more, the word is unknown.
const maxPossible = 64

// possibleTexts returns the word's possible values. Each contains one value for every possible part, and nothing for
// unknown parts.
func (b *builder) possibleTexts() []string {
	if len(b.may) == 0 || !b.w.spend(maxPossible) {
		return nil
	}
	texts := []string{""}
	add := func(parts []string) {
		var longer []string
		for _, text := range texts {
			for _, part := range parts {
				if len(longer) <= maxPossible {
					longer = append(longer, text+strings.ReplaceAll(part, unknown, ""))
				}
			}
		}
		texts = b.w.limitTexts(longer)
	}
	at := 0
	for _, p := range b.may {
		if p.from < at || p.to > len(b.buf) {
			continue
		}
		add([]string{string(b.buf[at:p.from])})
		add(p.texts)
		at = p.to
	}
	add([]string{string(b.buf[at:])})
	return lo.Uniq(texts)
}

// mayBe adds an unknown expansion with its possible values.
func (b *builder) mayBe(text string, also []string, quoted bool) {
	from := len(b.buf)
	b.expansion(text, quoted)
	from = min(from, len(b.buf))
	also = b.w.limitTexts(also)                   // before splitting, because parts may be equal
	if !b.fields && isKnown(text) && text != "" { // the separators are unknown
		also = append(slices.Clip(also), text)
	}
	if !quoted && !b.whole { // the text is split
		var fields []string
		for _, one := range also {
			if b.fields {
				fields = append(fields, strings.Fields(one)...)
			} else {
				fields = append(fields, piecesOf(one, b.marks)...)
			}
		}
		also = lo.Uniq(fields)
	}
	if len(also) > 0 && len(b.buf) > 0 {
		b.may = append(b.may, possible{from, len(b.buf), b.w.limitTexts(also)})
	}
}

// match adds text that is a pattern or matches it.
func (b *builder) match(pattern, text string) {
	b.begun = true
	if len(b.buf)+len(pattern) > maxText {
		b.text(unknown)
		return
	}
	b.named = append(b.named, name{len(b.buf), len(b.buf) + len(pattern), text})
	b.text(pattern)
}

// names adds the output of a command that prints names of files. Blanks in an unquoted name end the word.
func (b *builder) names(patterns []string, text string, split bool) {
	for i, pattern := range patterns {
		if i > 0 {
			b.flush()
		}
		b.breaks, b.many = split, true
		b.match(pattern, text)
	}
}

// settle makes the word a single pattern if it contains names and is otherwise literal. From any other word with
// names, it keeps only the certain text.
func (b *builder) settle() {
	if len(b.named) == 0 {
		return
	}
	var rest, loose []byte
	at := 0
	for _, n := range b.named {
		rest = append(rest, b.buf[at:n.from]...)
		loose = append(append(loose, b.buf[at:n.from]...), n.text...)
		at = n.to
	}
	rest, loose = append(rest, b.buf[at:]...), append(loose, b.buf[at:]...)
	for _, n := range b.named { // ** stands for whole names only
		before, after := b.buf[:n.from], b.buf[n.to:]
		if bytes.HasPrefix(b.buf[n.from:n.to], []byte("**")) && len(before) > 0 && before[len(before)-1] != '/' ||
			bytes.HasSuffix(b.buf[n.from:n.to], []byte("**")) && len(after) > 0 && after[0] != '/' {
			b.buf = loose
			return
		}
	}
	if bytes.ContainsAny(rest, unknown+`*?[]{}()\!+@|`) {
		b.buf = loose
		return
	}
	b.glob = true
}

// quote adds quoted literal text.
func (b *builder) quote(s string) {
	b.here = b.here || len(b.buf) == 0 && strings.HasPrefix(s, "~")
	b.text(s)
}

// text adds literal text.
func (b *builder) text(s string) {
	if len(b.buf)+len(s) > maxText {
		s = unknown
	}
	b.buf = append(b.buf, s...)
}

// bare adds unquoted text, in which pattern characters are special.
func (b *builder) bare(s string) {
	for i := range len(s) {
		switch s[i] {
		case '*', '?':
			b.glob = true
		case '[':
			b.open = true
		case ']':
			b.glob = b.glob || b.open
		}
	}
	b.text(s)
}

// expansion adds the text of an expansion.
func (b *builder) expansion(s string, quoted bool) {
	if !b.w.spend(len(s)/32 + 1) {
		return
	}
	switch {
	case b.whole:
		b.text(s)
	case quoted:
		b.begun = true
		b.text(s)
	case !b.fields:
		// It is unknown into which words IFS splits the text.
		if s != "" {
			b.many = true
			b.text(unknown)
		}
	default:
		b.split(s)
	}
}

// split adds text and splits it by IFS.
func (b *builder) split(s string) {
	for s != "" {
		i := strings.IndexAny(s, " \t\n")
		part := s
		if i >= 0 {
			part = s[:i]
		}
		if part != "" {
			b.many = b.many || !isKnown(part)
			b.bare(part)
		}
		if i < 0 {
			return
		}
		b.flush()
		s = strings.TrimLeft(s[i:], " \t\n")
	}
}

// parts expands a word's parts in order. Quoted parts are text; others may yield fields and patterns. Start means
// that a ~ at the beginning stands for a home directory.
func (b *builder) parts(c ctx, parts []syntax.WordPart, quoted, start bool) {
	for i, p := range parts {
		switch x := p.(type) {
		case *syntax.Lit:
			b.lit(c, x.Value, quoted, start && i == 0, i == len(parts)-1)
		case *syntax.SglQuoted:
			b.begun = true
			switch {
			case !x.Dollar:
				b.quote(x.Value)
			case c.st.posix:
				b.w.opaque(c, c.src.offset(x.Pos()), -1, OpaqueSyntax, "$'…' differs between shells")
				b.quote(ansiC(x.Value))
			default:
				b.quote(ansiC(x.Value))
			}
		case *syntax.DblQuoted:
			b.quotedParts(c, x)
		case *syntax.ParamExp:
			b.param(c, x, quoted)
		case *syntax.CmdSubst:
			text, also := b.w.walkSubstitution(c, x)
			if pattern := basenamePattern(c.st, x); pattern != "" && quoted && !b.whole {
				b.match(pattern, text)
				continue
			}
			if names := b.w.printed; len(names) > 0 && !b.whole && (quoted && len(names) == 1 || !quoted && b.fields && len(parts) == 1) {
				b.names(names, text, !quoted)
				continue
			}
			if isKnown(text) {
				also = nil
			}
			b.mayBe(text, also, quoted)
		case *syntax.ArithmExp:
			b.w.arithm(c, x.X)
			b.text(number(x.X))
		case *syntax.ProcSubst:
			b.w.process(c, x)
			b.text("/dev/fd/" + unknown)
		case *syntax.ExtGlob:
			b.glob = true
			if strings.ContainsAny(x.Pattern.Value, "$`") || strings.Contains(x.Pattern.Value, "<(") || strings.Contains(x.Pattern.Value, ">(") {
				b.w.opaque(c, c.src.offset(x.Pos()), -1, OpaqueText, "a pattern that contains an expansion")
			}
			b.text(x.Op.String() + x.Pattern.Value + ")")
		default:
			b.many = true
			b.text(unknown)
		}
	}
}

// number returns the value of an arithmetic expression that is a number.
func number(x syntax.ArithmExpr) string {
	if word, ok := x.(*syntax.Word); ok {
		if lit := word.Lit(); lit != "" && lit[0] != '0' && strings.Trim(lit, "0123456789") == "" {
			return lit
		}
	}
	return unknown
}

// lit adds literal source text, with its escapes decoded.
func (b *builder) lit(c ctx, s string, quoted, start, end bool) {
	if start && !quoted && strings.HasPrefix(s, "~") {
		s = b.tilde(c, s, end)
	}
	if start && !quoted && !b.whole {
		s = b.assignTilde(c, s)
	}
	if b.whole && !quoted && strings.Contains(s, ":~") {
		// In an assigned value, ~ is also expanded after each colon.
		s = strings.ReplaceAll(s, ":~", ":"+c.st.lookup("HOME").text)
	}
	if quoted {
		b.text(unescapeQuoted(s))
		return
	}
	for s != "" {
		i := strings.IndexByte(s, '\\')
		if i < 0 {
			b.bare(s)
			return
		}
		b.bare(s[:i])
		s = s[i+1:]
		if s == "" {
			b.text("\\")
			return
		}
		_, n := utf8.DecodeRuneInString(s)
		if s[:n] != "\n" {
			b.begun = true
			b.quote(s[:n])
		}
		s = s[n:]
	}
}

// assignTilde adds the beginning of a word that looks like an assignment with a tilde, a=~, and returns the rest.
func (b *builder) assignTilde(c ctx, s string) string {
	name, rest, found := strings.Cut(s, "=~")
	if !found || !syntax.ValidName(name) {
		return s
	}
	b.text(name + "=")
	if rest != "" && rest[0] != '/' && rest[0] != ':' {
		b.text(unknown)
		return ""
	}
	b.text(c.st.lookup("HOME").text)
	if strings.Contains(rest, ":~") {
		b.text(unknown)
		return ""
	}
	return rest
}

// tilde expands a ~ at the start of a word, and returns the rest of the word.
func (b *builder) tilde(c ctx, s string, end bool) string {
	user, rest, slash := strings.Cut(s[1:], "/")
	if slash {
		rest = "/" + rest
	}
	if b.whole {
		// In an assignment, a colon also ends the user name.
		if i := strings.IndexByte(user, ':'); i >= 0 {
			user, rest, slash = user[:i], user[i:]+rest, true
		}
	}
	switch {
	case strings.ContainsRune(user, '\\'), !slash && !end:
		b.begun = true
		b.text("~") // the name is partly quoted, so the ~ is literal
		return s[1:]
	case user == "":
		b.begun = true
		b.text(c.st.lookup("HOME").text)
	case user == "+":
		b.begun = true
		b.text(c.st.lookup("PWD").text)
	default:
		b.begun = true
		b.text(unknown) // another user's home, ~+, ~-, or a literal ~
	}
	return rest
}

// unescapeQuoted removes the backslashes that double quotes remove: "\$x\n" is $x\n.
func unescapeQuoted(s string) string {
	if !strings.ContainsRune(s, '\\') {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			switch s[i+1] {
			case '$', '`', '"', '\\':
				i++
			case '\n':
				i++
				continue
			}
		}
		out.WriteByte(s[i])
	}
	return out.String()
}

// quotedParts expands text in double quotes. It is one word, except for "$@".
func (b *builder) quotedParts(c ctx, x *syntax.DblQuoted) {
	// "$@" alone expands to no word without parameters.
	if len(x.Parts) == 1 {
		if p, ok := x.Parts[0].(*syntax.ParamExp); ok && !b.whole && isList(p) {
			b.param(c, p, true)
			return
		}
	}
	b.begun = true
	for _, p := range x.Parts {
		if lit, ok := p.(*syntax.Lit); ok {
			b.quote(unescapeQuoted(lit.Value))
			continue
		}
		b.parts(c, []syntax.WordPart{p}, true, false)
	}
}

// isList reports whether the expansion yields one word for each element, even in quotes.
func isList(p *syntax.ParamExp) bool {
	if p.Param == nil {
		return false
	}
	return p.Param.Value == "@" || p.Names == syntax.NamesPrefixWords || indexLit(p) == "@"
}

// indexLit returns an array index as written, or "" for a computed index.
func indexLit(p *syntax.ParamExp) string {
	word, ok := p.Index.(*syntax.Word)
	if !ok {
		return ""
	}
	return word.Lit()
}

// walkSubstitution returns the known output of $( … ). If it is unknown, the second result lists strings in the line
// that it may contain.
func (w *walker) walkSubstitution(c ctx, x *syntax.CmdSubst) (string, []string) {
	c = c.by(Substituted, "", c.src.offset(x.Pos()))
	c.st = c.st.fork()
	c.out = &output{}
	w.stmts(c, x.Stmts)
	for _, s := range x.Stmts {
		if s.Cmd == nil {
			c.out.lose() // $(< file)
		}
	}
	if x.TempFile || x.ReplyVar {
		w.opaque(c, c.src.offset(x.Pos()), -1, OpaqueSyntax, "a substitution that newer shells run in place")
		c.out.lose()
	}
	w.printed = c.out.onlyNames()
	return strings.TrimRight(c.out.text, "\n"), append(input{kind: piped, text: c.out.text}.texts(), c.out.also...)
}

// process walks <(cmd) and >(cmd). The command runs concurrently with the line, and another command may read its
// output.
func (w *walker) process(c ctx, x *syntax.ProcSubst) {
	c = c.by(Process, "", c.src.offset(x.Pos()))
	c.st = c.st.fork()
	c.out = &output{}
	defer func() {
		w.processed, w.printed = append(input{kind: piped, text: c.out.text}.texts(), c.out.also...), c.out.onlyNames()
	}()
	if x.Op == syntax.CmdOut {
		c.in = input{kind: piped, text: unknown}
	}
	w.stmts(c, x.Stmts)
}

// maxWords is the maximum number of words into which one word may expand.
const maxWords = 256

// braces returns the words into which {a,b} and {1..3} in a word expand, as lists of parts.
func (w *walker) braces(c ctx, word *syntax.Word) [][]syntax.WordPart {
	had := false
	for _, p := range word.Parts {
		if lit, ok := p.(*syntax.Lit); ok && strings.Contains(lit.Value, "{") {
			had = true
		}
	}
	if !had {
		return [][]syntax.WordPart{word.Parts}
	}
	split := &syntax.Word{Parts: append([]syntax.WordPart(nil), word.Parts...)}
	if !syntax.SplitBraces(split) {
		return [][]syntax.WordPart{word.Parts}
	}
	for _, p := range split.Parts {
		if _, expands := p.(*syntax.BraceExp); expands && c.st.posix {
			w.opaque(c, c.src.offset(word.Pos()), -1, OpaqueSyntax, "{a,b} differs between shells")
			break
		}
	}
	out, ok := w.braceParts(split.Parts, 0)
	if !ok {
		w.opaque(c, c.src.offset(word.Pos()), -1, OpaqueLimit, "braces expand to too many words")
	}
	return out
}

// braceParts expands braces: a{b,c{1..3}}d. The second result is false if there are too many words.
func (w *walker) braceParts(parts []syntax.WordPart, depth int) ([][]syntax.WordPart, bool) {
	for i, p := range parts {
		brace, ok := p.(*syntax.BraceExp)
		if !ok {
			continue
		}
		if depth > 20 {
			return [][]syntax.WordPart{parts[:i]}, false
		}
		var elems [][]syntax.WordPart
		whole := true
		if brace.Sequence {
			elems, whole = sequence(brace)
		} else {
			for _, e := range brace.Elems {
				more, ok := w.braceParts(e.Parts, depth+1)
				elems, whole = append(elems, more...), whole && ok
			}
		}
		rests, ok := w.braceParts(parts[i+1:], depth+1)
		whole = whole && ok
		var out [][]syntax.WordPart
		for _, e := range elems {
			for _, rest := range rests {
				if len(out) >= maxWords || !w.spend(1) {
					return out, false
				}
				out = append(out, append(append(append([]syntax.WordPart(nil), parts[:i]...), e...), rest...))
			}
		}
		return out, whole
	}
	return [][]syntax.WordPart{parts}, true
}

// sequence returns the elements of {1..9} or {a..e..2}.
func sequence(brace *syntax.BraceExp) ([][]syntax.WordPart, bool) {
	from, to := brace.Elems[0].Lit(), brace.Elems[1].Lit()
	step := 1
	if len(brace.Elems) > 2 {
		step, _ = strconv.Atoi(brace.Elems[2].Lit())
	}
	a, errA := strconv.Atoi(from)
	z, errZ := strconv.Atoi(to)
	letters := errA != nil || errZ != nil
	width := 0
	if letters {
		a, z = int(from[0]), int(to[0])
	} else if padded(from) || padded(to) {
		width = max(len(from), len(to))
	}
	step = max(step, -step, 1)
	var out [][]syntax.WordPart
	for n := a; len(out) < maxWords; {
		text := strconv.Itoa(n)
		if letters {
			text = string(rune(n)) //nolint:gosec // a letter
		} else if width > 0 {
			sign, digits := "", text
			if n < 0 {
				sign, digits = "-", text[1:]
			}
			text = sign + strings.Repeat("0", max(width-len(sign)-len(digits), 0)) + digits
		}
		out = append(out, []syntax.WordPart{&syntax.SglQuoted{Value: text}})
		switch {
		case a <= z && n > z-step, a > z && n < z+step:
			return out, true
		case a <= z:
			n += step
		default:
			n -= step
		}
	}
	return out, false
}

// padded reports whether bash pads the numbers of a sequence: {01..10}.
func padded(number string) bool {
	digits := strings.TrimLeft(number, "-+")
	return len(digits) > 1 && digits[0] == '0'
}
