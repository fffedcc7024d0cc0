package replay_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/drivers/replay"
)

// collect reads to the end: the ids of the runs, and the errors.
func collect(r *replay.Reader) (ids []string, failed []error) {
	for record, err := range r.Records() {
		if err != nil {
			failed = append(failed, err)
			continue
		}
		ids = append(ids, record.ID)
	}
	return ids, failed
}

func pack(t testing.TB, text []byte) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write(text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return packed.Bytes()
}

func TestPlainAndPackedReadAlike(t *testing.T) {
	plain, err := os.ReadFile(filepath.Join("testdata", "sample.jsonl"))
	require.NoError(t, err)
	want, failed := collect(replay.NewReader(bytes.NewReader(plain)))
	require.Empty(t, failed)
	require.Len(t, want, 7)

	// What tells them apart is the first bytes, not the name; and an archive may have several parts.
	half := bytes.IndexByte(plain, '\n') + 1
	for name, source := range map[string]io.Reader{
		"packed":               bytes.NewReader(pack(t, plain)),
		"packed in two parts":  bytes.NewReader(append(pack(t, plain[:half]), pack(t, plain[half:])...)),
		"a byte at a time":     iotest.OneByteReader(bytes.NewReader(pack(t, plain))),
		"no line end":          bytes.NewReader(bytes.TrimSpace(plain)),
		"blank lines, windows": strings.NewReader("\r\n \t\n" + strings.ReplaceAll(string(plain), "\n", "\r\n\r\n")),
	} {
		got, failed := collect(replay.NewReader(source))
		assert.Empty(t, failed, name)
		assert.Equal(t, want, got, name)
	}
}

func TestARecordingWithoutLinesHasNoRuns(t *testing.T) {
	for _, text := range []string{"", "\n", " \r\n\t\n "} {
		for _, source := range [][]byte{[]byte(text), pack(t, []byte(text))} {
			ids, failed := collect(replay.NewReader(bytes.NewReader(source)))
			assert.Empty(t, ids)
			assert.Empty(t, failed)
		}
	}
}

func TestABadLineIsNamedAndTheRestIsRead(t *testing.T) {
	const call = `{"id": "c", "type": "function", "function": {"name": "f", "arguments": %}}`
	withArguments := func(value string) string {
		return `{"id": "x", "messages": [{"role": "assistant", "tool_calls": [` + strings.ReplaceAll(call, "%", value) + `]}]}`
	}
	for line, want := range map[string]string{
		`{`:                              "the text ends after",
		`[]`:                             "expected object, got array",
		`{"id": "x", "messages": []} {}`: "invalid character '{' after top-level value",
		`{"messages": []}`:               `no "id"`,
		`null`:                           `no "id"`,
		`{"id": "x"}`:                    `run "x" has no "messages"`,
		`{"id": "x", "messages": null}`:  `run "x" has no "messages"`,
		`{"id": "x", "Messages": []}`:    `run "x" has no "messages"`,
		`{"cmd": "ls", "label": "benign", "id": "sh0"}`:               `run "sh0" has no "messages"`,
		`{"id": "x", "id": "y", "messages": []}`:                      `member "id" is given twice`,
		`{"id": "x` + "\xff" + `", "messages": []}`:                   "invalid UTF-8",
		`{"id": "x", "messages": [], "note": "\ud83d"}`:               `invalid surrogate pair`,
		`{"id": "x", "messages": [{"role": "user", "content": {}}]}`:  "at /messages/0/content: expected a string, null or a list of parts",
		`{"id": "x", "messages": [{"role": "user", "content": [1]}]}`: "at /messages/0/content: part 0: expected object, got number",
		withArguments(`{"a": 1}`):                                     "at /messages/0/tool_calls/0/function/arguments: expected string, got object",
		`{"id": "x", "messages": [], "tools": [{"type": "web"}]}`:     `at /tools/0: expected a tool of type "function", got "web"`,
	} {
		r := replay.NewReader(strings.NewReader("\n" + line + "\n" + `{"id": "next", "messages": []}` + "\n"))
		r.Name = "bad.jsonl"
		ids, failed := collect(r)
		assert.Equal(t, []string{"next"}, ids, line)
		require.Len(t, failed, 1, line)
		assert.ErrorContains(t, failed[0], `read recording "bad.jsonl": line 2: `, line)
		assert.ErrorContains(t, failed[0], want, line)
		bad, ok := errors.AsType[*replay.LineError](failed[0])
		require.True(t, ok, line)
		assert.Equal(t, 2, bad.Line)
		assert.Equal(t, "bad.jsonl", bad.Name)
		assert.Equal(t, strings.HasPrefix(want, `no "id"`) || strings.HasSuffix(want, `has no "messages"`),
			errors.Is(failed[0], replay.ErrNotARun), line)
	}
}

func TestALineMayBeAsLongAsTheReaderSays(t *testing.T) {
	const line = `{"id": "a", "messages": []}`
	for _, tc := range []struct {
		name, text string
		limit      int
		ids        []string
		failed     string
	}{
		{"just fits", line + "\r\n" + line, len(line), []string{"a", "a"}, ""},
		{"a byte too long", line + "\n" + line + " \n" + line, len(line), []string{"a"}, "line 2: longer than 27 bytes: set Reader.MaxLine"},
		{"without an end", strings.Repeat("x", 1<<20), 100, nil, "line 1: longer than 100 bytes"},
		{"nothing but returns", strings.Repeat("\r", 1<<20), 100, nil, "line 1: longer than 100 bytes"},
	} {
		r := replay.NewReader(strings.NewReader(tc.text))
		r.MaxLine = tc.limit
		ids, failed := collect(r)
		assert.Equal(t, tc.ids, ids, tc.name)
		if tc.failed == "" {
			assert.Empty(t, failed, tc.name)
			continue
		}
		require.Len(t, failed, 1, tc.name)
		assert.ErrorContains(t, failed[0], tc.failed, tc.name)
	}
}

// A packed line of a gigabyte is given up on long before it is unpacked.
func TestAnEndlessLineIsNotUnpacked(t *testing.T) {
	unpacked, w := io.Pipe()
	defer unpacked.Close()
	go func() {
		packing := gzip.NewWriter(w)
		spaces := bytes.Repeat([]byte("x"), 1<<20)
		for {
			if _, err := packing.Write(spaces); err != nil {
				return // the reader has gone
			}
		}
	}()
	ids, failed := collect(replay.NewReader(unpacked))
	assert.Empty(t, ids)
	require.Len(t, failed, 1)
	assert.ErrorContains(t, failed[0], "line 1: longer than 16777216 bytes")
}

func TestADamagedSourceEndsTheReading(t *testing.T) {
	line := []byte(`{"id": "a", "messages": []}` + "\n")
	packed := pack(t, bytes.Repeat(line, 3))
	flipped := bytes.Clone(packed)
	flipped[len(flipped)-5] ^= 1 // in the checksum
	failing := errors.New("the disk is gone")

	for name, tc := range map[string]struct {
		source io.Reader
		ids    []string
		want   string
	}{
		"cut short":          {bytes.NewReader(packed[:len(packed)-9]), nil, "unpack: unexpected EOF"},
		"cut in the header":  {bytes.NewReader(packed[:5]), nil, "unpack: unexpected EOF"},
		"checksum":           {bytes.NewReader(flipped), []string{"a", "a", "a"}, "line 4: unpack: gzip: invalid checksum"},
		"garbage behind":     {bytes.NewReader(append(bytes.Clone(packed), line...)), []string{"a", "a", "a"}, "unpack: gzip: invalid header"},
		"fails at once":      {iotest.ErrReader(failing), nil, `read recording "recording": the disk is gone`},
		"fails in a line":    {io.MultiReader(bytes.NewReader(line), bytes.NewReader(line[:20]), iotest.ErrReader(failing)), []string{"a"}, "line 2: the disk is gone"},
		"fails after a line": {io.MultiReader(bytes.NewReader(line), iotest.ErrReader(failing)), []string{"a"}, "line 2: the disk is gone"},
	} {
		r := replay.NewReader(tc.source)
		ids, failed := collect(r)
		require.Len(t, failed, 1, name)
		assert.ErrorContains(t, failed[0], tc.want, name)
		assert.Subset(t, []string{"a", "a", "a"}, ids, name)
		if tc.ids != nil {
			assert.Equal(t, tc.ids, ids, name)
		}
		again, failed := collect(r)
		assert.Empty(t, again, "%s: nothing comes after the end", name)
		assert.Empty(t, failed, name)
	}
}

func TestASecondLoopGoesOn(t *testing.T) {
	r, err := replay.Open(filepath.Join("testdata", "sample.jsonl"))
	require.NoError(t, err)
	defer r.Close()
	for record, err := range r.Records() {
		require.NoError(t, err)
		assert.Equal(t, "sample/clean", record.ID)
		break
	}
	ids, failed := collect(r)
	assert.Empty(t, failed)
	require.Len(t, ids, 6)
	assert.Equal(t, "sample/malformed-arguments", ids[0])
}

func TestRecordsAreTheCallersToKeep(t *testing.T) {
	kept := loadSample(t)
	again := loadSample(t)
	again["two-turns"].Other["variant"][1] = 'X'
	again["two-turns"].Messages[0].Role = "changed"
	assert.Equal(t, `"with-names"`, string(kept["two-turns"].Other["variant"]))
	assert.Equal(t, replay.RoleSystem, kept["two-turns"].Messages[0].Role)

	var first *replay.Record
	r, err := replay.Open(filepath.Join("testdata", "sample.jsonl"))
	require.NoError(t, err)
	defer r.Close()
	for record, err := range r.Records() {
		require.NoError(t, err)
		if record.ID == "sample/two-turns" {
			first = record
		}
	}
	assert.Equal(t, kept["two-turns"], first, "later lines change nothing in an earlier run")
}

func TestOpenLoadAndClose(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.jsonl")
	_, err := replay.Open(missing)
	assert.ErrorIs(t, err, os.ErrNotExist)
	assert.ErrorContains(t, err, "open recording: ")
	_, err = replay.Load(missing)
	assert.ErrorIs(t, err, os.ErrNotExist)

	bad := filepath.Join(t.TempDir(), "bad.jsonl")
	require.NoError(t, os.WriteFile(bad, []byte(`{"id": "a", "messages": []}`+"\n{}\n"), 0o600))
	records, err := replay.Load(bad)
	assert.Nil(t, records)
	assert.ErrorContains(t, err, bad+`": line 2: no "id"`)

	r, err := replay.Open(filepath.Join("testdata", "sample.jsonl"))
	require.NoError(t, err)
	require.NoError(t, r.Close())
	_, failed := collect(r)
	require.Len(t, failed, 1)
	assert.ErrorIs(t, failed[0], os.ErrClosed)

	assert.NoError(t, replay.NewReader(strings.NewReader("")).Close())
}
