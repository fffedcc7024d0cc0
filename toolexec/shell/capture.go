package shell

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/grapnel-go/grapnel/internal/invisible"
)

// capture keeps the head and the tail of the data written to it, and counts the rest.
type capture struct {
	most       int
	total      int64
	head, tail []byte
}

// Write never fails.
func (c *capture) Write(p []byte) (int, error) {
	n := len(p)
	c.total += int64(n)
	room := min(c.most/2-len(c.head), n)
	c.head = append(c.head, p[:room]...)
	keep := c.most - c.most/2
	p = p[room:]
	c.tail = append(c.tail, p[max(0, len(p)-keep):]...)
	if extra := len(c.tail) - keep; extra > keep {
		c.tail = append(c.tail[:0], c.tail[extra:]...)
	}
	return n, nil
}

// binaryShown is the number of bytes shown from a binary stream. binaryPercent is the percentage of non-text bytes that
// makes a stream binary.
const (
	binaryShown   = 32
	binaryPercent = 10
)

// stream returns the captured output as text.
func (c *capture) stream() Stream {
	head, tail := c.head, c.tail[max(0, len(c.tail)-(c.most-c.most/2)):]
	missing := c.total - int64(len(head)+len(tail))
	if missing == 0 {
		head, tail = bytes.Join([][]byte{head, tail}, nil), nil
	} else {
		head, tail = wholeRunes(head, tail)
		missing = c.total - int64(len(head)+len(tail))
	}
	s := Stream{Bytes: c.total}
	first, odd := readableText(head)
	last, more := readableText(tail)
	s.Replaced = odd + more
	if bytes.IndexByte(head, 0) >= 0 || bytes.IndexByte(tail, 0) >= 0 || s.Replaced*100 > binaryPercent*(len(head)+len(tail)) {
		kept := head[:min(binaryShown, len(head))]
		s.Binary, s.Replaced = true, 0
		s.Omitted = c.total - int64(len(kept))
		s.Text = fmt.Sprintf("[begins with % x; not shown]", kept)
		return s
	}
	s.Omitted, s.Text = missing, first
	if missing > 0 {
		s.Text = fmt.Sprintf("%s\n[… %d of %d bytes left out …]\n%s", first, missing, c.total, last)
	}
	return s
}

// wholeRunes drops partial runes at the cut between head and tail.
func wholeRunes(head, tail []byte) ([]byte, []byte) {
	for i := 1; i < utf8.UTFMax && i <= len(head); i++ {
		if from := head[len(head)-i:]; utf8.RuneStart(from[0]) {
			if !utf8.FullRune(from) {
				head = head[:len(head)-i]
			}
			break
		}
	}
	for i := range min(utf8.UTFMax-1, len(tail)) {
		if utf8.RuneStart(tail[i]) {
			tail = tail[i:]
			break
		}
	}
	return head, tail
}

// readableText returns b as text that is safe for a terminal or a model. It replaces control characters and bytes that
// are not UTF-8, and unifies line ends. replaced is the number of replacements.
func readableText(b []byte) (text string, replaced int) {
	var out strings.Builder
	out.Grow(len(b))
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		switch {
		case r == '\r' && len(b) > 1 && b[1] == '\n':
		case r == '\r':
			out.WriteByte('\n')
		case r == utf8.RuneError && size == 1, 0x80 <= r && r < 0xa0, invisible.IsDeceptive(r):
			out.WriteRune(utf8.RuneError)
			replaced++
		case r < ' ' && r != '\n' && r != '\t':
			out.WriteRune(0x2400 + r) // the control character's visible symbol
			replaced++
		case r == 0x7f:
			out.WriteRune('␡')
			replaced++
		default:
			out.Write(b[:size])
		}
		b = b[size:]
	}
	return out.String(), replaced
}
