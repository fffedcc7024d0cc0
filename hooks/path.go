package hooks

import (
	"errors"
	"fmt"
	"strings"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// anyElement is the path step that matches every element of a list, and every member of an object.
const anyElement = "*"

// argumentPath is a compiled path into a call's arguments.
type argumentPath struct { //nolint:recvcheck // decoding needs a pointer
	text string
	// steps are the names on the path. wild says which of them match every element.
	steps []string
	wild  []bool
	// pointers are the JSON pointers for the sections between the wild steps.
	pointers []string
}

// compilePath compiles a path: names with dots between them, in which a backslash escapes the next character, or a JSON
// pointer, which begins with a slash. A step that is only * matches every element. \* is a name.
func compilePath(text string) (argumentPath, error) {
	p := argumentPath{text: text, pointers: []string{""}}
	var err error
	switch {
	case text == "":
	case text[0] == '/':
		p.readPointer(text)
	default:
		err = p.readDotted(text)
	}
	if err != nil {
		return p, fmt.Errorf("path %q: %w", text, err)
	}
	for i, step := range p.steps {
		if p.wild[i] {
			p.pointers = append(p.pointers, "")
			continue
		}
		p.pointers[len(p.pointers)-1] += "/" + pointerEscapes.Replace(step)
	}
	return p, nil
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func (p *argumentPath) appendStep(step string, wild bool) {
	p.steps, p.wild = append(p.steps, step), append(p.wild, wild)
}

func (p *argumentPath) readPointer(text string) {
	for step := range strings.SplitSeq(text[1:], "/") {
		switch step {
		case anyElement:
			p.appendStep(step, true)
		case `\*`:
			p.appendStep(anyElement, false)
		default:
			p.appendStep(strings.NewReplacer("~1", "/", "~0", "~").Replace(step), false)
		}
	}
}

func (p *argumentPath) readDotted(text string) error {
	var name strings.Builder
	begin, plain := 0, true // begin of the current step; plain: the step has no escapes
	for i := 0; i <= len(text); i++ {
		if i == len(text) || text[i] == '.' {
			switch step := text[begin:i]; {
			case step == "":
				return errors.New("empty name: write a JSON pointer, such as /a//b, for a member without a name")
			case step == anyElement:
				p.appendStep(step, true)
			case plain && (strings.ContainsAny(step, "*[]") || step == "$"):
				return fmt.Errorf("%q is not a name: write to.*.email for every element of a list, to.0.email for the first, "+
					"and a backslash before a special character in a name", step)
			default:
				p.appendStep(name.String(), false)
			}
			name.Reset()
			begin, plain = i+1, true
			continue
		}
		if text[i] == '\\' {
			if i++; i == len(text) || isAlphanumeric(text[i]) {
				return errors.New(`a backslash must be followed by the character that it escapes, as in a\.b`)
			}
			plain = false
		}
		name.WriteByte(text[i])
	}
	return nil
}

// anyValue reports whether test returns true for a value at the path.
func (p argumentPath) anyValue(arguments string, test func(raw string) bool) bool {
	if len(p.pointers) == 1 {
		raw, ok := strictjson.Lookup(arguments, p.pointers[0])
		return ok && test(raw)
	}
	return strictjson.AnyAt(arguments, p.pointers, test)
}
