//go:build linux

package main

import (
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/upgrade"
)

// keptFacts is what a version's command line said of the runs that it stored.
type keptFacts struct {
	Runs map[string]string         `json:"runs"` // the ids, by what became of the runs
	List []any                     `json:"list"` // "runs list --json"
	Show map[string]map[string]any `json:"show"` // "runs show --json", by what became of the runs
}

// anywhere is the working folder of the programs that write and read the fixtures. A run resumes in the folder where it
// began: by this path, that is the folder of the process, whatever its name is.
const anywhere = "/proc/self/cwd"

// fixtureKey is the key of the encrypted fixture. It protects nothing.
const fixtureKey = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

// cutOff is a model whose command leaves its process id and waits, and does its work when it is repeated.
const cutOff = `{"calls": [{"name": "bash", "arguments": {"command": "test -e begun || { echo $$ > begun; sleep 60; }; echo once >> made.txt"}}]}
{"text": "All done."}`

// inFolder returns a program for the stored runs of runs.db in a folder.
func inFolder(t *testing.T, s *service, dir string, args ...string) *program {
	t.Helper()
	p := command(t, s, args...)
	p.cmd.Dir, p.cmd.Env = dir, append(p.cmd.Env, "PWD="+anywhere, "GRAPNEL_STORE=runs.db")
	return p
}

// output runs a program to its end with an exit code, and returns what it wrote to standard output.
func (p *program) output(code int) string {
	p.t.Helper()
	var out strings.Builder
	p.cmd.Stdout, p.cmd.Stderr = &out, p
	require.NoError(p.t, p.cmd.Start())
	require.Equal(p.t, code, p.code(), "%v: %s%s", p.cmd.Args, &out, p.written())
	return out.String()
}

func decode[T any](t *testing.T, text string) (value T) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &value))
	return value
}

// newest returns the id of the run that began last.
func newest(t *testing.T, dir string) string {
	t.Helper()
	return decode[[]struct{ ID string }](t, inFolder(t, nil, dir, "runs", "list", "--limit", "1", "--json").output(0))[0].ID
}

// TestWriteKept writes the stores of the command line for the version that -write-fixtures names, with the agent
// file, the policy and the recording in internal/upgrade/testdata/source.
func TestWriteKept(t *testing.T) {
	if upgrade.Writing() == "" {
		t.Skip("no fixtures are written: name their version with -write-fixtures")
	}
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(upgrade.Dir("source"))))
	plays, err := os.ReadFile(filepath.Join(dir, "agent.yaml"))
	require.NoError(t, err)
	asks := strings.NewReplacer("matching: git push", "matching: ^ls", ", time: 1m", "").Replace(string(plays)) // the limit counts the wait
	require.Contains(t, asks, "matching: ^ls")
	require.NotContains(t, asks, "time: ")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "asks.yaml"), []byte(asks), 0o600))

	facts := keptFacts{Runs: map[string]string{}, Show: map[string]map[string]any{}}
	begin := func(name string, s *service, code int, args ...string) (id string) {
		inFolder(t, s, dir, append([]string{"run", "--durable"}, args...)...).output(code)
		facts.Runs[name] = newest(t, dir)
		return facts.Runs[name]
	}
	begin("done", nil, 0, "--agent", "agent.yaml", "go")
	begin("parked", nil, 6, "--agent", "asks.yaml", "go")
	id := begin("answered", nil, 6, "--agent", "asks.yaml", "go")
	inFolder(t, nil, dir, "runs", "approve", id, "--by", "ann", "--no-resume").output(0)
	id = begin("rejected", nil, 6, "--agent", "asks.yaml", "go")
	inFolder(t, nil, dir, "runs", "reject", id, "--by", "ann", "--reason", "not today", "--end").output(5)
	id = begin("cancelled", nil, 6, "--agent", "asks.yaml", "go")
	inFolder(t, nil, dir, "runs", "cancel", id, "--by", "ann", "--reason", "enough").output(0)

	p := inFolder(t, modelOf(t, slow), dir, "run", "--durable", "--tool", "shell", "go")
	require.NoError(t, p.cmd.Start())
	p.waitFor("begun")
	p.signal(syscall.SIGTERM)
	p.write("on", "")
	require.Equal(t, 7, p.code())
	facts.Runs["suspended"] = newest(t, dir)
	require.NoError(t, os.Remove(filepath.Join(dir, "begun")))

	p = inFolder(t, modelOf(t, cutOff), dir, "run", "--durable", "--tool", "shell", "go")
	require.NoError(t, p.cmd.Start())
	killAtWork(t, p)
	facts.Runs["cut"] = newest(t, dir)

	inFolder(t, nil, dir, "runs", "deny-tools", "on", "--reason", "an exercise", "--by", "ann").output(0)
	facts.List = decode[[]any](t, inFolder(t, nil, dir, "runs", "list", "--json").output(0))
	for name, id := range facts.Runs {
		facts.Show[name] = decode[map[string]any](t, inFolder(t, nil, dir, "runs", "show", id, "--json").output(0))
	}
	upgrade.Pack(t, "kept", filepath.Join(dir, "runs.db"))
	text, err := json.MarshalIndent(facts, "", " ")
	require.NoError(t, err)
	upgrade.Write(t, "kept.json", append(text, '\n'))

	require.NoError(t, os.Remove(filepath.Join(dir, "runs.db")))
	p = inFolder(t, nil, dir, "run", "--durable", "--agent", "asks.yaml", "go")
	p.cmd.Env = append(p.cmd.Env, "GRAPNEL_STORE_KEY="+fixtureKey)
	p.output(6)
	upgrade.Pack(t, "kept-encrypted", filepath.Join(dir, "runs.db"))
}

// unpackKept returns a folder with a store that a version's command line wrote, and the recording that its runs play. The
// other files are gone: a run goes on with the texts that it was stored with.
func unpackKept(t *testing.T, version, name string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	upgrade.Unpack(t, version, name, filepath.Join(dir, "runs.db"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "transcript.jsonl"), upgrade.Read(t, version, "transcript.jsonl"), 0o600))
	return dir
}

// renameRun gives the names of this version to what builds before version 0.1.0 showed of a run.
func renameRun(shown any) {
	run, _ := shown.(map[string]any)
	name, old := run["agent"]
	if !old {
		return
	}
	delete(run, "agent")
	run["kind"], run["name"] = "agent", name
	switch status := run["status"]; {
	case status == "done":
		run["status"] = "completed"
	case status == "interrupted":
		run["status"] = "stopped"
	case status == "parked" && run["waiting"] != nil:
		run["status"] = "waiting"
	case status == "parked", status == "running" && run["owner"] == nil:
		run["status"] = "ready"
	}
}

// The runs that the command line of each version stored are listed and shown as they were.
func TestKeptByEarlierVersionsIsListed(t *testing.T) {
	t.Parallel()
	upgrade.EachVersion(t, func(t *testing.T, version string) {
		t.Helper()
		dir, facts := unpackKept(t, version, "kept"), decode[keptFacts](t, string(upgrade.Read(t, version, "kept.json")))
		for _, run := range facts.List {
			renameRun(run)
		}
		upgrade.AssertFacts(t, facts.List, decode[any](t, inFolder(t, nil, dir, "runs", "list", "--json").output(0)), "list")
		for name, want := range facts.Show {
			renameRun(want)
			upgrade.AssertFacts(t, want, decode[any](t, inFolder(t, nil, dir, "runs", "show", facts.Runs[name], "--json").output(0)), name)
			assert.NotEmpty(t, inFolder(t, nil, dir, "runs", "show", facts.Runs[name]).output(0), name)
			assert.NotEmpty(t, inFolder(t, nil, dir, "runs", "show", facts.Runs[name], "--journal").output(0), name)
			assert.NotEmpty(t, inFolder(t, nil, dir, "runs", "export", facts.Runs[name]).output(0), name)
		}
		list := inFolder(t, nil, dir, "runs", "list").output(0)
		for name, about := range map[string]string{
			"done": "completed +agent +fixture", "parked": "waiting +agent +fixture .*waits for approval of bash \\(c0\\)",
			"answered": "ready +agent +fixture .*to be resumed",
			"rejected": "stopped +agent +fixture", "cancelled": "cancelled +agent +fixture",
			"suspended": "ready +agent +agent .*to be resumed", "cut": "running +agent +agent",
		} {
			assert.Regexp(t, facts.Runs[name][:12]+" +"+about, list, name)
		}
		assert.Contains(t, inFolder(t, nil, dir, "runs", "deny-tools", "show").output(0), "an exercise")
	})
}

// The runs that the command line of each version stored go on to their ends.
func TestKeptByEarlierVersionsGoesOn(t *testing.T) {
	t.Parallel()
	upgrade.EachVersion(t, func(t *testing.T, version string) {
		t.Helper()
		dir, runs := unpackKept(t, version, "kept"), decode[keptFacts](t, string(upgrade.Read(t, version, "kept.json"))).Runs
		inFolder(t, nil, dir, "runs", "deny-tools", "off").output(0)

		inFolder(t, nil, dir, "runs", "resume", runs["parked"]).output(6)
		assert.Contains(t, inFolder(t, nil, dir, "runs", "approve", runs["parked"]).output(0), "Done.")
		assert.Contains(t, inFolder(t, nil, dir, "runs", "resume", runs["answered"]).output(0), "Done.")
		p := inFolder(t, modelOf(t, `{"calls": [{"name": "bash", "arguments": {"command": "echo twice >> made.txt"}}]}
{"text": "All done."}`), dir, "runs", "resume", runs["suspended"])
		assert.Contains(t, p.output(0), "All done.")
		assert.Equal(t, "twice\n", p.read("made.txt"), "what was done before the upgrade is not done again")
		require.NoError(t, os.Remove(filepath.Join(dir, "made.txt")))
		p.write("begun", "")
		inFolder(t, modelOf(t, cutOff), dir, "runs", "resume", runs["cut"]).output(6)
		assert.NoFileExists(t, filepath.Join(dir, "made.txt"), "a call of unknown outcome is asked about")
		assert.Contains(t, inFolder(t, modelOf(t, `{"text": "All done."}`), dir, "runs", "approve", runs["cut"]).output(0), "All done.")
		assert.Equal(t, "once\n", p.read("made.txt"))
		for name, code := range map[string]int{"done": 0, "parked": 0, "answered": 0, "suspended": 0, "cut": 0, "rejected": 5, "cancelled": 130} {
			inFolder(t, nil, dir, "runs", "resume", runs[name]).output(code)
		}
		inFolder(t, nil, dir, "runs", "resume", "--all").output(0)
		ended := decode[[]struct{ ID, Status string }](t, inFolder(t, nil, dir, "runs", "list", "--json").output(0))
		for _, r := range ended {
			assert.False(t, slices.Contains([]string{"running", "ready", "waiting"}, r.Status), "%s: %s", r.ID, r.Status)
		}
	})
}

// A store that the command line of each version encrypted goes on with its key.
func TestKeptByEarlierVersionsWithAKey(t *testing.T) {
	t.Parallel()
	upgrade.EachVersion(t, func(t *testing.T, version string) {
		t.Helper()
		dir := unpackKept(t, version, "kept-encrypted")
		id := newest(t, dir)
		p := inFolder(t, nil, dir, "runs", "show", id)
		assert.NotZero(t, p.run(), "without the key")
		p = inFolder(t, nil, dir, "runs", "approve", id)
		p.cmd.Env = append(p.cmd.Env, "GRAPNEL_STORE_KEY="+fixtureKey)
		assert.Contains(t, p.output(0), "Done.")
	})
}

// A store that a later version has upgraded is refused with a sentence, by every command.
func TestKeptByALaterVersion(t *testing.T) {
	t.Parallel()
	upgrade.EachVersion(t, func(t *testing.T, version string) {
		t.Helper()
		dir := unpackKept(t, version, "kept")
		db, err := sql.Open("sqlite", filepath.Join(dir, "runs.db"))
		require.NoError(t, err)
		_, err = db.ExecContext(t.Context(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)`)
		require.NoError(t, err)
		require.NoError(t, db.Close())
		for _, args := range [][]string{{"runs", "list"}, {"runs", "resume", "--all"}, {"run", "--durable", "--model", "replay:transcript.jsonl", "go"}} {
			p := inFolder(t, nil, dir, args...)
			assert.Empty(t, p.output(2))
			assert.Contains(t, strings.Join(strings.Fields(p.written()), " "), "the file has schema version 99 and this program supports ")
		}
	})
}
