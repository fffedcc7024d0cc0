package parts

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// WriteExecutable writes a program that the test then starts. It prevents the start of other processes while the file
// is open for writing: a new process would inherit the open file until its own exec, and the kernel refuses to start
// a file that is open for writing ("text file busy").
func WriteExecutable(t testing.TB, path string, program []byte) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	require.NoError(t, os.WriteFile(path, program, 0o755))
}
