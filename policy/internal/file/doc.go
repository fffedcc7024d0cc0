// Package file reads policy files into typed documents, so that package policy compiles rules without decoding YAML.
//
// A Document is a file with its includes. A Rule has the keys of its decision or its type of action, merged with the definition
// that it refers to. The tags of these structs hold the keys, their descriptions, and the values that they accept; the list of
// known keys, its suggestions and the published JSON Schema are derived from them.
//
// A value of the wrong type is a problem of its yamlfile.File and leaves the zero value. Package policy returns all other mistakes
// in rules as values.
package file
