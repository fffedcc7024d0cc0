package backtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/policy/recorded"
)

// Recording is a file of recorded runs.
type Recording struct {
	// Name is the recording's name in reports and errors, usually its path.
	Name string
	// Files is the folder that contains the recording and the files that it refers to. Path is the recording's path
	// in Files.
	Files fs.FS
	Path  string
	// Size is the file's size in bytes, compressed or not; zero if unknown.
	Size int64
	// Format is the file's format; empty means to detect it.
	Format recorded.Format
	// Runs, unless nil, returns the runs in place of the file, with the errors for those that cannot be read. Size is then their number.
	Runs func(ctx context.Context) iter.Seq2[*recorded.Run, error]
	// found reports whether Find found the file in a folder. It is not an error if such a file is not a recording.
	found bool
}

// Find returns the recordings at paths. A path is a file, or a folder, from which Find takes files named *.jsonl,
// *.json, *.jsonl.gz or *.json.gz. It returns each file once. The error joins all problems.
func Find(paths ...string) ([]Recording, error) {
	var wrong []error
	var out []Recording
	for _, path := range paths {
		found, err := findAt(path)
		if err != nil {
			wrong = append(wrong, err)
		}
		out = append(out, found...)
	}
	out = lo.UniqBy(out, func(r Recording) string { return filepath.Clean(r.Name) })
	return out, errors.Join(wrong...)
}

var endings = []string{".jsonl", ".json", ".jsonl.gz", ".json.gz"}

func findAt(path string) ([]Recording, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open recording: %w", err)
	}
	if !info.IsDir() {
		dir, name := filepath.Split(path)
		if dir == "" {
			dir = "."
		}
		return []Recording{{Name: path, Files: folder(dir), Path: name, Size: info.Size()}}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("open folder: %w", err)
	}
	out := lo.FilterMap(entries, func(e os.DirEntry, _ int) (Recording, bool) {
		info, err := e.Info()
		named := slices.ContainsFunc(endings, func(end string) bool { return strings.HasSuffix(e.Name(), end) })
		if err != nil || !named || e.IsDir() {
			return Recording{}, false
		}
		return Recording{Name: filepath.Join(path, e.Name()), Files: folder(path), Path: e.Name(), Size: info.Size(), found: true}, true
	})
	if len(out) == 0 {
		return nil, fmt.Errorf("open folder %q: no recordings: expected files named *.jsonl, *.json, *.jsonl.gz or *.json.gz", path)
	}
	return out, nil
}

// tools returns the schemas in the file that Run.ToolsRef names.
func (r Recording) tools(ref string) ([]replay.ToolSchema, error) {
	tools, err := replay.FindTools(r.Files, ref)
	if err != nil {
		return nil, fmt.Errorf("%w (named by %q)", err, r.Name)
	}
	return tools, nil
}

// openCounted opens the recording and reports the number of bytes read to count.
func (r Recording) openCounted(count func(int64)) (*recorded.Reader, io.Closer, error) {
	file, err := r.Files.Open(r.Path)
	if err != nil {
		return nil, nil, fmt.Errorf("open recording: %w", err)
	}
	reader := recorded.NewReader(r.Name, counting{file, count})
	reader.Format = r.Format
	return reader, file, nil
}

type counting struct {
	file  io.Reader
	count func(int64)
}

func (c counting) Read(b []byte) (int, error) {
	n, err := c.file.Read(b)
	c.count(int64(n))
	return n, err
}
