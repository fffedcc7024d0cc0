// Package yamlfile reads files that people write, in YAML or JSON, and tells them all
// that is wrong at once, each mistake with its file, line and column, the line itself
// and what would be right.
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
// A key that is not known, one that comes twice, a value of another type than the one
// that is wanted: each is a Problem. Text is text, and never a number without quotes;
// true and false are the only bools. Anchors, aliases, merge keys, tags and a second
// document are refused, so that a small file is a small tree. A file has a megabyte at
// most and is 50 deep at most. Only a file that is not YAML, or not JSON, is told of by
// its first mistake.
//
// # Problems
//
// They gather in the File: a Node and a Place know theirs, so that the code that holds one can
// add a problem with Wrong, as often as it is found, and it is told once. Err is all of
// one file, Join of several. A Place may be kept for what is found out much later: Error
// makes an error of it. Node.At is the place within a text, for the errors of whatever
// parses that text.
package yamlfile
