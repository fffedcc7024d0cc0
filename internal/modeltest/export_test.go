package modeltest

import "time"

// SetPatience sets how long tests wait for what must happen soon.
func SetPatience(d time.Duration) { patience = d }

// Address returns where the server itself listens.
func (m *MockServer) Address() string { return m.base.Host }
