package provenance

import (
	"slices"
	"strings"
	"sync"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// Place is where in a run something stands.
type Place struct {
	// Level is whose words they are.
	Level Level `json:"level"`
	// Message is the index in the transcript.
	Message int `json:"message"`
	// Call and Tool are those of the answer, Field the names on the way to the value in it; empty elsewhere, and where
	// the answer is plain text.
	Call  string `json:"call,omitempty"`
	Tool  string `json:"tool,omitempty"`
	Field string `json:"field,omitempty"`
	// Named says that the user pointed there: what the call that brought it was given is the user's own words, or those
	// of known people in a place to which the user pointed.
	Named bool `json:"named,omitempty"`
	// Written says that the value did not come from there but went in: the model gave it to a tool that may change things.
	Written bool `json:"written,omitempty"`
}

// shelf is where each key was seen first, as an index into places.
type shelf map[key]int32

// index is what was seen in one run, up to some message. It grows with the transcript and is never read from the start
// again.
type index struct {
	tracker *Tracker
	mu      sync.Mutex
	seen
}

type seen struct {
	count int
	depth int             // of the run
	tail  []agent.Message // the last messages that are in it: is a state the one that it was made of?

	places                         []Place
	system, user, known, others    shelf // of text
	trusted, written, confidential shelf // of whole values
	knownNamed, othersNamed        shelf
	calls                          map[string]call // by id, of the last assistant message
	waiting                        []text          // text of strangers that nobody asked about yet
	keys                           int
	full                           bool
	userDates                      bool // the user gave a date
	lastUser                       int  // message
}

type call struct {
	tool  string
	named bool
}

type text struct {
	place int32
	text  string
}

const tailLength = 8

func newIndex(t *Tracker) *index {
	x := &index{tracker: t}
	x.clear()
	return x
}

func (x *index) clear() {
	x.seen = seen{
		system: shelf{}, user: shelf{}, known: shelf{}, others: shelf{},
		trusted: shelf{}, written: shelf{}, confidential: shelf{},
		knownNamed: shelf{}, othersNamed: shelf{},
		calls: map[string]call{},
	}
}

// catchUp reads what came to the transcript since the last time. A state that is not the one that came after what was
// read, as that of a fork, is read anew.
func (x *index) catchUp(s agent.State) {
	if depth := s.Run().Depth; !x.holds(s) || depth != x.depth {
		x.clear()
		x.depth = depth
	}
	if x.count == s.MessageCount() {
		return
	}
	for i, m := range s.MessagesFrom(x.count) {
		x.add(i, m)
		x.count = i + 1
		if len(x.tail) == tailLength {
			x.tail = slices.Delete(x.tail, 0, 1)
		}
		x.tail = append(x.tail, m)
	}
}

// holds reports whether the messages that were read are the first ones of s: the last few of them stand where they stood.
func (x *index) holds(s agent.State) bool {
	if s.MessageCount() < x.count {
		return false
	}
	for i, m := range x.tail {
		if s.Message(x.count-len(x.tail)+i) != m {
			return false
		}
	}
	return true
}

func (x *index) add(i int, m agent.Message) {
	switch m.Role() {
	case agent.RoleSystem:
		x.text(x.system, Place{Level: FromSystem, Message: i}, m.Text())
	case agent.RoleUser:
		switch {
		case m.Source() != "":
			x.message(x.tracker.sources.message(m.Source()), Place{Message: i}, m.Text())
		case x.depth > 0:
			x.message(x.tracker.sources.message(Parent), Place{Message: i}, m.Text())
		default:
			x.lastUser = i
			x.text(x.user, Place{Level: FromUser, Message: i}, m.Text())
		}
	case agent.RoleAssistant:
		clear(x.calls)
		for _, c := range m.Calls() {
			x.call(i, c)
		}
	case agent.RoleTool:
		x.answer(i, m)
	}
}

func (x *index) message(level Level, at Place, words string) {
	at.Level = level
	switch level {
	case FromTrusted:
		x.text(x.system, at, words)
	case FromKnown:
		x.text(x.known, at, words)
	default:
		x.wait(at, words)
	}
}

func (x *index) place(at Place) int32 {
	if n := len(x.places); n > 0 && x.places[n-1] == at {
		return int32(n - 1)
	}
	x.places = append(x.places, at)
	return int32(len(x.places) - 1)
}

// put remembers where a key was seen, if it was not seen before.
func (x *index) put(s shelf, k key, at int32) {
	if _, ok := s[k]; ok {
		return
	}
	if x.keys >= x.tracker.maxKeys {
		x.full = true
		return
	}
	x.keys++
	s[k] = at
}

func (x *index) text(s shelf, at Place, words string) {
	place := x.place(at)
	dates := scan(words, func(k key) { x.put(s, k, place) })
	x.userDates = x.userDates || dates && at.Level == FromUser
}

// wait keeps text of strangers until somebody asks about it: most runs never do.
func (x *index) wait(at Place, words string) {
	if words == "" {
		return
	}
	at.Level = FromOthers
	x.waiting = append(x.waiting, text{x.place(at), words})
}

// readWaiting indexes the text of strangers.
func (x *index) readWaiting() {
	for _, t := range x.waiting {
		named := x.places[t.place].Named
		scan(t.text, func(k key) {
			x.put(x.others, k, t.place)
			if named {
				x.put(x.othersNamed, k, t.place)
			}
		})
	}
	x.waiting = x.waiting[:0]
}

// call looks at what the model gave to a tool: whether the user named it, and what will come back as if it were known.
func (x *index) call(i int, c agent.ToolCall) {
	rules := x.tracker.rules(c.Name)
	named, texts := true, 0
	at := int32(-1)
	eachArgument(c.Arguments, func(n name, value any) {
		s, isText := value.(string)
		level, place := x.level(n)
		if isText {
			texts++
			named = named && (level == FromUser || level == FromKnown && x.places[place].Named || x.saidAsWords(n))
		}
		if rules.reads {
			return
		}
		write := func(n name) {
			if level, _ := x.level(n); level.atLeast(FromTrusted) {
				return
			}
			if at < 0 {
				at = x.place(Place{Level: FromOthers, Message: i, Call: c.ID, Tool: c.Name, Written: true})
			}
			x.put(x.written, n.whole(), at)
		}
		write(n)
		if isText && n.kind == kindPhrase {
			values(s, func(n name, _ string) { write(n) })
		}
	})
	x.calls[c.ID] = call{c.Name, named && texts > 0}
}

// answer reads what a tool said.
func (x *index) answer(i int, m agent.Message) {
	c := x.calls[m.CallID()]
	at := Place{Message: i, Call: m.CallID(), Tool: m.Tool(), Named: c.named}
	rules := x.tracker.rules(m.Tool())
	worked := (m.Status() == agent.ToolExecuted || m.Status() == agent.ToolMocked) && !m.IsError()
	if !worked || !rules.structured() {
		x.wait(at, m.Text())
		return
	}
	whole := m.Text()
	if eachField(whole, func(field []string, value string) { x.field(rules, at, field, value) }) {
		return
	}
	for line := range strings.Lines(unwrapped(whole)) {
		x.field(rules, at, nil, strings.TrimSpace(line))
		if _, value, ok := strings.Cut(line, ": "); ok && covers(rules.trusted, nil) {
			x.field(rules, at, nil, strings.TrimSpace(value))
		}
	}
}

func (x *index) field(rules *toolRules, at Place, field []string, value string) {
	if value == "" {
		return
	}
	at.Field = strings.Join(field, ".")
	n, ok := nameOf(value)
	if !ok {
		return
	}
	if covers(rules.confidential, field) {
		x.put(x.confidential, n.whole(), x.place(at))
	}
	switch {
	case covers(rules.trusted, field) && len(value) <= MaxValue && !strings.ContainsAny(value, "\n\r"):
		if _, written := x.written[n.whole()]; !written {
			at.Level = FromTrusted
			x.put(x.trusted, n.whole(), x.place(at))
			return
		}
	case covers(rules.known, field):
		at.Level = FromKnown
		x.text(x.known, at, value)
		if at.Named {
			x.text(x.knownNamed, at, value)
		}
		return
	}
	x.wait(at, value)
}

// level is the most trusted level at which a value was seen, strangers' text left out, and where.
func (x *index) level(n name) (Level, int32) {
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

// saidAsWords reports whether a text is made of nothing but the user's words, in any order: what a search is given, or a
// file's name, "the team meeting minutes" for team-meeting-minutes.docx. Words of one or two letters do not count.
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

// calledByUser reports whether the user used a name that is in a mail address: "reply to Lily" and lily.white@…
func (x *index) calledByUser(n name) bool {
	if n.kind != kindAddress {
		return false
	}
	called := false
	local := n.text[:strings.LastIndexByte(n.text, '@')]
	eachWord(local, func(word key, from, to int) {
		if has(x.user, word) && to-from >= minWord {
			called = true
		}
	})
	return called
}

// anyLevel is level, strangers' text included.
func (x *index) anyLevel(n name) (Level, int32) {
	if level, at := x.level(n); level != Nowhere {
		return level, at
	}
	x.readWaiting()
	if at, ok := x.othersNamed.find(n); ok {
		return FromOthers, at
	}
	if at, ok := x.others.find(n); ok {
		return FromOthers, at
	}
	if x.full {
		return FromOthers, -1
	}
	return Nowhere, -1
}

// tainted reports whether a value, or a part of a text, is what strangers brought in and nobody better.
func (x *index) tainted(n name) bool {
	if level, _ := x.anyLevel(n); level != Nowhere {
		return level == FromOthers
	}
	if n.kind != kindPhrase {
		return false
	}
	bad := false
	values(n.text, func(v name, _ string) {
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

// find is where a value stands in text.
func (s shelf) find(n name) (int32, bool) {
	if len(s) == 0 {
		return -1, false
	}
	if n.kind != kindPhrase {
		for _, k := range n.keys { // a date with its year, or without
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

// eachArgument calls f for the texts and numbers in a call's arguments. Arguments that cannot be read have none.
func eachArgument(arguments string, f func(n name, value any)) {
	var members map[string]any
	if strictjson.Unmarshal(arguments, &members) == nil {
		eachName(members, f)
	}
}
