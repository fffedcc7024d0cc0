package main

import (
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"
)

// progress tells how far the program is: on a terminal with a bar that moves, elsewhere only what must be said. All
// its methods but those on what is being read are for one goroutine.
type progress struct {
	screen screen
	total  int64 // bytes
	read   atomic.Int64

	started, drawn time.Time
	shown          bool
	runs           int
}

func newProgress(s screen) *progress { return &progress{screen: s, started: time.Now()} }

// counted counts what is read of a file.
type counted struct {
	file io.Reader
	own  int64
	all  *atomic.Int64
}

// reading returns r with its bytes counted.
func (p *progress) reading(r io.Reader) *counted { return &counted{file: r, all: &p.read} }

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.file.Read(b)
	c.own += int64(n)
	c.all.Add(int64(n))
	return n, err
}

// skip takes the rest of a file of this size for read.
func (c *counted) skip(size int64) { c.all.Add(size - c.own) }

// count tells the number of runs that were played so far, and the news, if there is any.
func (p *progress) count(runs int, news string) {
	p.runs = runs
	if news != "" {
		p.clear()
		fmt.Fprintln(p.screen, news)
	}
	if now := time.Now(); news != "" || now.Sub(p.drawn) >= 100*time.Millisecond {
		p.drawn = now
		p.draw(now.Sub(p.started))
	}
}

// end takes the bar away.
func (p *progress) end() { p.clear() }

func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.screen, "\r\x1b[K")
		p.shown = false
	}
}

func (p *progress) draw(took time.Duration) {
	width := p.screen.width()
	if width == 0 {
		return
	}
	share := 1.0
	if p.total > 0 {
		share = min(1, float64(p.read.Load())/float64(p.total))
	}
	text := fmt.Sprintf(" %3.0f%%  %s runs  %s/s", 100*share, number(p.runs), number(int(float64(p.runs)/max(took.Seconds(), 0.001))))
	room := max(0, width-3) // for the ^C of who has seen enough, without which the line would wrap
	bar := min(40, room-columns("playing ")-columns(text))
	if bar < 5 {
		text = "playing" + text
		text = text[:min(len(text), room)]
		fmt.Fprint(p.screen, "\r"+text+"\x1b[K")
	} else {
		full := int(share * float64(bar))
		fmt.Fprint(p.screen, "\rplaying "+p.screen.paint(green, strings.Repeat("█", full))+
			p.screen.paint(dim, strings.Repeat("░", bar-full))+text+"\x1b[K")
	}
	p.shown = true
}
