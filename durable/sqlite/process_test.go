package sqlite_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/sqlite"
)

// The test binary runs itself to be a second process in one of these roles.
const (
	roleVar = "SQLITE_TEST_ROLE"
	pathVar = "SQLITE_TEST_PATH"
)

var roles = map[string]func(path string) int{
	// Each waits for a line, tries and says how it went.
	"open":  tries(func(context.Context, *sqlite.Store) error { return nil }),
	"claim": tries(claims),
	"answer": tries(func(ctx context.Context, s *sqlite.Store) error {
		return s.Answer(ctx, "r", durable.Answers(answer("c"), answer("d")))
	}),
	"append": tries(func(ctx context.Context, s *sqlite.Store) error {
		r, err := s.Run(ctx, "r")
		if err != nil {
			return err
		}
		return commit(ctx, s, durable.Lease{Run: "r", Owner: r.Owner, Epoch: r.Epoch}, durable.Update{}, entry(1))
	}),
	"write until killed": func(path string) int {
		s, err := sqlite.Open(context.Background(), path, sqlite.Options{Sync: sqlite.SyncNormal})
		if err != nil {
			return say(err)
		}
		l, err := s.Begin(context.Background(), durable.Job{ID: "r"}, "two", time.Hour)
		for seq := int64(1); err == nil; seq += 2 {
			err = commit(context.Background(), s, l, durable.Update{Status: durable.StatusRunning, Steps: int(seq) + 1}, entry(seq), entry(seq+1))
			fmt.Println(seq + 1)
		}
		return say(err)
	},
}

func claims(ctx context.Context, s *sqlite.Store) error {
	_, err := s.Acquire(ctx, "r", fmt.Sprint(os.Getpid()), time.Hour, durable.TakeFree)
	return err
}

func tries(do func(ctx context.Context, s *sqlite.Store) error) func(path string) int {
	return func(path string) int {
		fmt.Println("here")
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		s, err := sqlite.Open(context.Background(), path, sqlite.Options{Sync: sqlite.SyncNormal})
		if err == nil {
			err = errors.Join(do(context.Background(), s), s.Close())
		}
		return say(err)
	}
}

func say(err error) int {
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("done")
	return 0
}

type process struct {
	*exec.Cmd

	in  io.WriteCloser
	out *bufio.Reader
}

// start starts a second process.
func start(t *testing.T, role, path string) process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), roleVar+"="+role, pathVar+"="+path)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return process{cmd, in, bufio.NewReader(out)}
}

func (p process) line(t *testing.T) string {
	t.Helper()
	line, err := p.out.ReadString('\n')
	require.NoError(t, err, "read what the process says")
	return strings.TrimSpace(line)
}

// together lets several processes do one thing at once, and returns what each said.
func together(t *testing.T, n int, role, path string) (said []string) {
	t.Helper()
	var all []process
	for range n {
		p := start(t, role, path)
		require.Equal(t, "here", p.line(t))
		all = append(all, p)
	}
	for _, p := range all {
		_, err := fmt.Fprintln(p.in, "go")
		require.NoError(t, err)
	}
	for _, p := range all {
		said = append(said, p.line(t))
		_ = p.Wait()
	}
	return said
}

func TestProcesses(t *testing.T) {
	for role, c := range map[string]struct {
		lost  string
		check func(t *testing.T, s *sqlite.Store)
	}{
		"claim": {"is held by", func(t *testing.T, s *sqlite.Store) {
			t.Helper()
			r, err := s.Run(t.Context(), "r")
			require.NoError(t, err)
			assert.Equal(t, int64(2), r.Epoch)
		}},
		"answer": {durable.ErrAnswered.Error(), func(t *testing.T, s *sqlite.Store) {
			t.Helper()
			ready, err := s.List(t.Context(), durable.Filter{Status: []durable.Status{durable.StatusReady}})
			require.NoError(t, err)
			assert.Len(t, ready, 1)
		}},
		"append": {"got journal entry 1, expected entry 2", func(t *testing.T, s *sqlite.Store) {
			t.Helper()
			entries, err := s.Entries(t.Context(), "r", 0)
			require.NoError(t, err)
			assert.Len(t, entries, 1)
		}},
	} {
		t.Run("one of several processes can "+role, func(t *testing.T) {
			path := tempFile(t)
			s := open(t, path, sqlite.Options{Sync: sqlite.SyncNormal})
			l := park(t, s, "r", wait("c"), wait("d"))
			if role != "append" {
				require.NoError(t, s.Release(t.Context(), l, 0))
			}
			said := together(t, 4, role, path)
			won := 0
			for _, line := range said {
				if line == "done" {
					won++
					continue
				}
				assert.Contains(t, line, c.lost)
			}
			assert.Equal(t, 1, won, "%q", said)
			c.check(t, s)
			require.NoError(t, s.Close())
		})
	}
	t.Run("several make the file at once", func(t *testing.T) {
		for _, line := range together(t, 4, "open", tempFile(t)) {
			assert.Equal(t, "done", line)
		}
	})
}

// What a process reported as done is there after kill -9, and nothing of it by halves.
func TestKill(t *testing.T) {
	path := tempFile(t)
	for round := range 3 {
		p := start(t, "write until killed", path)
		last := 0
		for range 20 * (round + 1) {
			_, err := fmt.Sscan(p.line(t), &last)
			require.NoError(t, err)
		}
		require.NoError(t, p.Process.Kill())
		rest, _ := io.ReadAll(p.out)
		for line := range strings.Lines(string(rest)) {
			if strings.HasSuffix(line, "\n") {
				_, err := fmt.Sscan(line, &last)
				require.NoError(t, err)
			}
		}
		require.Error(t, p.Wait())

		s := open(t, path, sqlite.Options{Sync: sqlite.SyncNormal})
		r, err := s.Run(t.Context(), "r")
		require.NoError(t, err)
		entries, err := s.Entries(t.Context(), "r", 0)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, len(entries), last, "what was reported is there")
		assert.LessOrEqual(t, len(entries), last+2)
		assert.Zero(t, len(entries)%2, "two entries are written together")
		assert.Equal(t, []int{len(entries), len(entries)}, []int{int(r.Entries), r.Steps})
		l, err := s.Acquire(t.Context(), "r", "me", time.Hour, durable.TakeOver)
		require.NoError(t, err)
		require.NoError(t, commit(t.Context(), s, l, durable.Update{}, entry(r.Entries+1)))
		require.NoError(t, s.Release(t.Context(), l, 0))
		require.NoError(t, s.Delete(t.Context(), "r"))
		require.NoError(t, s.Close())
		assert.Equal(t, "ok", raw(t, path, "PRAGMA integrity_check"))
	}
}

// raw asks the file something behind the store's back.
func raw(t testing.TB, path, query string) (answer string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	err = db.QueryRowContext(t.Context(), query).Scan(&answer)
	if !errors.Is(err, sql.ErrNoRows) {
		require.NoError(t, err, "%s", query)
	}
	return answer
}

// commit commits entries and an update.
func commit(ctx context.Context, s *sqlite.Store, l durable.Lease, u durable.Update, entries ...durable.Entry) error {
	return s.Commit(ctx, l, durable.Commit{Entries: entries, Update: u})
}

func entry(seq int64) durable.Entry {
	return durable.Entry{Seq: seq, Kind: "note", At: time.Now(), Data: []byte("data")}
}

func wait(id string) durable.Wait {
	return durable.Wait{ID: id, Kind: durable.WaitApproval, Subject: "hash", Tool: "bash"}
}

func answer(id string) durable.Answer { return durable.Answer{Wait: id} }

// park makes a parked run, which its lease still holds.
func park(t testing.TB, s *sqlite.Store, id agent.RunID, waits ...durable.Wait) durable.Lease {
	t.Helper()
	l, err := s.Begin(t.Context(), durable.Job{ID: id, Name: "tester"}, "one", time.Hour)
	require.NoError(t, err)
	require.NoError(t, commit(t.Context(), s, l, durable.Update{Status: durable.StatusWaiting, Waits: waits}))
	return l
}
