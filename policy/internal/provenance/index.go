package provenance

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/strictjson"
	"github.com/grapnel-go/grapnel/policy/tools"
)

// Place is a place in a run where a value was seen.
type Place struct {
	// Level is the level of the place.
	Level Level `json:"level"`
	// Message is the index in the transcript.
	Message int `json:"message"`
	// Call and Tool identify the tool's answer, and Field is the path to the value in it. They are empty for other
	// messages; Field is also empty for a plain text answer.
	Call  string `json:"call,omitempty"`
	Tool  string `json:"tool,omitempty"`
	Field string `json:"field,omitempty"`
	// Named reports whether the user pointed to this place: all strings in the call's arguments are the user's own
	// words, or come from known people in a place to which the user pointed.
	Named bool `json:"named,omitempty"`
	// Written reports whether the model gave the value to a tool that may change things, so that the place is a call
	// and not an answer.
	Written bool `json:"written,omitempty"`

	author string // the mail address of the text's author, if a known field names exactly one
}

// shelf maps each key to the place where it was first seen, as an index into places.
type shelf map[key]int

// index holds all values that were seen in one run, up to some message. It grows with the transcript and reads each
// message once.
type index struct {
	tracker *Tracker
	mu      sync.Mutex
	state   agent.State // while messages are read
	seen
}

type seen struct {
	count int
	depth int             // the run's depth
	tail  []agent.Message // the last messages read, to check that a state continues the same transcript

	places                         []Place
	system, user, known, others    shelf // in text
	trusted, written, confidential shelf // complete values
	knownNamed, othersNamed        shelf
	links                          shelf           // web addresses that are the only one in a text with an author
	authors                        map[key]string  // by the words in their addresses; empty if several authors share the word
	userNames                      map[key]bool    // words that the user wrote with a capital letter
	calls                          map[string]call // by ID, from the last assistant message
	waiting                        []text          // strangers' text that is not yet indexed
	keys                           int
	full                           bool
	userDates                      bool            // the user gave a date
	userSites                      map[string]bool // hosts of the web addresses that the user gave
	lastUser                       int             // message
	changed                        int             // the first message that calls a tool that changes something; zero if none
}

type call struct {
	tool  string
	named bool
	led   bool // strangers chose the call's subject, so its answer counts as theirs
}

type text struct {
	place int
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
		knownNamed: shelf{}, othersNamed: shelf{}, links: shelf{}, authors: map[key]string{}, userNames: map[key]bool{},
		calls: map[string]call{}, userSites: map[string]bool{},
	}
}

// catchUp reads the messages that were added since the last call. If the state does not continue this transcript, as
// in a fork, it reads the whole transcript again.
func (x *index) catchUp(s agent.State) {
	if depth := s.Run().Depth; !x.holds(s) || depth != x.depth {
		x.clear()
		x.depth = depth
	}
	if x.count == s.MessageCount() {
		return
	}
	x.state = s
	defer func() { x.state = agent.State{} }()
	for i, m := range s.MessagesFrom(x.count) {
		x.add(i, m)
		x.count = i + 1
		if len(x.tail) == tailLength {
			x.tail = slices.Delete(x.tail, 0, 1)
		}
		x.tail = append(x.tail, m)
	}
}

// holds reports whether s begins with the messages that were read. It compares the last few of them.
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
		if m.Source() != "" { // a hook or a tool added it
			x.message(x.tracker.sources.message(m.Source()), Place{Message: i}, m.Text())
			return
		}
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

func (x *index) place(at Place) int {
	if n := len(x.places); n > 0 && x.places[n-1] == at {
		return n - 1
	}
	x.places = append(x.places, at)
	return len(x.places) - 1
}

// put records a key's place unless the key was seen before.
func (x *index) put(s shelf, k key, at int) {
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
	dates := scanKeys(words, func(k key) { x.put(s, k, place) })
	if at.Level == FromUser {
		x.userDates = x.userDates || dates
		words = norm.NFC.String(words)
		eachWord(words, func(word key, from, _ int) {
			if first, _ := utf8.DecodeRuneInString(words[from:]); unicode.IsUpper(first) {
				x.userNames[word] = true
			}
		})
		for _, link := range Links(words) {
			if n, ok := nameOf(link); ok && n.kind == kindURL {
				x.userSites[hostOf(n.text)] = true
			}
		}
	}
}

// wait stores strangers' text until a policy asks about it, which does not happen in most runs.
func (x *index) wait(at Place, words string) {
	if words == "" {
		return
	}
	at.Level = FromOthers
	x.waiting = append(x.waiting, text{x.place(at), words})
}

// readWaiting indexes the stored strangers' text.
func (x *index) readWaiting() {
	for _, t := range x.waiting {
		named, author := x.places[t.place].Named, x.places[t.place].author
		scanKeys(t.text, func(k key) {
			x.put(x.others, k, t.place)
			if named {
				x.put(x.othersNamed, k, t.place)
			}
		})
		if author == "" {
			continue
		}
		if links := Links(t.text); len(links) == 1 {
			if n, ok := nameOf(links[0]); ok {
				x.put(x.links, n.whole(), t.place)
			}
		}
	}
	x.waiting = x.waiting[:0]
}

// call checks the arguments that the model gave to a tool: whether the user named the call, and which values must not
// become trusted when an answer returns them.
func (x *index) call(i int, c agent.ToolCall) {
	tool := x.tracker.tool(x.state, c.Name)
	rules, secrets := tool.rules, tool.secretsOf(c)
	named, led, texts := true, false, 0
	at := -1
	eachArgument(c.Arguments, func(n name, names bool, value any) {
		s, isText := value.(string)
		if !names {
			named = named && strings.TrimSpace(s) == ""
			return
		}
		level, place := x.level(n)
		if isText {
			texts++
			said := level == FromUser || x.saidAsWords(n) || x.isBelowNamed(s)
			named = named && (said || level.atLeast(FromKnown) && x.places[place].Named)
			led = led || rules.reads && !said && !level.atLeast(FromKnown) && x.isTainted(n)
		}
		if rules.reads {
			return
		}
		write := func(n name) {
			if level, _ := x.level(n); level.atLeast(FromTrusted) || secrets[n.whole()] {
				return
			}
			if at < 0 {
				at = x.place(Place{Level: FromOthers, Message: i, Call: c.ID, Tool: c.Name, Written: true})
			}
			x.put(x.written, n.whole(), at)
		}
		write(n)
		if isText && n.kind == kindPhrase {
			scanValues(s, func(n name, _ string) { write(n) })
		}
	})
	if x.changed == 0 && !rules.reads && !tool.onlySignsIn() {
		x.changed = i
	}
	x.calls[c.ID] = call{c.Name, named && texts > 0, led}
}

func (k *knownTool) onlySignsIn() bool {
	return slices.Equal(k.description.Effects, []tools.Effect{tools.SignsIn})
}

// secretsOf returns the passwords and codes in a call to a tool that only signs in: such a tool compares them and
// stores nothing.
func (k *knownTool) secretsOf(c agent.ToolCall) map[key]bool {
	var members map[string]any
	if !k.onlySignsIn() || strictjson.Unmarshal(c.Arguments, &members) != nil {
		return nil
	}
	secrets := map[key]bool{}
	for member, value := range members {
		if k.description.Role(member) == tools.Secret {
			eachName(value, func(n name, named bool, _ any) {
				if named {
					secrets[n.whole()] = true
				}
			})
		}
	}
	return secrets
}

// answer reads a tool's answer, without the note about changed arguments, which does not come from the tool.
func (x *index) answer(i int, m agent.Message) {
	c := x.calls[m.CallID()]
	at := Place{Message: i, Call: m.CallID(), Tool: m.Tool(), Named: c.named}
	rules := x.tracker.tool(x.state, m.Tool()).rules
	worked := (m.Status() == agent.ToolExecuted || m.Status() == agent.ToolMocked) && !m.IsError()
	if !worked || c.led || !rules.structured() {
		x.wait(at, m.ToolText())
		return
	}
	whole := m.ToolText()
	if values, ok := fieldsOf(whole); ok {
		authors := x.authorsOf(rules, values)
		for _, v := range values {
			at.author = authors[v.record]
			x.field(rules, at, v.path, v.value)
		}
		return
	}
	for line := range strings.Lines(unwrapAnswer(whole)) {
		x.field(rules, at, nil, strings.TrimSpace(line))
		if _, value, ok := strings.Cut(line, ": "); ok && coversField(rules.trusted, nil) {
			x.field(rules, at, nil, strings.TrimSpace(value))
		}
	}
}

// authorsOf returns the mail address of each record's author. A record with several authors has none.
func (x *index) authorsOf(rules *toolRules, values []fieldValue) map[int]string {
	if len(rules.authors) == 0 {
		return nil
	}
	authors := map[int]string{}
	for _, v := range values {
		n, ok := nameOf(v.value)
		if !ok || n.kind != kindAddress || !coversField(rules.authors, v.path) {
			continue
		}
		if before, ok := authors[v.record]; ok && before != n.text {
			n.text = ""
		}
		authors[v.record] = n.text
		eachNameWord(n.text, func(word key) {
			if before, ok := x.authors[word]; ok && before != n.text {
				x.authors[word] = ""
			} else {
				x.authors[word] = n.text
			}
		})
	}
	return authors
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
	if coversField(rules.untrusted, field) || len(field) > 0 && coversField(rules.untrusted, field[len(field)-1:]) {
		x.wait(at, value)
		return
	}
	if coversField(rules.confidential, field) {
		x.put(x.confidential, n.whole(), x.place(at))
	}
	switch {
	case coversField(rules.trusted, field) && len(value) <= maxValue && !strings.ContainsAny(value, "\n\r"):
		if _, written := x.written[n.whole()]; !written {
			at.Level = FromTrusted
			x.put(x.trusted, n.whole(), x.place(at))
			return
		}
	case coversField(rules.known, field):
		at.Level = FromKnown
		x.text(x.known, at, value)
		if at.Named {
			x.text(x.knownNamed, at, value)
		}
		return
	}
	x.wait(at, value)
}

// eachArgument calls f for the strings and numbers in a call's arguments. It ignores arguments that cannot be parsed.
func eachArgument(arguments string, f func(n name, named bool, value any)) {
	var members Arguments
	if strictjson.Unmarshal(arguments, &members) == nil {
		eachName(members, f)
	}
}
