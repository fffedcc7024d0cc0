package strictjson

import (
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// MaxDepth is how deep objects and arrays may be nested in an argument text; the outermost object counts.
	MaxDepth = 1000

	// MaxExponent is the largest exponent, either way, that a number in an argument text may have.
	// It is beyond every float64, and keeps arithmetic with exact numbers from exploding: 1e999999999 is
	// eleven bytes of text and four hundred megabytes of integer.
	MaxExponent = 999
)

// CheckObject says whether args is exactly one JSON object under the strict rules: valid UTF-8, no name
// given twice in one object, no two names of one object that differ only in case (Unicode simple folding),
// nesting up to MaxDepth, exponents up to MaxExponent, nothing but white space around it. The empty string is
// not an object; a caller that reads it as {} decides so itself.
//
// Nil means it is; otherwise the error is a *Error with the first thing that is wrong. Common texts are checked
// without allocation.
func CheckObject(args string) error {
	if plainDocument(args) {
		return nil
	}
	return checkTokens(args)
}

// checkTokens works like CheckObject on the JSON library's tokens: the reference, and the one that finds the words.
func checkTokens(args string) error {
	dec := jsontext.NewDecoder(strings.NewReader(args))
	switch kind := dec.PeekKind(); kind {
	case jsontext.KindBeginObject:
	case jsontext.KindInvalid:
		_, err := dec.ReadToken()
		return explain(err)
	default:
		return errorAt("", "expected one JSON object, got %s", kindName(kind))
	}
	var open []map[string]string // by depth: the names seen so far, folded → as written
	for {
		token, err := dec.ReadToken()
		if err != nil {
			return explain(err)
		}
		depth := dec.StackDepth()
		switch token.Kind() {
		case jsontext.KindBeginObject, jsontext.KindBeginArray:
			if depth > MaxDepth {
				return errorAt("", "objects and arrays are nested deeper than %d", MaxDepth)
			}
			open = slices.Grow(open[:depth-1], 1)[:depth]
			clear(open[depth-1])
		case jsontext.KindNumber:
			if !exponentFits(token.String()) {
				return errorAt(dec.StackPointer(), "the exponent of %s is out of range", shorten(token.String()))
			}
		case jsontext.KindString:
			kind, length := dec.StackIndex(depth)
			if kind != jsontext.KindBeginObject || length%2 == 0 {
				break // a value, not a name
			}
			if err := addName(&open[depth-1], token.String(), dec.StackPointer()); err != nil {
				return err
			}
		}
		if depth == 0 {
			return checkEnd(dec)
		}
	}
}

func addName(names *map[string]string, name string, at jsontext.Pointer) error {
	if *names == nil {
		*names = make(map[string]string)
	}
	folded := fold(name)
	if other, taken := (*names)[folded]; taken {
		return errorAt(at, "members %q and %q differ only in case", other, name)
	}
	(*names)[folded] = name
	return nil
}

func checkEnd(dec *jsontext.Decoder) error {
	end := dec.InputOffset()
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return errorAt("", "expected one JSON object and nothing after it, got more text after byte %d", end)
	}
	return nil
}

// exponentFits looks at the exponent's digits only: at most three, leading zeros aside.
func exponentFits(number string) bool {
	at := strings.IndexAny(number, "eE")
	if at < 0 {
		return true
	}
	return len(strings.TrimLeft(number[at+1:], "+-0")) <= len("999")
}
