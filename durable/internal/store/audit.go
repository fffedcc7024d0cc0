package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/grapnel-go/grapnel/durable"
)

// record adds a record to the audit log.
func (t tx) record(r durable.AuditRecord) error {
	if r.At.IsZero() {
		r.At = t.Now()
	}
	if r.Answer != nil {
		a := *r.Answer
		a.At, a.By = r.At, r.By
		r.Answer = &a
	}
	return t.AddAudit(r)
}

// AuditRecords implements durable.Store.
func (s *Store) AuditRecords(ctx context.Context, f durable.AuditFilter) ([]durable.AuditRecord, error) {
	f.Limit = limitOf(f.Limit)
	records, err := readRows(ctx, s, "reading the audit log", func(rows Rows) ([]durable.AuditRecord, error) { return rows.Audit(f) })
	for _, r := range records {
		if a := r.Answer; err == nil && a != nil && len(a.Data) > 0 { // the run may have been deleted
			a.Data, err = s.keys.open(a.Data, answerPlace(r.Run, *a))
		}
	}
	return unlessFailed(records, err)
}

// waiver returns the waiver with an ID.
func waiver(rows Rows, id string) (durable.Waiver, bool, error) {
	all, err := rows.Waivers()
	i := slices.IndexFunc(all, func(w durable.Waiver) bool { return w.ID == id })
	if err != nil || i < 0 {
		return durable.Waiver{}, false, err
	}
	return all[i], true, nil
}

// AddWaiver implements durable.Store.
func (s *Store) AddWaiver(ctx context.Context, w durable.Waiver) error {
	w.Data = s.keys.seal(w.Data, waiverPlace(w))
	return s.writeData(ctx, "adding a waiver", func(t tx) error {
		_, found, err := waiver(t, w.ID)
		if err != nil || found {
			return cmp.Or(err, fmt.Errorf("waiver %q: %w", w.ID, durable.ErrExists))
		}
		if err := t.PutWaiver(w); err != nil {
			return err
		}
		return t.record(durable.AuditRecord{Kind: durable.AuditWaiver, Subject: w.ID, By: w.By})
	})
}

// RevokeWaiver implements durable.Store.
func (s *Store) RevokeWaiver(ctx context.Context, id, by string) error {
	return s.write(ctx, "revoking a waiver", func(t tx) error {
		w, found, err := waiver(t, id)
		switch {
		case err != nil:
			return err
		case !found:
			return fmt.Errorf("waiver %q: %w", id, durable.ErrNotFound)
		case !w.Revoked.IsZero():
			return nil
		}
		w.Revoked, w.RevokedBy = t.Now(), by
		if err := t.PutWaiver(w); err != nil {
			return err
		}
		return t.record(durable.AuditRecord{Kind: durable.AuditWaiverRevoked, Subject: id, By: by})
	})
}

// Waivers implements durable.Store.
func (s *Store) Waivers(ctx context.Context, all bool) ([]durable.Waiver, error) {
	waivers, err := readRows(ctx, s, "reading the waivers", func(rows Rows) ([]durable.Waiver, error) {
		waivers, err := rows.Waivers()
		if !all {
			waivers = slices.DeleteFunc(waivers, func(w durable.Waiver) bool { return !w.Revoked.IsZero() || !w.Expires.After(rows.Now()) })
		}
		slices.SortStableFunc(waivers, func(a, b durable.Waiver) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) })
		return waivers, err
	})
	return openAll(s.keys, waivers, err, func(w *durable.Waiver) (*[]byte, place) { return &w.Data, waiverPlace(*w) })
}

// addVersion stores the next version of a document.
func (t tx) addVersion(d durable.Document) (durable.Document, error) {
	conflict := fmt.Errorf("document %q of kind %q: %w", d.Name, d.Kind, durable.ErrConflict)
	if d.Version != 0 {
		last, _, err := t.Document(d.Kind, d.Name, 0)
		if err == nil && last.Newest != d.Version {
			err = conflict
		}
		if err == nil {
			err = t.DropDocument(d.Kind, d.Name)
		}
		if err != nil {
			return durable.Document{}, err
		}
	}
	data := d.Data
	d.Data, d.At = t.keys.seal(data, documentPlace(d, d.Version)), t.Now()
	version, err := t.AddDocument(d)
	if err == nil && version == 0 {
		err = conflict
	}
	d.Data, d.Version = data, version
	return d, err
}

// addCompanion stores a new document.
func (t tx) addCompanion(d durable.Document) error {
	err := d.Check()
	if err == nil {
		d.Data, d.Version, d.At = t.keys.seal(d.Data, documentPlace(d, 0)), 1, t.Now()
		err = t.AddNewDocument(d)
	}
	return err
}

// openDocument decrypts the data of a version, which replaced the version before it or, after a deletion, none.
func (k *keyring) openDocument(d *durable.Document) error {
	data, err := k.open(d.Data, documentPlace(*d, d.Version-1))
	if err != nil {
		data, err = k.open(d.Data, documentPlace(*d, 0))
	}
	d.Data = data
	return err
}

// PutDocument implements durable.Store.
func (s *Store) PutDocument(ctx context.Context, d durable.Document) (stored durable.Document, err error) {
	if err := d.Check(); err != nil {
		return durable.Document{}, err
	}
	err = s.writeData(ctx, "storing a document", func(t tx) (err error) {
		stored, err = t.addVersion(d)
		return err
	})
	return unlessFailed(stored, err)
}

// Document implements durable.Store.
func (s *Store) Document(ctx context.Context, kind, name string, version int64) (durable.Document, error) {
	return readRows(ctx, s, "reading a document", func(rows Rows) (durable.Document, error) {
		v, found, err := rows.Document(kind, name, version)
		if err == nil && (!found || version == 0 && v.Newest == 0) {
			err = fmt.Errorf("document %q of kind %q: %w", name, kind, durable.ErrNotFound)
		}
		if err == nil {
			err = s.keys.openDocument(&v.Document)
		}
		return unlessFailed(v.Document, err)
	})
}

// ListDocuments implements durable.Store.
func (s *Store) ListDocuments(ctx context.Context, kind, after string, limit int) ([]durable.Document, error) {
	return s.readDocuments(ctx, func(rows Rows) ([]durable.Document, error) { return rows.Documents(kind, after, max(limit, 0)) })
}

// ListDocumentsBefore implements durable.Store.
func (s *Store) ListDocumentsBefore(ctx context.Context, kind, before string, limit int) ([]durable.Document, error) {
	return s.readDocuments(ctx, func(rows Rows) ([]durable.Document, error) { return rows.DocumentsBefore(kind, before, max(limit, 0)) })
}

// readDocuments returns documents with their data.
func (s *Store) readDocuments(ctx context.Context, list func(Rows) ([]durable.Document, error)) ([]durable.Document, error) {
	all, err := readRows(ctx, s, "listing documents", list)
	for i := range all {
		err = cmp.Or(err, s.keys.openDocument(&all[i]))
	}
	return unlessFailed(all, err)
}

// DeleteDocument implements durable.Store.
func (s *Store) DeleteDocument(ctx context.Context, kind, name string, version int64) error {
	return s.write(ctx, "deleting a document", func(t tx) error {
		v, _, err := t.Document(kind, name, 0)
		switch {
		case err != nil:
			return err
		case v.Newest == 0:
			return fmt.Errorf("document %q of kind %q: %w", name, kind, durable.ErrNotFound)
		case version != 0 && version != v.Newest:
			return fmt.Errorf("document %q of kind %q: %w", name, kind, durable.ErrConflict)
		}
		return t.DropDocument(kind, name)
	})
}

// denySetting is the name of the setting with the switch.
const denySetting = "deny_tools"

// DenyTools implements durable.Store.
func (s *Store) DenyTools(ctx context.Context) (durable.Switch, error) {
	return readRows(ctx, s, "reading the switch that denies tools", func(rows Rows) (deny durable.Switch, err error) {
		value, err := rows.Setting(denySetting)
		if err == nil && value != nil {
			err = json.Unmarshal(value, &deny)
		}
		return deny, err
	})
}

// SetDenyTools implements durable.Store.
func (s *Store) SetDenyTools(ctx context.Context, deny durable.Switch) error {
	value, err := json.Marshal(deny)
	if err != nil {
		return err
	}
	return s.write(ctx, "setting the switch that denies tools", func(t tx) error { return t.PutSetting(denySetting, value) })
}
