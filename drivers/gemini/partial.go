package gemini

import (
	"bytes"
	"cmp"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
)

// partialArg is one piece of the arguments and its position in them. It is a value, or a piece of a text.
type partialArg struct {
	// Path is a JSON path of names and indexes, such as $.to[0].name.
	Path   string          `json:"jsonPath"`
	Text   *string         `json:"stringValue"`
	Number json.RawMessage `json:"numberValue"`
	Bool   *bool           `json:"boolValue"`
}

// openCall is a call whose arguments arrive in pieces. The service sends them so if a request sets streamFunctionCallArguments.
type openCall struct {
	part replyPart
	args value
}

// maxPartial is the longest path to a piece of arguments, and maxItems the longest list in them.
const (
	maxPartial = 1000
	maxItems   = 100_000
)

// partial adds a call piece. It adds the call when its last piece has arrived.
func (r *reply) partial(p *replyPart, emit func(agent.Delta)) {
	if r.opened == nil {
		r.opened = &openCall{part: *p, args: value{names: []string{}}}
	}
	o := r.opened
	call := *o.part.Call
	call.ID, call.Name = cmp.Or(call.ID, p.Call.ID), cmp.Or(call.Name, p.Call.Name)
	o.part.Call = &call
	if len(p.Signature) > 0 {
		o.part.Signature = p.Signature
	}
	for _, piece := range p.Call.Partial {
		if !o.args.set(piece) {
			r.broken = "the arguments of a tool call have a piece at " + strconv.Quote(piece.Path) + ", where none can be"
		}
	}
	if p.Call.More {
		return
	}
	r.opened = nil
	var text bytes.Buffer
	o.args.write(&text)
	call.Args = text.Bytes()
	r.call(&o.part, emit)
}

// value is a JSON value that is being assembled: an object if names is not nil, a list if items is not nil, a text, or
// other JSON.
type value struct {
	names   []string
	members map[string]*value
	items   []*value
	text    *strings.Builder
	json    string
}

// pathStep matches a path step: .name, [0] or ["name"].
var pathStep = regexp.MustCompile(`^(?:\.([^.\[\]]+)|\[([0-9]+)\]|\["([^"]*)"\]|\['([^']*)'\])`)

// set adds a piece, and reports whether its path leads to a possible place.
func (v *value) set(piece partialArg) bool {
	rest, ok := strings.CutPrefix(piece.Path, "$")
	if !ok || rest == "" || len(rest) > maxPartial {
		return false
	}
	for rest != "" {
		m := pathStep.FindStringSubmatch(rest)
		if m == nil {
			return false
		}
		rest = rest[len(m[0]):]
		if m[2] != "" {
			v = v.item(m[2])
		} else {
			v = v.member(m[1] + m[3] + m[4])
		}
		if v == nil {
			return false
		}
	}
	switch empty := v.names == nil && v.items == nil && v.json == ""; {
	case !empty:
		return false
	case piece.Text != nil:
		if v.text == nil {
			v.text = &strings.Builder{}
		}
		v.text.WriteString(*piece.Text)
	case v.text != nil:
		return false
	case piece.Bool != nil:
		v.json = strconv.FormatBool(*piece.Bool)
	case len(piece.Number) > 0:
		v.json = string(piece.Number)
	default:
		v.json = "null"
	}
	return true
}

// scalar reports whether the value is a text or other JSON.
func (v *value) scalar() bool { return v.text != nil || v.json != "" }

// member returns an object's member. It adds a new member. It returns nil if the value is not an object.
func (v *value) member(name string) *value {
	if v.items != nil || v.scalar() {
		return nil
	}
	if v.members == nil {
		v.members = map[string]*value{}
	}
	one, ok := v.members[name]
	if !ok {
		one = &value{}
		v.names, v.members[name] = append(v.names, name), one
	}
	return one
}

// item returns a list's item. It adds the next item. It returns nil if the value is not a list.
func (v *value) item(index string) *value {
	i, err := strconv.Atoi(index)
	if err != nil || v.names != nil || v.scalar() || i > len(v.items) || i > maxItems {
		return nil
	}
	if i == len(v.items) {
		v.items = append(v.items, &value{})
	}
	return v.items[i]
}

// write writes the value as JSON.
func (v *value) write(to *bytes.Buffer) {
	switch {
	case v.text != nil:
		writeText(to, v.text.String())
	case v.items != nil:
		for i, item := range v.items {
			to.WriteByte("[,"[min(i, 1)])
			item.write(to)
		}
		to.WriteByte(']')
	case v.names != nil:
		to.WriteByte('{')
		for i, name := range v.names {
			if i > 0 {
				to.WriteByte(',')
			}
			writeText(to, name)
			to.WriteByte(':')
			v.members[name].write(to)
		}
		to.WriteByte('}')
	default:
		to.WriteString(cmp.Or(v.json, "null"))
	}
}

// writeText writes a text as JSON.
func writeText(to *bytes.Buffer, text string) {
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		panic(err) // a string always encodes
	}
	to.Truncate(to.Len() - 1)
}
