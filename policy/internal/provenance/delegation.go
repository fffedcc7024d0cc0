package provenance

import (
	"fmt"
	"strings"
)

// Exposed reports whether the run has read strangers' text. Before that, all values in calls come from the user, the
// operator, trusted records, or the model.
func (t Trail) Exposed() (yes bool) {
	t.withIndex(func(x *index) { yes = len(x.waiting) > 0 || len(x.others) > 0 || len(x.othersNamed) > 0 })
	return yes
}

// Delegated reports whether a text to which the user pointed, such as a bill, names the payee as the only one that it
// could mean, and also names the amount. It is true only until the model has given the payee to a tool that may
// change things. An empty payee or amount was not delegated.
func (t Trail) Delegated(payee, amount any) bool {
	if isNothing(payee) || isNothing(amount) || !t.Sole(payee) {
		return false
	}
	place, once := -1, true
	t.withIndex(func(x *index) {
		eachName(payee, func(n name, _ bool, _ any) {
			if at, ok := x.othersNamed.find(n); ok {
				place = x.places[at].Message
			}
			if _, written := x.written[n.whole()]; written {
				once = false
			}
		})
	})
	if place < 0 || !once {
		return false
	}
	text := t.state.Message(place).Text()
	found := true
	eachName(amount, func(n name, named bool, _ any) {
		there := false
		scanValues(text, func(o name, _ string) { there = there || named && o.whole() == n.whole() })
		found = found && there
	})
	return found
}

func isNothing(value any) bool {
	empty := true
	eachValue(value, func(any) { empty = false })
	return empty
}

// Linked reports whether each web address in a value is a link that the user asked to follow. Either it is on a page,
// or in another text, to which the user pointed, and belongs to a site that the user named. Or it is the only link in
// a text whose author (Source.Authors) the user called by name, and no other author has this name. An address with a
// query that the text lacks is not linked.
func (t Trail) Linked(value any) bool {
	if isNothing(value) {
		return false
	}
	return t.all(value, func(x *index, n name) bool {
		if n.kind != kindURL {
			return false
		}
		x.readWaiting()
		_, ok := x.othersNamed.find(n)
		return ok && x.userSites[hostOf(n.text)] || x.isFromPerson(n)
	})
}

// hostOf returns a web address's host in its normal form.
func hostOf(address string) string {
	_, rest, ok := strings.Cut(address, "://")
	if !ok {
		rest = address
	}
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	return rest
}

// Confirms reports whether each value is a code of four to eight digits that the run first read after calling a tool
// that changes something. Such a code confirms a call that the rules have judged. An earlier code may be one that a
// stranger wants the agent to use.
func (t Trail) Confirms(codes any) bool {
	ok := !isNothing(codes)
	t.withIndex(func(x *index) {
		eachName(codes, func(n name, named bool, value any) {
			code := fmt.Sprint(value)
			if !ok || !named || len(code) < minCode || len(code) > maxCode || strings.Trim(code, "0123456789") != "" {
				ok = false
				return
			}
			level, at := x.anyLevel(n)
			ok = level != Nowhere && at >= 0 && x.changed > 0 && x.places[at].Message > x.changed
		})
	})
	return ok
}

const minCode, maxCode = 4, 8 // digits

// Invited reports whether the user named the people in a value. If the user named a person, it also accepts the
// person's address from known people or from a text to which the user pointed, but not from strangers.
func (t Trail) Invited(people any) bool {
	var names, addresses []any
	eachName(people, func(n name, named bool, value any) {
		if named && n.kind == kindAddress {
			addresses = append(addresses, value)
			return
		}
		names = append(names, value)
	})
	switch {
	case len(names) == 0:
		return t.FromNamed(addresses)
	case !t.FromNamed(names):
		return false
	}
	return t.FromKnown(addresses) || t.FromNamedText(addresses) || !t.Tainted(addresses)
}

// NamedByStrangers reports whether strangers' text contains anything in a value that the user did not say, even if a
// trusted field also contains it: the ID of a file that a mail wants deleted is also in the list of files.
func (t Trail) NamedByStrangers(value any) (yes bool) {
	t.withIndex(func(x *index) {
		x.readWaiting()
		eachName(value, func(n name, named bool, _ any) {
			if _, said := x.user.find(n); said || !named {
				return
			}
			_, there := x.others.mentions(n)
			yes = yes || there
		})
	})
	return yes
}
