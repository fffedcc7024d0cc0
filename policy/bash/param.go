package bash

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/samber/lo"
	"mvdan.cc/sh/v3/syntax"
)

// param adds the value of $x or ${x…}.
func (b *builder) param(c ctx, x *syntax.ParamExp, quoted bool) {
	if x.Param == nil || !b.w.spend(1) {
		b.many = true
		b.text(unknown)
		return
	}
	b.w.insideParam(c, x, quoted)
	if isWhole(x) {
		if list, known := b.w.elements(c, x); known {
			b.list(list, quoted, x.Param.Value == "*" || indexLit(x) == "*")
			return
		}
	}
	text, also := b.w.paramText(c, x)
	if v := c.st.lookup(x.Param.Value); v.pattern != "" && !b.whole && (quoted || b.fields) {
		if left := takenPattern(x, v.pattern); left != "" {
			b.breaks = b.breaks || v.split || !quoted
			b.match(left, text)
			return
		}
	}
	if !isKnown(text) && isList(x) {
		b.many = true
		b.begun = b.begun || !quoted
		from := len(b.buf)
		b.text(unknown)
		if len(also) > 0 {
			b.may = append(b.may, possible{from, len(b.buf), b.w.limitTexts(also)})
		}
		return
	}
	b.mayBe(text, also, quoted)
}

// remember records possible values of a variable.
func (w *walker) remember(name string, texts ...string) {
	if w.held == nil {
		w.held = map[string][]string{}
	}
	for _, text := range texts {
		if held := w.held[name]; text != "" && isKnown(text) && len(held) <= maxPossible && !slices.Contains(held, text) {
			w.held[name] = append(held, text)
		}
	}
}

// takenPattern returns the pattern that matches the result of an expansion of a value that matches pattern: "$f",
// "${f%.go}" if the pattern ends in .go, "${f##*/}". It returns "" if the pattern is unknown.
func takenPattern(x *syntax.ParamExp, pattern string) string {
	switch {
	case x.Index != nil:
	case isWhole(x):
		return pattern
	case x.Length || x.Excl || x.Width || x.Exp == nil || x.Exp.Word == nil:
	case x.Exp.Op == syntax.RemSmallSuffix || x.Exp.Op == syntax.RemLargeSuffix:
		end, plain := plain(x.Exp.Word)
		if left, found := strings.CutSuffix(pattern, end); plain && found && simplePattern(end) && !strings.Contains(end, "/") && isSoundPattern(left) {
			return left
		}
	case x.Exp.Op == syntax.RemLargePrefix && x.Exp.Word.Lit() == "*/":
		if left := baseName(pattern); isSoundPattern(pattern) {
			return left
		}
	}
	return ""
}

// basenamePattern returns the pattern of the names that $(basename "$f") or $(basename "$f" .go) prints for a
// variable with a known pattern. It returns "" if the pattern is unknown.
func basenamePattern(st *state, x *syntax.CmdSubst) string {
	if len(x.Stmts) != 1 || len(x.Stmts[0].Redirs) > 0 || x.Stmts[0].Negated || x.Stmts[0].Background || x.TempFile || x.ReplyVar {
		return ""
	}
	call, ok := x.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Assigns) > 0 || len(call.Args) < 2 || len(call.Args) > 3 || call.Args[0].Lit() != "basename" || len(st.aliases) > 0 {
		return ""
	}
	if _, shadowed := st.funcs["basename"]; shadowed {
		return ""
	}
	quoted, ok := call.Args[1].Parts[0].(*syntax.DblQuoted)
	if !ok || len(call.Args[1].Parts) != 1 || len(quoted.Parts) != 1 {
		return ""
	}
	param, ok := quoted.Parts[0].(*syntax.ParamExp)
	if !ok || param.Param == nil || param.Index != nil || !isWhole(param) {
		return ""
	}
	pattern := st.lookup(param.Param.Value).pattern
	if !isSoundPattern(pattern) || strings.HasSuffix(pattern, "/") || strings.HasSuffix(pattern, "..") {
		return ""
	}
	left := baseName(pattern)
	if len(call.Args) == 3 {
		end, literal := literalText(call.Args[2])
		cut, found := strings.CutSuffix(left, end)
		if !literal || !found || cut == "" || end == "" || strings.ContainsAny(end, "*?[/") {
			return ""
		}
		left = cut
	}
	if strings.HasPrefix(left, ".") || strings.HasPrefix(pattern, "-") {
		return ""
	}
	return left
}

// assignedPattern returns the pattern for the value in an assignment such as name=$(basename "$f").
func assignedPattern(st *state, word *syntax.Word) string {
	if x := onlySubstitution(word); x != nil {
		return basenamePattern(st, x)
	}
	return ""
}

// onlySubstitution returns the command substitution that is a word's only part, or nil.
func onlySubstitution(word *syntax.Word) *syntax.CmdSubst {
	if word == nil || len(word.Parts) != 1 {
		return nil
	}
	part := word.Parts[0]
	if quoted, ok := part.(*syntax.DblQuoted); ok && len(quoted.Parts) == 1 {
		part = quoted.Parts[0]
	}
	x, _ := part.(*syntax.CmdSubst)
	return x
}

// isSoundPattern reports whether a pattern stays valid when a part is removed from it: it has no brackets or
// backslashes that affect the characters after them.
func isSoundPattern(pattern string) bool {
	return pattern != "" && !strings.ContainsAny(pattern, `[](){}\`)
}

// isWhole reports whether an expansion yields the variable's value unchanged.
func isWhole(x *syntax.ParamExp) bool {
	return !x.Length && !x.Excl && !x.Width && x.Exp == nil && x.Repl == nil && x.Slice == nil
}

// elements returns the elements of "$@", $* and arrays. The second result is false if they are unknown.
func (w *walker) elements(c ctx, x *syntax.ParamExp) ([]string, bool) {
	index := indexLit(x)
	switch {
	case x.Param.Value == "@" || x.Param.Value == "*":
		if c.st.noParams {
			return nil, false
		}
		list := make([]string, len(c.st.params))
		for i, p := range c.st.params {
			if p.Many || p.Kind == Pattern || len(p.also) > 0 {
				return nil, false
			}
			list[i] = p.raw
		}
		return list, true
	case index == "@" || index == "*":
		v := c.st.lookup(x.Param.Value)
		if v.array {
			return v.list, true
		}
		if isKnown(v.text) && v.text != "" {
			return []string{v.text}, true
		}
	}
	return nil, false
}

// list expands $@ and $*: "$@" is a word for each element, "$*" one word with the first character of IFS between the
// elements.
func (b *builder) list(list []string, quoted, star bool) {
	if quoted && star || b.whole {
		if b.fields || len(list) == 1 {
			b.expansion(strings.Join(list, " "), true)
			return
		}
		from := len(b.buf)
		b.expansion(unknown, true)
		also := []string{strings.Join(list, "")}
		for _, mark := range b.marks {
			also = append(also, strings.Join(list, string(mark)))
		}
		b.may = append(b.may, possible{from, len(b.buf), b.w.limitTexts(also)})
		return
	}
	for i, text := range list {
		if i > 0 {
			b.flush()
		}
		if quoted {
			b.begun = true
			b.text(text)
			continue
		}
		b.mayBe(text, nil, false)
	}
}

// insideParam walks the words inside ${x…} once.
func (w *walker) insideParam(c ctx, x *syntax.ParamExp, quoted bool) {
	if x.Index != nil && indexLit(x) != "@" && indexLit(x) != "*" {
		w.index(c, x.Param.Value, x.Index)
	}
	if x.Slice != nil {
		w.arithm(c, x.Slice.Offset)
		w.arithm(c, x.Slice.Length)
	}
	if x.Repl != nil {
		w.value(c, x.Repl.Orig, quoted)
		w.value(c, x.Repl.With, quoted)
	}
	if x.Excl && x.Names == 0 {
		// ${!x} expands the array index in x's value.
		index := indexLit(x)
		if text := w.heldBy(c, x); index != "@" && index != "*" && (!isKnown(text) || strings.ContainsRune(text, '[')) {
			w.walkArithmetic(c, text, c.src.offset(x.Pos()))
		}
	}
}

// paramText returns the text of an expansion. If it is unknown, also lists its possible values from the line.
func (w *walker) paramText(c ctx, x *syntax.ParamExp) (text string, also []string) {
	v := w.heldBy(c, x)
	if !x.Excl && !x.Length {
		also = w.heldEver(c, x)
	}
	switch {
	case x.Length:
		if isKnown(v) {
			return strconv.Itoa(utf8.RuneCountInString(v)), nil
		}
		return unknown, nil
	case x.Excl:
		if x.Names == 0 && x.Exp == nil && x.Repl == nil && x.Slice == nil && x.Index == nil && syntax.ValidName(v) {
			return c.st.lookup(v).text, w.held[v]
		}
		w.inside(c, x)
		if x.Exp != nil && (x.Exp.Op == syntax.AssignUnset || x.Exp.Op == syntax.AssignUnsetOrNull) {
			if isKnown(v) && syntax.ValidName(v) {
				w.setVariable(c, v, value{text: unknown}, c.src.offset(x.Pos()))
			} else {
				c.st.forget()
			}
		}
		for _, name := range append(w.held[x.Param.Value], v) {
			also = append(also, w.held[name]...)
		}
		return unknown, also
	case x.Exp != nil:
		return w.expandOperator(c, x, v, also)
	case x.Repl != nil:
		orig, with := w.silently(c, x.Repl.Orig), w.silently(c, x.Repl.With)
		replace := func(v string) string { return replaceParam(x, v, orig, with) }
		if text = replace(v); !isKnown(text) && v != "" {
			w.hideComputed(c, x, append(also, v), replace)
			_, withAlso := w.possibleValue(c, x.Repl.With, false)
			return text, append(append(mapKnown(also, replace), with), withAlso...)
		}
		return text, nil
	case x.Slice != nil:
		slice := func(v string) string { return sliceParam(x.Slice, v) }
		if text = slice(v); !isKnown(text) {
			w.hideComputed(c, x, append(also, v), slice)
		}
		return text, mapKnown(also, slice)
	}
	return v, also
}

// hideComputed records an opaque place if operate turns a known value into unknown text.
func (w *walker) hideComputed(c ctx, x *syntax.ParamExp, texts []string, operate func(string) string) {
	if slices.ContainsFunc(texts, func(text string) bool { return isKnown(text) && text != "" && !isKnown(operate(text)) }) {
		w.opaque(c, c.src.offset(x.Pos()), -1, OpaqueText, "the result of an expansion is unknown")
	}
}

// mapKnown applies a function to strings and returns the known results.
func mapKnown(texts []string, f func(string) string) []string {
	return lo.FilterMap(texts, func(text string, _ int) (string, bool) {
		made := f(text)
		return made, isKnown(made)
	})
}

// heldEver returns all values to which the line has set the variable so far.
func (w *walker) heldEver(c ctx, x *syntax.ParamExp) []string {
	name := x.Param.Value
	if n, err := strconv.Atoi(name); err == nil && n > 0 || name == "@" || name == "*" {
		return append(slices.Clip(w.held["@"]), lo.FlatMap(c.st.params, func(p Word, _ int) []string {
			switch p.Kind {
			case Literal:
				return []string{p.raw}
			case Pattern:
				return []string{p.Text}
			}
			return p.also
		})...)
	}
	return w.held[name]
}

// inside walks the word in ${x:-word}, which may contain substitutions.
func (w *walker) inside(c ctx, x *syntax.ParamExp) {
	if x.Exp != nil {
		w.value(c, x.Exp.Word, true)
	}
}

// mayBeSeveral reports whether a word may expand to none or to several words.
func mayBeSeveral(w Word) bool { return w.Many || w.Kind == Pattern }

// heldBy returns the variable's value without the expansion's operators.
func (w *walker) heldBy(c ctx, x *syntax.ParamExp) string {
	name := x.Param.Value
	if n, err := strconv.Atoi(name); err == nil {
		switch {
		case n == 0 || c.st.noParams:
			return unknown
		case hasFunc(c.st.params[:min(n, len(c.st.params))], mayBeSeveral):
			return unknown
		case n > len(c.st.params):
			return ""
		}
		return c.st.params[n-1].raw
	}
	if !syntax.ValidName(name) {
		return unknown // $? $$ $@ …
	}
	v := c.st.lookup(name)
	switch {
	case x.Index != nil:
		n, err := strconv.Atoi(indexLit(x))
		switch {
		case err != nil || n < 0:
			return unknown
		case v.array && n < len(v.list):
			return v.list[n]
		case v.array:
			return ""
		case n == 0:
			return v.text
		case isKnown(v.text):
			return ""
		}
		return unknown
	case v.array && len(v.list) > 0:
		return v.list[0]
	}
	return v.text
}

// expandOperator returns the value of an expansion with an operator and, if it is unknown, its possible values.
func (w *walker) expandOperator(c ctx, x *syntax.ParamExp, v string, held []string) (text string, also []string) {
	operand, operandAlso := "", []string(nil)
	if x.Exp.Word != nil {
		operand, operandAlso = w.possibleValue(c, x.Exp.Word, false)
		if isKnown(operand) {
			operandAlso = []string{operand}
		}
		if quotedSpaces(x.Exp.Word, operand) {
			operand = unknown // partly split
		}
	}
	text = operateParam(x.Exp.Op, v, operand)
	at := c.src.offset(x.Pos())
	switch x.Exp.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull:
		return text, append(slices.Clip(held), operandAlso...)
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if syntax.ValidName(x.Param.Value) {
			w.remember(x.Param.Value, operandAlso...)
			w.environment(c, x.Param.Value, operand, at, -1)
			w.setVariable(c, x.Param.Value, value{text: text, number: makesNumber(c.st, x.Exp.Word) && c.st.numberIn(x.Param.Value)}, at)
		}
		return text, append(slices.Clip(held), operandAlso...)
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		return text, operandAlso
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		return text, held
	case syntax.OtherParamOps:
		if operand == "P" {
			if !isKnown(v) {
				w.opaque(c, at, -1, OpaqueText, "${…@P} runs commands in unknown text")
			} else if strings.ContainsAny(v, "$`\\") {
				w.opaque(c, at, -1, OpaqueText, "${…@P} runs commands in a text")
				w.document(c.by(Eval, "${…@P}", at), v, at)
			}
		}
		return text, append(slices.Clip(held), v)
	}
	operate := func(v string) string { return operateParam(x.Exp.Op, v, operand) }
	if !isKnown(text) {
		w.hideComputed(c, x, append(slices.Clip(held), v), operate)
	}
	return text, mapKnown(held, operate)
}

// operateParam applies an operator to a variable's value.
func operateParam(op syntax.ParExpOperator, v, operand string) string {
	empty, sure := v == "", isKnown(v) || strings.Trim(v, unknown) != ""
	switch op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		colon := op == syntax.DefaultUnsetOrNull || op == syntax.AssignUnsetOrNull
		switch {
		case sure && !empty:
			return v
		case sure && empty && colon:
			return operand
		}
		return unknown // without a colon, empty and unset variables differ, and which one applies is unknown here
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		switch {
		case sure && !empty:
			return operand
		case sure && op == syntax.AlternateUnsetOrNull:
			return ""
		}
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		if sure && !empty {
			return v
		}
	case syntax.RemSmallPrefix, syntax.RemLargePrefix, syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		return trimParam(op, v, operand)
	case syntax.UpperFirst, syntax.UpperAll, syntax.LowerFirst, syntax.LowerAll:
		switch {
		case !isKnown(v) || operand != "" || !isASCII(v):
			return unknown
		case v == "":
			return ""
		case op == syntax.UpperAll:
			return strings.ToUpper(v)
		case op == syntax.LowerAll:
			return strings.ToLower(v)
		case op == syntax.UpperFirst:
			return strings.ToUpper(v[:1]) + v[1:]
		}
		return strings.ToLower(v[:1]) + v[1:]
	}
	return unknown
}

// maxTrimmed is the maximum length of text that trimParam matches with a pattern.
const maxTrimmed = 1 << 10

// trimParam removes the shortest or longest match of a pattern from the beginning or end of v.
func trimParam(op syntax.ParExpOperator, v, pattern string) string {
	if !isKnown(v) || !isKnown(pattern) {
		return unknown
	}
	prefix := op == syntax.RemSmallPrefix || op == syntax.RemLargePrefix
	if simplePattern(pattern) {
		if prefix {
			return strings.TrimPrefix(v, pattern)
		}
		return strings.TrimSuffix(v, pattern)
	}
	match := compileGlob(pattern)
	if match == nil || !isASCII(v) || len(v) > maxTrimmed {
		return unknown
	}
	long := op == syntax.RemLargePrefix || op == syntax.RemLargeSuffix
	for i := range len(v) + 1 {
		cut := i
		if long == prefix { // for the longest prefix and the shortest suffix, begin with the largest cut
			cut = len(v) - i
		}
		if prefix && match.MatchString(v[:cut]) {
			return v[cut:]
		}
		if !prefix && match.MatchString(v[cut:]) {
			return v[:cut]
		}
	}
	return v
}

// compileGlob returns the regular expression for a bash pattern whose only special characters are * and ?. It returns
// nil for other patterns.
func compileGlob(pattern string) *regexp.Regexp {
	if strings.ContainsAny(pattern, `[]()\|`) || !isASCII(pattern) || len(pattern) > maxTrimmed {
		return nil
	}
	text := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(pattern))
	match, err := regexp.Compile("(?s)^" + text + "$")
	if err != nil {
		return nil
	}
	return match
}

// quotedSpaces reports whether a default value has quoted blanks, which do not split it.
func quotedSpaces(word *syntax.Word, text string) bool {
	if !strings.ContainsAny(text, " \t\n") {
		return false
	}
	for _, p := range word.Parts {
		if _, bare := p.(*syntax.Lit); !bare {
			return true
		}
	}
	return false
}

// simplePattern reports whether a pattern matches only itself.
func simplePattern(text string) bool { return isKnown(text) && !strings.ContainsAny(text, `*?[\(`) }

// isASCII reports whether text has only ASCII characters. The meaning of other characters depends on the locale.
func isASCII(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// replaceParam returns the value of ${x/orig/with}, where v is the value of x.
func replaceParam(x *syntax.ParamExp, v, orig, with string) string {
	if !isKnown(v) || !simplePattern(orig) || orig == "" || !isKnown(with) || strings.ContainsAny(with, `&\`) {
		return unknown
	}
	if !x.Repl.All {
		if at, found := strings.CutPrefix(orig, "#"); found {
			if rest, begins := strings.CutPrefix(v, at); begins {
				return with + rest
			}
			return v
		}
		if at, found := strings.CutPrefix(orig, "%"); found {
			if rest, ends := strings.CutSuffix(v, at); ends {
				return rest + with
			}
			return v
		}
	}
	if x.Repl.All {
		return strings.ReplaceAll(v, orig, with)
	}
	return strings.Replace(v, orig, with, 1)
}

// silently returns the text of a word that was already walked, if it is literal.
func (w *walker) silently(_ ctx, word *syntax.Word) string {
	if word == nil {
		return ""
	}
	if text, ok := onlyLit(word); ok && !strings.ContainsAny(text, `\~`) {
		return text
	}
	if len(word.Parts) == 1 {
		if q, ok := word.Parts[0].(*syntax.SglQuoted); ok && !q.Dollar {
			return q.Value
		}
	}
	return unknown
}

// sliceParam returns the value of ${x:offset:length}, where v is the value of x.
func sliceParam(s *syntax.Slice, v string) string {
	offset, ok := literalNumber(s.Offset)
	if !isKnown(v) || !ok || !isASCII(v) {
		return unknown
	}
	if offset < 0 {
		offset += len(v)
	}
	if offset < 0 || offset > len(v) {
		return ""
	}
	v = v[offset:]
	if s.Length == nil {
		return v
	}
	length, ok := literalNumber(s.Length)
	switch {
	case !ok:
		return unknown
	case length < 0 && length+len(v) < 0:
		return "" // bash reports an error
	case length < 0:
		length += len(v)
	}
	return v[:min(length, len(v))]
}

// literalNumber returns the value of a literal number. An omitted offset is 0.
func literalNumber(x syntax.ArithmExpr) (int, bool) {
	if x == nil {
		return 0, true
	}
	if unary, ok := x.(*syntax.UnaryArithm); ok && unary.Op == syntax.Minus && !unary.Post {
		n, ok := literalNumber(unary.X)
		return -n, ok
	}
	if inner, ok := x.(*syntax.ParenArithm); ok && inner.X != nil {
		return literalNumber(inner.X)
	}
	word, ok := x.(*syntax.Word)
	if !ok {
		return 0, false
	}
	lit := word.Lit()
	if lit == "" || len(lit) > 5 || strings.Trim(lit, "0123456789") != "" || len(lit) > 1 && lit[0] == '0' {
		return 0, false
	}
	n, err := strconv.Atoi(lit)
	return n, err == nil
}

// ansiC returns the text of $'…'.
func ansiC(s string) string {
	text, _ := decodeEscapes(s, inQuotes)
	if i := strings.IndexByte(text, 0); i >= 0 && !strings.Contains(s, `\x{`) && !strings.Contains(s, `\u`) && !strings.Contains(s, `\U`) {
		return text[:i] // bash ends it there, too
	}
	return text
}

// escaping is the context of backslash escapes, which determines their meaning.
type escaping uint8

const (
	inQuotes escaping = iota // in $'…'
	inFormat                 // in printf's format
	inEcho                   // in echo -e
	inB                      // in printf's %b
)

// decodeEscapes decodes backslash escapes. The flag reports whether \c ended the text.
//
//nolint:gocognit // flat: one case for each escape
func decodeEscapes(s string, of escaping) (string, bool) {
	echo := of == inEcho || of == inB
	if !strings.ContainsRune(s, '\\') {
		return s, false
	}
	var out []byte
	for i := 0; i < len(s); {
		if s[i] != '\\' || i+1 == len(s) {
			out = append(out, s[i])
			i++
			continue
		}
		i++
		e := s[i]
		i++
		switch e {
		case 'a', 'b', 'e', 'E', 'f', 'n', 'r', 't', 'v', '\\':
			out = append(out, "\a\b\x1b\x1b\f\n\r\t\v\\"[strings.IndexByte(`abeEfnrtv\`, e)])
		case '\'', '"', '?':
			if echo {
				out = append(out, '\\')
			}
			out = append(out, e)
		case 'c':
			switch {
			case echo:
				return string(out), true
			case of == inFormat:
				out = append(out, '\\', e)
			case i < len(s):
				ch := s[i]
				i++
				if ch == '\\' && i < len(s) && s[i] == '\\' {
					i++
				}
				out = append(out, ch&0x1f)
			}
		case 'x', 'u', 'U':
			digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[e]
			n, read := parseRadix(s[i:], 16, digits)
			switch {
			case e == 'x' && !echo && strings.HasPrefix(s[i:], "{"):
				out = append(out, unknown...) // bash behaves inconsistently here
				i++
			case read == 0:
				out = append(out, '\\', e)
			case e == 'x':
				out = append(out, byte(n)) //nolint:gosec // two digits
			case n < utf8.RuneSelf:
				out = append(out, byte(n)) //nolint:gosec // less than 128
			default:
				out = append(out, unknown...) // depends on the locale
			}
			i += read
		case '0', '1', '2', '3', '4', '5', '6', '7':
			digits := 3
			if of == inEcho && e != '0' {
				out = append(out, '\\', e)
				continue
			}
			if !echo || e != '0' {
				i--
			}
			n, read := parseRadix(s[i:], 8, digits)
			out = append(out, byte(n)) //nolint:gosec // bash also takes the low byte
			i += read
		default:
			out = append(out, '\\', e)
		}
	}
	return string(out), false
}

// parseRadix parses a number of at most digits digits, and returns it with the number of digits read: \x41, \101.
func parseRadix(s string, base, digits int) (int, int) {
	n, read := 0, 0
	for read < digits && read < len(s) {
		d := strings.IndexByte("0123456789", s[read])
		if d < 0 {
			if d = strings.IndexByte("abcdef", s[read]|0x20); d >= 0 {
				d += 10
			}
		}
		if d < 0 || d >= base {
			break
		}
		n, read = n*base+d, read+1
	}
	return n, read
}
