//go:build unix

package parts

import (
	"crypto/rand"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// PostgresServer is a PostgreSQL server for tests. It listens on a socket in its own folder, so that any number of
// servers can run at the same time.
type PostgresServer struct {
	bin      string
	dir      string
	password string
	settings []string
	cred     *syscall.Credential // for the account that runs the server; nil means this process's account

	watcher *exec.Cmd
	told    io.WriteCloser // the watcher's input
}

// Postgres returns the URL of a new, empty database that is dropped when the test ends. The first call starts the
// server, which ends with the test binary. Committed data survives when the server is killed, but not when the
// machine loses power.
func Postgres(t testing.TB) string {
	t.Helper()
	bin := postgresPrograms(t)
	shared.once.Do(func() { shared.server, shared.err = createPostgres(bin, "fsync=off") })
	require.NoError(t, shared.err)
	return shared.server.Database(t)
}

var shared struct {
	once   sync.Once
	server *PostgresServer
	err    error
}

// Tests runs a binary's tests, stops the server that Postgres started, and waits until it has exited.
//
//	func TestMain(m *testing.M) { os.Exit(parts.Tests{M: m}.Run()) }
//
// Without Tests, the server ends shortly after the binary.
type Tests struct{ M *testing.M }

// Run runs the tests.
func (t Tests) Run() int {
	code := t.M.Run()
	if shared.server != nil {
		if err := shared.server.end("remove"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

// NewPostgres starts a server for one test, which may stop and restart it. Settings are lines for postgresql.conf,
// such as "fsync=off".
func NewPostgres(t testing.TB, settings ...string) *PostgresServer {
	t.Helper()
	p, err := createPostgres(postgresPrograms(t), settings...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.end("remove")) })
	return p
}

// postgresPrograms returns the folder of initdb and postgres: the newest Debian package, or the version in PATH.
func postgresPrograms(t testing.TB) string {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if path, err := exec.LookPath("initdb"); err == nil {
		found = append([]string{path}, found...)
	}
	if len(found) > 0 && !partsHidden() {
		return filepath.Dir(found[len(found)-1])
	}
	Missing(t, "PostgreSQL is not installed: run apt-get install postgresql")
	return ""
}

func createPostgres(bin string, settings ...string) (*PostgresServer, error) {
	p := &PostgresServer{bin: bin, password: rand.Text(), settings: settings}
	parent := ""
	if os.Geteuid() == 0 { // postgres refuses to run as root
		account, err := user.Lookup("postgres")
		if err != nil {
			return nil, fmt.Errorf("start PostgreSQL: root requires the account postgres: %w", err)
		}
		uid, _ := strconv.ParseUint(account.Uid, 10, 32)
		gid, _ := strconv.ParseUint(account.Gid, 10, 32)
		p.cred = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		parent = "/tmp" // that account may not be able to access TMPDIR
	}
	dir, err := os.MkdirTemp(parent, "grapnel-postgres-")
	if err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	p.dir = dir
	secret := filepath.Join(dir, "password")
	err = os.WriteFile(secret, []byte(p.password), 0o600)
	for _, path := range []string{dir, secret} {
		if err == nil && p.cred != nil {
			err = os.Chown(path, int(p.cred.Uid), int(p.cred.Gid))
		}
	}
	if err == nil {
		_, err = p.runProgram("initdb", "--pgdata", p.data(), "--username", "grapnel", "--pwfile", secret,
			"--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync")
	}
	if err == nil {
		err = p.launch()
	}
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	return p, nil
}

func (p *PostgresServer) data() string { return filepath.Join(p.dir, "data") }

// watch is the watcher's shell script. It runs the server until its input ends or contains a command. Its input is a
// pipe whose other end only the test binary holds. However the binary ends, even by panic or kill -9, the watcher
// ends the server and removes the folder.
const watch = `trap "" INT HUP TERM
"$@" &
server=$!
read -r told
kill -QUIT $server
wait $server
[ "$told" = keep ] || rm -rf "$DIR"`

func (p *PostgresServer) launch() error {
	args := []string{"-c", watch, "watch", filepath.Join(p.bin, "postgres"), "-D", p.data(), "-k", p.dir, "-h", ""}
	for _, setting := range p.settings {
		args = append(args, "-c", setting)
	}
	log, err := os.OpenFile(p.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := p.newCommand("/bin/sh", args...)
	cmd.Env = append(cmd.Env, "DIR="+p.dir)
	cmd.Stdout, cmd.Stderr = log, log
	if p.told, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if err = cmd.Start(); err != nil {
		return err
	}
	p.watcher = cmd
	for until := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err = p.runProgram("psql", "-Atqc", "select 1", "postgres"); err == nil {
			return nil
		}
		if time.Now().After(until) {
			said, _ := os.ReadFile(p.log())
			_ = p.end("keep")
			return fmt.Errorf("it did not become ready: %w; its log:\n%s", err, said)
		}
	}
}

func (p *PostgresServer) log() string { return filepath.Join(p.dir, "log") }

// end stops the server immediately, as a crash would, and waits until it has exited.
func (p *PostgresServer) end(told string) error {
	if p.watcher == nil {
		if told == "keep" {
			return nil
		}
		return os.RemoveAll(p.dir)
	}
	_, _ = fmt.Fprintln(p.told, told)
	_ = p.told.Close()
	err := p.watcher.Wait()
	p.watcher = nil
	if err != nil {
		return fmt.Errorf("stop PostgreSQL: %w", err)
	}
	return nil
}

// Stop stops the server as a crash would: connections break, and open transactions are lost.
func (p *PostgresServer) Stop(t testing.TB) {
	t.Helper()
	require.NoError(t, p.end("keep"))
}

// Start restarts the stopped server with the same data.
func (p *PostgresServer) Start(t testing.TB) {
	t.Helper()
	require.NoError(t, p.launch())
}

// Database returns the URL of a new, empty database on this server, which is dropped when the test ends. The password
// in the URL is valid for the whole server.
func (p *PostgresServer) Database(t testing.TB) string {
	t.Helper()
	name := "test_" + strings.ToLower(rand.Text()[:12])
	out, err := p.runProgram("createdb", name)
	require.NoError(t, err, "%s", out)
	t.Cleanup(func() {
		if p.watcher != nil {
			_, err := p.runProgram("dropdb", "--force", name)
			assert.NoError(t, err)
		}
	})
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword("grapnel", p.password), Path: "/" + name,
		RawQuery: url.Values{"host": {p.dir}}.Encode(),
	}
	return u.String()
}

// runProgram runs one of PostgreSQL's own programs and waits until it exits.
func (p *PostgresServer) runProgram(program string, args ...string) (string, error) {
	out, err := p.newCommand(filepath.Join(p.bin, program), args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", program, err, out)
	}
	return string(out), nil
}

func (p *PostgresServer) newCommand(path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...) //nolint:gosec,noctx // the programs of PostgreSQL; a server outlives the test that started it
	cmd.Dir = p.dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "LC_ALL=C",
		"PGHOST=" + p.dir, "PGUSER=grapnel", "PGPASSWORD=" + p.password,
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.cred}
	return cmd
}
