package pipeline

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/pipeline"
)

// The control sequences of a view.
const (
	hideCursor  = "\x1b[?25l"
	showCursor  = "\x1b[?25h"
	clearBelow  = "\r\x1b[J"
	cursorUp    = "\x1b[%dA"
	viewRefresh = 500 * time.Millisecond // how often the view reads the store, besides after each event
)

// screen draws lines at a terminal, and replaces those that it has drawn before. Its methods must not be called concurrently.
type screen struct {
	out   io.Writer
	size  func() (width, height int)
	drawn []string // the lines on the terminal, without colours
	last  string   // what was written for them
}

// draw replaces the lines on the terminal. Plain are the same lines without colours.
func (s *screen) draw(lines, plain []string) {
	text := strings.Join(lines, "\n") + "\n"
	if text == s.last {
		return
	}
	_, _ = io.WriteString(s.out, hideCursor+s.erasing()+text) // the session continues without its view
	s.drawn, s.last = plain, text
}

// erasing returns the sequence that erases the lines on the terminal. When the terminal has become narrower, they take more rows.
func (s *screen) erasing() string {
	if len(s.drawn) == 0 {
		return ""
	}
	width, height := s.size()
	rows := 0
	for _, line := range s.drawn {
		rows += max(1, (timeline.Width(line)+width-1)/width)
	}
	return fmt.Sprintf(cursorUp, max(min(rows, height-1), 1)) + clearBelow
}

// erase erases the lines on the terminal.
func (s *screen) erase() {
	_, _ = io.WriteString(s.out, s.erasing())
	s.drawn, s.last = nil, ""
}

// leave keeps the lines on the terminal, and shows the cursor below them.
func (s *screen) leave() {
	_, _ = io.WriteString(s.out, showCursor)
	s.drawn, s.last = nil, ""
}

// sessionView shows a session at a terminal until it has ended. It is safe for concurrent use.
type sessionView struct {
	flags   string // see sessionFrame
	colours bool
	updates chan struct{} // has a value when the store may have something new

	mu       sync.Mutex
	tracker  *pipeline.Tracker
	screen   screen
	progress pipeline.SessionProgress
	known    bool // the progress was read
	holds    int  // the number of questions at the terminal
	closed   bool
}

// isLive reports whether a view can be drawn on f: it is a terminal that can move its cursor.
func isLive(f *os.File) bool {
	return console.IsTerminal(f) && os.Getenv("TERM") != "dumb"
}

// newSessionView returns the view of a session on standard output.
func newSessionView(ctx context.Context, std console.Streams, k *storage.Store, about durable.Run) (*sessionView, error) {
	tracker, err := pipeline.NewTracker(ctx, k.Store, about)
	if err != nil {
		return nil, err
	}
	return &sessionView{
		flags: k.Address.Flag(), colours: console.WantsColour(std.Out, "auto"), updates: make(chan struct{}, 1), tracker: tracker,
		screen: screen{out: std.Out, size: func() (int, int) { return sizeOf(std.Out) }},
	}, nil
}

// sizeOf returns the size of a terminal.
func sizeOf(f *os.File) (width, height int) {
	if width, height, err := term.GetSize(int(f.Fd())); err == nil && width > 0 && height > 0 {
		return width, height
	}
	return 80, 24
}

// run draws the view until the session has ended or ctx is done. It returns an error when the session cannot be read.
func (v *sessionView) run(ctx context.Context) error {
	tick := time.NewTicker(viewRefresh)
	defer tick.Stop()
	for {
		ended, err := v.refresh(ctx)
		if err != nil || ended {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-v.updates:
		case <-tick.C:
		}
	}
}

// refresh reads the session and draws it.
func (v *sessionView) refresh(ctx context.Context) (ended bool, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.readSession(ctx); err != nil {
		return false, err
	}
	v.draw()
	return !v.progress.Ended.IsZero(), nil
}

func (v *sessionView) readSession(ctx context.Context) error {
	progress, err := v.tracker.Refresh(ctx)
	if err == nil {
		v.progress, v.known = progress, true
	}
	return err
}

// draw draws what was read. One row of the terminal stays free for the cursor.
func (v *sessionView) draw() {
	if v.holds > 0 || v.closed || !v.known {
		return
	}
	width, height := v.screen.size()
	v.drawFrame(width, max(height-1, 1))
}

// drawFrame draws at most height lines; all of them if height is zero.
func (v *sessionView) drawFrame(width, height int) {
	frame := sessionFrame{v.progress, time.Now(), v.flags, height == 0}
	var lines, plain []string
	for _, l := range frame.render(width, height) {
		lines, plain = append(lines, l.Paint(v.colours)), append(plain, l.Paint(false))
	}
	v.screen.draw(lines, plain)
}

// above writes something above the view.
func (v *sessionView) above(write func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.holds > 0 || v.closed {
		write()
		return
	}
	v.screen.erase()
	write()
	v.draw()
}

// hold draws the view a last time before a question, and stops drawing until release is called.
func (v *sessionView) hold(ctx context.Context) (release func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.readSession(ctx) == nil && v.holds == 0 && !v.closed {
		width, height := v.screen.size()
		v.drawFrame(width, max(height-2, 1)) // the question is below
	}
	v.screen.leave()
	v.holds++
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.holds--
		v.draw()
	}
}

// close draws the last state of the session, which stays, and shows the cursor.
func (v *sessionView) close(ctx context.Context) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return
	}
	_ = v.readSession(ctx) // the last state that was read is shown otherwise
	if v.known && v.holds == 0 {
		width, _ := v.screen.size()
		v.drawFrame(width, 0)
	}
	v.screen.leave()
	v.closed = true
}

// showCursor shows the cursor when the program must end at once.
func (v *sessionView) showCursor() { _, _ = io.WriteString(v.screen.out, showCursor) }

// watchStatus shows a session until it has ended or a signal arrives.
func (p *pipelines) watchStatus(ctx context.Context, k *storage.Store, about durable.Run, asJSON bool) error {
	if asJSON || !isLive(p.Std.Out) {
		about.Events = 0 // from the first one
		return (&sessionRun{pipelines: p, sessionLook: sessionLook{asJSON: asJSON}, kept: k, about: about}).follow(ctx)
	}
	v, err := newSessionView(ctx, p.Std, k, about)
	if err != nil {
		return err
	}
	ctx, release := console.WithInterrupt(ctx, func() {}, v.showCursor)
	defer release()
	err = v.run(ctx)
	v.close(context.WithoutCancel(ctx))
	return console.InterruptedOr(ctx, err)
}
