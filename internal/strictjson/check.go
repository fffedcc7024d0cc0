package strictjson

import (
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// MaxDepth is the maximum nesting of objects and arrays in arguments, including the outermost object.
	MaxDepth = 1000

	// MaxExponent is the maximum absolute exponent of a number in arguments. It exceeds every float64's exponent, and
	// limits the size of exact numbers: the eleven bytes 1e999999999 would become a four-hundred-megabyte integer.
	MaxExponent = 999

	// MaxDigits is the maximum length of a number in arguments, in bytes. Exact arithmetic takes quadratic time.
	MaxDigits = 4000

	// reusedNames is the maximum size of a map that is cleared for reuse. Larger maps are replaced, because clearing
	// a map costs as much as its largest size.
	reusedNames = 64
)

// CheckObject checks that args is exactly one JSON object under the strict rules: valid UTF-8, no duplicate
// names in an object, no two names in one object that differ only in case (Unicode simple folding), nesting
// up to MaxDepth, exponents up to MaxExponent, numbers up to MaxDigits, and only white space around it. The empty string
// is not an object; callers that accept it as {} must do so themselves.
//
// The error is nil, or a *Error with the first mistake. Common arguments are checked without allocation.
func CheckObject(args string) error {
	if plainDocument(args) {
		return nil
	}
	return checkTokens(args)
}

// checkTokens works like CheckObject but uses the JSON library's tokens. It is the reference implementation, and
// creates the error messages.
func checkTokens(args string) error {
	dec := jsontext.NewDecoder(strings.NewReader(args))
	switch kind := dec.PeekKind(); kind {
	case jsontext.KindBeginObject:
	case jsontext.KindInvalid:
		_, err := dec.ReadToken()
		return explain(err)
	default:
		if !jsontext.Value(args).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) { // text that only begins like a value
			return errorAt("", "expected one JSON object, got text that is not JSON")
		}
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
			if len(open[depth-1]) > reusedNames {
				open[depth-1] = nil
			}
			clear(open[depth-1])
		case jsontext.KindNumber:
			switch number := token.String(); {
			case len(number) > MaxDigits:
				return errorAt(dec.StackPointer(), "the number %s is longer than %d bytes: give it as a string", shorten(number), MaxDigits)
			case !exponentFits(number):
				return errorAt(dec.StackPointer(), "the exponent of %s is out of range", shorten(number))
			}
		case jsontext.KindString:
			kind, length := dec.StackIndex(depth)
			if kind != jsontext.KindBeginObject || length%2 == 0 {
				break // a value, not a name
			}
			if err := addName(&open[depth-1], token.String(), dec); err != nil {
				return err
			}
		}
		if depth == 0 {
			return checkEnd(dec)
		}
	}
}

func addName(names *map[string]string, name string, dec *jsontext.Decoder) error {
	if *names == nil {
		*names = make(map[string]string)
	}
	folded := fold(name)
	if other, taken := (*names)[folded]; taken {
		return errorAt(dec.StackPointer(), "members %q and %q differ only in case", other, name)
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

// exponentFits checks only the exponent's digits: at most three, without leading zeros.
func exponentFits(number string) bool {
	at := strings.IndexAny(number, "eE")
	if at < 0 {
		return true
	}
	return len(strings.TrimLeft(number[at+1:], "+-0")) <= len("999")
}
