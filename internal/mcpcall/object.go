package mcpcall

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// Object is a JSON object whose members keep their order and their bytes.
type Object []Member

// Member is a member of an Object.
type Member struct {
	Name  string
	Value json.RawMessage
}

// ReadObject reads one object. Two names that differ only in case are an error, because readers disagree about them.
func ReadObject(text []byte) (Object, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("it is not valid UTF-8")
	}
	if !json.Valid(text) {
		return nil, errors.New("it is not JSON")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return nil, errors.New("it is not an object")
	}
	var o Object
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		m := Member{}
		m.Name, _ = name.(string)
		if err := d.Decode(&m.Value); err != nil {
			return nil, err
		}
		for _, other := range o {
			if strings.EqualFold(other.Name, m.Name) {
				return nil, fmt.Errorf("it has the members %q and %q", other.Name, m.Name)
			}
		}
		o = append(o, m)
	}
	return o, nil
}

// Get returns the value of a member, or nil.
func (o Object) Get(name string) json.RawMessage {
	for _, m := range o {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// Text returns the value of a member that is a string.
func (o Object) Text(name string) (string, bool) {
	raw := o.Get(name)
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	var text string
	err := json.Unmarshal(raw, &text)
	return text, err == nil
}

// With returns the object with a member set in its place, or at the end. A nil value removes the member.
func (o Object) With(name string, value json.RawMessage) Object {
	out := make(Object, 0, len(o)+1)
	found := false
	for _, m := range o {
		if m.Name == name {
			found = true
			if m.Value = value; value == nil {
				continue
			}
		}
		out = append(out, m)
	}
	if !found && value != nil {
		out = append(out, Member{name, value})
	}
	return out
}

// Variant returns a name in the object that differs from one of the given names only in case, or "".
func (o Object) Variant(names ...string) string {
	for _, m := range o {
		for _, name := range names {
			if m.Name != name && strings.EqualFold(m.Name, name) {
				return m.Name
			}
		}
	}
	return ""
}

// JSON returns the object's text.
func (o Object) JSON() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(JSONOf(m.Name))
		b.WriteByte(':')
		b.Write(m.Value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// JSONOf returns a value as JSON. Texts keep their characters, because filters must see what was written.
func JSONOf(v any) json.RawMessage {
	text, err := strictjson.Marshal(v)
	if err != nil { // only for texts that are not UTF-8
		text = fmt.Sprintf("%q", fmt.Sprint(v))
	}
	return json.RawMessage(text)
}
