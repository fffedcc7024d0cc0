package coordinator

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
)

// heartbeat is how often a stream without events sends a comment, so that proxies keep the connection.
const heartbeat = 15 * time.Second

// addStream adds the stream of the events of a run.
func (a *api) addStream() {
	type input struct {
		ID   string `path:"id"`
		Last string `header:"Last-Event-ID" doc:"The id of the last event that was received: the stream continues after it."`
	}
	o := route(http.MethodGet, "/runs/{id}/stream", "stream-events", "Stream the events of a run (server-sent events)", wire.Viewer)
	o.Responses = map[string]*huma.Response{"200": {Description: "Events", Content: map[string]*huma.MediaType{"text/event-stream": {}}}}
	huma.Register(a.huma, o, func(ctx context.Context, in *input) (*huma.StreamResponse, error) {
		r, err := a.c.findRun(ctx, agent.RunID(in.ID))
		if err != nil {
			return nil, a.problem("streaming events", err)
		}
		from, err := parsePosition(in.Last)
		if err != nil {
			return nil, huma.NewError(http.StatusUnprocessableEntity, err.Error())
		}
		return &huma.StreamResponse{Body: func(h huma.Context) {
			h.SetHeader("Content-Type", "text/event-stream")
			s := &stream{a: a, run: r, out: h.BodyWriter(), at: from}
			s.flusher, _ = s.out.(http.Flusher)
			if err := s.write(h.Context()); err != nil && h.Context().Err() == nil {
				a.log.Error("streaming events", "run", r.ID, "error", err)
			}
		}}, nil
	})
}

// position is a place in the stream of a run: its events, how it has ended, the events of the hooks after it.
type position struct {
	part string // run, end or hooks
	seq  int64
}

func (p position) String() string { return p.part + "-" + strconv.FormatInt(p.seq, 10) }

// parsePosition parses the id of an event; empty is the beginning.
func parsePosition(text string) (position, error) {
	if text == "" {
		return position{part: "run"}, nil
	}
	part, number, _ := strings.Cut(text, "-")
	seq, err := strconv.ParseInt(number, 10, 64)
	if err != nil || seq < 0 || part != "run" && part != "end" && part != "hooks" {
		return position{}, fmt.Errorf("Last-Event-ID is %.40q: expected the id of an event of this stream", text)
	}
	return position{part, seq}, nil
}

// stream writes the events of a run.
type stream struct {
	a       *api
	run     durable.Run
	out     io.Writer
	flusher http.Flusher
	at      position
}

// write writes the events after the position, until the run and the hooks after it have ended.
func (s *stream) write(ctx context.Context) error {
	s.flush() // so that the client knows that the stream is open
	if s.at.part == "run" {
		if err := s.follow(ctx, s.run.ID, "run"); err != nil {
			return err
		}
		name, data, err := s.a.c.endOf(ctx, s.run.ID)
		if err != nil {
			return err
		}
		if err := s.send(position{part: "end"}, name, data); err != nil {
			return err
		}
	}
	after, ok, err := finishRunOf(ctx, s.a.c.store, s.run)
	if err != nil || !ok {
		return err
	}
	if s.at.part != "hooks" {
		s.at = position{part: "hooks"}
	}
	return s.follow(ctx, after.ID, "hooks")
}

// follow writes the events of one run until it has ended.
func (s *stream) follow(ctx context.Context, id agent.RunID, part string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, failed := make(chan durable.Event), make(chan error, 1)
	go func() {
		defer close(events)
		for e, err := range durable.Watch(ctx, s.a.c.store, id, s.at.seq) {
			if err != nil {
				failed <- err
				return
			}
			select {
			case events <- e:
			case <-ctx.Done():
				return
			}
		}
		failed <- nil
	}()
	defer func() {
		cancel()
		for range events { // until the goroutine has ended
			continue
		}
	}()
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		select {
		case e, open := <-events:
			if !open {
				select {
				case err := <-failed:
					return err
				default:
					return context.Cause(ctx)
				}
			}
			if err := s.send(position{part, e.Seq}, e.Name, eventView(e).Data); err != nil {
				return err
			}
		case <-beat.C:
			if _, err := io.WriteString(s.out, ": waiting\n\n"); err != nil {
				return err
			}
			s.flush()
		}
	}
}

// send writes one event.
func (s *stream) send(at position, name string, data json.RawMessage) error {
	if len(data) == 0 {
		data = json.RawMessage("{}")
	}
	name = strings.Map(func(r rune) rune {
		if r < ' ' {
			return -1
		}
		return r
	}, name)
	compact := strings.NewReplacer("\r", " ", "\n", " ").Replace(string(data)) // JSON has line breaks only between values
	_, err := fmt.Fprintf(s.out, "id: %s\nevent: %s\ndata: %s\n\n", at, name, compact)
	s.flush()
	return err
}

func (s *stream) flush() {
	if s.flusher != nil {
		s.flusher.Flush()
	}
}
