package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/internal/invisible"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// rule finds one format of secret.
type rule struct {
	kind string
	hint []string       // every text with a match contains one of these, in lower case; empty: unknown
	re   *regexp.Regexp // the first group that matched is the secret; without groups, the whole match
	not  *regexp.Regexp // if set, matches values that are not secrets
}

// kindSet is the kind for a value assigned to a name such as password.
const kindSet = "password"

// kindAuthorization is the kind for the secret in an Authorization header.
const kindAuthorization = "authorization"

// schemes matches the words before the secret in an Authorization header.
const schemes = `(?:(?:bearer|basic|token|digest|negotiate)\s+)`

// names matches the end of a secret's name: DB_PASSWORD, githubToken, x-api-key.
const names = `(?:password|passwd|passphrase|pwd|secret|token|credentials?|api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|auth[_-]?key)`

// hintSet is the hint for the rules that use names.
const hintSet = "passw|passphrase|pwd|secret|token|credential|key"

// wellKnown returns the well-known rules, the more exact ones first. Like all expressions here they are compiled on first
// use, which takes a millisecond.
var wellKnown = sync.OnceValue(func() []rule {
	return []rule{
		newRule("private key", "PRIVATE KEY", `-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:(?:\s|\\[nr])*[A-Za-z-]+: [^\n\\]*)*`+
			`[A-Za-z0-9+/=\s\\"',>#|*]*(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----)?`),
		newRule("AWS key", "AKIA|ASIA|ABIA|ACCA", `\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b`),
		newRule("GitHub token", "ghp_|gho_|ghu_|ghs_|ghr_", `\bgh[pousr]_[A-Za-z0-9]{36,255}`),
		newRule("GitHub token", "github_pat_", `\bgithub_pat_[A-Za-z0-9_]{22,255}`),
		newRule("GitLab token", "glpat-", `\bglpat-[A-Za-z0-9_.-]{20,}`),
		newRule("Slack token", "xox|xapp-", `\b(?:xox[abceoprs]|xapp)-[A-Za-z0-9-]{10,}`),
		newRule("Slack webhook", "hooks.slack.com", `https://hooks\.slack\.com/[a-z]+/[A-Za-z0-9/_-]{20,}`),
		newRule("Anthropic key", "sk-ant-", `\bsk-ant-[A-Za-z0-9_-]{20,}`),
		newRule("OpenAI key", "sk-", `\bsk-(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,}|[A-Za-z0-9]{32,})`),
		newRule("Google key", "AIza", `\bAIza[A-Za-z0-9_-]{35}`),
		newRule("Google token", "ya29.", `\bya29\.[A-Za-z0-9_-]{20,}`),
		newRule("Google secret", "GOCSPX-", `\bGOCSPX-[A-Za-z0-9_-]{28}`),
		newRule("Stripe key", "k_live_|k_test_", `\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}`),
		newRule("npm token", "npm_", `\bnpm_[A-Za-z0-9]{36}`),
		newRule("PyPI token", "pypi-", `\bpypi-[A-Za-z0-9_-]{50,}`),
		newRule("Hugging Face token", "hf_", `\bhf_[A-Za-z0-9]{30,}`),
		newRule("SendGrid key", "SG.", `\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}`),
		newRule("JWT", "eyJ", `\beyJ[A-Za-z0-9_-]{6,}\.eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]*`),
		newRule("URL password", "://", `\b[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#:@"'<>]*:([^\s/?#"'<>]+)@`),
		newRule(kindAuthorization, kindAuthorization, `(?i)\bauthorization\\?["']?\s*[:=]\s*\\?["']?(?:digest\s+([^\r\n]{6,})|`+
			schemes+`?([a-z][a-z-]+[ \t]+[a-z0-9._~+/=-]{16,}|[^\s"'\\]{6,}))`),
		newRule(kindAuthorization, "bearer", `(?i)\bbearer\s+([A-Za-z0-9._~+/=-]{16,})`),
		newRule(kindSet, hintSet, `(?im)^\s*(?:export\s+|set\s+)?[a-z0-9_.-]*`+names+`=([^\s"'`+"`"+`]{4,})`),
		newRule(kindSet, hintSet, `(?i)`+names+`(?:\\?["'])?[ \t]*(?:=>|:=|[:=])[ \t]*`+
			`(?:"((?:[^"\\\n]|\\[^\n])+)"|'((?:[^'\\\n]|\\[^\n])+)'|(?:\\["'])?([^\s"'`+"`"+`\\,;&(){}\[\]<>$]{4,}[({\[]?))`),
	}
})

// noSecret matches assigned values that are not secrets: types, placeholders, variables, code, and marks.
var noSecret = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(?:\[redacted.*|[*x.]+|<.*>|\$.*|\{\{.*|%[a-z]+%?|.*[({\[]|nil|null|none|true|false|undefined|` +
		`string|str|bytes?|text|int|bool|any|object|required|optional|required,.*|\d{1,5})$`)
})

var setName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)` + names + `$`) })

func newRule(kind, hint, re string) rule {
	r := rule{kind: kind, hint: strings.Split(strings.ToLower(hint), "|"), re: regexp.MustCompile(re)}
	if r.re.NumSubexp() > 0 { // the expression includes the text around the secret
		r.not = noSecret()
	}
	return r
}

// Kinds returns the kinds of secrets that are known by their format.
func Kinds() []string {
	return lo.Uniq(lo.Map(wellKnown(), func(r rule, _ int) string { return r.kind }))
}

var (
	authorizationName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)authorization$`) })
	schemeBefore      = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)^` + schemes) })
	onlyMark          = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\[redacted: [^\]]*\]$`) })
)

// setAs returns the kind of secret that the member's name implies for its value, and the value's prefix that is not
// secret. The kind is empty if the value is not a secret.
func (r *Redactor) setAs(name, value string) (scheme, kind string) {
	if visible, ok := invisible.Remove(name); ok {
		name = visible.Visible
	}
	switch {
	case setName().MatchString(name):
		kind = kindSet
	case authorizationName().MatchString(name):
		scheme, kind = schemeBefore().FindString(value), kindAuthorization
	}
	secret := value[len(scheme):]
	if kind == "" || secret == "" || noSecret().MatchString(secret) || !lo.SomeBy(r.rules, func(r rule) bool { return r.kind == kind }) {
		return "", ""
	}
	return scheme, kind
}

// replace replaces the rule's matches with marks. lower is the text in lower case.
func (r rule) replace(text, lower string, counts Counts) string {
	if !r.mayMatch(lower) {
		return text
	}
	var b strings.Builder
	end := 0
	for _, m := range r.find(text, counts) {
		b.WriteString(text[end:m.From] + m.With())
		end = m.To
	}
	if end == 0 {
		return text
	}
	return b.String() + text[end:]
}

// mayMatch reports whether a text, in lower case, can have a match.
func (r rule) mayMatch(lower string) bool {
	return len(r.hint) == 0 || lo.SomeBy(r.hint, func(hint string) bool { return strings.Contains(lower, hint) })
}

// find returns the rule's matches, whose marks count them.
func (r rule) find(text string, counts Counts) []invisible.Match {
	var found []invisible.Match
	for _, at := range r.re.FindAllStringSubmatchIndex(text, -1) {
		m := matchOf(r.kind, at[0], at[1], counts)
		for group := 2; group < len(at); group += 2 {
			if at[group] >= 0 {
				m.From, m.To = at[group], at[group+1]
				break
			}
		}
		if m.From < m.To && (r.not == nil || !r.not.MatchString(text[m.From:m.To])) {
			found = append(found, m)
		}
	}
	return found
}

// matchOf returns a match, whose mark counts it.
func matchOf(kind string, from, to int, counts Counts) invisible.Match {
	return invisible.Match{From: from, To: to, Start: from, End: to, With: func() string { counts[kind]++; return markOf(kind) }}
}

// markOf returns the mark that replaces a secret.
func markOf(kind string) string { return "[redacted: " + kind + "]" }

// literal is one encoding of a literal secret.
type literal struct{ kind, text string }

// escapedRule returns the rule that finds a secret that is escaped for a URL or for JSON. Any character can be escaped,
// because encoders differ. It returns false for a secret without characters that an encoder escapes.
func escapedRule(kind, secret string) (rule, bool) {
	if url.QueryEscape(secret) == secret || !utf8.ValidString(secret) {
		return rule{}, false
	}
	var b strings.Builder
	for _, r := range secret {
		char := string(r)
		if url.QueryEscape(char) == char {
			b.WriteString(regexp.QuoteMeta(char))
			continue
		}
		fmt.Fprintf(&b, "(?:%s|(?i:%s|%s)%s)", regexp.QuoteMeta(char), encodePercent([]byte(char)), inJSON(r), lo.Ternary(r == ' ', `|\+`, ""))
	}
	return rule{kind: kind, hint: []string{"%", `\`, "+"}, re: regexp.MustCompile(b.String())}, true
}

// inJSON returns a pattern for a rune's JSON escapes.
func inJSON(r rune) string {
	units := strings.Join(lo.Map(utf16.Encode([]rune{r}), func(u uint16, _ int) string { return fmt.Sprintf(`\\u%04x`, u) }), "")
	if at := strings.IndexRune("\"\\/\b\f\n\r\t", r); at >= 0 {
		return units + `|\\` + regexp.QuoteMeta(`"\/bfnrt`[at:at+1])
	}
	return units
}

// encodePercent returns bytes in percent encoding.
func encodePercent(b []byte) string {
	return strings.Join(lo.Map(b, func(c byte, _ int) string { return fmt.Sprintf("%%%02X", c) }), "")
}

// writtenForms returns a secret in its common encodings.
func writtenForms(kind, secret string) []literal {
	raw := []byte(secret)
	list := []string{
		secret, url.QueryEscape(secret), url.PathEscape(secret), hex.EncodeToString(raw), strings.ToUpper(hex.EncodeToString(raw)),
	}
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		list = append(list, encoding.EncodeToString(raw), strings.TrimRight(encoding.EncodeToString(raw), "="))
		for shift := range 3 { // within a longer text: the part that does not depend on its neighbours
			inner := encoding.EncodeToString(append(make([]byte, shift), raw...))
			inner = inner[(shift*8+5)/6 : (shift+len(raw))*8/6]
			if len(inner) >= 8 {
				list = append(list, inner)
			}
		}
	}
	if strict, err := strictjson.Marshal(secret); err == nil {
		list = append(list, strict[1:len(strict)-1])
	}
	if html, err := json.Marshal(secret); err == nil {
		list = append(list, string(html[1:len(html)-1]))
	}
	return lo.Map(lo.Uniq(list), func(text string, _ int) literal { return literal{kind, text} })
}
