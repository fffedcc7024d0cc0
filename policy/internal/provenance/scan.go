package provenance

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// scanKeys calls emit with the keys of everything in text that can be looked up: its words, pairs and triples of
// words, and values. It reports whether the text contains a date.
func scanKeys(text string, emit func(key)) (dated bool) {
	text = norm.NFC.String(text)
	var dates calendar
	dates.emit = func(k key) {
		dated = true
		emit(k)
	}
	var before, last key
	n := 0
	eachWord(text, func(word key, from, to int) {
		emit(word)
		if n > 0 {
			emit(mix(kindPair, last, word))
		}
		if n > 1 {
			emit(mix(kindTriple, before, last, word))
		}
		before, last = last, word
		n++
		dates.word(text[from:to])
	})
	dates.flush(0)
	scanValues(text, func(n name, _ string) {
		for _, k := range n.keys {
			emit(k)
			if n.kind == kindDate {
				dated = true
				break // a date with a year is not stored without it
			}
		}
	})
	return dated
}

// scanValues calls f for the values in text: mail addresses, web addresses, numbers, dates and IDs.
func scanValues(text string, f func(n name, value string)) {
	r := run{text: text, f: f}
	eachChunk(text, func(from, to int) {
		chunk := trimSigns(text[from:to])
		if chunk == "" {
			return
		}
		from += strings.Index(text[from:to], chunk)
		r.add(chunk, from)
		recognizeValue(chunk, f)
	})
	r.end()
	// A web address may contain characters that separate words elsewhere.
	for rest, at := text, 0; ; {
		i := strings.Index(rest, "://")
		if i < 0 {
			return
		}
		from, to := i, i+3
		for from > 0 && isAlnum(rest[from-1]) {
			from--
		}
		for to < len(rest) && !strings.ContainsRune(" \t\r\n\"'`<>\\", rune(rest[to])) {
			to++
		}
		recognizeURL(rest[from:to], f)
		at += to
		rest = rest[to:]
	}
}

// run holds the groups of one ID that is written with spaces: DE89 3704 0044 0532 0130 00.
type run struct {
	text   string
	f      func(name, string)
	groups [][2]int // start and end offsets
}

const maxGroups = 12

func (r *run) add(chunk string, from int) {
	if n := len(r.groups); n == maxGroups || n > 0 && strings.Trim(r.text[r.groups[n-1][1]:from], " ()/") != "" {
		r.end()
	}
	if !inID(chunk) || len(datesIn(chunk)) > 0 {
		r.end()
		return
	}
	r.groups = append(r.groups, [2]int{from, from + len(chunk)})
}

// end emits the groups together. An amount may come before or after an IBAN, so it also emits the groups from one
// that begins like an IBAN to the end, and to the first shorter group.
func (r *run) end() {
	n := len(r.groups)
	r.tell(0, n)
	for i, g := range r.groups {
		if group := r.text[g[0]:g[1]]; len(group) != 4 || isDigit(group[0]) || isDigit(group[1]) || !isDigit(group[2]) {
			continue
		}
		last := i + 1
		for last < n-1 && r.groups[last][1]-r.groups[last][0] == 4 {
			last++
		}
		if i > 0 {
			r.tell(i, n)
		}
		if last+1 < n {
			r.tell(i, last+1)
		}
	}
	r.groups = r.groups[:0]
}

func (r *run) tell(from, to int) {
	if to-from < 2 {
		return
	}
	text := r.text[r.groups[from][0]:r.groups[to-1][1]]
	if id, ok := idOf(text); ok {
		r.f(single(kindID, id), text)
	}
}

// recognizeValue recognises a chunk of text as a value.
func recognizeValue(chunk string, f func(name, string)) {
	digit, dot := false, false
	for i := range len(chunk) {
		switch c := chunk[i]; {
		case c == '@':
			if a, ok := addressOf(chunk); ok {
				f(single(kindAddress, a), chunk)
			}
			return
		case isDigit(c):
			digit = true
		case c == '.':
			dot = true
		}
	}
	if digit {
		days := datesIn(chunk)
		if len(days) == 0 && len(chunk) > 10 && chunk[10] == 'T' {
			days = datesIn(chunk[:10])
		}
		for _, d := range days {
			f(dateName(d), chunk)
		}
		if n, ok := numberOf(chunk); ok {
			f(single(kindNumber, n), chunk)
		}
		if id, ok := idOf(chunk); ok && len(days) == 0 {
			f(single(kindID, id), chunk)
		}
	}
	if dot {
		recognizeURL(chunk, f)
	}
	if exact := exactOf(chunk); exact != 0 {
		f(name{kind: kindExact, keys: []key{exact}, text: chunk}, chunk)
	}
}

// recognizeURL recognises a web address. If the next sentence follows without a space, as in "shop.example.They", it
// also recognises the address without it.
func recognizeURL(text string, f func(name, string)) {
	if u, ok := urlOf(text); ok {
		f(single(kindURL, u), text)
	}
	for i := len(text) - 2; i > 0; i-- {
		if text[i] == '.' && text[i+1] >= 'A' && text[i+1] <= 'Z' && text[i-1] >= 'a' && text[i-1] <= 'z' {
			if u, ok := urlOf(text[:i]); ok {
				f(single(kindURL, u), text[:i])
			}
			return
		}
	}
}

// eachChunk calls f for the pieces of text between spaces, quotes, brackets and commas. A comma between digits
// belongs to the number.
func eachChunk(text string, f func(from, to int)) {
	from := -1
	for i := 0; i < len(text); {
		c := text[i]
		size := 1
		divides := c <= ' '
		switch c {
		case '\\': // also an escaped \n
			divides = true
			if i+1 < len(text) && strings.IndexByte("ntr", text[i+1]) >= 0 {
				size = 2
			}
		case '"', '\'', '`', '<', '>', '(', ')', '[', ']', '{', '}', '|', ';', '=', '&':
			divides = true
		case ',', ':': // 10,000 and 10:30 are one piece, and so is https://
			digits := i > 0 && i+1 < len(text) && isDigit(text[i-1]) && isDigit(text[i+1])
			divides = !digits && (c == ',' || !strings.HasPrefix(text[i:], "://"))
		}
		if c >= utf8.RuneSelf {
			var r rune
			r, size = utf8.DecodeRuneInString(text[i:])
			divides = r == '\u00a0' || r >= '\u2000' && r <= '\u206f' || r == '«' || r == '»' || r == '\u3000'
		}
		switch {
		case divides && from >= 0:
			f(from, i)
			from = -1
		case !divides && from < 0:
			from = i
		}
		i += size
	}
	if from >= 0 {
		f(from, len(text))
	}
}
