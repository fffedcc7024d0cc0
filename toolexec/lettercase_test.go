package toolexec_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/toolexec"
)

// A name in another case than the schema's never reaches a tool, at any place in the
// arguments, because the tool may treat both names as the same.
func TestNamesInAnotherCase(t *testing.T) {
	s, err := toolexec.CompileSchema(`{"type": "object", "$defs": {"file": {"properties": {"path": {"type": "string"}, "parts": {"items": {"$ref": "#/$defs/file"}}}}},
		"properties": {"file": {"$ref": "#/$defs/file"}, "ID": {}, "id": {}, "pair": {"prefixItems": [{"$ref": "#/$defs/file"}], "items": {"properties": {"kind": {}}}},
			"closed": {"properties": {"path": {}}, "additionalProperties": false}, "headers": {"properties": {"accept": {}}, "additionalProperties": {"$ref": "#/$defs/file"}}},
		"allOf": [{"properties": {"command": {}}}], "anyOf": [{"properties": {"host": {}}}, {"properties": {"url": {}}}]}`)
	require.NoError(t, err)
	for args, want := range map[string]string{
		`{"file": {"path": "a"}, "ID": 1, "other": 3}`: "",
		`{"FILE": 1}`:                              `/FILE: is not known; did you mean "file"?`,
		`{"file": {"Path": "a"}}`:                  `/file/Path: is not known; did you mean "path"?`,
		`{"file": {"parts": [{}, {"pAth": "a"}]}}`: `/file/parts/1/pAth: is not known; did you mean "path"?`,
		`{"Id": 1}`:                                `/Id: is not known; did you mean "ID"?`,
		`{"Command": 1}`:                           `/Command: is not known; did you mean "command"?`,
		`{"URL": 1}`:                               `/URL: is not known; did you mean "url"?`,
		"{\"ho\u017ft\": 1}":                       "/ho\u017ft: is not known; did you mean \"host\"?", // a letter that folds to an s
		`{"pair": [{"PATH": 1}]}`:                  `/pair/0/PATH: is not known; did you mean "path"?`,
		`{"pair": [{}, {"Kind": 1}]}`:              `/pair/1/Kind: is not known; did you mean "kind"?`,
		`{"closed": {"Path": 1}}`:                  `/closed/Path: is not known; did you mean "path"?; known: "path"`,
		`{"headers": {"x": {"PATH": "a"}}}`:        `/headers/x/PATH: is not known; did you mean "path"?`,
		`{"headers": {"x/y": {"path": "a"}}}`:      "",
	} {
		if err := s.Validate(args); want == "" {
			assert.NoError(t, err, args)
		} else {
			assert.ErrorContains(t, err, want, args)
		}
	}
}
