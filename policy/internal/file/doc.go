// Package file reads policy files into typed documents, so that package policy compiles rules without decoding YAML.
//
//	l := file.Loader{Open: open, Parse: yamlfile.Parse}
//	d := l.Load(path, text, points.Policies, layer, "")
//	for _, r := range d.Rules {
//		switch keys := r.Keys.(type) {
//		case *file.Ask: // …
//		}
//	}
//
// A Document is a file with its includes. A Rule has the keys of its decision or its type of action, merged with the definition
// that it refers to. The tags of these structs hold the keys, their descriptions, and the values that they accept; the list of
// known keys, its suggestions and the published JSON Schema are derived from them.
//
// A value of the wrong type is a problem of its yamlfile.File and leaves the zero value. Package policy returns all other mistakes
// in rules as values.
package file
