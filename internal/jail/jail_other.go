//go:build !linux

package jail

import (
	"os"
	"testing"

	"github.com/grapnel-go/grapnel/internal/parts"
)

// Main runs a binary's tests.
func Main(m *testing.M) { os.Exit(m.Run()) }

// Run skips the test: the jail needs Linux namespaces.
func Run(t testing.TB, _ Cell, _ []string) []Outcome {
	t.Helper()
	parts.Missing(t, "attack lines run only in Linux namespaces")
	return nil
}
