package pii

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/internal/lazy"
)

// known holds the built-in detectors.
var known = slices.Concat([]detector{
	{kind: "email", first: "@", at: findEmail, same: strings.ToLower},
	{kind: "credit_card", first: anyDigit, at: findCard},
	{kind: "iban", first: letters, at: findIBAN},
	{kind: "ip", first: anyDigit, at: findIPv4, same: sameIP},
	{kind: "ip", first: "23", at: findIPv6, same: sameIP},
}, phones, nationals)

// Kinds returns the names of the built-in kinds.
func Kinds() []string {
	return lo.Uniq(lo.Map(known, func(d detector, _ int) string { return d.kind }))
}

// noDomains lists file extensions that look like domains, as in logo@2x.png.
var noDomains = []string{
	"png", "jpg", "jpeg", "gif", "webp", "svg", "ico", "avif", "bmp", "tiff", "css", "js", "mjs", "ts", "tsx", "jsx", "json", "html", "xml", "yaml",
	"yml", "txt",
}

var mailDomain = lazy.Regexp(`^(?:[\p{L}\p{N}][\p{L}\p{N}-]*\.)+(?:xn--[A-Za-z0-9-]+|\p{L}{2,})`)

// findEmail finds an e-mail address around an @.
func findEmail(text string, i int) (from, to int, ok bool) {
	const longestLocal, longestDomain = 64, 255
	from = i
	for from > 0 {
		r, size := utf8.DecodeLastRuneInString(text[:from])
		if !isAlnum(r) && !strings.ContainsRune("._%+'-", r) {
			break
		}
		if from -= size; i-from > longestLocal {
			return 0, 0, false
		}
	}
	from += len(text[from:i]) - len(strings.TrimLeft(text[from:i], ".%+'-"))
	at := mailDomain().FindStringIndex(text[i+1 : min(i+1+longestDomain, len(text))])
	if from == i || at == nil {
		return 0, 0, false
	}
	to = i + 1 + at[1]
	local, domain, rest := text[from:i], text[i+1:to], text[to:]
	switch {
	case strings.Contains(local, "..") || strings.HasSuffix(local, ".") || strings.Contains(domain, "-."):
		return 0, 0, false
	case slices.Contains(noDomains, strings.ToLower(domain[strings.LastIndexByte(domain, '.')+1:])):
		return 0, 0, false
	case strings.HasPrefix(rest, ":/") || strings.HasPrefix(rest, ":~") || local == "git" && strings.HasPrefix(rest, ":"):
		return 0, 0, false // a host for ssh
	}
	// In a URL, an @ before the path separates a user from a host.
	back := text[max(0, from-200):from]
	if at := strings.LastIndexAny(back, "/ \t\n\r\"'<>()"); at > 0 && strings.HasSuffix(back[:at+1], "://") {
		return 0, 0, false
	}
	return from, to, true
}

// issuer is a range of prefixes for an issuer's card numbers, and the numbers' lengths.
type issuer struct {
	least, most int
	lengths     []int
}

var issuers = []issuer{
	{4, 4, []int{16, 13, 19}},           // Visa
	{51, 55, []int{16}},                 // Mastercard
	{2221, 2720, []int{16}},             // Mastercard
	{34, 34, []int{15}},                 // American Express
	{37, 37, []int{15}},                 // American Express
	{300, 305, []int{14}},               // Diners Club
	{36, 36, []int{14}},                 // Diners Club
	{38, 39, []int{14}},                 // Diners Club
	{6011, 6011, []int{16, 19}},         // Discover
	{644, 659, []int{16, 19}},           // Discover
	{3528, 3589, []int{16, 19}},         // JCB
	{62, 62, []int{16, 17, 18, 19}},     // UnionPay
	{5018, 5038, []int{16, 18, 19}},     // Maestro
	{6759, 6763, []int{16, 17, 18, 19}}, // Maestro
}

func (i issuer) issued(number string) bool {
	if !slices.Contains(i.lengths, len(number)) {
		return false
	}
	begin, err := strconv.Atoi(number[:len(strconv.Itoa(i.least))])
	return err == nil && i.least <= begin && begin <= i.most
}

// findCard finds a card number that begins at i: digits with single spaces and dashes between them.
func findCard(text string, i int) (from, to int, ok bool) {
	const longest = 19
	number := make([]byte, 0, longest)
	for end := i; end < len(text) && len(number) < longest; end++ {
		if c := text[end]; !isDigit(rune(c)) {
			if c != ' ' && c != '-' || !isDigit(rune(text[end-1])) {
				break
			}
			continue
		}
		number = append(number, text[end])
		if next := end + 1; (next == len(text) || !isDigit(rune(text[next]))) && isCard(string(number)) && alone(text, i, next) {
			return i, next, true
		}
	}
	return 0, 0, false
}

func isCard(number string) bool {
	return passesLuhn(number) && strings.Trim(number[1:], number[:1]) != "" && lo.SomeBy(issuers, func(i issuer) bool { return i.issued(number) })
}

// passesLuhn reports whether the number passes Luhn's check.
func passesLuhn(number string) bool {
	sum := 0
	for i := range len(number) {
		d := int(number[len(number)-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

// ibans maps countries to their account numbers' length.
var ibans = map[string]int{
	"AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BI": 27, "BR": 29, "BY": 28, "CH": 21, "CR": 22,
	"CY": 28, "CZ": 24, "DE": 22, "DJ": 27, "DK": 18, "DO": 28, "EE": 20, "EG": 29, "ES": 24, "FI": 18, "FK": 18, "FO": 18, "FR": 27, "GB": 22,
	"GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28, "HN": 28, "HR": 21, "HU": 28, "IE": 22, "IL": 23, "IQ": 23, "IS": 26, "IT": 27, "JO": 30,
	"KW": 30, "KZ": 20, "LB": 28, "LC": 32, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "LY": 25, "MC": 27, "MD": 24, "ME": 22, "MK": 19, "MN": 20,
	"MR": 27, "MT": 31, "MU": 30, "NI": 28, "NL": 18, "NO": 15, "OM": 23, "PK": 24, "PL": 28, "PS": 29, "PT": 25, "QA": 29, "RO": 24, "RS": 22,
	"RU": 33, "SA": 24, "SC": 31, "SD": 18, "SE": 24, "SI": 19, "SK": 24, "SM": 27, "SO": 23, "ST": 25, "SV": 28, "TL": 23, "TN": 24, "TR": 26,
	"UA": 29, "VA": 22, "VG": 24, "XK": 20, "YE": 30,
}

// findIBAN reads as many letters and digits as the country's account numbers have, grouped or not.
func findIBAN(text string, i int) (from, to int, ok bool) {
	if i+4 > len(text) || !isDigit(rune(text[i+2])) || !isDigit(rune(text[i+3])) {
		return 0, 0, false
	}
	length := ibans[strings.ToUpper(text[i:i+2])]
	number := make([]byte, 0, length)
	for to = i; to < len(text) && len(number) < length; to++ {
		switch c := text[to]; {
		case inASCIIWord(c):
			number = append(number, c)
		case c != ' ' && c != '-' || !inASCIIWord(text[to-1]):
			return 0, 0, false
		}
	}
	return i, to, length > 0 && len(number) == length && alone(text, i, to) && remainder97(strings.ToUpper(string(number[4:])+string(number[:4]))) == 1
}

// remainder97 returns the remainder of a number, in which letters stand for 10 to 35, divided by 97.
func remainder97(number string) int {
	rest := 0
	for _, c := range number {
		if isDigit(c) {
			rest = (rest*10 + int(c-'0')) % 97
		} else {
			rest = (rest*100 + int(c-'A') + 10) % 97
		}
	}
	return rest
}

var version = lazy.Regexp(`(?i)(?:version|release|\bver\.?|\bv)[\s:="']{0,3}$`)

func findIPv4(text string, i int) (from, to int, ok bool) {
	to = i + len(strings.TrimRight(spanOf(text[i:], anyDigit+"."), "."))
	return i, to, strings.Count(text[i:to], ".") == 3 && alone(text, i, to) && isPublicAddress(text[i:to]) && !version().MatchString(text[max(0, i-20):i])
}

func findIPv6(text string, i int) (from, to int, ok bool) {
	if i > 0 && text[i-1] == ':' {
		return 0, 0, false
	}
	to = i + len(strings.TrimRight(spanOf(text[i:], anyDigit+"abcdefABCDEF:."), "."))
	if strings.HasSuffix(text[i:to], ":") && !strings.HasSuffix(text[i:to], "::") {
		to--
	}
	return i, to, strings.IndexByte(text[i:to], ':') == 4 && alone(text, i, to) && isPublicAddress(text[i:to])
}

// spanOf returns a text's longest prefix with only the given characters, up to the window.
func spanOf(text, of string) string {
	text = text[:min(len(text), window)]
	return text[:len(text)-len(strings.TrimLeft(text, of))]
}

// isPublicAddress reports whether an address is publicly reachable. Other addresses, such as loopback and private
// addresses, do not identify a person.
func isPublicAddress(text string) bool {
	ip, err := netip.ParseAddr(text)
	return err == nil && ip.IsGlobalUnicast() && !ip.IsPrivate()
}

func sameIP(text string) string {
	ip, err := netip.ParseAddr(text)
	return lo.Ternary(err == nil, ip.String(), text)
}
