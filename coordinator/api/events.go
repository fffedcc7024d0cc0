package api

import (
	"cmp"
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
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
)

// heartbeat is how often a stream without events sends a comment, so that proxies keep the connection.
const heartbeat = 15 * time.Second

// addEvents adds a run's events: its own, its end, and events of hooks that run after it.
func (a *api) addEvents() {
	type eventsInput struct {
		ID    agent.RunID `path:"id"`
		After int64       `query:"after" minimum:"0" doc:"Only events after the one with this number."`
		Limit int         `query:"limit" default:"1000" minimum:"1" maximum:"10000"`
	}
	type eventList struct {
		Events []wire.EventView `json:"events"`
	}
	add(a, route(http.MethodGet, "/runs/{id}/events", "list-events",
		"Read a run's events: its own, its end, and its later hooks' events", wire.Viewer),
		func(ctx context.Context, in *eventsInput) (eventList, error) {
			all, err := a.eventViews(ctx, in.ID, in.After, in.Limit)
			return eventList{listOf(all)}, err
		})

	type streamInput struct {
		ID   agent.RunID `path:"id"`
		Last string      `header:"Last-Event-ID" doc:"The id of the last event that was received: the stream continues after it."`
	}
	o := route(http.MethodGet, "/runs/{id}/stream", "stream-events", "Stream the events of a run (server-sent events)", wire.Viewer)
	follow := func(ctx context.Context, in *streamInput) (*huma.StreamResponse, error) {
		if _, err := a.Run(ctx, in.ID); err != nil {
			return nil, a.problem(ctx, o, err)
		}
		from, err := parsePosition(in.Last)
		if err != nil {
			return nil, huma.NewError(http.StatusUnprocessableEntity, err.Error())
		}
		return &huma.StreamResponse{Body: func(h huma.Context) {
			h.SetHeader("Content-Type", "text/event-stream")
			s := &stream{a: a, run: in.ID, out: h.BodyWriter(), at: from}
			s.flusher, _ = s.out.(http.Flusher)
			if err := s.write(h.Context()); err != nil && h.Context().Err() == nil {
				a.log.Error("streaming events", "run", in.ID, "error", err)
			}
		}}, nil
	}
	a.register(o, func(to huma.API) {
		o := o
		o.Responses = map[string]*huma.Response{"200": {Description: "Events", Content: map[string]*huma.MediaType{"text/event-stream": {}}}}
		huma.Register(to, o, follow)
	})
}

func eventView(e durable.Event) wire.EventView {
	v := wire.EventView{Seq: e.Seq, Time: e.At.UTC(), Type: e.Name}
	if json.Valid(e.Data) {
		v.Data = e.Data
	}
	return v
}

// eventViews returns at most limit events after the one with a number, in the order of the stream. They are numbered from one.
func (a *api) eventViews(ctx context.Context, id agent.RunID, after int64, limit int) (all []wire.EventView, err error) {
	r, err := a.ReadableRun(ctx, id)
	if err != nil {
		return nil, err
	}
	add := func(of agent.RunID, before int64) error {
		events, err := a.store.Events(ctx, of, max(0, after-before), limit-len(all))
		for _, e := range events {
			v := eventView(e)
			v.Seq += before
			all = append(all, v)
		}
		return err
	}
	if err := add(id, 0); err != nil || !r.Status.Ended() || len(all) == limit {
		return all, err
	}
	end := r.Events + 1
	if after < end {
		d, err := a.Run(ctx, id)
		if err != nil || !hasEnded(d) {
			return all, err
		}
		last, err := endOf(d)
		if err != nil {
			return nil, err
		}
		last.Seq = end
		all = append(all, last)
	}
	finish, err := coordinator.FinishRun(ctx, a.store, id)
	if err != nil || finish.ID == "" || len(all) == limit {
		return all, err
	}
	return all, add(finish.ID, end)
}

// hasEnded reports whether a run has ended.
func hasEnded(d wire.RunDetail) bool {
	return d.Status == wire.Completed || d.Status == wire.Failed || d.Status == wire.Stopped
}

// endOf returns the event that a run has ended.
func endOf(d wire.RunDetail) (wire.EventView, error) {
	name := cmp.Or(map[wire.Status]string{wire.Completed: wire.EventRunCompleted, wire.Failed: wire.EventRunFailed}[d.Status], wire.EventRunStopped)
	data, err := json.Marshal(struct {
		wire.Run

		ResultText *string         `json:"result_text"`
		ResultData json.RawMessage `json:"result_data"`
		Error      *string         `json:"error"`
	}{d.Run, d.ResultText, d.ResultData, d.Error})
	return wire.EventView{Time: d.UpdatedAt, Type: name, Data: data}, err
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
	run     agent.RunID
	out     io.Writer
	flusher http.Flusher
	at      position
}

// write writes the events after the position, until the run and the hooks after it have ended.
func (s *stream) write(ctx context.Context) error {
	s.flush() // so that the client knows that the stream is open
	if s.at.part == "run" {
		if err := s.follow(ctx, s.run, "run"); err != nil {
			return err
		}
		d, err := s.a.Run(ctx, s.run)
		if err != nil {
			return err
		}
		end, err := endOf(d)
		if err != nil {
			return err
		}
		if err := s.send(position{part: "end"}, end.Type, end.Data); err != nil {
			return err
		}
	}
	after, err := coordinator.FinishRun(ctx, s.a.store, s.run)
	if err != nil || after.ID == "" {
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
		for e, err := range durable.Watch(ctx, s.a.store, id, s.at.seq) {
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
	return s.sendAs(at.String(), name, data)
}

// sendAs writes one event with an ID.
func (s *stream) sendAs(id, name string, data json.RawMessage) error {
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
	_, err := fmt.Fprintf(s.out, "id: %s\nevent: %s\ndata: %s\n\n", id, name, compact)
	s.flush()
	return err
}

func (s *stream) flush() {
	if s.flusher != nil {
		s.flusher.Flush()
	}
}
