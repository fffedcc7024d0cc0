package files_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/grapnel-go/grapnel/toolexec/files"
)

func TestRead(t *testing.T) {
	lines := "one\ntwo\nthree\nfour\n"
	for name, tc := range map[string]struct {
		content string
		in      files.ReadArgs
		most    int
		want    string // the answer, without the hash; or an error
	}{
		"whole":              {content: lines, want: "one\ntwo\nthree\nfour\n[f: 4 lines, 19 bytes]"},
		"empty":              {content: "", want: "[f: an empty file]"},
		"empty from line 2":  {content: "", in: files.ReadArgs{Offset: 2}, want: `read "f": it has only 0 lines: there is no line 2`},
		"some lines":         {content: lines, in: files.ReadArgs{Offset: 2, Limit: 2}, want: "two\nthree\n[f: lines 2 to 3 of 4, 19 bytes; read on with offset 4]"},
		"as many as can be":  {content: lines, in: files.ReadArgs{Offset: 3, Limit: math.MaxInt}, want: "three\nfour\n[f: lines 3 to 4 of 4, 19 bytes]"},
		"last lines":         {content: lines, in: files.ReadArgs{Offset: 3, Limit: 9}, want: "three\nfour\n[f: lines 3 to 4 of 4, 19 bytes]"},
		"beyond the end":     {content: lines, in: files.ReadArgs{Offset: 5}, want: `read "f": it has only 4 lines: there is no line 5`},
		"negative":           {content: lines, in: files.ReadArgs{Offset: -1}, want: `read "f": offset and limit count lines: they must be 1 or more, or omitted`},
		"as much as fits":    {content: lines, most: 9, want: "one\ntwo\n[f: lines 1 to 2 of 4, 19 bytes; read on with offset 3]"},
		"just fits":          {content: lines, most: 19, want: "one\ntwo\nthree\nfour\n[f: 4 lines, 19 bytes]"},
		"a long line":        {content: "0123456789\nx\n", most: 4, want: "0123\n[f: lines 1 to 1 of 2, 13 bytes; line 1 is cut: use grep to find parts of it; read on with offset 2]"},
		"a long line later":  {content: "x\n0123456789\ny", in: files.ReadArgs{Offset: 2}, most: 4, want: "0123\n[f: lines 2 to 2 of 3, 14 bytes; line 2 is cut: use grep to find parts of it; read on with offset 3]"},
		"no half a rune":     {content: "aöö\n", most: 4, want: "aö\n[f: lines 1 to 1 of 1, 6 bytes; line 1 is cut: use grep to find parts of it]"},
		"no line end":        {content: "one\ntwo", want: "one\ntwo\n[f: 2 lines, 7 bytes; no line end after the last line]"},
		"CRLF":               {content: "one\r\ntwo\r\n", want: "one\ntwo\n[f: 2 lines, 10 bytes; 2 line ends in CRLF, shown without CR]"},
		"mixed":              {content: "one\r\ntwo\n\r", want: "one\ntwo\n\r\n[f: 3 lines, 10 bytes; 1 line end in CRLF, shown without CR; no line end after the last line]"},
		"Latin-1":            {content: "caf\xe9 au lait\n", want: "caf� au lait\n[f: 1 line, 13 bytes; 1 byte not text and shown as �]"},
		"binary":             {content: "\x89PNG\r\n\x1a\n\x00\x00", want: `read "f": it is a binary file of 10 bytes that begins with "\x89PNG\r\n\x1a\n\x00\x00": it cannot be shown as text`},
		"noise":              {content: strings.Repeat("\xfe\xff\x80", 100), want: `read "f": it is a binary file of 300 bytes that begins with "\xfe\xff\x80\xfe\xff\x80\xfe\xff\x80\xfe\xff\x80": it cannot be shown as text`},
		"a late NUL":         {content: strings.Repeat("text ", 1700) + "\x00\n", want: strings.Repeat("text ", 1700) + "�\n[f: 1 line, 8502 bytes; 1 byte not text and shown as �]"},
		"what looks like us": {content: "[f: an empty file]\n", want: "[f: an empty file]\n[f: 1 line, 19 bytes]"},
	} {
		t.Run(name, func(t *testing.T) {
			_, tree := tree(t, files.Config{MaxReadBytes: tc.most}, "f", tc.content)
			tc.in.Path = "f"
			e, err := tree.Read(t.Context(), tc.in)
			if err != nil {
				assert.EqualError(t, err, tc.want)
				return
			}
			text := e.Content().Text()
			assert.True(t, utf8.ValidString(text))
			assert.Equal(t, tc.want, strings.Replace(strings.Replace(text, "; hash "+e.Hash+"]", "]", 1), "bytes, hash", "bytes; hash", 1))
			assert.Equal(t, min(2, 1+strings.Count(tc.content, "")-1), e.Content().Len(), "the note is a part of its own")
		})
	}
}

func TestMisses(t *testing.T) {
	_, tree := tree(t, files.Config{}, "cmd/server/main.go", "x", "cmd/server/handler.go", "x", "README.md", "x", "notes.txt", "x")
	for path, want := range map[string]string{
		"readme.md":            `; did you mean "README.md"?`,
		"cmd/server/mian.go":   `; did you mean "cmd/server/main.go"?`,
		"main.go":              `; did you mean "cmd/server/main.go"?`,
		"cmd/servr/handler.go": `; nor is there a directory "cmd/servr"; did you mean "cmd/server/handler.go"?`,
		"zebra":                ``,
		"note":                 `; did you mean "notes.txt"?`,
	} {
		_, err := tree.Read(t.Context(), files.ReadArgs{Path: path})
		assert.EqualError(t, err, fmt.Sprintf("read %q: there is no such file or directory%s", path, want))
		require.ErrorIs(t, err, os.ErrNotExist)
		_, err = tree.Edit(t.Context(), files.EditArgs{Path: path, OldText: "a", NewText: "b"})
		assert.EqualError(t, err, fmt.Sprintf("edit %q: there is no such file or directory%s", path, want))
	}
	_, err := tree.Read(t.Context(), files.ReadArgs{Path: "cmd"})
	assert.EqualError(t, err, `read "cmd": it is a directory, not a file`)
	_, err = tree.Read(t.Context(), files.ReadArgs{Path: "README.md/x"})
	assert.EqualError(t, err, `read "README.md/x": not a directory`)
}

// A file too big to edit is read in parts all the same, in little memory; a sparse one of a terabyte does no harm.
func TestHugeFiles(t *testing.T) {
	dir, tree := tree(t, files.Config{MaxWriteBytes: 1 << 20})
	f, err := os.Create(filepath.Join(dir, "big.log"))
	require.NoError(t, err)
	block := strings.Repeat(strings.Repeat("x", 99)+"\n", 10_000)
	for range 30 {
		_, err := f.WriteString(block)
		require.NoError(t, err)
	}
	require.NoError(t, f.Close())
	e, err := tree.Read(t.Context(), files.ReadArgs{Path: "big.log", Offset: 299_000, Limit: 3})
	require.NoError(t, err)
	assert.Equal(t, strings.Repeat(strings.Repeat("x", 99)+"\n", 3)+
		"[big.log: lines 299000 to 299002, of a file of 30000000 bytes; read on with offset 299003]", e.Content().Text())
	_, err = tree.Read(t.Context(), files.ReadArgs{Path: "big.log", Offset: 300_001})
	assert.EqualError(t, err, `read "big.log": it has only 300000 lines: there is no line 300001`)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "sparse"), []byte("text"), 0o644))
	require.NoError(t, os.Truncate(filepath.Join(dir, "sparse"), 1<<40))
	_, err = tree.Read(t.Context(), files.ReadArgs{Path: "sparse"})
	assert.ErrorContains(t, err, "it is a binary file of 1099511627776 bytes")
	_, err = tree.Edit(t.Context(), files.EditArgs{Path: "sparse", OldText: "text", NewText: "x"})
	assert.EqualError(t, err, `edit "sparse": it is a file of 1099511627776 bytes, and files of up to 1048576 are edited`)
	found, err := tree.Grep(t.Context(), files.GrepArgs{Pattern: "text"})
	require.NoError(t, err)
	assert.Equal(t, "[nothing found in 0 files; 2 files of more than 1048576 bytes not searched]", found.Content().Text())
}

func TestCancelledCallsEnd(t *testing.T) {
	_, tree := tree(t, files.Config{}, "a/b/c.txt", "x\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, read := tree.Read(ctx, files.ReadArgs{Path: "a/b/c.txt"})
	_, write := tree.Write(ctx, files.WriteArgs{Path: "new", Content: "x"})
	_, edit := tree.Edit(ctx, files.EditArgs{Path: "a/b/c.txt", OldText: "x", NewText: "y"})
	_, list := tree.List(ctx, files.ListArgs{})
	_, glob := tree.Glob(ctx, files.GlobArgs{Pattern: "**"})
	_, grep := tree.Grep(ctx, files.GrepArgs{Pattern: "x"})
	one, err := tree.Grep(ctx, files.GrepArgs{Pattern: "x", Path: "a/b/c.txt"})
	assert.Empty(t, one.Matches)
	for _, err := range []error{read, write, edit, list, glob, grep, err} {
		assert.ErrorIs(t, err, context.Canceled)
	}
}

// Whatever is in a file, reading on to the end gives all of it.
func TestReadingOnGivesAll(t *testing.T) {
	dir, tree := tree(t, files.Config{MaxReadBytes: 60})
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.StringMatching(`[a-zö ]{0,20}`), 1, 30).Draw(t, "lines")
		content := strings.Join(lines, "\n") + rapid.SampledFrom([]string{"\n", ""}).Draw(t, "end")
		require.NoError(t, os.WriteFile(filepath.Join(dir, "f"), []byte(content), 0o644))
		got := ""
		for offset := 1; ; {
			e, err := tree.Read(context.Background(), files.ReadArgs{Path: "f", Offset: offset})
			require.NoError(t, err)
			require.LessOrEqual(t, len(e.Text), 60)
			got += e.Text
			if !e.More {
				break
			}
			offset = e.Last + 1
		}
		require.Equal(t, content, got)
	})
}
