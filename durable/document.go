package durable

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Documents is the part of a Store for what is configured beside runs, such as the blueprints of a coordinator. A document has
// a kind and a name, and each change of it is a new version.
type Documents interface {
	// PutDocument stores the next version of a document, and returns it. Version must be that of the newest version, or zero
	// when there is none or the document was deleted; otherwise the document has changed since, and PutDocument returns
	// ErrConflict and stores nothing. The store sets the number of the new version, which is one above the highest that the
	// document ever had, and its time. If the reply of a store is lost, a repeated call returns ErrConflict once the version is
	// stored. Stores call Document.Check first.
	PutDocument(ctx context.Context, d Document) (Document, error)
	// Document returns a version of a document; zero means the newest. Earlier versions, and all versions of a deleted document,
	// are returned by their number only. It returns ErrNotFound for a document or a version that does not exist.
	Document(ctx context.Context, kind, name string, version int64) (Document, error)
	// ListDocuments returns the newest versions of at most limit documents of a kind whose names follow the name after, in the
	// order of the bytes of their names, without those that were deleted.
	ListDocuments(ctx context.Context, kind, after string, limit int) ([]Document, error)
	// ListDocumentsBefore works like ListDocuments, for those before a name, the last one first; an empty name is behind all.
	ListDocumentsBefore(ctx context.Context, kind, before string, limit int) ([]Document, error)
	// DeleteDocument deletes a document. Its versions remain, for runs that refer to them. It returns ErrNotFound when the
	// document does not exist or was deleted, and ErrConflict unless version is that of the newest version, or zero.
	DeleteDocument(ctx context.Context, kind, name string, version int64) error
}

// Document is a version of a document. The store does not interpret its data.
type Document struct {
	Kind string
	Name string
	// Version counts the versions of the document from one.
	Version int64
	// At is when the version was stored, by the clock of the store; By is who stored it.
	At time.Time
	By string
	// Data is the content. Encryption encrypts it; kind, name and By stay readable.
	Data []byte
}

// Check returns an error for a document that a store must not accept.
func (d Document) Check() error {
	if d.Kind == "" || d.Name == "" || len(d.Kind) > maxLabel || len(d.Name) > maxLabel || len(d.By) > maxLabel {
		return fmt.Errorf("document %q of kind %q: a kind and a name have 1 to %d bytes, and By has at most %d", d.Name, d.Kind, maxLabel, maxLabel)
	}
	return nil
}

// ErrConflict is returned for a change of a document that has changed since it was read.
var ErrConflict = errors.New("the document has changed since: read it again and repeat the change")
