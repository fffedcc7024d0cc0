package provenance

import (
	"hash/maphash"
	"math/bits"
	"net/mail"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// key identifies a value in its normal form. The hash seed is random for each process, so that an attacker cannot
// write text whose key collides with another.
type key uint64

var seed = maphash.MakeSeed()

// kind distinguishes values of different kinds: the number 13 is not the date of the 13th.
type kind byte

const (
	kindWord    kind = 'w'
	kindPair    kind = 'p' // two words in a row
	kindTriple  kind = 't'
	kindAddress kind = 'a' // a mail address
	kindURL     kind = 'u'
	kindDate    kind = 'd'
	kindNumber  kind = 'n'
	kindID      kind = 'i' // IBANs, phones, cards, order numbers
	kindPhrase  kind = 'v' // a complete value that consists of words
	kindExact   kind = 'x' // a path or another value with signs between its letters: notes/may-2.txt
)

func keyOf(k kind, text string) key {
	var h maphash.Hash
	h.SetSeed(seed)
	_ = h.WriteByte(byte(k))
	_, _ = h.WriteString(text)
	return key(h.Sum64())
}

// mix combines several keys into one. It is optimised for speed, because reading text spends most of its time here.
func mix(k kind, parts ...key) key {
	h := secret[0] ^ uint64(k)
	for _, part := range parts {
		hi, lo := bits.Mul64(h^uint64(part), secret[1])
		h = hi ^ lo
	}
	return key(h)
}

var secret = [2]uint64{maphash.String(seed, "one"), maphash.String(seed, "two") | 1}

// name is a value prepared for a lookup: its kind and keys. A phrase has one key per word.
type name struct {
	kind kind
	keys []key // one; two for a date, with and without its year; one for each word of a phrase
	text string
	// exact is the key for a phrase without spaces in which signs matter: notes/a.txt is not notes-a.txt. Zero for
	// others.
	exact key
}

// single returns the name of a value with one key.
func single(k kind, text string) name { return name{kind: k, keys: []key{keyOf(k, text)}, text: text} }

func dateName(d day) name {
	return name{kind: kindDate, keys: []key{keyOf(kindDate, d.String()), keyOf(kindDate, d.yearless())}, text: d.String()}
}

// whole returns the key for the complete value, as stored for trusted fields.
func (n name) whole() key {
	if n.exact != 0 {
		return n.exact
	}
	if n.kind == kindPhrase {
		return mix(kindPhrase, n.keys...)
	}
	return n.keys[0]
}

// nameOf recognises the kind of a string. It returns false for a string without letters and digits, which names
// nothing.
func nameOf(text string) (name, bool) {
	text = norm.NFC.String(text)
	text = strings.Trim(strings.TrimSpace(text), "\"'`")
	if a, ok := addressOf(text); ok {
		return single(kindAddress, a), true
	}
	if !strings.ContainsAny(text, "\n\r") {
		if strings.Contains(text, "://") {
			if u, ok := urlOf(text); ok {
				return single(kindURL, u), true
			}
		}
		if d, ok := dateOf(text); ok {
			return dateName(d), true
		}
		if n, ok := numberOf(text); ok {
			return single(kindNumber, n), true
		}
		if id, ok := idOf(text); ok {
			return single(kindID, id), true
		}
		if u, ok := urlOf(text); ok {
			return single(kindURL, u), true
		}
	}
	n, ok := wordsOf(text)
	n.exact = exactOf(text)
	return n, ok
}

// exactOf returns the key for a string without spaces that has signs between letters or digits; zero for others.
func exactOf(text string) key {
	text = strings.TrimRight(trimSigns(text), "/")
	inside := strings.TrimFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if strings.ContainsFunc(text, unicode.IsSpace) || !strings.ContainsFunc(inside, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.In(r, unicode.Cf, unicode.Mn)
	}) {
		return 0
	}
	return keyOf(kindExact, strings.ToLower(text))
}

// trimSigns removes signs that end sentences or emphasize words.
func trimSigns(text string) string { return strings.Trim(text, ".:!?*_#,") }

// wordsOf returns a string as a phrase, even if it is of another kind.
func wordsOf(text string) (name, bool) {
	text = norm.NFC.String(text)
	n := name{kind: kindPhrase, text: text}
	eachWord(text, func(word key, _, _ int) { n.keys = append(n.keys, word) })
	return n, len(n.keys) > 0
}

// addressOf returns the mail address that a string consists of, also in the form "Ann Lee <ann@example.com>".
func addressOf(text string) (string, bool) {
	at := strings.LastIndexByte(text, '@')
	if at <= 0 || len(text) > maxAddress {
		return "", false
	}
	if strings.HasSuffix(text, ">") {
		a, err := mail.ParseAddress(text)
		if err != nil {
			return "", false
		}
		text = a.Address
	}
	text = strings.TrimPrefix(text, "mailto:")
	at = strings.LastIndexByte(text, '@')
	if at <= 0 || at == len(text)-1 {
		return "", false
	}
	for i := range len(text) {
		c := text[i]
		if i != at && !isAlnum(c) && c < utf8.RuneSelf && !strings.ContainsRune("._%+-", rune(c)) {
			return "", false
		}
	}
	return strings.ToLower(strings.TrimSuffix(text, ".")), true
}

const maxAddress = 500 // in bytes, including a preceding name

// urlOf returns a web address in normal form: without http(s)://, a leading www., the trailing slash and the
// fragment. A string without a scheme is a web address if it begins with a host that contains a dot and ends in a
// name: shop.example/sale.
func urlOf(text string) (string, bool) {
	text = strings.TrimRight(text, ".,;:!?)'\"*")
	scheme, rest, ok := strings.Cut(text, "://")
	switch {
	case !ok:
		scheme, rest = "", text
	case strings.EqualFold(scheme, "http"), strings.EqualFold(scheme, "https"):
		scheme = ""
	default:
		scheme = strings.ToLower(scheme) + "://"
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	host := strings.ToLower(rest[:end])
	if !ok && !isHost(host) || host == "" || strings.ContainsFunc(text, unicode.IsSpace) {
		return "", false
	}
	path := rest[end:]
	if i := strings.IndexByte(path, '#'); i >= 0 {
		path = path[:i]
	}
	if strings.Contains(path, "%") {
		if plain, err := url.PathUnescape(path); err == nil {
			path = plain
		}
	}
	host = strings.TrimSuffix(strings.TrimSuffix(host, ":80"), ":443")
	return scheme + strings.TrimPrefix(host, "www.") + strings.TrimSuffix(path, "/"), true
}

func isHost(host string) bool {
	host, port, _ := strings.Cut(host, ":")
	if port != "" && strings.Trim(port, "0123456789") != "" {
		return false
	}
	dot := strings.LastIndexByte(host, '.')
	if dot <= 0 || len(host)-dot < 3 || strings.Contains(host, "..") {
		return false
	}
	for i := range len(host) {
		c := host[i]
		if !isAlnum(c) && c != '.' && c != '-' && c != '_' && c < utf8.RuneSelf {
			return false
		}
		if i > dot && isDigit(c) {
			return false
		}
	}
	return true
}

// numberOf returns a number in its shortest form: 10.0, 10 and "10.00 €" are 10; 10,000 is 10000.
func numberOf(text string) (string, bool) {
	text = strings.TrimSpace(strings.Trim(text, "$€£¥% "))
	negative := strings.HasPrefix(text, "-")
	digits := strings.TrimPrefix(text, "-")
	if digits == "" || len(digits) > 40 {
		return "", false
	}
	whole, fraction, _ := strings.Cut(digits, ".")
	if groups := strings.Split(whole, ","); len(groups) > 1 {
		for i, group := range groups {
			if len(group) > 3 || i > 0 && len(group) != 3 {
				return "", false
			}
		}
		whole = strings.Join(groups, "")
	}
	if whole == "" || strings.Trim(whole, "0123456789") != "" || strings.Trim(fraction, "0123456789") != "" || strings.HasSuffix(digits, ".") {
		return "", false
	}
	if len(whole) >= minID && fraction == "" && !strings.Contains(digits, ",") {
		return "", false // an account or phone number: leading zeros matter
	}
	whole, fraction = strings.TrimLeft(whole, "0"), strings.TrimRight(fraction, "0")
	if whole == "" {
		whole = "0"
	}
	if fraction != "" {
		whole += "." + fraction
	}
	if negative && whole != "0" {
		whole = "-" + whole
	}
	return whole, true
}

const (
	minID     = 8 // letters and digits
	minDigits = 5 // of them
)

// idOf returns a string of groups, such as an IBAN, a phone or a card number, without the characters between them.
func idOf(text string) (string, bool) {
	if len(text) > 80 {
		return "", false
	}
	var b strings.Builder
	digits := 0
	for group := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ' ' || r == '/' || r == '(' || r == ')' }) {
		if !inID(group) {
			return "", false
		}
		digits += squeeze(&b, group)
	}
	if b.Len() < minID || digits < minDigits {
		return "", false
	}
	return b.String(), true
}

// inID reports whether a chunk of text may be a group in an ID: it has a digit, or is a few capital letters.
func inID(chunk string) bool {
	digits, lower := 0, 0
	for i := range len(chunk) {
		c := chunk[i]
		switch {
		case isDigit(c):
			digits++
		case c >= 'A' && c <= 'Z', c == '-', c == '.', c == '+', c == '_':
		case c >= 'a' && c <= 'z':
			lower++
		default:
			return false
		}
	}
	return digits > 0 || lower == 0 && len(chunk) <= 4
}

// squeeze writes a chunk's letters and digits, and counts the digits.
func squeeze(b *strings.Builder, chunk string) (digits int) {
	for i := range len(chunk) {
		c := chunk[i]
		switch {
		case isDigit(c):
			digits++
			b.WriteByte(c)
		case c >= 'A' && c <= 'Z':
			b.WriteByte(c + 'a' - 'A')
		case c >= 'a' && c <= 'z':
			b.WriteByte(c)
		}
	}
	return digits
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isAlnum(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// eachWord calls f for the words in a text: runs of letters and digits, in lower case. Invisible marks are omitted.
func eachWord(text string, f func(word key, from, to int)) {
	var h maphash.Hash
	h.SetSeed(seed)
	start, inside := 0, false
	end := func(at int) {
		if inside {
			f(key(h.Sum64()), start, at)
			inside = false
		}
	}
	begin := func(at int) {
		if !inside {
			inside, start = true, at
			h.Reset()
			_ = h.WriteByte(byte(kindWord))
		}
	}
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			switch {
			case c >= 'A' && c <= 'Z':
				begin(i)
				_ = h.WriteByte(c + 'a' - 'A')
			case isAlnum(c):
				begin(i)
				_ = h.WriteByte(c)
			default:
				end(i)
				if c == '\\' && i+1 < len(text) && strings.IndexByte("ntr", text[i+1]) >= 0 {
					i++ // an escaped line end
				}
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case unicode.Is(unicode.Cf, r):
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.Is(unicode.Mn, r) && inside:
			begin(i)
			var b [utf8.UTFMax]byte
			_, _ = h.Write(b[:utf8.EncodeRune(b[:], unicode.ToLower(r))])
		default:
			end(i)
		}
		i += size
	}
	end(len(text))
}
