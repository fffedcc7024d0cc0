package backtest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	// Name is the name in reports and errors, usually the path.
	Name string
	// Files is the folder of the recording and of the files that it refers to. Path is the path of the recording in
	// Files.
	Files fs.FS
	Path  string
	// Size is the size of the file in bytes, compressed or not; zero when it is unknown.
	Size int64
	// Format is the format of the file; empty means to detect it.
	Format recorded.Format
	// found reports whether Find found the file in a folder. Such a file may turn out not to be a recording, and that
	// is not an error.
	found bool
}

// Find returns the recordings at paths: files, and from folders the files directly in them whose names end in .jsonl,
// .json, .jsonl.gz or .json.gz. A file is returned once. The error joins all problems.
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
	return n, err //nolint:wrapcheck // a reader's error is the reader's
}
