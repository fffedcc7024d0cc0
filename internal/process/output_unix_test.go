//go:build unix

package process

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A program's output is read to its end, even if the reader has its turn only after the deadline.
func TestOutputAfterTheDeadline(t *testing.T) {
	for _, isOpen := range []bool{false, true} {
		var got bytes.Buffer
		o, err := newOutput(&got)
		require.NoError(t, err)
		text := strings.Repeat("x", 60_000)
		_, err = io.WriteString(o.writer, text)
		require.NoError(t, err)
		if !isOpen {
			require.NoError(t, o.writer.Close())
		}
		require.NoError(t, o.reader.SetReadDeadline(time.Now().Add(-time.Second)))
		o.read()
		assert.Equal(t, text, got.String())
		assert.Equal(t, isOpen, o.held)
		o.close()
	}
}
