package durabletest

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/grapnel-go/grapnel/durable"
)

// modelDocument has the versions of a document, from the first one.
type modelDocument struct {
	kind, name string
	versions   []durable.Document
	deleted    bool
}

// findDocument returns the document with a kind and a name, or nil.
func (m model) findDocument(kind, name string) *modelDocument {
	for _, d := range m.documents {
		if d.name == name && (d.kind == kind || m.broken == "document kind") {
			return d
		}
	}
	return nil
}

// newest returns the number of the newest version; zero if the document is deleted or nil.
func (d *modelDocument) newest() int64 {
	if d == nil || d.deleted {
		return 0
	}
	return int64(len(d.versions))
}

func copyDocument(d durable.Document) durable.Document {
	d.Data = bytes.Clone(d.Data)
	return d
}

// PutDocument implements durable.Store.
func (m model) PutDocument(ctx context.Context, d durable.Document) (durable.Document, error) {
	done, err := m.lock(ctx)
	defer done()
	if err == nil && m.broken != "document check" {
		err = d.Check()
	}
	if err != nil {
		return durable.Document{}, err
	}
	if err := m.checkVersion(d); err != nil {
		return durable.Document{}, err
	}
	return m.addVersion(d), nil
}

// checkVersion returns durable.ErrConflict unless a document has the version that d replaces.
func (m model) checkVersion(d durable.Document) error {
	if m.findDocument(d.Kind, d.Name).newest() != d.Version && m.broken != "document conflict" {
		return durable.ErrConflict
	}
	return nil
}

// addVersion stores the next version of a document.
func (m model) addVersion(d durable.Document) durable.Document {
	doc := m.findDocument(d.Kind, d.Name)
	if doc == nil {
		doc = &modelDocument{kind: d.Kind, name: d.Name}
		m.documents = append(m.documents, doc)
	}
	if doc.deleted && m.broken == "document numbers" {
		doc.versions = nil
	}
	d = copyDocument(d)
	d.Version, d.At = int64(len(doc.versions))+1, m.at
	if m.broken == "document by" {
		d.By = ""
	}
	if m.broken == "document time" {
		d.At = testTime()
	}
	doc.versions, doc.deleted = append(doc.versions, d), doc.deleted && m.broken == "document again"
	return copyDocument(d)
}

// Document implements durable.Store.
func (m model) Document(ctx context.Context, kind, name string, version int64) (durable.Document, error) {
	done, err := m.lock(ctx)
	defer done()
	if err != nil {
		return durable.Document{}, err
	}
	doc := m.findDocument(kind, name)
	if version == 0 || m.broken == "document version" {
		version = doc.newest()
	}
	if version == 0 && doc != nil && m.broken == "document deleted" {
		version = int64(len(doc.versions))
	}
	if doc == nil || version < 1 || version > int64(len(doc.versions)) || doc.deleted && m.broken == "document delete all" {
		return durable.Document{}, durable.ErrNotFound
	}
	return copyDocument(doc.versions[version-1]), nil
}

// ListDocuments implements durable.Store.
func (m model) ListDocuments(ctx context.Context, kind, after string, limit int) ([]durable.Document, error) {
	done, err := m.lock(ctx)
	defer done()
	if err != nil {
		return nil, err
	}
	var all []durable.Document
	for _, doc := range m.documents {
		listed := doc.kind == kind || m.broken == "documents kind"
		if listed && (doc.name > after || m.broken == "documents page") && (!doc.deleted || m.broken == "documents deleted") {
			all = append(all, copyDocument(doc.versions[len(doc.versions)-1]))
			if m.broken == "documents newest" {
				all[len(all)-1] = copyDocument(doc.versions[0])
			}
		}
	}
	if m.broken != "documents order" {
		slices.SortFunc(all, func(a, b durable.Document) int { return cmp.Compare(a.Name, b.Name) })
	}
	if m.broken != "documents limit" {
		all = all[:min(max(limit, 0), len(all))]
	}
	return all, nil
}

// DeleteDocument implements durable.Store.
func (m model) DeleteDocument(ctx context.Context, kind, name string) error {
	done, err := m.lock(ctx)
	defer done()
	if err != nil {
		return err
	}
	doc := m.findDocument(kind, name)
	if doc.newest() == 0 && (doc == nil || m.broken != "document delete twice") {
		return durable.ErrNotFound
	}
	doc.deleted = m.broken != "document delete"
	return nil
}
