package memory

import (
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// NewEncrypted returns an empty store that encrypts its data.
func NewEncrypted(e durable.Encryption) (durable.Store, error) { return store.New(newDB(), &e) }
