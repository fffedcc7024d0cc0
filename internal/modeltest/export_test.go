package modeltest

import "time"

// SetPatience sets how long tests wait for events that should happen soon.
func SetPatience(d time.Duration) { patience = d }

// Address returns the address on which the server itself listens.
func (m *MockServer) Address() string { return m.base.Host }
