package tools

import (
	"strings"
	"unicode"
)

// wordsIn returns the words in a name or text, in lower case and in their basic form: createTransfer, create-transfer
// and CREATE_TRANSFER are [create transfer].
func wordsIn(text string) []string {
	var out []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			out = append(out, stem(strings.ToLower(string(word))))
		}
		word = word[:0]
	}
	runes := []rune(text)
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r):
			end()
			continue
		case unicode.IsUpper(r) && i > 0 && (unicode.IsLower(runes[i-1]) ||
			unicode.IsUpper(runes[i-1]) && i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			end()
		}
		word = append(word, r)
	}
	end()
	return joinPairs(out)
}

// pairs lists pairs of words that have another meaning together than apart.
var pairs = map[[2]string]string{
	{"sign", "in"}: "signin", {"log", "in"}: "login", {"log", "on"}: "login", {"sign", "up"}: "signup", {"check", "out"}: "checkout",
	{"address", "book"}: "addressbook", {"account", "number"}: "iban", {"channel", "history"}: "conversation",
	{"user", "data"}: "profile", {"member", "data"}: "profile", {"customer", "data"}: "profile",
	{"user", "record"}: "profile", {"person", "record"}: "profile", {"customer", "record"}: "profile",
}

// joinPairs returns words with each of the pairs joined to one word.
func joinPairs(words []string) []string {
	out := words[:0]
	for _, w := range words {
		if last := len(out) - 1; last >= 0 && pairs[[2]string{out[last], w}] != "" {
			out[last] = pairs[[2]string{out[last], w}]
			continue
		}
		out = append(out, w)
	}
	return out
}

// endings maps the endings of English words to their basic form.
var endings = [][2]string{
	{"ies", "y"}, {"sses", "ss"}, {"ches", "ch"}, {"shes", "sh"}, {"xes", "x"}, {"s", ""}, {"ing", ""}, {"ing", "e"},
	{"ed", ""}, {"ed", "e"}, {"tting", "t"}, {"lling", "l"}, {"lled", "l"},
}

// stem returns the basic form of an English word: sends, sending and send are send.
func stem(w string) string {
	if known(w) || w == "linked" {
		return w
	}
	for _, rule := range endings {
		if base, ok := strings.CutSuffix(w, rule[0]); ok && len(base) > 1 && known(base+rule[1]) {
			return base + rule[1]
		}
	}
	if base, ok := strings.CutSuffix(w, "s"); ok && len(base) > 2 && !strings.HasSuffix(base, "s") {
		return base
	}
	return w
}

func known(w string) bool {
	_, isVerb := verbs[w]
	_, isNoun := nouns[w]
	_, isPart := parts[w]
	return isVerb || isNoun || isPart
}

// localName returns a tool's name without its server: send_payment for mcp__bank__send_payment.
func localName(name string) string {
	for _, divider := range []string{"__", ".", "/", ":"} {
		if i := strings.LastIndex(name, divider); i >= 0 && i+len(divider) < len(name) && len(wordsIn(name[i+len(divider):])) > 1 {
			name = name[i+len(divider):]
		}
	}
	return name
}

// mainClause returns a sentence without trailing lists of details: "Get the user's data, such as email and phone".
func mainClause(sentence string) string {
	for _, divider := range []string{",", ":", "(", " including ", " such as "} {
		if i := strings.Index(sentence, divider); i > 0 && len(strings.Fields(sentence[:i])) > 2 {
			sentence = sentence[:i]
		}
	}
	return sentence
}

// firstSentence returns a description's first sentence, which says what the tool does.
func firstSentence(text string) string {
	text = strings.TrimSpace(text)
	for i, r := range text {
		if r == '\n' || (r == '.' || r == '!' || r == ';') && (i+1 == len(text) || text[i+1] == ' ' || text[i+1] == '\n') {
			return text[:i]
		}
	}
	return text
}
