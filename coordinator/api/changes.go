package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
)

const (
	// lookEvery is how often a stream looks for changed runs.
	lookEvery = time.Second
	// lateBy is how much later than its time a change may become visible: a stream reads the last changes again.
	lateBy = 5 * time.Second
)

// addChanges adds what runs and what has changed, over all runs.
func (a *api) addChanges() {
	add(a, route(http.MethodGet, "/runs/counts", "count-runs", "Count what runs and what waits", wire.Viewer),
		func(ctx context.Context, _ *struct{}) (wire.Counts, error) { return a.Counts(ctx, identityOf(ctx)) })

	type streamInput struct {
		Last string `header:"Last-Event-ID" doc:"The id of the last event that was received: the stream continues with it. Without it, it begins now."`
	}
	o := route(http.MethodGet, "/runs/stream", "stream-runs", "Stream the runs that change (server-sent events)", wire.Viewer)
	o.Responses = map[string]*huma.Response{"200": {Description: "Runs", Content: map[string]*huma.MediaType{"text/event-stream": {}}}}
	follow := func(_ context.Context, in *streamInput) (*huma.StreamResponse, error) {
		since, sent := time.Now(), map[agent.RunID]time.Time(nil)
		if in.Last != "" {
			var err error
			sent = map[agent.RunID]time.Time{}
			if since, err = time.Parse(time.RFC3339Nano, in.Last); err != nil {
				return nil, huma.NewError(http.StatusUnprocessableEntity, fmt.Sprintf(
					"Last-Event-ID is %.40q: expected the id of an event of this stream", in.Last))
			}
		}
		return &huma.StreamResponse{Body: func(h huma.Context) {
			h.SetHeader("Content-Type", "text/event-stream")
			s := &changes{stream{a: a, out: h.BodyWriter()}, since, sent}
			s.flusher, _ = s.out.(http.Flusher)
			if err := s.write(h.Context()); err != nil && h.Context().Err() == nil {
				a.logError("streaming changed runs", err)
			}
		}}, nil
	}
	a.register(o, func(to huma.API) { huma.Register(to, o, follow) })
}

// changes writes changed runs.
type changes struct {
	stream

	since time.Time
	// sent are the changes that were sent of runs that are read again; nil before the first look of a stream that begins now.
	sent map[agent.RunID]time.Time
}

// write writes changes until the client has gone.
func (s *changes) write(ctx context.Context) error {
	s.flush() // so that the client knows that the stream is open
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for last := time.Now(); ; {
		n, err := s.look(ctx)
		if err != nil {
			return err
		}
		switch {
		case n > 0:
			last = time.Now()
		case time.Since(last) >= heartbeat:
			if _, err := s.out.Write([]byte(": waiting\n\n")); err != nil {
				return err
			}
			s.flush()
			last = time.Now()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// look writes the changes since the last look, and returns their number.
func (s *changes) look(ctx context.Context) (n int, err error) {
	before, from := s.sent, s.since
	s.sent = map[agent.RunID]time.Time{}
	runs, err := s.a.ChangedRuns(ctx, s.since.Add(-lateBy), func(id agent.RunID, changed time.Time) bool {
		s.sent[id] = changed
		last, known := before[id]
		return (!known || changed.After(last)) && (before != nil || !changed.Before(from))
	})
	if err != nil {
		return 0, err
	}
	for _, r := range runs {
		data, err := json.Marshal(r)
		if err != nil {
			return n, err
		}
		if r.UpdatedAt.After(s.since) {
			s.since = r.UpdatedAt
		}
		if err := s.sendAs(s.since.Format(time.RFC3339Nano), "run", data); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
