package yamlfile_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

func TestCheckFormat(t *testing.T) {
	for text, wrong := range map[string]string{
		"name: a\n":             "",
		"format: 1\nname: a\n":  "",
		"name: a\nformat: 2\n":  "",
		"name: a\nformat: 3\n":  "f.yaml:2:9: format 3 is newer than this program reads (2): use a newer version of Grapnel",
		"format: 0\nname: a\n":  "expected the number of the file's format, which is 2",
		"format: 2.5\n":         "expected the number",
		"format: \"2\"\n":       "expected the number",
		"format: {of: three}\n": "expected the number",
		"- format: 3\n":         "",
		"":                      "",
	} {
		f := yamlfile.Parse("f.yaml", []byte(text))
		assert.Equal(t, wrong == "", f.CheckFormat(2), text)
		root, ok := f.Root()
		if wrong != "" {
			require.ErrorContains(t, f.Err(), wrong)
			assert.False(t, ok, "nothing is known of what else is there")
			continue
		}
		require.NoError(t, f.Err())
		assert.Equal(t, yamlfile.AbsentNode, root.Find("format").Kind(), text)
	}
	assert.False(t, yamlfile.Parse("f.json", []byte(`{"format": 3, "name": "a"}`)).CheckFormat(2))
}
