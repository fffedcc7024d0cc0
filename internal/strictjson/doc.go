// Package strictjson reads the JSON that a model sends as tool arguments, once and under one strict
// reading, so that what a rule looked at is what the tool gets.
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
//   - Text that is not valid UTF-8, half a surrogate pair included, is an error.
//   - A number that lands in an any (or in a json.Number) is a json.Number and keeps its digits.
//   - A whole number fits an integer field however it is written: 10, 10.0 and 1e1 are 10. 1.5 is an error.
//
// CheckObject adds what only makes sense for arguments as a whole: exactly one object, bounded nesting,
// bounded exponents, and no two names of one object that differ only in case. encoding/json would take
// {"path":"/tmp","PATH":"/etc"} and let the last one win.
//
// Errors are *Error: where (a JSON pointer) and what. All functions may be called at once from many goroutines.
package strictjson
