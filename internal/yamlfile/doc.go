// Package yamlfile reads YAML or JSON files that people write. It reports all of a file's problems together, each with
// file, line and column, the line itself, and the expected value.
//
//	text, err := yamlfile.Read("rules.yaml")
//	// …
//	file := yamlfile.Parse("rules.yaml", text)
//	var rules struct {
//		Name  string        `key:"name,required"`
//		After time.Duration `key:"after,positive"`
//	}
//	if root, ok := file.Root(); ok {
//		root.Decode(&rules)
//	}
//	if err := file.Err(); err != nil {
//		return err // an *Error
//	}
//
// # Strictness
//
// An unknown key, a duplicate key, and a value of the wrong type are Problems. Numbers and bools are not accepted as
// text without quotes; true and false are the only bools. Anchors, aliases, merge keys, tags and a second document are
// refused, so that a small file is a small tree. A file has at most one megabyte and 50 levels. If a file is not valid
// YAML or JSON, only its first error is reported.
//
// # Problems
//
// The File collects problems. Each Node and Place refers to its File, so code that holds one can report a
// problem with Wrong; a repeated problem is reported once. Err returns one file's problems, Join the problems of
// several files. Keep a Place to report a problem later: its Error method returns an error with that position. Node.At
// returns a place within a text, for errors of another parser that parses the text.
package yamlfile
