package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/examples/backtest/rules"
)

var update = flag.Bool("update", false, "write the golden files anew")

var silent = screen{Writer: &bytes.Buffer{}, width: func() int { return 0 }}

// outcome is what the program did.
type outcome struct {
	code           int
	stdout, stderr string
}

// backtestOf runs the program on a terminal of this width, or on none when it is zero.
func backtestOf(ctx context.Context, width int, args ...string) outcome {
	var stdout, stderr bytes.Buffer
	on := func(b *bytes.Buffer) screen {
		return screen{Writer: b, width: func() int { return width }, colour: width > 0}
	}
	code := program{stdout: on(&stdout), stderr: on(&stderr), shared: "no such folder"}.run(ctx, args)
	return outcome{code, stdout.String(), stderr.String()}
}

// file writes a file into a folder of the test's own.
func file(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// sampleFolder is the sample as files of the user's.
func sampleFolder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "mine")
	require.NoError(t, os.CopyFS(dir, os.DirFS("sample")))
	return dir
}

var timing = regexp.MustCompile(`plays? in .*`)

func masked(text string) string { return timing.ReplaceAllString(text, "plays in TIME") }

func TestOutput(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		width int
		args  []string
	}{
		"plain":           {0, nil},
		"wide-terminal":   {100, nil},
		"narrow-terminal": {60, []string{"-policy", "both"}},
		"one-policy":      {0, []string{"-policy", "operator-static"}},
	} {
		got := backtestOf(t.Context(), tc.width, tc.args...)
		assert.Zero(t, got.code, got.stderr)
		if tc.width == 0 {
			assert.Empty(t, got.stderr)
		}
		path := filepath.Join("testdata", name+".txt")
		if *update {
			require.NoError(t, os.WriteFile(path, []byte(masked(got.stdout)), 0o644))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, string(want), masked(got.stdout), name)
		if tc.width > 0 {
			for line := range strings.Lines(got.stdout) {
				assert.LessOrEqual(t, columns(plain(strings.TrimSuffix(line, "\n"))), tc.width, line)
			}
		}
	}
}

var escape = regexp.MustCompile("\x1b\\[[0-9]*[mK]")

func plain(text string) string { return escape.ReplaceAllString(text, "") }

// Colours change nothing but the colours.
func TestColours(t *testing.T) {
	t.Parallel()
	coloured, want := backtestOf(t.Context(), 100), backtestOf(t.Context(), 0)
	assert.Contains(t, coloured.stdout, "\x1b[32m")
	assert.NotContains(t, want.stdout, "\x1b")
	assert.Equal(t, masked(want.stdout), masked(plain(coloured.stdout)))
}

func TestJSON(t *testing.T) {
	t.Parallel()
	dir := sampleFolder(t)
	got := backtestOf(t.Context(), 0, "-json", dir)
	require.Zero(t, got.code, got.stderr)
	assert.Empty(t, got.stderr)
	var r report
	d := json.NewDecoder(strings.NewReader(got.stdout))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&r))
	assert.False(t, r.Sample)
	assert.Equal(t, []string{filepath.Join(dir, "banking.jsonl")}, r.Recordings)
	denied := map[replay.DepartureKind]int{replay.CallDenied: 3}
	want := score{Runs: 6, Calls: 12, Denied: 3, Blocked: share{1, 2}, Broken: share{1, 3}, Twins: share{1, 1}, Left: denied}
	require.Len(t, r.Rows, 2)
	assert.Equal(t, row{"banking", "operator-static", want}, r.Rows[1])
	assert.Equal(t, row{"", "operator-static", want}, r.Totals[1])
	assert.Equal(t, 6, r.Runs)
	assert.Equal(t, 12, r.Plays)
	assert.Positive(t, r.PlaysPerSec)
	assert.Contains(t, got.stdout, `"left_out": []`)

	sample := backtestOf(t.Context(), 0, "-json")
	require.NoError(t, json.Unmarshal([]byte(sample.stdout), &r))
	assert.True(t, r.Sample)
}

func TestWrongArguments(t *testing.T) {
	t.Parallel()
	empty, noFacts := t.TempDir(), t.TempDir()
	lone := file(t, noFacts, "runs.jsonl", `{"id": "a", "messages": []}`)
	badFacts := file(t, empty, "facts.txt", `{"banking": []}`)
	for name, tc := range map[string]struct {
		args []string
		code int
		want string
	}{
		"a flag that there is not":   {[]string{"-colour"}, exitUsage, "flag provided but not defined: -colour\nbacktest -h lists the flags"},
		"a policy that there is not": {[]string{"-policy", "none"}, exitUsage, `there is no policy "none": take deny-writes, operator-static, or both`},
		"no such file":               {[]string{"nothing.jsonl"}, exitFailed, "open recording: stat nothing.jsonl: no such file or directory"},
		"all that is missing":        {[]string{"nothing.jsonl", "nowhere"}, exitFailed, "nothing.jsonl: no such file or directory\nopen recording: stat nowhere"},
		"an empty folder":            {[]string{empty}, exitFailed, "there is no recording in it: they are named *.jsonl or *.jsonl.gz"},
		"no facts":                   {[]string{lone}, exitFailed, "put it there, or name a file with -facts"},
		"no such facts":              {[]string{"-facts", "nothing.json", lone}, exitFailed, "load facts: open nothing.json"},
		"bad facts":                  {[]string{lone, "-facts", badFacts}, exitFailed, "at /banking: expected object, got array"},
		"a flag behind --":           {[]string{"--", "-json"}, exitFailed, "open recording: stat -json: no such file"},
	} {
		got := backtestOf(t.Context(), 0, tc.args...)
		assert.Equal(t, tc.code, got.code, name)
		assert.Empty(t, got.stdout, name)
		assert.Contains(t, got.stderr, tc.want, name)
		assert.True(t, strings.HasPrefix(got.stderr, "backtest: "), name)
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	got := backtestOf(t.Context(), 0, "-h")
	assert.Zero(t, got.code)
	for _, want := range []string{"backtest [flags] [recordings", "-policy policy", "deny-writes, operator-static, or both", "-json", "-facts file"} {
		assert.Contains(t, got.stderr, want)
	}
}

// What cannot be read or played is said, the rest is played, and the program fails.
func TestBadRunsAreSaidAndTheRestIsPlayed(t *testing.T) {
	t.Parallel()
	dir := sampleFolder(t)
	bad := file(t, dir, "bad.jsonl", strings.Join([]string{
		`{"id": "role", "suite": "banking", "tools_ref": "tools.json", "messages": [{"role": "friend"}]}`,
		`{"id": `,
		`{"id": "tools", "suite": "banking", "tools_ref": "nothing.json", "messages": []}`,
		`{"id": "tools again", "suite": "banking", "tools_ref": "nothing.json", "messages": []}`,
		`{"id": "chess", "suite": "chess", "messages": []}`,
		`{"id": "fine", "suite": "banking", "messages": [{"role": "user", "content": "hello"}]}`,
		`{"id": "own tools", "suite": "banking", "tools": [{"type": "function", "function": {"name": "get_balance"}}], "messages": []}`,
		`{"id": "bad tools", "suite": "banking", "tools": [{"type": "function", "function": {"name": "get balance"}}], "messages": []}`,
	}, "\n"))
	got := backtestOf(t.Context(), 0, bad, "-json")
	assert.Equal(t, exitFailed, got.code)
	var r report
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &r))
	assert.Equal(t, 2, r.Runs)
	assert.Equal(t, 5, r.Failed)
	require.Len(t, r.LeftOut, 1)
	assert.Equal(t, "chess", r.LeftOut[0].Suite)
	assert.Equal(t, 1, r.LeftOut[0].Runs)
	for _, want := range []string{
		`backtest: replay "role": message 1 has the role "friend"`,
		`bad.jsonl": line 2: `,
		`suite "banking": load tools: open nothing.json: no such file or directory`,
		`tool "get balance": a name is`,
	} {
		assert.Equal(t, 1, strings.Count(got.stderr, want), "%s in %s", want, got.stderr)
	}

	text := backtestOf(t.Context(), 0, bad)
	assert.Contains(t, text.stdout, "runs and lines that could not be played: 5\n")
	assert.Contains(t, text.stdout, "runs left out, as no policy knows their suite: chess 1\n")
}

// Of a folder, other files are left out; a file that is named must be a recording.
func TestFilesThatAreNoRecordings(t *testing.T) {
	t.Parallel()
	dir := sampleFolder(t)
	list := file(t, dir, "list.jsonl", `{"id": "sh1", "cmd": "ls"}`+"\n")
	got := backtestOf(t.Context(), 0, dir)
	assert.Zero(t, got.code)
	assert.Empty(t, got.stderr)
	assert.Contains(t, got.stdout, "files left out, as they are no recordings: list.jsonl\n6 runs and 12 plays in ")

	got = backtestOf(t.Context(), 0, list)
	assert.Equal(t, exitFailed, got.code)
	assert.Contains(t, got.stderr, `list.jsonl": line 1: run "sh1" has no "messages"`)
	assert.Contains(t, got.stderr, "backtest: there was no run that could be played\n")

	// A damaged archive is no other file.
	file(t, dir, "cut.jsonl.gz", "\x1f\x8b\x08")
	got = backtestOf(t.Context(), 0, dir)
	assert.Equal(t, exitFailed, got.code)
	assert.Contains(t, got.stderr, `cut.jsonl.gz": unpack: unexpected EOF`)
}

func TestARecordingIsPlayedOnce(t *testing.T) {
	t.Parallel()
	dir := sampleFolder(t)
	got := backtestOf(t.Context(), 0, dir, filepath.Join(dir, ".", "banking.jsonl"), dir)
	assert.Contains(t, got.stdout, "6 runs and 12 plays in ")
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got := backtestOf(ctx, 0)
	assert.Equal(t, exitInterrupted, got.code)
	assert.Contains(t, got.stdout, "Interrupted after 0 runs: the numbers are of what was played.\n")

	// In the middle: the third run that is read interrupts the program.
	dir := sampleFolder(t)
	ctx, cancel = context.WithCancel(t.Context())
	found, err := find(options{paths: []string{dir}}, "")
	require.NoError(t, err)
	b := newBacktest(policies, found, newProgress(silent))
	b.players.policies = []policy{{"stops", func(facts rules.Facts, suite string) (rules.Rule, error) {
		return func(tool string, _ rules.Args) (bool, string) {
			if tool == "send_money" {
				cancel()
			}
			return false, ""
		}, nil
	}}}
	done := b.run(ctx)
	assert.True(t, done.Interrupted)
	assert.Less(t, done.Runs, 6)
	assert.Zero(t, done.Failed, "an interrupted run has not failed")
}

// Without a policy nothing in the sample leaves its recording, and its labels are of calls that are there.
func TestTheSampleIsSound(t *testing.T) {
	t.Parallel()
	f, err := findSample(options{})
	require.NoError(t, err)
	in := f.recordings[0].folder
	tools, err := in.loadTools("tools.json")
	require.NoError(t, err)
	free, err := newAgent(tools)
	require.NoError(t, err)
	records, err := replay.Load(filepath.Join("sample", "banking.jsonl"))
	require.NoError(t, err)
	kinds := map[replay.Kind]int{}
	for _, record := range records {
		kinds[record.Kind]++
		session, err := replay.NewSession(record)
		require.NoError(t, err)
		played, err := session.Play(t.Context(), free)
		require.NoError(t, err)
		assert.Empty(t, played.Departures, record.ID)
		calls := map[string]bool{}
		for _, call := range record.Calls() {
			calls[call.ID] = true
		}
		for _, label := range record.Labels {
			assert.True(t, calls[label.Call], record.ID)
		}
	}
	assert.Equal(t, map[replay.Kind]int{replay.Clean: 3, replay.Attacked: 2, replay.AuthorisedTwin: 1}, kinds)
}
