package upgrade_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/durabletest"
	"github.com/grapnel-go/grapnel/durable/postgres"
	"github.com/grapnel-go/grapnel/durable/sqlite"
	"github.com/grapnel-go/grapnel/hooks/audit"
	"github.com/grapnel-go/grapnel/internal/parts"
	"github.com/grapnel-go/grapnel/internal/upgrade"
)

// TestWrite writes the fixtures of the version that -write-fixtures names. The clock is that of a bubble, but for
// PostgreSQL, which has its own, and for the event log, which the program writes.
func TestWrite(t *testing.T) {
	if upgrade.Writing() == "" {
		t.Skip("no fixtures are written: name their version with -write-fixtures")
	}
	require.Regexp(t, `^v\d+\.\d+\.\d+$`, upgrade.Writing())
	all := facts{}
	synctest.Test(t, func(t *testing.T) {
		all["states"] = writeStates(t)
		for name, encrypted := range map[string]bool{"sqlite": false, "encrypted": true} {
			path := filepath.Join(t.TempDir(), "runs.db")
			file, err := sqlite.Open(t.Context(), path, sqlite.Options{})
			require.NoError(t, err)
			store := durable.Store(file)
			if encrypted {
				store = encrypt(t, store)
			}
			tokens := fill(t, store)
			all[name], all[name+" tokens"] = storeFacts(t, store), tokens
			require.NoError(t, store.Close())
			upgrade.Pack(t, name, path)
		}
		upgrade.Write(t, "audit.jsonl", auditLog(t))
	})
	all["postgres"], all["postgres tokens"] = writePostgres(t)
	sources, err := filepath.Glob("testdata/source/*")
	require.NoError(t, err)
	for _, path := range sources {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		upgrade.Write(t, filepath.Base(path), data)
	}
	upgrade.Write(t, "events.jsonl", eventLog(t))
	text, err := json.MarshalIndent(all, "", " ")
	require.NoError(t, err)
	upgrade.Write(t, "facts.json", append(text, '\n'))
}

// Keys of the fixtures. They protect nothing.
var (
	storeKey = bytes.Repeat([]byte{1}, 32)
	sealKey  = bytes.Repeat([]byte{2}, 32)
)

func encrypt(t *testing.T, s durable.Store) durable.Store {
	t.Helper()
	s, err := durable.Encrypt(s, durable.Encryption{Key: storeKey})
	require.NoError(t, err)
	return s
}

// writeStates writes states as JSON and returns their facts.
func writeStates(t *testing.T) facts {
	t.Helper()
	all := facts{}
	agents := newWorld().agents(t, nil)
	for name, by := range map[string]string{"done": "reader", "waiting": "clerk", "failed": "mute", "child": "boss"} {
		settings := agent.RunSettings{ID: agent.RunID("run_" + name), Session: "ses_fixture", Stage: "plan", Iteration: 2}
		result := agents[by].RunWith(t.Context(), settings, agent.NewState(), input())
		s := result.OrEmpty()
		if failed, ok := errors.AsType[*agent.RunError](result.Error()); ok {
			s = failed.State
		} else {
			require.NoError(t, result.Error())
		}
		text, err := json.MarshalIndent(s, "", "\t")
		require.NoError(t, err)
		upgrade.Write(t, "state-"+name+".json", append(text, '\n'))
		all[name] = stateFacts(s)
		if name == "waiting" {
			seal, err := agent.NewSeal(sealKey)
			require.NoError(t, err)
			sealed, err := seal.Marshal(s)
			require.NoError(t, err)
			upgrade.Write(t, "state-sealed.json", append(sealed, '\n'))
		}
	}
	return all
}

// fill makes the runs of a fixture store, and returns the tokens that their questions were told with.
func fill(t *testing.T, store durable.Store) map[string]string {
	t.Helper()
	tokens := map[string]string{}
	dies := &mortal{Store: store, cut: func(e durable.Entry) bool { return e.Kind == durable.EntryResult && e.Key == "b" }}
	options := durable.Options{Owner: "fixture", Lease: time.Second, Patience: -1, Notify: []durable.Notifier{
		durable.NotifierFunc(func(_ context.Context, n durable.Notice) error {
			for _, c := range n.Calls {
				tokens[string(n.Run.ID)] = c.Token
			}
			return nil
		}),
	}}
	for _, r := range []struct {
		id    agent.RunID
		agent string
	}{
		{runDone, "reader"}, {runParked, "clerk"}, {runAnswered, "clerk"}, {runCut, "worker"}, {runBoss, "boss"}, {runCancelled, "clerk"},
	} {
		keeper := durable.Keep(store, options)
		if r.id == runCut {
			keeper = durable.Keep(dies, options)
		}
		a := newWorld().agents(t, keeper)[r.agent]
		_, err := a.RunWith(t.Context(), agent.RunSettings{ID: r.id, Session: "ses_fixture"}, agent.NewState(), input()).Get()
		if r.id == runCut {
			require.ErrorIs(t, err, errKilled)
		} else {
			require.NoError(t, err)
		}
	}
	require.NoError(t, durabletest.Approve(t.Context(), store, runAnswered, "ask", agent.Approval{Verdict: agent.Approve, By: "ann", Arguments: `{"amount":3}`}))
	require.NoError(t, store.Signal(t.Context(), runCancelled, durable.Signal{Kind: durable.SignalCancel, Text: "not needed"}))
	job, err := durable.AgentJob("reader", agent.NewState(), input())
	require.NoError(t, err)
	child := job
	job.ID, child.ID, child.Parent, child.Root = runJob, runChild, runBoss, runBoss
	_, err = store.Submit(t.Context(), job, child)
	require.NoError(t, err)
	require.NoError(t, store.SetDenyTools(t.Context(), durable.Switch{On: true, Reason: "an exercise", By: "ann"}))
	return tokens
}

// writePostgres writes a dump of a PostgreSQL store, without what it says of the server.
func writePostgres(t *testing.T) (store facts, tokens map[string]string) {
	t.Helper()
	at := parts.Postgres(t)
	s, err := postgres.Open(t.Context(), at, postgres.Options{})
	require.NoError(t, err)
	tokens = fill(t, s)
	store = storeFacts(t, s)
	require.NoError(t, s.Close())
	dump, err := exec.CommandContext(t.Context(), parts.Command(t, "pg_dump", "apt-get install postgresql-client"),
		"--inserts", "--no-owner", "--no-privileges", "--schema=grapnel", at).Output()
	require.NoError(t, err)
	var kept strings.Builder
	for line := range strings.Lines(string(dump)) {
		if !regexp.MustCompile(`^(--|SET |\\|\n)`).MatchString(line) {
			kept.WriteString(line)
		}
	}
	upgrade.Write(t, "postgres.sql", []byte(kept.String()))
	return store, tokens
}

// auditLog returns the audit log of a run, with texts.
func auditLog(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	log := audit.New(&out, audit.Options{Content: true, Key: sealKey})
	w := newWorld()
	a, err := w.member("reader", nil, agent.Step{Message: agent.Assistant("", agent.ToolCall{ID: "a", Name: "add", Arguments: `{"amount":1}`},
		agent.ToolCall{ID: "deny", Name: "pay", Arguments: `{"amount":9}`})}, agent.Step{Message: agent.Assistant("Read.")}).
		With(capability.UseHooks(log.Hooks()...)).Build().Get()
	require.NoError(t, err)
	_, err = a.RunWith(t.Context(), agent.RunSettings{ID: runDone, Session: "ses_fixture"}, agent.NewState(), input()).Get()
	require.NoError(t, err)
	return out.Bytes()
}

// eventLog returns what the program writes with --json when it plays the recording with the agent file.
func eventLog(t *testing.T) []byte {
	t.Helper()
	program := buildProgram(t)
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/source")))
	cmd := exec.CommandContext(t.Context(), program, "run", "--agent", "agent.yaml", "--json", "go")
	cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
	var failed bytes.Buffer
	cmd.Stderr = &failed
	out, err := cmd.Output()
	require.NoError(t, err, "%s", &failed)
	return out
}

// buildProgram builds the command line and returns its path.
func buildProgram(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "grapnel")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "../../cmd/grapnel").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}
