package parts

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// TemporalServer is a Temporal dev server for tests, with a database file in WAL mode.
type TemporalServer struct {
	program string
	dir     string
	port    int

	server *exec.Cmd
	stop   io.Closer // the server's input; the server exits when it ends
}

// Temporal starts a Temporal dev server, which "make parts-nightly" builds. The server ends with the test or the test
// binary.
func Temporal(t testing.TB) *TemporalServer {
	t.Helper()
	program := filepath.Join(Root(), "tools", "temporal", "bin", "temporal-dev")
	if _, err := os.Stat(program); err != nil || partsHidden() {
		Missing(t, "Temporal's dev server is missing: run make parts-nightly, which takes six minutes of processor time")
	}
	s := &TemporalServer{program: program, dir: t.TempDir()}
	free, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it does not block
	require.NoError(t, err)
	s.port = free.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // it listens on TCP
	require.NoError(t, free.Close())
	s.Start(t)
	t.Cleanup(s.Kill)
	return s
}

// Address returns the server's address, which does not change when the server is restarted.
func (s *TemporalServer) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Start restarts the killed server and waits until it is ready.
func (s *TemporalServer) Start(t testing.TB) {
	t.Helper()
	cmd := exec.Command(s.program, "-port", strconv.Itoa(s.port), "-db", filepath.Join(s.dir, "temporal.db")) //nolint:gosec,noctx // it outlives the call
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	require.NoError(t, err)
	output, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start(), "start Temporal's dev server")
	s.server, s.stop = cmd, input
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil || line != "ready\n" {
		s.Kill()
		require.FailNow(t, "Temporal's dev server did not start", "%q: %v", line, err)
	}
}

// Kill kills the server with SIGKILL, if it runs.
func (s *TemporalServer) Kill() {
	if s.server == nil {
		return
	}
	_ = s.server.Process.Kill()
	_ = s.server.Wait()
	_ = s.stop.Close()
	s.server = nil
}

// DeleteDatabase deletes the killed server's database.
func (s *TemporalServer) DeleteDatabase(t testing.TB) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir, "temporal.db*"))
	require.NoError(t, err)
	for _, file := range files {
		require.NoError(t, os.Remove(file))
	}
}
