package sqlite_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs the tests, or what a test wants of a second process.
func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		os.Exit(roles[role](os.Getenv(pathVar)))
	}
	goleak.VerifyTestMain(m)
}
