package near

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestName(t *testing.T) {
	known := []string{"city", "command", "file_path", "max_results", "q", "url"}
	for name, want := range map[string]string{
		"citty": "city", "City": "city", "filePath": "file_path", "file-path": "file_path", "path": "file_path", "comand": "command",
		"maxResult": "max_results", "results": "max_results", "Q": "q", "uri": "url",
		"x": "", "zip": "", "description": "", "ab": "", strings.Repeat("city", 50): "city",
	} {
		got, _ := Name(name, known)
		assert.Equal(t, want, got, name)
	}
}

// Of two names at the same distance, the one in the same case is meant, or else the first one, in whichever order they are
// known.
func TestEquallySimilar(t *testing.T) {
	for name, want := range map[string]string{"HOMEE": "HOME", "homee": "homer", "bat": "cat"} {
		for _, known := range [][]string{{"HOME", "homer", "cat", "rat"}, {"rat", "cat", "homer", "HOME"}} {
			got, _ := Name(name, known)
			assert.Equal(t, want, got, name)
		}
	}
}

func TestEditDistance(t *testing.T) {
	assert.Equal(t, 0, editDistance("", ""))
	assert.Equal(t, 3, editDistance("", "abc"))
	assert.Equal(t, 3, editDistance("kitten", "sitting"))
	assert.Equal(t, 1, editDistance("paht", "path"))
	assert.Equal(t, editDistance("saturday", "sunday"), editDistance("sunday", "saturday"))
}
