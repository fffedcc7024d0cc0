package durabletest

import (
	"time"

	"github.com/grapnel-go/grapnel/durable"
)

// NewModel returns a store in memory that is broken in one place, or, for an empty string, not at all.
func NewModel(broken string) durable.Store { return newModel(broken) }

// SetPatience sets how long the tests wait for something that must happen.
func SetPatience(d time.Duration) { patience = d }
