// Package strictjson reads the JSON that a model sends as tool arguments. It interprets it strictly and in only one way,
// so that rules and tools see the same values.
//
//	args := `{"file": {"path": "a.txt"}}`
//	if err := strictjson.CheckObject(args); err != nil {
//		return err // not an object, a name given twice, names that differ only in case …
//	}
//	path, _ := strictjson.Lookup(args, "file.path") // the raw value, nothing else is decoded
//	var in struct{ File struct{ Path string } }
//	err := strictjson.Unmarshal(args, &in)
//
// The rules, in all functions that decode:
//
//   - Member names are case-sensitive, and a name given twice is an error.
//   - Text that is not valid UTF-8, including half a surrogate pair, is an error.
//   - A number that is decoded into an any (or a json.Number) is a json.Number and keeps its digits.
//   - A whole number fits an integer field in any notation: 10, 10.0 and 1e1 are 10. 1.5 is an error.
//
// CheckObject adds checks for arguments as a whole: exactly one object, limited nesting, limited exponents,
// and no two names in one object that differ only in case. encoding/json would accept
// {"path":"/tmp","PATH":"/etc"} and use the last one.
//
// Errors are of type *Error: the place (a JSON pointer) and the mistake. All functions are safe for
// concurrent use.
package strictjson
