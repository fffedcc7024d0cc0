package condition

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// tree is a JSON object, parsed into one slice of nodes in which each object or list is followed by its content. It
// is parsed when a condition first needs it and does not change afterwards, so it is safe for concurrent reads.
type tree struct {
	read sync.Once
	row  []node
	few  [6]node // initial storage for the nodes: enough for most calls
	err  error

	made   sync.Once
	object map[string]any
}

// treeOf returns the tree for a JSON text. Empty text is the empty object.
func treeOf(text string) *tree { return new(tree).open(text) }

// node is a value in a tree.
type node struct {
	name string // the member's name
	scalar
}

// scalar is a value that is compared without conversion to CEL. For other values, only the kind is set.
type scalar struct {
	kind scalarKind
	text string // the string, or the digits of a number that conditions cannot represent
	bits uint64 // the bool or number; for a list or an object in a tree, the index behind its content
}

type scalarKind uint8

const (
	unknownKind scalarKind = iota // only CEL can compute it
	tooLong                       // a number with too many digits
	tooLarge                      // another number that is too large
	nullKind
	boolKind
	textKind
	intKind
	uintKind
	doubleKind
	listKind
	objectKind
)

// open parses the tree's text once. All calls must pass the same text.
func (t *tree) open(text string) *tree {
	t.read.Do(func() {
		t.row = t.few[:0]
		if text == "" {
			t.row = append(t.row, node{scalar: scalar{kind: objectKind, bits: 1}})
			return
		}
		if t.err = strictjson.CheckObject(text); t.err != nil {
			return
		}
		r := reader{text: text, row: t.row}
		r.space()
		r.readMember("")
		t.row = r.row
	})
	return t
}

// members returns the object as a map of CEL values.
func (t *tree) members() (map[string]any, error) {
	t.made.Do(func() {
		if t.err == nil {
			t.object = t.membersAt(0)
		}
	})
	return t.object, t.err
}

func (t *tree) membersAt(at int) map[string]any {
	out := map[string]any{}
	for i := at + 1; i < t.behind(at); i = t.behind(i) {
		out[t.row[i].name] = t.nodeValue(i)
	}
	return out
}

// behind returns the index behind a node and its content.
func (t *tree) behind(at int) int {
	if n := &t.row[at]; n.kind >= listKind {
		return int(n.bits) //nolint:gosec // it was converted from an int
	}
	return at + 1
}

// nodeValue returns a node as a CEL value.
func (t *tree) nodeValue(at int) ref.Val {
	switch n := &t.row[at]; n.kind {
	case objectKind:
		return types.NewStringInterfaceMap(types.DefaultTypeAdapter, t.membersAt(at))
	case listKind:
		var out []ref.Val
		for i := at + 1; i < t.behind(at); i = t.behind(i) {
			out = append(out, t.nodeValue(i))
		}
		return types.NewRefValList(types.DefaultTypeAdapter, out)
	default:
		return n.toCEL()
	}
}

// mostLooks is the maximum number of members that a lookup compares one by one.
const mostLooks = 64

// member returns the index of a member of the object at an index. It returns unsure if the value is not an object or
// has too many members.
func (t *tree) member(at int, name string) (int, verdict) {
	if t.row[at].kind != objectKind {
		return 0, unsure
	}
	i, end := at+1, t.behind(at)
	for range mostLooks {
		if i >= end {
			return 0, no
		}
		if t.row[i].name == name {
			return i, yes
		}
		i = t.behind(i)
	}
	return 0, unsure
}

// toCEL returns a scalar as a CEL value.
func (s scalar) toCEL() ref.Val {
	switch s.kind {
	case nullKind:
		return types.NullValue
	case boolKind:
		return types.Bool(s.bits != 0)
	case textKind:
		return types.String(s.text)
	case intKind:
		return types.Int(s.bits) //nolint:gosec // the bits are an int64
	case uintKind:
		return types.Uint(s.bits)
	case doubleKind:
		return types.Double(math.Float64frombits(s.bits))
	case tooLong:
		return types.WrapErr(fmt.Errorf("the number %s has too many digits for a condition", shortenText(s.text)))
	case tooLarge:
		return types.WrapErr(fmt.Errorf("the number %s is too large for a condition to hold exactly", shortenText(s.text)))
	case unknownKind, listKind, objectKind:
	}
	return types.NewErr("a value is unknown")
}

// scalarOf returns a CEL value as a scalar.
func scalarOf(v any) scalar {
	switch v := v.(type) {
	case types.Null:
		return scalar{kind: nullKind}
	case types.Bool:
		return boolScalar(bool(v))
	case types.String:
		return scalar{kind: textKind, text: string(v)}
	case types.Int:
		return scalar{kind: intKind, bits: uint64(v)} //nolint:gosec // it is converted back to int64
	case types.Uint:
		return scalar{kind: uintKind, bits: uint64(v)}
	case types.Double:
		if !math.IsNaN(float64(v)) { // NaN has no order
			return scalar{kind: doubleKind, bits: math.Float64bits(float64(v))}
		}
	}
	return scalar{}
}

func boolScalar(b bool) scalar {
	if b {
		return scalar{kind: boolKind, bits: 1}
	}
	return scalar{kind: boolKind}
}

// exact is the limit up to which a double represents every whole number.
const exact = 1 << 53

// scalarOfNumber converts a JSON number. Whole numbers keep their digits: they become an int, or a uint if too large
// for an int. Other numbers become doubles. A number that would lose significant digits becomes an error value.
func scalarOfNumber(text string) scalar {
	if !strings.ContainsAny(text, ".eE") {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return scalar{kind: intKind, bits: uint64(n)} //nolint:gosec // it is converted back to int64
		}
		if n, err := strconv.ParseUint(text, 10, 64); err == nil {
			return scalar{kind: uintKind, bits: n}
		}
		return scalar{kind: tooLong, text: text}
	}
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || math.Abs(f) >= exact:
		return scalar{kind: tooLarge, text: text}
	case !strictjson.IsDouble(text, f):
		return scalar{kind: tooLong, text: text}
	}
	return scalar{kind: doubleKind, bits: math.Float64bits(f)}
}

// reader reads JSON that was validated before. Invalid JSON yields wrong values but no panic.
type reader struct {
	text string
	at   int
	row  []node
}

// next returns the next byte, or zero at the end.
func (r *reader) next() byte {
	if r.at < len(r.text) {
		return r.text[r.at]
	}
	return 0
}

func (r *reader) space() {
	for c := r.next(); c == ' ' || c == '\t' || c == '\n' || c == '\r'; c = r.next() {
		r.at++
	}
}

// step skips a byte and the white space behind it.
func (r *reader) step() {
	r.at++
	r.space()
}

// readMember reads a value with its content.
func (r *reader) readMember(name string) {
	switch r.next() {
	case '{':
		r.inside(name, objectKind)
		return
	case '[':
		r.inside(name, listKind)
		return
	case '"':
		r.row = append(r.row, node{name, scalar{kind: textKind, text: r.readString()}})
		return
	}
	end := strings.IndexAny(r.text[r.at:], " \t\r\n,]}")
	if end < 0 {
		end = len(r.text) - r.at
	}
	word := r.text[r.at : r.at+end]
	r.at += end
	var v scalar
	switch word {
	case "true", "false":
		v = boolScalar(word == "true")
	case "null":
		v.kind = nullKind
	default:
		v = scalarOfNumber(word)
	}
	r.row = append(r.row, node{name, v})
}

// inside reads an object or a list.
func (r *reader) inside(name string, kind scalarKind) {
	at := len(r.row)
	r.row = append(r.row, node{name, scalar{kind: kind}})
	for r.step(); r.at < len(r.text) && r.next() != '}' && r.next() != ']'; r.step() {
		member := ""
		if kind == objectKind {
			member = r.readString()
			r.space()
			r.step() // the colon
		}
		r.readMember(member)
		if r.space(); r.next() != ',' {
			break
		}
	}
	r.at++
	r.row[at].bits = uint64(len(r.row))
}

func (r *reader) readString() string {
	from := r.at
	for r.at++; r.at < len(r.text) && r.text[r.at] != '"'; r.at++ {
		if r.text[r.at] == '\\' {
			r.at++
		}
	}
	r.at = min(r.at+1, len(r.text))
	text, _ := strictjson.Unquote(r.text[from:r.at])
	return text
}
