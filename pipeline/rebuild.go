package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"

	"github.com/grapnel-go/grapnel/durable"
)

// Rebuild restores a session's files from the store: its status and events, its inputs, and the outputs of its iterations. It
// does not change progress files and decision files.
func Rebuild(ctx context.Context, store durable.Lister, about durable.Run) error {
	s, err := readSession(ctx, store, about.ID)
	if err != nil {
		return err
	}
	status, err := StatusOf(ctx, store, about)
	if err != nil {
		return err
	}
	files := &sessionFiles{projected: -1}
	if err := s.base.Remove(filepath.Join(s.dir, eventsFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("rebuilding the session: %w", err)
	}
	err = errors.Join(files.writeStatus(s, status), files.projectEvents(ctx, s, store, about.ID))
	if len(s.inputs) > 0 {
		err = errors.Join(err, files.writeInputs(s))
	}
	return errors.Join(err, rebuildChildren(ctx, store, s, about))
}

// rebuildChildren restores the outputs of iterations, and the files of the sessions below.
func rebuildChildren(ctx context.Context, store durable.Lister, s *session, about durable.Run) error {
	var wrong []error
	for f := (durable.Filter{Parent: about.ID, Limit: 1000}); ; {
		children, err := store.List(ctx, f)
		if err != nil {
			return errors.Join(append(wrong, err)...)
		}
		for _, child := range children {
			switch {
			case child.Kind == durable.KindPipeline:
				wrong = append(wrong, Rebuild(ctx, store, child))
			case child.Status.Ended():
				wrong = append(wrong, rebuildOutput(ctx, store, s, child))
			}
		}
		if len(children) < f.Limit {
			return errors.Join(wrong...)
		}
		f.Before = children[len(children)-1].ID
	}
}

// rebuildOutput restores an iteration's output.
func rebuildOutput(ctx context.Context, store durable.Lister, s *session, child durable.Run) error {
	stage, err := s.find(child.Labels[durable.LabelStage])
	if err != nil {
		return err
	}
	at := position{cursor: cursor{Stage: stage}}
	for label, number := range map[string]*int{durable.LabelIteration: &at.Iteration, labelRestarts: &at.Restarts} {
		if *number, err = strconv.Atoi(cmp.Or(child.Labels[label], "0")); err != nil {
			return fmt.Errorf("run %s: the label %s: %w", child.ID, label, err)
		}
	}
	result, err := durable.ResultOf(ctx, store, child.ID)
	if err != nil {
		return err
	}
	return (&sessionFiles{}).writeOutput(s, at, outputText(result))
}

// outputText returns an iteration's output.
func outputText(r durable.Result) string {
	if len(r.Data) > 0 {
		return string(r.Data)
	}
	return r.Text
}
