package coordinator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// ChangedError is returned for a change of a blueprint that has changed since it was read.
type ChangedError struct {
	// Name is the blueprint's name.
	Name string
	// Read is the version that was read; zero if the request does not say, or creates the blueprint.
	Read int64
	// Now is the newest version.
	Now wire.BlueprintVersion
}

// Error says who has saved which version, and when.
func (e *ChangedError) Error() string {
	saved := fmt.Sprintf("blueprint %q: version %d was saved by %q at %s", e.Name, e.Now.Version, e.Now.By, e.Now.Updated.UTC().Format(time.RFC3339))
	if e.Read != 0 {
		saved += fmt.Sprintf(", after version %d that you have read", e.Read)
	}
	return saved + ": read it again and repeat the change"
}

// Unwrap returns durable.ErrConflict.
func (*ChangedError) Unwrap() error { return durable.ErrConflict }

// Retryable returns false: the blueprint must be read again first.
func (*ChangedError) Retryable() bool { return false }

// savedVersion returns who has stored a version, and when.
func savedVersion(s wire.Stored) wire.BlueprintVersion {
	return wire.BlueprintVersion{Version: s.Version, Updated: s.Updated, By: s.By}
}

// UpdateBlueprint changes members of a blueprint: those that the JSON object has. Null, and an empty object, clear a member. It stores a
// new version unless nothing has changed; submitted runs keep theirs. It returns the same errors as CreateBlueprint,
// durable.ErrNotFound, and a *ChangedError unless the newest version is after, or after is zero. A repeated request that has stored
// the newest version already returns it.
func (c *Coordinator) UpdateBlueprint(ctx context.Context, name string, changes []byte, after int64, by string) (wire.Stored, error) {
	now, b, err := c.update(ctx, name, changes, after, by)
	if err != nil || b == nil {
		return now, err
	}
	stored, err := c.put(ctx, b, now.Version, by)
	if errors.Is(err, durable.ErrConflict) {
		newest, failed := c.Blueprint(ctx, name, 0)
		if failed != nil {
			return wire.Stored{}, failed
		}
		return c.savedSince(now, newest, changes, after, by)
	}
	return stored, err
}

// CheckUpdate returns the blueprint that UpdateBlueprint would store, and its errors, and stores nothing.
func (c *Coordinator) CheckUpdate(ctx context.Context, name string, changes []byte, after int64) (wire.Blueprint, error) {
	now, b, err := c.update(ctx, name, changes, after, "")
	if err != nil || b == nil {
		return now.Blueprint, err
	}
	return *b, nil
}

// update returns the newest version and the blueprint to store after it; nil if it has these changes already.
func (c *Coordinator) update(ctx context.Context, name string, changes []byte, after int64, by string) (now wire.Stored, b *wire.Blueprint, err error) {
	if now, err = c.Blueprint(ctx, name, 0); err != nil {
		return now, nil, err
	}
	if after != 0 && after != now.Version {
		before, err := c.Blueprint(ctx, name, after)
		if err == nil {
			now, err = c.savedSince(before, now, changes, after, by)
		} else if errors.Is(err, durable.ErrNotFound) {
			err = &ChangedError{name, after, savedVersion(now)}
		}
		return now, nil, err
	}
	b, err = changeBlueprint(now, changes)
	if err := c.check(ctx, b, err); err != nil {
		return wire.Stored{}, nil, err
	}
	if isEqual(b, &now.Blueprint) {
		return now, nil, nil
	}
	return now, b, nil
}

// savedSince returns the newest version if these changes of the version before have stored it; otherwise it returns a *ChangedError.
func (c *Coordinator) savedSince(before, newest wire.Stored, changes []byte, after int64, by string) (wire.Stored, error) {
	if b, err := changeBlueprint(before, changes); err == nil && newest.Version == before.Version+1 && newest.By == by && isEqual(b, &newest.Blueprint) {
		return newest, nil
	}
	return wire.Stored{}, &ChangedError{newest.Name, after, savedVersion(newest)}
}

// isEqual reports whether two blueprints are stored as the same text.
func isEqual(a, b *wire.Blueprint) bool {
	one, err := json.Marshal(a)
	other, failed := json.Marshal(b)
	return err == nil && failed == nil && bytes.Equal(one, other)
}

// changeBlueprint returns a blueprint with changed members. With an *InvalidError, it also returns what it could read.
func changeBlueprint(s wire.Stored, changes []byte) (*wire.Blueprint, error) {
	var change map[string]json.RawMessage
	if err := strictjson.Unmarshal(changes, &change); err != nil {
		return &s.Blueprint, &InvalidError{[]FieldError{fieldError("", err)}}
	}
	old, err := json.Marshal(s.Blueprint)
	if err != nil {
		return nil, err
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(old, &all); err != nil {
		return nil, err
	}
	for member, value := range change {
		if all[member] = value; empty(value) {
			delete(all, member)
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	b, err := ParseBlueprint(text)
	if err == nil && b.Name != s.Name {
		err = &InvalidError{[]FieldError{{"name", fmt.Sprintf("a blueprint keeps its name, %q: create another one", s.Name)}}}
	}
	return b, err
}

// ListVersions returns at most limit versions of a blueprint, newest first: those before a version, unless that is zero. It returns
// durable.ErrNotFound for an unknown blueprint.
func (c *Coordinator) ListVersions(ctx context.Context, name string, before int64, limit int) (all []wire.BlueprintVersion, err error) {
	now, err := c.Blueprint(ctx, name, 0)
	if err != nil {
		return nil, err
	}
	if before == 0 || before > now.Version {
		all, before = append(all, savedVersion(now)), now.Version
	}
	for v := before - 1; v > 0 && len(all) < limit; v-- {
		s, err := c.store.Document(ctx, wire.KindBlueprint, name, v)
		if err != nil {
			return nil, fmt.Errorf("reading version %d of blueprint %q: %w", v, name, err)
		}
		all = append(all, wire.BlueprintVersion{Version: v, Updated: s.At, By: s.By})
	}
	return all, nil
}
