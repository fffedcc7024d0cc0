package bash

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// param adds what $x or ${x…} stands for.
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
	text := b.w.paramText(c, x)
	if pattern := c.st.lookup(x.Param.Value).pattern; pattern != "" && quoted && !b.whole {
		if left := taken(x, pattern); left != "" {
			b.match(left, text)
			return
		}
	}
	if !known(text) && isList(x) {
		b.many = true
		b.begun = b.begun || !quoted
		b.text(unknown)
		return
	}
	b.expansion(text, quoted)
}

// taken is what is left of a pattern when something is taken from each text that matches it: "$f", "${f%.go}" where the
// pattern ends in .go, "${f##*/}". Empty is not known.
func taken(x *syntax.ParamExp, pattern string) string {
	switch {
	case x.Index != nil:
	case isWhole(x):
		return pattern
	case x.Length || x.Excl || x.Width || x.Exp == nil || x.Exp.Word == nil:
	case x.Exp.Op == syntax.RemSmallSuffix || x.Exp.Op == syntax.RemLargeSuffix:
		end, plain := plain(x.Exp.Word)
		if left, found := strings.CutSuffix(pattern, end); plain && found && simplePattern(end) && !strings.Contains(end, "/") && sound(left) {
			return left
		}
	case x.Exp.Op == syntax.RemLargePrefix && x.Exp.Word.Lit() == "*/":
		if left := baseName(pattern); sound(pattern) {
			return left
		}
	}
	return ""
}

// basenamePattern is the pattern of the names that $(basename "$f") or $(basename "$f" .go) prints for a variable of which the
// pattern is known. Empty is not known.
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
	if !sound(pattern) || strings.HasSuffix(pattern, "/") || strings.HasSuffix(pattern, "..") {
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

// assignedPattern is the pattern of what an assignment like name=$(basename "$f") gives.
func assignedPattern(st *state, word *syntax.Word) string {
	if word == nil || len(word.Parts) != 1 {
		return ""
	}
	part := word.Parts[0]
	if quoted, ok := part.(*syntax.DblQuoted); ok && len(quoted.Parts) == 1 {
		part = quoted.Parts[0]
	}
	if x, ok := part.(*syntax.CmdSubst); ok {
		return basenamePattern(st, x)
	}
	return ""
}

// sound reports a pattern that is no less one when a part is taken from it: nothing in it opens or takes the meaning from
// what follows.
func sound(pattern string) bool { return pattern != "" && !strings.ContainsAny(pattern, `[](){}\`) }

// isWhole reports that nothing is done with what the variable holds.
func isWhole(x *syntax.ParamExp) bool {
	return !x.Length && !x.Excl && !x.Width && x.Exp == nil && x.Repl == nil && x.Slice == nil
}

// elements is the elements of "$@", $* and arrays, if they are known.
func (w *walker) elements(c ctx, x *syntax.ParamExp) ([]string, bool) {
	index := indexLit(x)
	switch {
	case x.Param.Value == "@" || x.Param.Value == "*":
		if c.st.noParams {
			return nil, false
		}
		list := make([]string, len(c.st.params))
		for i, p := range c.st.params {
			if p.Many || p.Kind == Pattern {
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
		if known(v.text) && v.text != "" {
			return []string{v.text}, true
		}
	}
	return nil, false
}

func (b *builder) list(list []string, quoted, star bool) {
	if quoted && star || b.whole {
		b.expansion(strings.Join(list, " "), true)
		if !b.fields {
			b.text(unknown)
		}
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
		b.expansion(text, false)
	}
}

// insideParam walks the words inside ${x…}, once.
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
		// ${!x} expands the index in what x holds.
		index := indexLit(x)
		if text := w.held(c, x); index != "@" && index != "*" && (!known(text) || strings.ContainsRune(text, '[')) {
			w.computed(c, text, c.src.offset(x.Pos()))
		}
	}
}

// paramText is the text of an expansion.
func (w *walker) paramText(c ctx, x *syntax.ParamExp) string {
	v := w.held(c, x)
	switch {
	case x.Length:
		if known(v) {
			return strconv.Itoa(utf8.RuneCountInString(v))
		}
		return unknown
	case x.Excl:
		if x.Names == 0 && x.Exp == nil && x.Repl == nil && x.Slice == nil && x.Index == nil && syntax.ValidName(v) {
			return c.st.lookup(v).text
		}
		w.inside(c, x)
		if x.Exp != nil && (x.Exp.Op == syntax.AssignUnset || x.Exp.Op == syntax.AssignUnsetOrNull) {
			if known(v) && syntax.ValidName(v) {
				w.setVariable(c, v, value{text: unknown}, c.src.offset(x.Pos()))
			} else {
				c.st.forget()
			}
		}
		return unknown
	case x.Exp != nil:
		return w.operated(c, x, v)
	case x.Repl != nil:
		return w.replaced(c, x, v)
	case x.Slice != nil:
		return sliced(x.Slice, v)
	}
	return v
}

func (w *walker) inside(c ctx, x *syntax.ParamExp) {
	if x.Exp != nil {
		w.value(c, x.Exp.Word, true)
	}
}

// held is what the variable itself holds.
func (w *walker) held(c ctx, x *syntax.ParamExp) string {
	name := x.Param.Value
	if n, err := strconv.Atoi(name); err == nil {
		switch {
		case n == 0 || c.st.noParams:
			return unknown
		case n > len(c.st.params):
			return ""
		}
		for _, p := range c.st.params[:n] {
			if p.Many || p.Kind == Pattern {
				return unknown
			}
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
		case known(v.text):
			return ""
		}
		return unknown
	case v.array && len(v.list) > 0:
		return v.list[0]
	}
	return v.text
}

//nolint:gocognit // flat: one case for each operator
func (w *walker) operated(c ctx, x *syntax.ParamExp, v string) string {
	operand := ""
	if x.Exp.Word != nil {
		operand = w.value(c, x.Exp.Word, false)
		if quotedSpaces(x.Exp.Word, operand) {
			operand = unknown // it is split in part
		}
	}
	empty, sure := v == "", known(v) || strings.Trim(v, unknown) != ""
	switch x.Exp.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		_, set := c.st.vars[x.Param.Value]
		colon := x.Exp.Op == syntax.DefaultUnsetOrNull || x.Exp.Op == syntax.AssignUnsetOrNull
		result := unknown
		switch {
		case sure && !empty:
			result = v
		case sure && empty && colon:
			result = operand
		case sure && empty && set:
			return unknown // set to nothing, or not set: both look alike here
		}
		if (x.Exp.Op == syntax.AssignUnset || x.Exp.Op == syntax.AssignUnsetOrNull) && syntax.ValidName(x.Param.Value) {
			w.setVariable(c, x.Param.Value, value{text: result, number: makesNumber(c.st, x.Exp.Word) && c.st.numberIn(x.Param.Value)}, c.src.offset(x.Pos()))
		}
		return result
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		switch {
		case sure && !empty:
			return operand
		case sure && x.Exp.Op == syntax.AlternateUnsetOrNull:
			return ""
		}
		return unknown
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		if sure && !empty {
			return v
		}
		return unknown
	case syntax.RemSmallPrefix, syntax.RemLargePrefix:
		if known(v) && simplePattern(operand) {
			return strings.TrimPrefix(v, operand)
		}
	case syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		if known(v) && simplePattern(operand) {
			return strings.TrimSuffix(v, operand)
		}
	case syntax.UpperFirst, syntax.UpperAll, syntax.LowerFirst, syntax.LowerAll:
		if known(v) && x.Exp.Word == nil && ascii(v) && v != "" {
			switch x.Exp.Op {
			case syntax.UpperAll:
				return strings.ToUpper(v)
			case syntax.LowerAll:
				return strings.ToLower(v)
			case syntax.UpperFirst:
				return strings.ToUpper(v[:1]) + v[1:]
			default:
				return strings.ToLower(v[:1]) + v[1:]
			}
		}
	case syntax.OtherParamOps:
		if operand == "P" {
			if !known(v) {
				w.opaque(c, c.src.offset(x.Pos()), -1, OpaqueText, "${…@P} runs what is in a text that is not known")
			} else if strings.ContainsAny(v, "$`\\") {
				w.opaque(c, c.src.offset(x.Pos()), -1, OpaqueText, "${…@P} runs what is in a text")
				w.document(c.by(Eval, "${…@P}", c.src.offset(x.Pos())), v, c.src.offset(x.Pos()))
			}
		}
	}
	return unknown
}

// quotedSpaces reports that a default has quoted blanks, which do not split.
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

func simplePattern(text string) bool { return known(text) && !strings.ContainsAny(text, `*?[\(`) }

func ascii(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

func (w *walker) replaced(c ctx, x *syntax.ParamExp, v string) string {
	orig, with := w.silently(c, x.Repl.Orig), w.silently(c, x.Repl.With)
	if !known(v) || !simplePattern(orig) || orig == "" || orig[0] == '#' || orig[0] == '%' || !known(with) || strings.ContainsAny(with, `&\`) {
		return unknown
	}
	if x.Repl.All {
		return strings.ReplaceAll(v, orig, with)
	}
	return strings.Replace(v, orig, with, 1)
}

// silently is a word that was walked before, if it is a mere text.
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

func sliced(s *syntax.Slice, v string) string {
	offset, ok := literalNumber(s.Offset)
	if !known(v) || !ok || !ascii(v) || offset > len(v) {
		return unknown
	}
	v = v[offset:]
	if s.Length == nil {
		return v
	}
	length, ok := literalNumber(s.Length)
	if !ok {
		return unknown
	}
	return v[:min(length, len(v))]
}

func literalNumber(x syntax.ArithmExpr) (int, bool) {
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

// ansiC is the text of $'…'.
func ansiC(s string) string {
	text, _ := escapes(s, inQuotes)
	if i := strings.IndexByte(text, 0); i >= 0 && !strings.Contains(s, `\x{`) && !strings.Contains(s, `\u`) && !strings.Contains(s, `\U`) {
		return text[:i] // where bash ends it, too
	}
	return text
}

// escaping says whose backslash escapes they are.
type escaping uint8

const (
	inQuotes escaping = iota // of $'…'
	inFormat                 // of the format of printf
	inEcho                   // of echo -e
	inB                      // of printf's %b
)

// escapes is a text with its backslash escapes done. The flag says that \c ended the
// text.
//
//nolint:gocognit // flat: one case for each escape
func escapes(s string, of escaping) (string, bool) {
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
			n, read := radix(s[i:], 16, digits)
			switch {
			case e == 'x' && !echo && strings.HasPrefix(s[i:], "{"):
				out = append(out, unknown...) // an oddity of bash
				i++
			case read == 0:
				out = append(out, '\\', e)
			case e == 'x':
				out = append(out, byte(n)) //nolint:gosec // two digits
			case n < utf8.RuneSelf:
				out = append(out, byte(n)) //nolint:gosec // less than 128
			default:
				out = append(out, unknown...) // a matter of the locale
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
			n, read := radix(s[i:], 8, digits)
			out = append(out, byte(n)) //nolint:gosec // bash takes the low byte, too
			i += read
		default:
			out = append(out, '\\', e)
		}
	}
	return string(out), false
}

func radix(s string, base, digits int) (int, int) {
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
