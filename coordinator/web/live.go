package web

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/internal/markup"
)

const (
	// lookEvery is how often a stream looks for changes of a run, and listEvery for changes of a list.
	lookEvery = 100 * time.Millisecond
	listEvery = time.Second
	// beatEvery is how often a stream sends something, so that proxies keep it, and checks that the session has not ended.
	beatEvery = 15 * time.Second
	// writeTime is how long a write to a stream may take.
	writeTime = 30 * time.Second
)

// stream sends the pieces of a page that have changed. A piece is an element with an ID.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	sent    map[string][sha256.Size]byte
	beat    time.Time // of the last write
	checked time.Time // when the session was last checked
	counted time.Time // when the open questions were last counted
}

// openStream begins a stream.
func openStream(w http.ResponseWriter) *stream {
	w.Header().Set("Content-Type", "text/event-stream")
	s := &stream{w: w, control: http.NewResponseController(w), sent: map[string][sha256.Size]byte{}, beat: time.Now(), checked: time.Now()}
	_ = s.control.Flush()
	return s
}

// note notes a piece that the page has.
func (s *stream) note(id string, put func(*markup.Page)) {
	var p markup.Page
	put(&p)
	s.sent[id] = sha256.Sum256([]byte(p.String()))
}

// send sends a piece if it has changed. Into, unless empty, is the ID of the element to which a new piece is added: at
// its end, or with "^" before the ID at its beginning.
func (s *stream) send(id, into, seq string, put func(*markup.Page)) error {
	var p markup.Page
	put(&p)
	sum := sha256.Sum256([]byte(p.String()))
	if s.sent[id] == sum {
		return nil
	}
	s.sent[id] = sum
	var b strings.Builder
	if seq != "" {
		fmt.Fprintf(&b, "id: %s\n", seq)
	}
	fmt.Fprintf(&b, "event: piece\ndata: %s\n", into)
	for one := range strings.SplitSeq(strings.TrimRight(p.String(), "\n"), "\n") {
		b.WriteString("data: " + one + "\n")
	}
	b.WriteString("\n")
	return s.write(b.String())
}

// write writes text. A client that does not read it in time has gone.
func (s *stream) write(text string) error {
	s.beat = time.Now()
	_ = s.control.SetWriteDeadline(s.beat.Add(writeTime))
	_, err := s.w.Write([]byte(text))
	return err
}

// keepAlive checks the session from time to time, and sends a comment when nothing was sent for a while. It returns false
// when the session has ended.
func (s *stream) keepAlive(h *Handler, r *http.Request) bool {
	if time.Since(s.checked) >= beatEvery {
		if _, err := h.identify(r); err != nil {
			return false
		}
		s.checked = time.Now()
	}
	return time.Since(s.beat) < beatEvery || s.write(": nothing new\n\n") == nil && s.control.Flush() == nil
}

// sendOpen counts the open questions from time to time, and sends their number if it has changed.
func (s *stream) sendOpen(ctx context.Context, h *Handler) error {
	if time.Since(s.counted) < listEvery {
		return nil
	}
	s.counted = time.Now()
	return s.send("open", "", "", func(out *markup.Page) { putOpen(out, h.countOpen(ctx)) })
}

// follow calls look again and again, until it returns false or the client has gone.
func (s *stream) follow(h *Handler, r *http.Request, every time.Duration, doing string, look func(ctx context.Context) (bool, error)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		more, err := look(r.Context())
		if err != nil {
			h.logError(r, doing, err)
			return // the browser connects again
		}
		if s.sendOpen(r.Context(), h) != nil || s.control.Flush() != nil || !more || !s.keepAlive(h, r) {
			return
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

// streamRun sends the pieces of a run's page that change after the event that the page was made with.
func (h *Handler) streamRun(w http.ResponseWriter, r *http.Request, v *view) {
	after, err := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
	if last, wrong := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64); wrong == nil {
		after, err = last, nil
	}
	id := agent.RunID(r.PathValue("id"))
	p := &runPage{view: v, story: newStory(id, stepsShown, 0), reads: r.URL.Query().Has("read")}
	if err != nil {
		err = durable.ErrNotFound
	} else {
		err = h.readState(r.Context(), p, id)
	}
	if err != nil {
		h.fail(w, r, v, "reading a run", err)
		return
	}
	h.readRules(r.Context(), p)
	s := openStream(w)
	var seen durable.Run
	var read time.Time
	s.follow(h, r, lookEvery, "streaming a run", func(ctx context.Context) (bool, error) {
		now, err := h.o.Store.Run(ctx, id)
		if err != nil {
			return false, err
		}
		isNew := !now.Updated.Equal(seen.Updated) || now.Events != seen.Events || now.Status != seen.Status
		if !isNew && (!now.Status.Ended() || time.Since(read) < listEvery) { // hooks after the run have their own events
			return true, nil
		}
		first := read.IsZero()
		seen, read, v.now = now, time.Now(), time.Now()
		if isNew {
			if err := h.readState(ctx, p, id); err != nil {
				return false, err
			}
		}
		if first {
			if err := h.readUntil(ctx, p, after); err != nil {
				return false, err
			}
			for _, e := range p.story.entries {
				s.note(p.story.entryID(e), func(out *markup.Page) { p.putEntry(out, e) })
			}
		}
		last := p.story.last
		if err := h.readEvents(ctx, p); err != nil || !isNew && p.story.last == last {
			return true, err
		}
		return true, p.sendPieces(s)
	})
}

// sendPieces sends what has changed.
func (p *runPage) sendPieces(s *stream) error {
	seq := strconv.FormatInt(p.story.last, 10)
	for _, e := range p.story.entries {
		if err := s.send(p.story.entryID(e), "entries", "", func(out *markup.Page) { p.putEntry(out, e) }); err != nil {
			return err
		}
	}
	for _, piece := range []struct {
		id  string
		put func(*markup.Page)
	}{
		{"head", p.putHead},
		{"stages", p.putStages},
		{"chart", p.putChart},
		{"result", p.putResult},
		{"children", p.putChildren},
	} {
		if err := s.send(piece.id, "", seq, piece.put); err != nil {
			return err
		}
	}
	return nil
}

// streamRuns sends the rows of a list that have changed, and new runs. It begins with all rows if the page shows others, because
// something happened before the browser connected.
func (h *Handler) streamRuns(w http.ResponseWriter, r *http.Request, v *view) {
	q := queryOf(r.URL.Query())
	if q.text != "" || q.before != "" { // a search reads many runs, and older pages do not change: the browser asks no more
		w.WriteHeader(http.StatusNoContent)
		return
	}
	var s *stream
	var shown []string
	list := func(ctx context.Context) (bool, error) {
		_, rows, err := h.readRows(ctx, q)
		if err != nil {
			return false, err
		}
		ids := lo.Map(rows, func(r row, _ int) string { return "r-" + string(r.RunID) })
		switch {
		case s == nil:
			s = openStream(w)
			if q.shown != hashRows(rows) {
				err = s.send("rows", "", "", func(out *markup.Page) { v.putRows(out, "rows", rows) })
			}
			for i, one := range rows {
				s.note(ids[i], func(out *markup.Page) { v.putRow(out, one) })
			}
		case !hasAll(ids, shown):
			err = s.send("rows", "", "", func(out *markup.Page) { v.putRows(out, "rows", rows) })
			for i, one := range rows {
				s.note(ids[i], func(out *markup.Page) { v.putRow(out, one) })
			}
		default:
			for i := len(rows) - 1; i >= 0 && err == nil; i-- {
				err = s.send(ids[i], "^rows", "", func(out *markup.Page) { v.putRow(out, rows[i]) })
			}
		}
		shown = ids
		return true, err
	}
	if _, err := list(r.Context()); err != nil {
		h.fail(w, r, v, "listing runs", err)
		return
	}
	s.follow(h, r, listEvery, "listing runs", list)
}

// hasAll reports whether a list still has the rows that it had, but for rows at the end that new ones have pushed out.
func hasAll(now, before []string) bool {
	added := lo.CountBy(now, func(id string) bool { return !slices.Contains(before, id) })
	missing, _ := lo.Difference(before, now)
	return len(missing) <= added && slices.Equal(missing, before[len(before)-len(missing):])
}

// streamOverview sends the parts of the first page that have changed.
func (h *Handler) streamOverview(w http.ResponseWriter, r *http.Request, v *view) {
	s := openStream(w)
	s.follow(h, r, listEvery, "reading what happens", func(ctx context.Context) (bool, error) {
		o, err := h.readOverview(ctx, v)
		if err != nil {
			return false, err
		}
		return true, s.send("now", "", "", func(out *markup.Page) { v.putOverview(out, o) })
	})
}
