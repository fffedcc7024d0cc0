package pipeline

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The end of a file of events says which one is the last, wherever a crash cut it off.
func TestLastEvent(t *testing.T) {
	var text string
	var ends []int // of the lines
	for i, size := range []int{0, 10, 70_000, 64<<10 - 30, 200_000, 5} {
		line, err := json.Marshal(eventLine{Seq: int64(i + 1), Name: strings.Repeat("n", size)})
		require.NoError(t, err)
		text += string(line) + "\n"
		ends = append(ends, len(text))
	}
	for _, cut := range []int{0, 1, ends[0] - 1, ends[0], ends[1], ends[1] + 1, ends[2] - 1, ends[2], ends[3], ends[4] - 100, ends[4], ends[5] - 1, ends[5]} {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			var last int64
			var whole int
			for i, end := range ends {
				if end <= cut {
					last, whole = int64(i+1), end
				}
			}
			path := filepath.Join(t.TempDir(), eventsFile)
			require.NoError(t, os.WriteFile(path, []byte(text[:cut]), 0o600))
			file, err := os.OpenFile(path, os.O_RDWR, 0)
			require.NoError(t, err)
			got, err := lastEvent(file)
			require.NoError(t, err)
			assert.Equal(t, last, got)
			require.NoError(t, file.Close())
			left, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, text[:whole], string(left))
		})
	}

	t.Run("damaged", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), eventsFile)
		require.NoError(t, os.WriteFile(path, []byte("{\"seq\":1}\nno JSON\n"), 0o600))
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		require.NoError(t, err)
		defer file.Close()
		got, err := lastEvent(file)
		require.NoError(t, err)
		assert.Zero(t, got)
		info, err := file.Stat()
		require.NoError(t, err)
		assert.Zero(t, info.Size(), "all events are written again")
	})
}
