package provenance

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/grapnel-go/grapnel/agent"
)

// Tracker follows where values come from, in any number of runs at once. Make one with New. It is safe for concurrent use.
type Tracker struct {
	sources Sources
	maxKeys int
	tools   sync.Map // string to *toolRules
	runs    *agent.Scratch[index]
}

// New returns a Tracker that believes these sources. The error names everything that is wrong with them.
func New(sources Sources) (*Tracker, error) {
	if err := sources.validate(); err != nil {
		return nil, fmt.Errorf("sources: %w", err)
	}
	t := &Tracker{sources: sources, maxKeys: DefaultMaxKeys}
	t.runs = agent.NewScratch(func() *index { return newIndex(t) })
	return t, nil
}

func (t *Tracker) rules(tool string) *toolRules {
	if r, ok := t.tools.Load(tool); ok {
		return r.(*toolRules)
	}
	r, _ := t.tools.LoadOrStore(tool, t.sources.of(tool))
	return r.(*toolRules)
}

// Trail is what is known of the values in a run as it stands. It stays the same when the run goes on: ask Of again. It
// is safe for concurrent use.
type Trail struct {
	index *index
	state agent.State
}

// Of is the trail of a state. Within a run, what was read for an earlier state of it is not read again.
func (t *Tracker) Of(s agent.State) Trail { return Trail{t.runs.Of(s), s} }

// nameOfAny is nameOf for what may stand in arguments.
func nameOfAny(value any) (name, bool) {
	switch v := value.(type) {
	case string:
		return nameOf(v)
	case json.Number:
		return nameOf(v.String())
	case fmt.Stringer:
		return nameOf(v.String())
	case int, int64, uint64, float64:
		return nameOf(fmt.Sprint(v))
	}
	return name{}, false
}

// eachValue calls f for the texts and numbers in a value, and reports whether there were any.
func eachValue(value any, f func(any)) {
	switch v := value.(type) {
	case nil, bool:
	case []any:
		for _, element := range v {
			eachValue(element, f)
		}
	case []string:
		for _, element := range v {
			f(element)
		}
	case map[string]any:
		for _, member := range v {
			eachValue(member, f)
		}
	default:
		f(value)
	}
}

// with brings the index up to the trail's state and calls f while nobody else changes it.
func (t Trail) with(f func(x *index)) {
	t.index.mu.Lock()
	defer t.index.mu.Unlock()
	t.index.catchUp(t.state)
	f(t.index)
}

// all reports whether test holds for everything in a value; of nothing it does.
func (t Trail) all(value any, test func(x *index, n name) bool) bool {
	ok := true
	t.with(func(x *index) {
		eachValue(value, func(v any) {
			if !ok {
				return
			}
			if n, names := nameOfAny(v); names {
				ok = test(x, n)
			}
		})
	})
	return ok
}

// FromUser reports whether the user said it: of a list, every element; nothing (null, an empty text) counts as said.
func (t Trail) FromUser(value any) bool {
	return t.all(value, func(x *index, n name) bool {
		_, ok := x.user.find(n)
		return ok
	})
}

// FromTrusted reports whether it is what the operator or a trusted field said, or the user: somebody who may be believed.
func (t Trail) FromTrusted(value any) bool {
	return t.all(value, func(x *index, n name) bool {
		level, _ := x.level(n)
		return level == FromUser || level == FromSystem || level == FromTrusted
	})
}

// FromKnown is FromTrusted, text of known people included.
func (t Trail) FromKnown(value any) bool {
	return t.all(value, func(x *index, n name) bool {
		level, _ := x.level(n)
		return level != Nowhere
	})
}

// FromNamed reports whether it is FromTrusted, or stands in a known field to which the user pointed: of an answer to a
// call that was given the user's own words, as the participants of the meeting that the user named; or, of a mail
// address, one whose owner the user called by a name in it.
func (t Trail) FromNamed(value any) bool {
	return t.all(value, func(x *index, n name) bool {
		switch level, at := x.level(n); level {
		case FromUser, FromSystem, FromTrusted:
			return true
		case FromKnown:
			return x.places[at].Named || x.calledByUser(n)
		}
		return false
	})
}

// FromNamedText is FromNamed, free text of such answers included: what is written in the file that the user named, on
// the page to which a message points that the user named.
func (t Trail) FromNamedText(value any) bool {
	return t.all(value, func(x *index, n name) bool {
		switch level, at := x.level(n); level {
		case FromUser, FromSystem, FromTrusted:
			return true
		case FromKnown:
			if x.places[at].Named {
				return true
			}
		}
		x.readWaiting()
		_, ok := x.othersNamed.find(n)
		return ok
	})
}

// Says reports whether the user used one of the words or phrases.
func (t Trail) Says(words ...string) (yes bool) {
	t.with(func(x *index) {
		for _, w := range words {
			if n, ok := wordsOf(w); ok && !yes {
				_, yes = x.user.find(n)
			}
		}
	})
	return yes
}

// Links is the web addresses in a text, Addresses the mail addresses.
func Links(text string) []string { return inText(text, kindURL) }

// Addresses is the mail addresses in a text.
func Addresses(text string) []string { return inText(text, kindAddress) }

func inText(text string, which kind) []string {
	var out []string
	values(text, func(n name, value string) {
		if n.kind == which && !slices.Contains(out, value) {
			out = append(out, value)
		}
	})
	return out
}

// Confidential is the fields from which a text has values that the sources call confidential.
func (t Trail) Confidential(value any) []string {
	var fields []string
	t.with(func(x *index) {
		check := func(n name) {
			if at, ok := x.confidential[n.whole()]; ok && !slices.Contains(fields, x.places[at].Field) {
				fields = append(fields, x.places[at].Field)
			}
		}
		eachValue(value, func(v any) {
			if n, ok := nameOfAny(v); ok {
				check(n)
			}
			if s, ok := v.(string); ok {
				values(s, func(n name, _ string) { check(n) })
			}
		})
	})
	return fields
}

// Seen reports whether it stands anywhere.
func (t Trail) Seen(value any) bool {
	return t.all(value, func(x *index, n name) bool {
		level, _ := x.anyLevel(n)
		return level != Nowhere
	})
}
