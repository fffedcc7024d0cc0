//go:build unix

package parts_test

import (
	"bufio"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/parts"
)

func TestMain(m *testing.M) { os.Exit(parts.Tests{M: m}.Run()) }

func TestADatabaseOfItsOwn(t *testing.T) {
	one, other := parts.Postgres(t), parts.Postgres(t)
	assert.NotEqual(t, one, other)
	_, err := psql(t, one, "create table a (b int); insert into a values (1)")
	require.NoError(t, err)
	out, err := psql(t, one, "select b from a")
	require.NoError(t, err)
	assert.Equal(t, "1\n", out)
	out, err = psql(t, other, "select b from a")
	require.Error(t, err)
	assert.Contains(t, out, "does not exist")

	wrong, err := url.Parse(one)
	require.NoError(t, err)
	wrong.User = url.UserPassword("grapnel", "wrong")
	out, err = psql(t, wrong.String(), "select 1")
	require.Error(t, err)
	assert.Contains(t, out, "password authentication failed")
}

func TestAServerOfItsOwn(t *testing.T) {
	server := parts.NewPostgres(t, "max_connections=17")
	database := server.Database(t)
	out, err := psql(t, database, "create table a (b int); insert into a values (1); show max_connections")
	require.NoError(t, err)
	assert.Equal(t, "17\n", out)

	server.Stop(t)
	_, err = psql(t, database, "select b from a")
	require.Error(t, err)
	server.Start(t)
	out, err = psql(t, database, "select b from a")
	require.NoError(t, err)
	assert.Equal(t, "1\n", out)
}

// TestNothingIsLeftBehind kills a test binary that uses two servers.
func TestNothingIsLeftBehind(t *testing.T) {
	const child = "GRAPNEL_TEST_POSTGRES_CHILD"
	if os.Getenv(child) != "" {
		fmt.Println("ONE", folder(t, parts.Postgres(t)))
		fmt.Println("TWO", folder(t, parts.NewPostgres(t).Database(t)))
		_, _ = io.Copy(io.Discard, os.Stdin) // until the test kills this process
		return
	}
	parts.Postgres(t) // skips if PostgreSQL is missing
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), child+"=1")
	_, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var folders []string
	for lines := bufio.NewScanner(out); len(folders) < 2 && lines.Scan(); {
		if _, dir, is := strings.Cut(lines.Text(), "/"); is && !strings.HasPrefix(lines.Text(), "=") {
			folders = append(folders, "/"+dir)
		}
	}
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.Len(t, folders, 2)
	for _, dir := range folders {
		require.Eventually(t, func() bool {
			_, err := os.Stat(dir)
			return os.IsNotExist(err)
		}, time.Minute, 10*time.Millisecond, "the server ends before its folder goes")
		running, err := filepath.Glob("/proc/[0-9]*/cmdline") // empty on systems without /proc
		require.NoError(t, err)
		for _, path := range running {
			line, _ := os.ReadFile(path) // the process may have ended
			assert.NotContains(t, string(line), dir, path)
		}
	}
}

// folder returns the folder of the server that hosts a database.
func folder(t *testing.T, database string) string {
	t.Helper()
	u, err := url.Parse(database)
	require.NoError(t, err)
	return u.Query().Get("host")
}

func psql(t *testing.T, database, query string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), parts.Command(t, "psql", "apt-get install postgresql"), database, "-Atqc", query).CombinedOutput()
	return string(out), err
}
