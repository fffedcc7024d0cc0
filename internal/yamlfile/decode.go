package yamlfile

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/samber/lo"
)

// Scalar is a type that parses itself from one word, like a flag. The error of Set must say what is expected, even
// for an empty string.
type Scalar interface{ Set(text string) error }

// Reader is a type that reads itself from any node. It reports problems at the node.
type Reader interface{ ReadNode(n Node) }

// Checker is a struct that reports contradictions between its keys after decoding.
type Checker interface{ Check(n Node) }

// SecretError is the error that a Scalar returns if the text may be a secret and must not be shown.
type SecretError struct{ Expected string }

func (e *SecretError) Error() string { return e.Expected }

var durationType = reflect.TypeFor[time.Duration]()

// Decode reads the node into the value that a pointer points to. It reports every mismatch as a problem of the
// node's file. A type that is a Reader or a Scalar reads itself. The other supported types are
//
//   - string, bool, whole numbers, floats and time.Duration,
//   - pointers, slices and maps with string keys,
//   - any, which receives Value,
//   - structs, whose fields have tags: `key:"name"`, followed by options separated by commas: required (the key must be
//     present), positive (a number or time above zero), limit (a number above zero, or -1 for no limit) and nonnegative. A
//     key without a field is a problem.
//
// Decode returns false if there was a mismatch. It panics if into is not a pointer or has an unsupported type.
func (n Node) Decode(into any) bool {
	before := n.file.wrong
	n.decodeInto(reflect.ValueOf(into).Elem(), nil)
	return n.file.wrong == before
}

func (n Node) decodeInto(into reflect.Value, options []string) {
	switch target := into.Addr().Interface().(type) {
	case Reader:
		target.ReadNode(n)
		return
	case Scalar:
		n.scalar(target)
		return
	}
	if into.Type() == durationType {
		n.duration(into, options)
		return
	}
	switch into.Kind() {
	case reflect.String:
		if text, ok := n.Text(); ok {
			into.SetString(text)
		}
	case reflect.Bool:
		if n.Kind() != BoolNode || n.Raw() != "true" && n.Raw() != "false" {
			n.Wrong("expected true or false, got %s", n)
			return
		}
		into.SetBool(n.Raw() == "true")
	case reflect.Int, reflect.Int32, reflect.Int64:
		n.whole(into, options)
	case reflect.Float64:
		n.float(into, options)
	case reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		n.decodeInto(into.Elem(), options)
	case reflect.Slice:
		n.list(into, options)
	case reflect.Map:
		n.table(into, options)
	case reflect.Struct:
		n.fields(into)
	case reflect.Interface:
		if v := n.Value(); v != nil {
			into.Set(reflect.ValueOf(v))
		}
	default:
		panic("yamlfile: cannot decode into a " + into.Type().String())
	}
}

func (n Node) scalar(into Scalar) {
	if k := n.Kind(); k == MappingNode || k == ListNode || k == NullNode || k == AbsentNode {
		n.Wrong("%v, got %s", into.Set(""), n)
		return
	}
	err := into.Set(n.Raw())
	if _, secret := errors.AsType[*SecretError](err); secret {
		n.Hide()
		n.Wrong("%w", err)
		return
	}
	if err != nil {
		n.Wrong("%w, got %s", err, n)
	}
}

// sign returns a description of the allowed numbers, and whether number is allowed.
func sign(options []string, number float64) (words string, ok bool) {
	switch {
	case slices.Contains(options, "positive"):
		return " above zero", number > 0
	case slices.Contains(options, "limit"):
		return " above zero or -1", number > 0 || number == -1
	case slices.Contains(options, "nonnegative"):
		return " that is not negative", number >= 0
	}
	return "", true
}

func (n Node) whole(into reflect.Value, options []string) {
	v, err := strconv.ParseInt(n.Raw(), 10, into.Type().Bits())
	words, ok := sign(options, float64(v))
	if n.Kind() != NumberNode || err != nil || !ok {
		n.Wrong("expected a whole number%s, such as 20, got %s", words, n)
		return
	}
	into.SetInt(v)
}

func (n Node) float(into reflect.Value, options []string) {
	v, err := strconv.ParseFloat(n.Raw(), 64)
	words, ok := sign(options, v)
	if n.Kind() != NumberNode || err != nil || !ok || math.IsInf(v, 0) || math.IsNaN(v) {
		n.Wrong("expected a number%s, such as 0.5, got %s", words, n)
		return
	}
	into.SetFloat(v)
}

func (n Node) duration(into reflect.Value, options []string) {
	v, err := time.ParseDuration(n.Raw())
	words, ok := sign(options, float64(v))
	if err != nil || !ok {
		n.Wrong("expected a time%s with its unit, such as 90s or 10m, got %s", words, n)
		return
	}
	into.SetInt(int64(v))
}

func (n Node) list(into reflect.Value, options []string) {
	if n.Kind() != ListNode {
		if s, ok := reflect.TypeAssert[Scalar](reflect.New(into.Type().Elem())); ok {
			if secret, ok := errors.AsType[*SecretError](s.Set("")); ok { // values were given instead of names
				n.Hide()
				n.Wrong("expected a list, such as [a, b]; in it: %w", secret)
				return
			}
		}
	}
	items := n.Items()
	if n.Kind() == ListNode && len(n.y.Content) == 0 {
		n.Wrong("the list is empty: add an element, or remove the key")
	}
	made := reflect.MakeSlice(into.Type(), len(items), len(items))
	for i, item := range items {
		item.decodeInto(made.Index(i), options)
	}
	into.Set(made)
}

func (n Node) table(into reflect.Value, options []string) {
	made := reflect.MakeMap(into.Type())
	for _, e := range n.Entries() {
		value := reflect.New(into.Type().Elem()).Elem()
		e.Value.decodeInto(value, options)
		made.SetMapIndex(reflect.ValueOf(e.Key.Raw()).Convert(into.Type().Key()), value)
	}
	into.Set(made)
}

// fields reads a struct's keys.
func (n Node) fields(into reflect.Value) {
	known := Keys(into.Type())
	names := lo.Map(known, func(k Key, _ int) string { return k.Name })
	if n.Kind() != MappingNode {
		n.Wrong("expected keys with values, got %s: known are %s", n, OneOf(names))
		return
	}
	given := map[string]bool{}
	for _, e := range n.EntriesOf(names) {
		given[e.Key.Raw()] = true
		k, _ := lo.Find(known, func(k Key) bool { return k.Name == e.Key.Raw() })
		e.Value.decodeInto(into.FieldByIndex(k.index), k.options)
	}
	for _, k := range known {
		if k.Required() && !given[k.Name] {
			n.Wrong("the key %q is missing", k.Name)
		}
	}
	if c, ok := reflect.TypeAssert[Checker](into.Addr()); ok {
		c.Check(n)
	}
}

// EntriesOf works like Entries, and reports and omits unknown keys.
func (n Node) EntriesOf(known []string) []Entry {
	return lo.Filter(n.Entries(), func(e Entry, _ int) bool {
		key := e.Key.Raw()
		if lo.Contains(known, key) {
			return true
		}
		advice := ""
		if n.file.Advise != nil {
			if advice = n.file.Advise(key); advice != "" {
				e.Value.Hide()
				advice = "; " + advice
			}
		}
		e.Key.Wrong("%s%s", Unknown("key", key, known), advice)
		return false
	})
}

// Key is a key that a struct reads.
type Key struct {
	Name    string
	options []string
	index   []int
}

// Required reports whether the key must be present.
func (k Key) Required() bool { return slices.Contains(k.options, "required") }

// Keys returns the keys that a struct type reads, including keys of embedded structs.
func Keys(t reflect.Type) []Key {
	return lo.FilterMap(reflect.VisibleFields(t), func(f reflect.StructField, _ int) (Key, bool) {
		words := strings.Split(f.Tag.Get("key"), ",")
		return Key{words[0], words[1:], f.Index}, words[0] != ""
	})
}

// RequiredKeys returns the names of a struct type's required keys.
func RequiredKeys(t reflect.Type) []string {
	return lo.FilterMap(Keys(t), func(k Key, _ int) (string, bool) { return k.Name, k.Required() })
}

var _ fmt.Stringer = Node{}
