package bash

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/samber/lo"
	"mvdan.cc/sh/v3/syntax"
)

// The limits of an analysis. A line that exceeds one is unparseable or opaque; it is never cut off silently.
const (
	maxLine     = 64 << 10 // bytes of a line
	maxNesting  = 200      // nested brackets
	maxDepth    = 120      // steps that lead to a command, and constructs around it
	maxCommands = 2000
	maxFiles    = 4000     // files, and also hosts
	maxText     = 64 << 10 // bytes of one word
	maxFuel     = 400_000  // a measure of all work
)

// Analyse returns what running the line may do. It starts nothing and reads nothing. It is safe for concurrent use.
func Analyse(line string, o Options) Analysis {
	w := &walker{line: line, env: o.Env, fuel: maxFuel, repository: o.Repository}
	text, blocked := line, blockedAt(line)
	if blocked != nil {
		w.out.Unparseable = &SyntaxError{Pos: w.place(blocked.offset), Text: blocked.text}
		return w.out
	}
	st := &state{home: "~", dirs: []string{"."}, noParams: true}
	if o.Home != "" {
		st.home = o.Home
	}
	if o.Dir != "" {
		st.dirs = []string{tidyPath(o.Dir)}
	}
	w.start = st.dirs[0]
	for name, text := range o.Env {
		if isKnown(text) {
			st.set(name, value{text: text, exported: true})
		}
	}
	c := ctx{src: source{text: text, verbatim: true}, st: st}
	file, err := w.parse(text)
	if err != nil {
		w.out.Unparseable = &SyntaxError{Pos: w.place(err.offset), Text: err.text}
		if closed, ok := w.closed(text, err); ok {
			w.out.OpenQuote, file = true, closed
		}
	}
	if i := strings.IndexByte(text, '\r'); i >= 0 {
		w.opaque(c, i, -1, OpaqueSyntax, "a carriage return, which bash reads as an ordinary character")
	}
	w.stmts(c, file)
	w.walkDeclared()
	w.walkTraps()
	return w.out
}

// walker walks the syntax tree of the line and collects the analysis.
type walker struct {
	out     Analysis
	line    string
	env     map[string]string
	newline []int
	fuel    int
	stopped bool
	decls   []decl
	called  map[*syntax.FuncDecl]bool
	running map[*syntax.FuncDecl]int
	// held maps each variable to the values that the line has set so far. It is used where only the
	// variable's name is known.
	held map[string][]string
	// processed holds strings in the line that the last process substitution may have written.
	processed []string
	// printed holds the patterns of the file names that the last substitution prints.
	printed    []string
	start      string // the initial directory
	repository string // as in Options
	traps      []trapped
	tooMany    bool // a word has more possible values than the limit
}

type decl struct {
	body *syntax.FuncDecl
	c    ctx
}

// source is text under analysis, and its position in the line.
type source struct {
	text     string
	at       int  // the position of its first byte
	verbatim bool // the text is part of the line; otherwise it has one position
}

// offset returns a node's position in the line. Text that was assembled (eval "$x") has a single position.
func (s source) offset(p syntax.Pos) int {
	if s.verbatim && p.IsValid() {
		return s.at + int(p.Offset())
	}
	return s.at
}

// slice returns the text between two positions, as written.
func (s source) slice(from, to syntax.Pos) string {
	a, b := int(from.Offset()), int(to.Offset())
	if a > b || b > len(s.text) {
		return ""
	}
	return s.text[a:b]
}

// ctx is a statement's context.
type ctx struct {
	src   source
	st    *state
	via   *step
	in    input
	out   *output // collects the output for its reader; nil if no command on the line reads it
	depth int
	times int // how often the enclosing loops walk the statement; zero means once
}

// input describes a command's standard input.
type input struct {
	kind inputKind
	text string
	also []string // strings in the line that an unknown input may contain
	// names holds patterns if the input consists of file names that match them. Otherwise it is nil.
	names []string
}

// texts returns the words in the line that may be in the input, and their parts. If there are more than the limit, it
// returns one more than the limit.
func (in input) texts() []string {
	if in.kind != piped {
		return nil
	}
	words := strings.FieldsFunc(in.text, func(r rune) bool { return r == 0 || unicode.IsSpace(r) })
	words = append(words, in.also...)
	for _, word := range words[:min(len(words), maxPossible)] {
		words = append(words, piecesOf(word, "")...)
	}
	words = lo.Uniq(words)
	return words[:min(len(words), maxPossible+1)]
}

// fieldMarks returns the known values that IFS has or had anywhere in the line so far.
func (w *walker) fieldMarks(c ctx) string {
	marks := append([]string{c.st.lookup("IFS").text}, w.held["IFS"]...)
	return strings.ReplaceAll(strings.Join(marks, ""), unknown, "")
}

// piecesOf returns the parts of text between blanks, between the separators that programs use, and between the bytes
// in marks.
func piecesOf(text, marks string) []string {
	pieces := append(strings.Fields(text), strings.FieldsFunc(text, isSeparator)...)
	return append(pieces, strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(marks, r) })...)
}

type inputKind uint8

const (
	inherited inputKind = iota // the input of the whole line
	piped                      // text, known or unknown
	fromFile                   // input.text is the path
)

// output collects text that is written to a pipe or substitution.
type output struct {
	text string
	also []string // as in input
	// names holds patterns for file names that commands print; other reports whether they may print other text.
	names []string
	other bool
}

// mayHold records strings in the line that the output may contain.
func (o *output) mayHold(texts ...string) {
	if o != nil {
		texts = texts[:min(len(texts), max(0, maxPossible+1-len(o.also)))]
		o.also = append(o.also, texts...)
	}
}

// add appends text that a command prints. A nil output belongs to a command whose output no other command reads.
func (o *output) add(text string) {
	if o != nil && len(o.text) < maxText {
		o.text += text
		o.other = true
	}
}

// lose records that unknown text was written.
func (o *output) lose() {
	if o == nil {
		return
	}
	o.other = true
	if !strings.HasSuffix(o.text, unknown) {
		o.text += unknown
	}
}

// step is a Step with a link to the previous steps.
type step struct {
	kind   StepKind
	name   string
	at     int
	parent *step
	all    []Step
}

// by returns c with one more step: in sudo env rm x, rm is reached by Wrapper sudo and Wrapper env.
func (c ctx) by(kind StepKind, name string, at int) ctx {
	c.via = &step{kind: kind, name: name, at: at, parent: c.via}
	c.depth++
	return c
}

// steps returns the steps that lead to a command. Commands in the same place share the slice.
func (w *walker) steps(s *step) []Step {
	if s == nil {
		return nil
	}
	if s.all == nil {
		s.all = append(slices.Clip(w.steps(s.parent)), Step{Kind: s.kind, Name: s.name, Pos: w.place(s.at)})
	}
	return s.all
}

// place returns the position of an offset in the line.
func (w *walker) place(offset int) Pos {
	if w.newline == nil {
		w.newline = []int{}
		for i := range len(w.line) {
			if w.line[i] == '\n' {
				w.newline = append(w.newline, i)
			}
		}
	}
	n, _ := slices.BinarySearch(w.newline, offset)
	start := 0
	if n > 0 {
		start = w.newline[n-1] + 1
	}
	return Pos{Offset: offset, Line: n + 1, Column: offset - start + 1}
}

// spend deducts n from the fuel and reports whether enough was left.
func (w *walker) spend(n int) bool {
	w.fuel -= n
	if w.fuel < 0 && !w.stopped {
		w.stopped = true
		w.out.Opaque = append(w.out.Opaque, Opaque{Reason: OpaqueLimit, Detail: "the line exceeds the work limit", Command: -1, Pos: w.place(0)})
	}
	return !w.stopped
}

// limitTexts returns the strings up to the limit, and records whether it omits any.
func (w *walker) limitTexts(texts []string) []string {
	if len(texts) <= maxPossible {
		return texts
	}
	if !w.tooMany {
		w.tooMany = true
		w.out.Opaque = append(w.out.Opaque, Opaque{Reason: OpaqueLimit, Detail: "a word has too many possible values", Command: -1, Pos: w.place(0)})
	}
	return texts[:maxPossible]
}

// exhaust ends the walk, because the line exceeds a limit.
func (w *walker) exhaust() {
	w.fuel = 0
	w.spend(1)
}

// opaque records an opaque place. It records consecutive equal places only once.
func (w *walker) opaque(_ ctx, at, command int, reason Reason, detail string) {
	if !w.spend(1) {
		return
	}
	o := Opaque{Reason: reason, Detail: detail, Command: command, Pos: w.place(at)}
	if n := len(w.out.Opaque); n > 0 && w.out.Opaque[n-1] == o {
		return
	}
	w.out.Opaque = append(w.out.Opaque, o)
}

type textError struct {
	offset    int
	text      string
	openQuote bool // the text has a quote that is never closed
}

// blockedAt returns an error for text that must not be parsed, or nil.
func blockedAt(text string) *textError {
	if len(text) > maxLine {
		return &textError{offset: maxLine, text: "longer than " + formatInt(maxLine) + " bytes"}
	}
	open := 0
	for i := range len(text) {
		switch text[i] {
		case 0:
			return &textError{offset: i, text: "a byte of value 0"}
		case '(', '{', '[':
			if open++; open > maxNesting {
				return &textError{offset: i, text: "more than " + formatInt(maxNesting) + " open brackets"}
			}
		case ')', '}', ']':
			open = max(open-1, 0)
		}
	}
	return nil
}

type parser struct {
	*syntax.Parser
	text strings.Reader
}

var parsers = sync.Pool{New: func() any { return &parser{Parser: syntax.NewParser(syntax.Variant(syntax.LangBash))} }}

// parse returns the statements in text. If it returns an error, it also returns the statements before the error.
func (w *walker) parse(text string) ([]*syntax.Stmt, *textError) {
	if blocked := blockedAt(text); blocked != nil {
		return nil, blocked
	}
	p, _ := parsers.Get().(*parser)
	defer parsers.Put(p)
	p.text.Reset(text)
	file, err := p.Parse(&p.text, "")
	if err == nil {
		return file.Stmts, nil
	}
	var before []*syntax.Stmt
	p.text.Reset(text)
	failed := false
	for s, err := range p.StmtsSeq(&p.text) { // the iterator may continue after a break, so this loop has none
		if failed = failed || err != nil; !failed {
			before = append(before, s)
		}
	}
	if e, ok := errors.AsType[syntax.ParseError](err); ok {
		open := strings.HasPrefix(e.Text, "reached EOF without closing quote") && int(e.Pos.Offset()) < len(text)
		return before, &textError{int(e.Pos.Offset()), e.Text, open}
	}
	if l, ok := errors.AsType[syntax.LangError](err); ok {
		return before, &textError{offset: int(l.Pos.Offset()), text: l.Error()}
	}
	return before, &textError{text: err.Error()}
}

// closed parses text with an unclosed quote as if the quote were closed at the end.
func (w *walker) closed(text string, err *textError) ([]*syntax.Stmt, bool) {
	if !err.openQuote {
		return nil, false
	}
	quote := text[err.offset : err.offset+1]
	if quote != "'" && quote != `"` {
		return nil, false
	}
	file, broken := w.parse(text + quote)
	return file, broken == nil
}

// document walks the substitutions in text that bash expands like a here-document.
func (w *walker) document(c ctx, text string, at int) {
	if !strings.ContainsAny(text, "$`") || blockedAt(text) != nil || !w.spend(len(text)/16+1) {
		return
	}
	p, _ := parsers.Get().(*parser)
	defer parsers.Put(p)
	p.text.Reset(text)
	word, err := p.Document(&p.text)
	if err != nil || word == nil {
		w.opaque(c, at, -1, OpaqueSyntax, "text that is expanded when it is used does not parse")
		return
	}
	c.src = source{text: text, at: at}
	w.value(c, word, true)
}
