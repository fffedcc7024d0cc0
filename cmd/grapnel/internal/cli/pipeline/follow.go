package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/events"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/durable"
)

// follow writes events until the session has ended: its own, its parallel stages', and those from pipelines that it waits for.
func (s *sessionRun) follow(ctx context.Context) error {
	var others sync.WaitGroup
	below, cancel := context.WithCancel(ctx)
	defer others.Wait()
	defer cancel()
	var also func(run agent.RunID, after int64, name string)
	begin := func(run agent.RunID, name string) { also(run, 0, name) }
	also = func(run agent.RunID, after int64, name string) {
		others.Go(func() { _ = s.followRun(below, run, after, name, begin) }) // the session itself reports errors
	}
	if s.about.Events > 0 {
		if err := eachBelow(ctx, s.kept, s.about.ID, "", func(part durable.Run, name string) {
			s.setFollowed(part.ID, part.Events)
			if !part.Status.Ended() {
				also(part.ID, part.Events, name)
			}
		}); err != nil {
			return err
		}
	}
	s.setFollowed(s.about.ID, s.about.Events)
	signal(s.asked) // it may have waited for a person before
	err := s.followRun(ctx, s.about.ID, s.about.Events, "", begin)
	if err == nil && !s.noWait {
		others.Wait() // they have ended, but their last events may not be written
	}
	return err
}

// followRun writes the events of a run until it has ended. Its lines begin with the name: see eachBelow. It calls below
// with the runs that it begins to wait for: parallel stages and pipelines.
func (s *sessionRun) followRun(ctx context.Context, id agent.RunID, after int64, name string, below func(run agent.RunID, name string)) error {
	top := id == s.about.ID
	for e, err := range durable.Watch(ctx, s.kept.Store, id, after) {
		if err != nil {
			return err
		}
		if err := s.writeEvent(e, name, top); err != nil {
			return err
		}
		s.setFollowed(id, e.Seq)
		switch e.Name {
		case "pipeline.waiting":
			if signal(s.asked); s.noWait && top {
				return nil
			}
		case "pipeline.stage_start", "pipeline.spawned":
			var d sessionEvent
			if json.Unmarshal(e.Data, &d) == nil {
				below(d.Run, name+lo.Ternary(e.Name == "pipeline.spawned", d.Why+"/", ""))
			}
		}
	}
	return nil
}

// writeRest writes the events so far that were not followed.
func (s *sessionRun) writeRest(ctx context.Context) error {
	sources := []*eventSource{{run: s.about.ID, after: s.followedOf(s.about.ID)}}
	err := eachBelow(ctx, s.kept, s.about.ID, "", func(below durable.Run, name string) {
		sources = append(sources, &eventSource{run: below.ID, name: name, after: s.followedOf(below.ID)})
	})
	if err != nil {
		return err
	}
	return eachEvent(ctx, s.kept, sources, func(e durable.Event, from *eventSource) error {
		return s.writeEvent(e, from.name, from.run == s.about.ID)
	})
}

// followedOf returns the number of the last event of a run that was written.
func (s *sessionRun) followedOf(run agent.RunID) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.followed[run]
}

func (s *sessionRun) setFollowed(run agent.RunID, seq int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.followed == nil {
		s.followed = map[agent.RunID]int64{}
	}
	s.followed[run] = seq
}

// eachBelow calls do with the stages of parallel blocks below a run, and with the pipelines that hooks have started. Their
// lines begin with the name: the pipelines on the way down to them, such as "build/test/". It is empty for the session's own stages.
func eachBelow(ctx context.Context, k *storage.Store, run agent.RunID, name string, do func(below durable.Run, name string)) error {
	for below, err := range k.Runs(ctx, durable.Filter{Parent: run, Kind: durable.KindPipeline}) {
		if err != nil {
			return err
		}
		name := name
		if below.Labels[durable.LabelStage] == "" {
			name += below.Name + "/"
		}
		do(below, name)
		if err := eachBelow(ctx, k, below.ID, name, do); err != nil {
			return err
		}
	}
	return nil
}

// eventSource is a run whose events are read.
type eventSource struct {
	run   agent.RunID
	name  string // what its lines begin with
	after int64
	next  []durable.Event
	ended bool
}

// readNext reads the next events, if there are none left.
func (s *eventSource) readNext(ctx context.Context, store durable.Lister) (err error) {
	if len(s.next) == 0 && !s.ended {
		s.next, err = store.Events(ctx, s.run, s.after, storage.Page)
		s.ended = len(s.next) == 0
	}
	return err
}

// eachEvent calls do with the events of several runs, in the order of their times.
func eachEvent(ctx context.Context, k *storage.Store, sources []*eventSource, do func(e durable.Event, from *eventSource) error) error {
	for {
		var first *eventSource
		for _, s := range sources {
			if err := s.readNext(ctx, k.Store); err != nil {
				return err
			}
			if !s.ended && (first == nil || s.next[0].At.Before(first.next[0].At)) {
				first = s
			}
		}
		if first == nil {
			return nil
		}
		e := first.next[0]
		first.next, first.after = first.next[1:], e.Seq
		if err := do(e, first); err != nil {
			return err
		}
	}
}

// sessionEvent is the data of an event of a session.
type sessionEvent struct {
	Stage     string      `json:"stage"`
	Iteration int         `json:"iteration"`
	Run       agent.RunID `json:"run"`
	Decision  string      `json:"decision"`
	Why       string      `json:"why"`
	Changed   int         `json:"changed_files"`
	Reason    string      `json:"reason"`
	Error     errorText   `json:"error"`
	For       string      `json:"for"`
	Hook      string      `json:"hook"`
}

// errorText is the error of an event: a text, or an object with a text in the events of hooks.
type errorText string

// UnmarshalJSON reads both forms.
func (t *errorText) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*t = errorText(text)
		return nil
	}
	var object struct {
		Text string `json:"text"`
	}
	err := json.Unmarshal(data, &object)
	*t = errorText(object.Text)
	return err
}

// writeEvent writes an event as a line, or updates the view. The line begins with the name, which is empty for the session and its stages.
func (s *sessionRun) writeEvent(e durable.Event, name string, top bool) error {
	if s.asJSON {
		object, err := events.Object(e)
		if err == nil {
			s.line(s.Std.Out, string(object))
		}
		return err
	}
	if s.view != nil {
		signal(s.view.updates)
		return nil
	}
	var d sessionEvent
	_ = json.Unmarshal(e.Data, &d) // events.Object checks it; what is missing is not shown
	var text string
	at, of := fmt.Sprintf("%s%s %d", name, d.Stage, d.Iteration), lo.Ternary(name == "", "", strings.TrimSuffix(name, "/")+": ")
	switch e.Name {
	case "pipeline.session_start":
		text = of + "session started"
	case "pipeline.stage_restart":
		text = name + d.Stage + ": begins again"
	case "pipeline.stage_start":
		text = fmt.Sprintf("%s%s: started %s", name, d.Stage, storage.Short(d.Run))
	case "pipeline.iteration_start":
		text = fmt.Sprintf("%s: started %s", at, storage.Short(d.Run))
	case "pipeline.iteration_complete":
		text = at + ": complete"
		if d.Decision != "" {
			text += ", decided " + d.Decision
		}
		if d.Changed > 0 {
			text += fmt.Sprintf(", %s changed", timeline.Plural(d.Changed, "file"))
		}
	case "pipeline.iteration_failed":
		text = at + ": failed: " + string(d.Error)
	case "pipeline.spawned":
		text = fmt.Sprintf("%s: started pipeline %s, %s", at, d.Why, storage.Short(d.Run))
	case "pipeline.waiting":
		text = at + ": waits for a gate: " + strings.TrimSuffix(d.For+": "+d.Why, ": ")
	case "pipeline.stage_complete":
		text = strings.TrimSuffix(at, " 0") + ": stage complete: " + d.Why
	case "pipeline.session_complete":
		if !top && name == "" {
			return nil // a stage of a block is no session for the user
		}
		text = of + "session ended: " + d.Reason
	case "hook.failed", "hook.blocked", "hook.timeout":
		text = of + strings.TrimSuffix(fmt.Sprintf("hook %s: %s: %s", d.Hook, strings.TrimPrefix(e.Name, "hook."), d.Error), ": ")
	default:
		return nil
	}
	text = strings.ReplaceAll(text, "\n", " ") // one event, one line
	s.line(s.Std.Out, timeline.Clean(e.At.Local().Format("15:04:05")+"  "+text))
	return nil
}
