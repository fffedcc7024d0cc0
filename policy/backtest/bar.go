package backtest

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/grapnel-go/grapnel/internal/invisible"
)

// Bar shows a backtest's progress on a terminal. Set Options.Progress to its Show method. If Out is not a terminal,
// Bar prints only problems. It is safe for concurrent use.
type Bar struct {
	// Out receives the bar and the problems. Columns returns the terminal's current width; it is nil or returns zero
	// if Out is not a terminal.
	Out     io.Writer
	Columns func() int
	Colour  bool
	// Prefix begins each message, such as "grapnel: ".
	Prefix string

	mu             sync.Mutex
	started, drawn time.Time
	shown          bool
	said           map[string]bool
	more           int
}

// mostSaid is the maximum number of different problems that a Bar prints.
const mostSaid = 20

// Show draws the bar at most a few times a second, and prints each different problem once, up to a limit.
func (b *Bar) Show(p Progress) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if b.started.IsZero() {
		b.started, b.said = now, map[string]bool{}
	}
	if p.Wrong != nil && !b.said[p.Wrong.Error()] {
		if len(b.said) >= mostSaid {
			b.more++
		} else {
			b.said[p.Wrong.Error()] = true
			b.clear()
			fmt.Fprintln(b.Out, b.Prefix+invisible.Clean(p.Wrong.Error()))
		}
	}
	if now.Sub(b.drawn) >= 100*time.Millisecond {
		b.drawn = now
		b.draw(p, now.Sub(b.started))
	}
}

// End removes the bar.
func (b *Bar) End() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clear()
	if b.more > 0 {
		fmt.Fprintf(b.Out, "%s… and %s\n", b.Prefix, countNoun(b.more, "more problem"))
		b.more = 0
	}
}

func (b *Bar) clear() {
	if b.shown {
		fmt.Fprint(b.Out, "\r\x1b[K")
		b.shown = false
	}
}

func (b *Bar) draw(p Progress, took time.Duration) {
	width := 0
	if b.Columns != nil {
		width = b.Columns()
	}
	if width == 0 {
		return
	}
	share := 1.0
	if p.Total > 0 {
		share = min(1, float64(p.Bytes)/float64(p.Total))
	}
	text := fmt.Sprintf(" %3.0f%%  %s runs  %s/s", 100*share, formatNumber(p.Runs), formatNumber(int(float64(p.Runs)/max(took.Seconds(), 0.001))))
	room := max(0, width-3) // leave room for ^C, which would wrap the line
	full := min(40, room-countColumns("playing ")-countColumns(text))
	if full < 5 {
		text = "playing" + text
		fmt.Fprint(b.Out, "\r"+text[:min(len(text), room)]+"\x1b[K")
	} else {
		l, done := Look{Colour: b.Colour}, int(share*float64(full))
		fmt.Fprint(b.Out, "\rplaying "+l.paint(green, strings.Repeat("█", done))+l.paint(dim, strings.Repeat("░", full-done))+text+"\x1b[K")
	}
	b.shown = true
}
