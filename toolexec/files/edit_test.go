package files

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// An edit of a text with CRLF is the edit of the same text without.
func TestEditsWithAndWithoutCR(t *testing.T) {
	dos := func(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }
	rapid.Check(t, func(t *rapid.T) {
		content := rapid.StringMatching(`[ab\n]{1,12}`).Draw(t, "content") + "\n"
		from := rapid.StringMatching(`[ab\n]{1,3}`).Draw(t, "old")
		to := rapid.StringMatching(`[c\n]{0,3}`).Draw(t, "new")
		all := rapid.Bool().Draw(t, "all")
		want, lines, err := replaceText(content, from, to, all, 1000)
		got, gotLines, gotErr := replaceText(dos(content), from, to, all, 1000)
		require.Equal(t, dos(want), got)
		require.Equal(t, lines, gotLines)
		require.Equal(t, fmt.Sprint(err), fmt.Sprint(gotErr))
	})
}

// Whatever the mix of line ends, an edit leaves all that it does not replace as it is.
func TestEditsLeaveTheRest(t *testing.T) {
	piece := rapid.StringMatching(`([ab]|\r\n|\n|\r|\xff){0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		before, after := piece.Draw(t, "before"), piece.Draw(t, "after")
		got, _, err := replaceText(before+"|old\r\ntext|"+after, "|old\ntext|", "new", false, 1000)
		require.NoError(t, err)
		require.Equal(t, before+"new"+after, got)
	})
}

// Many places and a long text to put there come to terabytes: the edit is refused before it takes any memory.
func TestEditsThatWouldFillTheMemory(t *testing.T) {
	for _, end := range []string{"\n", "\r\n"} {
		_, _, err := replaceText(strings.Repeat(end, 1<<20), "\n", strings.Repeat("x", 4<<20), true, 4<<20)
		require.ErrorContains(t, err, "it would be 4398046511104 bytes, and files of up to 4194304 are written")
	}
}
