package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/durable"
)

const (
	// workerPrefix begins the names of settings with the records of workers.
	workerPrefix = "worker/"
	// workerPrecision is how old the record of a worker may be when an equal one comes.
	workerPrecision = 10 * time.Second
	// workerShown is how long a worker is listed, and workerKept how long its record is kept after it was seen.
	workerShown, workerKept = 10 * time.Minute, time.Hour
)

// RecordWorker implements durable.Store.
func (s *Store) RecordWorker(ctx context.Context, w durable.WorkerRecord) error {
	const doing = "recording a worker"
	name := workerPrefix + w.Owner
	old, isFresh, err := s.readWorker(ctx, name)
	if err != nil || old.Owner == "" && len(w.Kinds) == 0 {
		return err
	}
	if len(w.Kinds) == 0 {
		draining := w.Draining
		w = old
		w.Draining = draining
	}
	w.Seen = old.Seen
	if isFresh && isEqualJSON(w, old) {
		return nil
	}
	return s.write(durable.WithCompanion(ctx, nil), doing, func(t tx) error {
		if old.Owner == "" {
			if err := t.forgetWorkers(); err != nil {
				return err
			}
		}
		w.Seen = t.Now()
		value, err := json.Marshal(w)
		if err != nil {
			return err
		}
		return t.PutSetting(name, value)
	})
}

func isEqualJSON(a, b durable.WorkerRecord) bool {
	one, err := json.Marshal(a)
	other, failed := json.Marshal(b)
	return err == nil && failed == nil && string(one) == string(other)
}

// readWorker returns the record of a worker, without an owner if there is none, and whether it is so new that it need not be written again.
func (s *Store) readWorker(ctx context.Context, name string) (w durable.WorkerRecord, isFresh bool, err error) {
	var now time.Time
	value, err := readRows(ctx, s, "reading the record of a worker", func(rows Rows) ([]byte, error) {
		now = rows.Now()
		return rows.Setting(name)
	})
	if err == nil && value != nil {
		err = json.Unmarshal(value, &w)
	}
	return w, now.Before(w.Seen.Add(workerPrecision)) && !w.Seen.After(now.Add(Skew)), err
}

// forgetWorkers removes the records of workers that have gone.
func (t tx) forgetWorkers() error {
	all, err := workersIn(t)
	for _, w := range all {
		if err == nil && w.Seen.Before(t.Now().Add(-workerKept)) {
			err = t.PutSetting(workerPrefix+w.Owner, nil)
		}
	}
	return err
}

func workersIn(rows Rows) ([]durable.WorkerRecord, error) {
	values, err := rows.Settings(workerPrefix)
	all := make([]durable.WorkerRecord, len(values))
	for i, value := range values {
		if err := json.Unmarshal(value, &all[i]); err != nil {
			return nil, fmt.Errorf("reading the record of a worker: %w", err)
		}
	}
	return all, err
}

// Workers implements durable.Store.
func (s *Store) Workers(ctx context.Context) ([]durable.WorkerRecord, error) {
	return readRows(ctx, s, "listing workers", func(rows Rows) ([]durable.WorkerRecord, error) {
		all, err := workersIn(rows)
		all = slices.DeleteFunc(all, func(w durable.WorkerRecord) bool { return w.Seen.Before(rows.Now().Add(-workerShown)) })
		slices.SortFunc(all, func(a, b durable.WorkerRecord) int { return strings.Compare(a.Owner, b.Owner) })
		return all, err
	})
}
