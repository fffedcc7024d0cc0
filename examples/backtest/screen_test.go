package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// The bar fits into any terminal, is drawn a few times a second, and leaves nothing behind.
func TestTheBarFits(t *testing.T) {
	t.Parallel()
	for width := range 120 {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			p := newProgress(screen{Writer: &out, width: func() int { return width }, colour: width%2 == 0})
			p.total = 1000
			for n := range 100 {
				p.read.Add(20) // twice as much in the end: a file may grow
				p.count(n*1234, "")
				time.Sleep(10 * time.Millisecond)
			}
			p.end()
			if width == 0 {
				assert.Empty(t, out.String(), "what is no terminal gets no bar")
				return
			}
			frames := strings.Split(out.String(), "\r")[1:]
			assert.Len(t, frames, 10+1)
			for _, frame := range frames {
				assert.Less(t, columns(plain(frame)), width, frame)
				assert.True(t, strings.HasSuffix(frame, "\x1b[K"), "%q", frame)
			}
			assert.Equal(t, "\x1b[K", frames[len(frames)-1])
			assert.NotContains(t, out.String(), "\n")
		})
	}
}

func TestNewsStandOnLinesOfTheirOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := newProgress(screen{Writer: &out, width: func() int { return 80 }})
		p.count(1, "")
		p.count(1, "backtest: something is wrong")
		p.end()
		p.end()
		frames := strings.Split(out.String(), "\r")
		assert.Contains(t, frames[1], "playing ")
		assert.Equal(t, "\x1b[Kbacktest: something is wrong\n", frames[2])
		assert.Contains(t, frames[3], "playing ")
		assert.Equal(t, "\x1b[K", frames[4])
		assert.Len(t, frames, 5)
	})
}

func TestParagraphs(t *testing.T) {
	t.Parallel()
	const text = "one two threefourfive six sieben acht neun zehn elf zwölf dreizehn"
	for width := range 40 {
		var out bytes.Buffer
		s := screen{Writer: &out, width: func() int { return width }}
		s.paragraph("", text, "  ")
		assert.Equal(t, strings.Fields(text), strings.Fields(out.String()), "no word is lost")
		if width < 15 {
			continue // a word may be longer than a line
		}
		for i, line := range strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n") {
			assert.LessOrEqual(t, columns(line), width)
			assert.Equal(t, i > 0, strings.HasPrefix(line, "  "), line)
		}
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 26389: "26,389", 1234567: "1,234,567"} {
		assert.Equal(t, want, number(n))
	}
	assert.Equal(t, []string{"ä ", " ä", "abc"}, []string{pad("ä", 2), pad("ä", -2), pad("abc", 2)})
	assert.Equal(t, []string{"1 run", "1,000 runs"}, []string{count(1, "run"), count(1000, "run")})
}
