package provenance

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Origin says where a value comes from.
type Origin struct {
	// Value is the value, shortened if it is long.
	Value string `json:"value"`
	// Level is the most trusted level at which the value was seen. A value with parts has the level of its least
	// trusted part; FromOthers is worst, followed by Nowhere.
	Level Level `json:"level"`
	// Place is the first place with that level; nil if the value was not seen or has parts.
	Place *Place `json:"place,omitempty"`
	// Parts are the elements of a list or object, or the pieces of text that was not seen as a whole.
	Parts []Origin `json:"parts,omitempty"`
}

// maxParts is the maximum number of an Origin's parts, on each of its two levels.
const maxParts = 50

const maxWords = 2000 // maximum number of words to search for parts

// Origin returns a value's origin with its places, for people to read. It costs more than the functions that return a
// bool.
func (t Trail) Origin(value any) Origin {
	var o Origin
	t.withIndex(func(x *index) { o = x.originOf(value) })
	return o
}

func (x *index) originOf(value any) Origin {
	switch v := value.(type) {
	case []any, map[string]any, []string, Arguments:
		o := Origin{Value: showValue(value)}
		eachValue(v, func(element any) {
			if len(o.Parts) < maxParts {
				o.Parts = append(o.Parts, x.originOf(element))
			}
		})
		return o.ofParts()
	}
	o := Origin{Value: showValue(value)}
	n, ok := nameOfAny(value)
	if !ok {
		return o
	}
	level, at := x.anyLevel(n)
	if level != Nowhere {
		o.Level = level
		if at >= 0 {
			place := x.places[at]
			place.Level = level
			o.Place = &place
		}
		return o
	}
	text, isText := value.(string)
	if !isText || n.kind != kindPhrase || len(n.keys) == 1 {
		return o
	}
	o.Parts = x.pieces(text)
	if len(o.Parts) == 1 && o.Parts[0].Level == Nowhere {
		o.Parts = nil
		return o
	}
	o = o.ofParts()
	if o.Level == FromOthers && !x.isTainted(n) {
		o.Level = Nowhere // a few words from strangers do not taint a text
	}
	return o
}

// badness orders the levels to find the worst part.
var badness = map[Level]int{FromUser: 0, FromSystem: 1, FromTrusted: 2, FromKnown: 3, Nowhere: 4, FromOthers: 5}

func (o Origin) ofParts() Origin {
	for i, p := range o.Parts {
		if i == 0 || badness[p.Level] > badness[o.Level] {
			o.Level = p.Level
		}
	}
	return o
}

// pieces splits a text into the longest runs of words that were seen.
func (x *index) pieces(text string) []Origin {
	type word struct {
		key      key
		from, to int
	}
	var words []word
	var keys []key
	eachWord(text, func(k key, from, to int) {
		if len(words) < maxWords {
			words, keys = append(words, word{k, from, to}), append(keys, k)
		}
	})
	var out []Origin
	for i := 0; i < len(words) && len(out) < maxParts; {
		level, length, at := Nowhere, 1, -1
		for _, try := range []struct {
			level Level
			shelf shelf
		}{{FromUser, x.user}, {FromSystem, x.system}, {FromKnown, x.known}, {FromOthers, x.others}} {
			if n, place := try.shelf.longest(keys[i:]); n > length || n == length && n > 1 && level == Nowhere {
				level, length, at = try.level, n, place
			}
		}
		for n := min(6, len(words)-i); n > length; n-- {
			if place, ok := x.trusted[mix(kindPhrase, keys[i:i+n]...)]; ok {
				level, length, at = FromTrusted, n, place
			}
		}
		if last := len(out) - 1; level == Nowhere && last >= 0 && out[last].Level == Nowhere {
			out[last].Value = showValue(out[last].Value + " " + text[words[i].from:words[i].to])
		} else {
			piece := Origin{Value: showValue(text[words[i].from:words[i+length-1].to]), Level: level}
			if at >= 0 {
				place := x.places[at]
				place.Level = level
				piece.Place = &place
			}
			out = append(out, piece)
		}
		i += length
	}
	return out
}

// longest returns how many of the first words were seen together, at least two; otherwise zero.
func (s shelf) longest(words []key) (n int, at int) {
	if len(s) == 0 || len(words) < 2 {
		return 0, -1
	}
	at, ok := s[mix(kindPair, words[0], words[1])]
	if !ok {
		return 0, -1
	}
	for n = 2; n < len(words); n++ {
		if _, ok := s[mix(kindTriple, words[n-2:n+1]...)]; !ok {
			break
		}
	}
	return n, at
}

const maxShown = 80

func showValue(value any) string {
	text, ok := value.(string)
	if !ok {
		text = fmt.Sprint(value)
		if b, err := json.Marshal(value); err == nil {
			text = string(b)
		}
	}
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown-3], "") + "..."
	}
	return text
}

// String returns the origin as a sentence: `"US13" is untrusted: message 3, get_transactions (call c0), field subject`.
func (o Origin) String() string {
	var b strings.Builder
	o.write(&b, "")
	return b.String()
}

func (o Origin) write(b *strings.Builder, indent string) {
	level := string(o.Level)
	if o.Level == Nowhere {
		level = "the model's own"
	}
	b.WriteString(indent + strconv.Quote(o.Value) + " is " + level)
	if o.Place != nil {
		b.WriteString(": " + o.Place.String())
	}
	for _, p := range o.Parts {
		b.WriteString("\n")
		p.write(b, indent+"  ")
	}
}

// String describes the place: "message 3, get_transactions (call c0), field subject".
func (p Place) String() string {
	text := "message " + strconv.Itoa(p.Message)
	switch {
	case p.Written:
		text += ", given to " + p.Tool + " by the model"
	case p.Tool != "":
		text += ", " + p.Tool
	}
	if p.Call != "" {
		text += " (call " + p.Call + ")"
	}
	if p.Field != "" {
		text += ", field " + p.Field
	}
	if p.Named {
		text += ", to which the user pointed"
	}
	return text
}
