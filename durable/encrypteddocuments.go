package durable

import (
	"context"
	"fmt"
	"strconv"
)

// documentSpot returns the spot of a version of a document that replaced the version with the number replaced; zero for none.
func documentSpot(d Document, replaced int64) spot {
	name := fmt.Sprintf("version %d of document %q of kind %q", d.Version, d.Name, d.Kind)
	return spotOf(name, "document", d.Kind, d.Name, d.By, strconv.FormatInt(replaced, 10))
}

// PutDocument implements Store. The number of the new version is not known before, but that of the version that it replaces is:
// the inner store accepts no other.
func (x encrypted) PutDocument(ctx context.Context, d Document) (Document, error) {
	if err := x.recordKey(ctx); err != nil {
		return Document{}, err
	}
	data := d.Data
	d.Data = x.sealData(data, documentSpot(d, d.Version))
	d, err := x.Store.PutDocument(ctx, d)
	if err != nil {
		return Document{}, err
	}
	d.Data = data
	return d, nil
}

// Document implements Store.
func (x encrypted) Document(ctx context.Context, kind, name string, version int64) (Document, error) {
	d, err := x.Store.Document(ctx, kind, name, version)
	if err != nil {
		return Document{}, err
	}
	return x.decryptDocument(d)
}

// ListDocuments implements Store.
func (x encrypted) ListDocuments(ctx context.Context, kind, after string, limit int) ([]Document, error) {
	all, err := x.Store.ListDocuments(ctx, kind, after, limit)
	if err != nil {
		return nil, err
	}
	for i, d := range all {
		if all[i], err = x.decryptDocument(d); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// decryptDocument decrypts the data of a version, which replaced the version before it or, after a deletion, none.
func (x encrypted) decryptDocument(d Document) (Document, error) {
	data, err := x.decrypt(d.Data, documentSpot(d, d.Version-1))
	if err != nil && d.Version > 1 {
		data, err = x.decrypt(d.Data, documentSpot(d, 0))
	}
	if err != nil {
		return Document{}, err
	}
	d.Data = data
	return d, nil
}
