package provenance

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/strictjson"
	"github.com/grapnel-go/grapnel/policy/tools"
)

// Options configure a Tracker. The zero value trusts no tool and is ready for use.
type Options struct {
	// Sources lists the fields in tools' answers to trust.
	Sources Sources
	// Tools describes tools, for sources that name records, and for functions that ask for effects and roles. Missing
	// information is inferred.
	Tools tools.Table
	// MaxKeys bounds one run's memory: the number of stored words, pairs, triples and values. Zero means 1,048,576.
	// Beyond the bound nothing becomes trusted, and every value that was not stored before counts as strangers' text.
	MaxKeys int
}

// defaultMaxKeys is enough for about 300,000 words, and takes at most 50 MB.
const defaultMaxKeys = 1 << 20

// Tracker tracks where values come from, in any number of runs at once. Create one with New. It is safe for
// concurrent use.
type Tracker struct {
	sources Sources
	table   tools.Table
	maxKeys int
	tools   sync.Map // string to *knownTool
	runs    *agent.Scratch[index]
}

// New returns a Tracker. The error joins all problems with the sources.
func New(o Options) (*Tracker, error) {
	if err := o.Sources.Validate(); err != nil {
		return nil, fmt.Errorf("sources: %w", err)
	}
	if err := o.Tools.Validate(); err != nil {
		return nil, fmt.Errorf("tools: %w", err)
	}
	t := &Tracker{sources: o.Sources, table: o.Tools, maxKeys: o.MaxKeys}
	if t.maxKeys <= 0 {
		t.maxKeys = defaultMaxKeys
	}
	t.runs = agent.NewScratch(func() *index { return newIndex(t) })
	return t, nil
}

// knownTool is the tracker's information on a tool.
type knownTool struct {
	spec        agent.ToolSpec
	description *tools.Description
	rules       *toolRules
}

// tool returns the information on a tool of the agent whose state is s. A tool that the agent lacks is judged by its
// name.
func (t *Tracker) tool(s agent.State, name string) *knownTool {
	spec := agent.ToolSpec{Name: name}
	if own, ok := s.Request().Tools.ByName(name); ok {
		spec = own
	}
	if known, ok := t.tools.Load(name); ok {
		if k := known.(*knownTool); k.spec == spec { //nolint:forcetypeassert // the map holds only *knownTool
			return k
		}
	}
	d := t.table.Describe(spec)
	k := &knownTool{spec, d, t.sources.rulesFor(d)}
	if len(name) <= maxToolName { // do not cache overlong names, which a model may invent
		t.tools.Store(name, k)
	}
	return k
}

// Describe returns the description of a tool of the agent whose state is s.
func (t *Tracker) Describe(s agent.State, tool string) *tools.Description {
	return t.tool(s, tool).description
}

// DescribeSpec returns a tool's description.
func (t *Tracker) DescribeSpec(spec agent.ToolSpec) *tools.Description { return t.table.Describe(spec) }

const maxToolName = 128

// Trail answers questions about a run's values at one state. It does not change when the run continues: call Of
// again. It is safe for concurrent use.
type Trail struct {
	index *index
	state agent.State
}

// Of returns a state's trail. In a run, each message is read once, when a policy first asks. For a state outside a
// run, all messages are read again.
func (t *Tracker) Of(s agent.State) Trail { return Trail{t.runs.Get(s), s} }

// withIndex updates the index to the trail's state and calls f while holding its lock.
func (t Trail) withIndex(f func(x *index)) {
	t.index.mu.Lock()
	defer t.index.mu.Unlock()
	x := t.index
	if t.state.MessageCount() < x.count {
		x = newIndex(x.tracker) // the run has continued: build an index of the earlier state
	}
	x.catchUp(t.state)
	f(x)
}

// nameOfAny works like nameOf, for any value in arguments. It returns false for a value that names nothing: a string
// without letters and digits, or a value that is neither a string nor a number.
func nameOfAny(value any) (name, bool) {
	switch v := value.(type) {
	case string:
		return nameOf(v)
	case json.Number:
		return nameOf(v.String())
	case float64:
		return nameOf(strconv.FormatFloat(v, 'f', -1, 64))
	case int, int64, uint64:
		return nameOf(fmt.Sprint(v))
	}
	return name{}, false
}

// Arguments holds a tool call's arguments for the functions of Trail. Their own names come from the tool and are
// ignored unless they are an address, a number or an ID. In any other map, and in maps within Arguments, member names
// are values like all others: {"mallory@example.com": "rw"} names a person.
type Arguments map[string]any

// eachValue calls f for the strings and numbers in a value, including member names, and for values that it cannot
// take apart.
func eachValue(value any, f func(any)) {
	switch v := value.(type) {
	case nil, bool:
	case string:
		if v != "" {
			f(v)
		}
	case json.Number, float64, int, int64, uint64:
		f(v)
	case []any:
		for _, element := range v {
			eachValue(element, f)
		}
	case []string:
		for _, element := range v {
			eachValue(element, f)
		}
	case Arguments:
		for _, member := range slices.Sorted(maps.Keys(v)) {
			if n, ok := nameOf(member); !ok || n.kind != kindPhrase {
				f(member)
			}
			eachValue(v[member], f)
		}
	case map[string]any:
		for _, member := range slices.Sorted(maps.Keys(v)) {
			f(member)
			eachValue(v[member], f)
		}
	default:
		eachOther(value, f)
	}
}

// eachOther works like eachValue for any other Go value, through its JSON. It calls f with the value itself if it has
// no JSON.
func eachOther(value any, f func(any)) {
	var plain any
	text, err := strictjson.Marshal(value)
	if err == nil {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		err = d.Decode(&plain)
	}
	if err != nil {
		f(value)
		return
	}
	eachValue(plain, f)
}

// eachName calls f for everything that a value names: every string and number in it, and each address in a list of
// mail addresses. For a value that names nothing, named is false.
func eachName(value any, f func(n name, named bool, value any)) {
	eachValue(value, func(v any) {
		if text, ok := v.(string); ok && strings.Contains(text, "@") && strings.ContainsAny(text, ",;") {
			if list := addressList(text); len(list) > 0 {
				for _, n := range list {
					f(n, true, v)
				}
				return
			}
		}
		n, ok := nameOfAny(v)
		f(n, ok && !isPattern(v), v)
	})
}

// isPattern reports whether a value contains a "*", so that it stands for other values.
func isPattern(value any) bool {
	text, ok := value.(string)
	return ok && strings.Contains(text, "*")
}

// addressList returns the mail addresses in a text, if it consists only of addresses.
func addressList(text string) []name {
	var list []name
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ';' }) {
		n, ok := nameOf(part)
		if !ok || n.kind != kindAddress {
			return nil
		}
		list = append(list, n)
	}
	return list
}

// all reports whether test is true for every name in a value. It is true for an empty value (null, true, an empty
// string or list) and false if anything in the value names nothing.
func (t Trail) all(value any, test func(x *index, n name) bool) bool {
	ok := true
	t.withIndex(func(x *index) {
		eachName(value, func(n name, named bool, _ any) { ok = ok && named && test(x, n) })
	})
	return ok
}

// FromUser reports whether the user said the value. For a list or map, the user must have said everything in it,
// including member names: pass a call's arguments as Arguments. It is true for an empty value (null, true, an empty
// string, list or map), and false for a string without letters and digits and for a string with "*". The same holds
// for the other From functions. A Go value of another type is converted through its JSON.
func (t Trail) FromUser(value any) bool {
	return t.all(value, func(x *index, n name) bool {
		_, ok := x.user.find(n)
		return ok
	})
}

// FromTrusted reports whether the value comes from a trusted author: the user, the operator, or a trusted field.
func (t Trail) FromTrusted(value any) bool {
	return t.all(value, func(x *index, n name) bool {
		level, _ := x.level(n)
		return level.atLeast(FromTrusted)
	})
}

// FromKnown works like FromTrusted but includes fields that known people write.
func (t Trail) FromKnown(value any) bool {
	return t.all(value, func(x *index, n name) bool {
		level, _ := x.level(n)
		return level.atLeast(FromKnown)
	})
}

// FromNamed works like FromTrusted but includes two more sources: known fields to which the user pointed, in the
// answer to a call whose arguments contain only the user's own words, such as the participants of the meeting that
// the user named; and mail addresses whose owner the user called by a name in the address.
func (t Trail) FromNamed(value any) bool {
	return t.all(value, func(x *index, n name) bool {
		level, at := x.level(n)
		return level.atLeast(FromTrusted) || level == FromKnown && (x.places[at].Named || x.calledByUser(n))
	})
}

// FromNamedText works like FromNamed, but also accepts free text to which the user pointed, such as a file that
// the user named, or a page mentioned in a message that the user named.
func (t Trail) FromNamedText(value any) bool {
	return t.all(value, func(x *index, n name) bool {
		level, at := x.level(n)
		if level.atLeast(FromTrusted) || level == FromKnown && x.places[at].Named {
			return true
		}
		x.readWaiting()
		_, ok := x.othersNamed.find(n)
		return ok
	})
}

// Sole works like FromNamedText, but requires that the value is the only one of its kind at its place: the one
// account in the bill that the user named, the one address on the page. If there are two, an attacker may have added
// one.
func (t Trail) Sole(value any) bool {
	return t.all(value, func(x *index, n name) bool {
		if level, _ := x.level(n); level.atLeast(FromTrusted) {
			return true
		}
		x.readWaiting()
		at, ok := x.othersNamed.find(n)
		if !ok || n.kind == kindPhrase {
			return false
		}
		others := false
		scanValues(t.state.Message(x.places[at].Message).Text(), func(o name, _ string) {
			others = others || o.kind == n.kind && o.whole() != n.whole() && couldReplace(o, n)
		})
		return !others
	})
}

// couldReplace reports whether one value could be meant instead of another of its kind. An IBAN is not confused with
// a phone number, nor part of an ID with the whole.
func couldReplace(a, b name) bool {
	return a.kind != kindID ||
		isDigit(a.text[0]) == isDigit(b.text[0]) && !strings.Contains(a.text, b.text) && !strings.Contains(b.text, a.text)
}

// Tainted reports whether something in a value was seen in strangers' text and in no trusted source: the complete
// value, or in longer text an address, an ID or five words in a row. A string without letters and digits is tainted,
// and so is a single word with "*": it may name anything.
func (t Trail) Tainted(value any) (yes bool) {
	t.withIndex(func(x *index) {
		eachName(value, func(n name, named bool, v any) {
			text, isText := v.(string)
			switch {
			case yes:
			case isPattern(v) && len(n.keys) > 0 && len(strings.Fields(text)) > 1: // prose that contains a *
				yes = x.isTainted(n)
			case !named:
				yes = !isText || strings.TrimSpace(text) != ""
			default:
				yes = x.isTainted(n)
			}
		})
	})
	return yes
}

// Seen reports whether the value was seen anywhere in the run except in the model's own words.
func (t Trail) Seen(value any) bool {
	return t.all(value, func(x *index, n name) bool {
		level, _ := x.anyLevel(n)
		return level != Nowhere
	})
}

// Quoted reports whether the user wrote exactly this text, including case and punctuation: a password, a file to
// delete.
func (t Trail) Quoted(text string) bool {
	n, ok := nameOf(text)
	if !ok {
		return false
	}
	found := false
	t.withIndex(func(x *index) {
		at, ok := x.user.find(n)
		if !ok {
			return
		}
		// Only two messages are checked: the first that contains the text in normal form, and the user's last.
		for _, i := range []int{x.places[at].Message, x.lastUser} {
			found = found || holdsWord(t.state.Message(i).Text(), text)
		}
	})
	return found
}

// holdsWord reports whether text occurs in another text without a letter or digit directly before or after it.
func holdsWord(in, text string) bool {
	for from := 0; ; {
		i := strings.Index(in[from:], text)
		if i < 0 {
			return false
		}
		i += from
		end := i + len(text)
		if (i == 0 || !isAlnum(in[i-1]) || !isAlnum(text[0])) && (end == len(in) || !isAlnum(in[end]) || !isAlnum(text[len(text)-1])) {
			return true
		}
		from = i + 1
	}
}

// Says reports whether the user used any of the words or phrases, ignoring case.
func (t Trail) Says(words ...string) (yes bool) {
	t.withIndex(func(x *index) {
		for _, w := range words {
			if n, ok := wordsOf(w); ok && !yes {
				_, yes = x.user.find(n)
			}
		}
	})
	return yes
}

// SaysDate reports whether the user gave a date, as a day of a month; "tomorrow" does not count.
func (t Trail) SaysDate() (yes bool) {
	t.withIndex(func(x *index) { yes = x.userDates })
	return yes
}

// Confidential returns the names of the confidential fields from which the value contains something.
func (t Trail) Confidential(value any) []string {
	var fields []string
	t.withIndex(func(x *index) {
		if len(x.confidential) == 0 {
			return
		}
		seen := map[string]bool{}
		check := func(n name) {
			if at, ok := x.confidential[n.whole()]; ok && !seen[x.places[at].Field] {
				seen[x.places[at].Field] = true
				fields = append(fields, x.places[at].Field)
			}
		}
		eachValue(value, func(v any) {
			if n, ok := nameOfAny(v); ok {
				check(n)
			}
			if s, ok := v.(string); ok {
				scanValues(s, func(n name, _ string) { check(n) })
			}
		})
	})
	return fields
}

// Links returns the web addresses in a text, each once.
func Links(text string) []string { return inText(text, kindURL) }

// Addresses returns the mail addresses in a text, each once.
func Addresses(text string) []string { return inText(text, kindAddress) }

func inText(text string, which kind) []string {
	out := []string{}
	seen := map[key]bool{}
	scanValues(text, func(n name, value string) {
		if n.kind == which && !seen[n.whole()] {
			seen[n.whole()] = true
			out = append(out, value)
		}
	})
	return out
}
