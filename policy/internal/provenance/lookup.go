package provenance

import "strings"

// level returns the most trusted level at which a value was seen, and its place. It ignores strangers' text.
func (x *index) level(n name) (Level, int) {
	if at, ok := x.user.find(n); ok {
		return FromUser, at
	}
	if at, ok := x.system.find(n); ok {
		return FromSystem, at
	}
	if at, ok := x.trusted[n.whole()]; ok {
		return FromTrusted, at
	}
	if at, ok := x.knownNamed.find(n); ok {
		return FromKnown, at
	}
	if at, ok := x.known.find(n); ok {
		return FromKnown, at
	}
	return Nowhere, -1
}

// saidAsWords reports whether a string consists only of the user's words in any order, like a search query or a file
// name: "the team meeting minutes" for team-meeting-minutes.docx. It ignores words of one or two letters.
func (x *index) saidAsWords(n name) bool {
	text := n.text
	switch n.kind {
	case kindURL, kindID:
		if strings.Contains(text, "/") {
			return false
		}
		if i := strings.LastIndexByte(text, '.'); i > 0 {
			text = text[:i]
		}
	case kindPhrase:
	default:
		return false
	}
	words, said := 0, true
	eachWord(text, func(word key, from, to int) {
		if to-from >= minWord {
			words++
			said = said && has(x.user, word)
		}
	})
	return words > 0 && said
}

const minWord = 3

// isBelowNamed reports whether the user named a folder that contains a path: /user/info for /user/info/me.txt.
func (x *index) isBelowNamed(path string) bool {
	if strings.Contains(path, "..") || strings.Contains(path, "://") || strings.ContainsAny(path, "\n\\") {
		return false
	}
	text := ""
	for i := strings.LastIndexByte(path, '/'); i > minWord; i = strings.LastIndexByte(path[:i], '/') {
		if text == "" {
			text = x.state.Message(x.lastUser).Text()
		}
		if strings.Contains(path[1:i], "/") && holdsWord(text, path[:i]) {
			return true
		}
	}
	return false
}

// calledByUser reports whether the user said a name that is part of a mail address: "reply to Lily" means
// lily.white@…. A name begins with a capital letter: "a discount" is not the name in big.discount@….
func (x *index) calledByUser(n name) bool {
	called := false
	if n.kind == kindAddress {
		eachNameWord(n.text, func(word key) { called = called || x.userNames[word] })
	}
	return called
}

// isFromPerson reports whether a web address is the only one in a text whose author the user called by a name that no
// other author has.
func (x *index) isFromPerson(address name) bool {
	at, ok := x.links[address.whole()]
	if !ok {
		return false
	}
	called, author := false, x.places[at].author
	eachNameWord(author, func(word key) { called = called || x.userNames[word] && x.authors[word] == author })
	return called
}

// eachNameWord calls f for the words in a mail address that may be a person's name.
func eachNameWord(address string, f func(word key)) {
	local := address[:max(strings.LastIndexByte(address, '@'), 0)]
	eachWord(local, func(word key, from, to int) {
		if to-from >= minWord {
			f(word)
		}
	})
}

// anyLevel works like level but includes strangers' text.
func (x *index) anyLevel(n name) (Level, int) {
	if level, at := x.level(n); level != Nowhere {
		return level, at
	}
	x.readWaiting()
	if at, ok := x.othersNamed.mentions(n); ok {
		return FromOthers, at
	}
	if at, ok := x.others.mentions(n); ok {
		return FromOthers, at
	}
	if x.full {
		return FromOthers, -1
	}
	return Nowhere, -1
}

// isTainted reports whether a value, or part of a text, was seen in strangers' text and in no trusted source.
func (x *index) isTainted(n name) bool {
	if level, _ := x.anyLevel(n); level != Nowhere {
		return level == FromOthers
	}
	if n.kind != kindPhrase {
		return false
	}
	bad := false
	scanValues(n.text, func(v name, _ string) {
		if !bad && (v.kind == kindAddress || v.kind == kindURL || v.kind == kindID) {
			level, _ := x.anyLevel(v)
			bad = level == FromOthers
		}
	})
	row := 0
	for i := 0; !bad && i+2 < len(n.keys); i++ {
		k := mix(kindTriple, n.keys[i:i+3]...)
		_, others := x.others[k]
		if others && !has(x.user, k) && !has(x.system, k) && !has(x.known, k) {
			row++
		} else {
			row = 0
		}
		bad = row+2 >= taintedWords
	}
	return bad
}

const taintedWords = 5 // in a row

func has(s shelf, k key) bool {
	_, ok := s[k]
	return ok
}

// find returns the place of a value in text, including its signs if they matter.
func (s shelf) find(n name) (int, bool) {
	if at, ok := s[n.exact]; n.exact != 0 {
		return at, ok
	}
	return s.mentions(n)
}

// mentions works like find but ignores signs, because strangers may write a value differently.
func (s shelf) mentions(n name) (int, bool) {
	if len(s) == 0 {
		return -1, false
	}
	if n.kind != kindPhrase {
		for _, k := range n.keys { // for a date: with and without its year
			if at, ok := s[k]; ok {
				return at, true
			}
		}
		return -1, false
	}
	at, ok := s[n.keys[0]]
	if !ok || len(n.keys) == 1 {
		return at, ok
	}
	if len(n.keys) == 2 {
		at, ok = s[mix(kindPair, n.keys...)]
		return at, ok
	}
	for i := range len(n.keys) - 2 {
		if at, ok = s[mix(kindTriple, n.keys[i:i+3]...)]; !ok {
			return -1, false
		}
	}
	return at, true
}
