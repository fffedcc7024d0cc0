package modeltest

import (
	"testing"
	"time"
)

// FindMock skips the test when the mock server cannot be started.
func FindMock(t testing.TB) {
	t.Helper()
	findMock(t)
}

// SetPatience sets how long tests wait for what must happen soon.
func SetPatience(d time.Duration) { patience = d }

// Address is where the server itself listens.
func (m *MockServer) Address() string { return m.base.Host }
