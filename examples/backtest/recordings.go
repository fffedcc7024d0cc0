package main

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/examples/backtest/rules"
)

// sampleFiles is a recording of our own invention, with its tools and facts.
//
//go:embed sample
var sampleFiles embed.FS

// folder holds recordings and what they refer to.
type folder struct {
	name  string
	files fs.FS
	facts rules.Facts
}

// recording is one file of recorded runs.
type recording struct {
	folder *folder
	name   string // as the user knows it
	file   string // in its folder
	size   int64
	found  bool // in a folder that was named, not named itself: it may turn out to be something else
}

// found is what there is to be played.
type found struct {
	recordings []recording
	sample     bool
}

// sharedFolder is where recordings are that are not part of the project.
func sharedFolder() string {
	return filepath.Join(cmp.Or(os.Getenv("GRAPNEL_SHARED"), filepath.Join("..", "shared")), "transcripts")
}

// find finds the recordings that were named, or else those in the shared folder, or else the sample. The error joins
// everything that is wrong.
func find(o options, shared string) (found, error) {
	paths := o.paths
	if len(paths) == 0 {
		if _, err := os.Stat(shared); errors.Is(err, fs.ErrNotExist) {
			return findSample(o)
		}
		paths = []string{shared}
	}
	var wrong []error
	var out found
	folders := map[string]*folder{}
	for _, path := range paths {
		recordings, err := findAt(path)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		for _, r := range recordings {
			dir := filepath.Dir(r.name)
			if folders[dir] == nil {
				folders[dir] = &folder{name: dir, files: os.DirFS(dir)}
				wrong = append(wrong, folders[dir].loadFacts(o.facts))
			}
			r.folder = folders[dir]
			out.recordings = append(out.recordings, r)
		}
	}
	out.recordings = lo.UniqBy(out.recordings, func(r recording) string { return filepath.Clean(r.name) })
	return out, errors.Join(wrong...)
}

// findAt finds the recordings at a path: a file, or those in a folder, but not in folders within.
func findAt(path string) ([]recording, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open recording: %w", err)
	}
	if !info.IsDir() {
		return []recording{{name: path, file: filepath.Base(path), size: info.Size()}}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("open folder: %w", err)
	}
	recordings := lo.FilterMap(entries, func(e os.DirEntry, _ int) (recording, bool) {
		info, err := e.Info()
		named := strings.HasSuffix(e.Name(), ".jsonl") || strings.HasSuffix(e.Name(), ".jsonl.gz")
		if err != nil || !named || e.IsDir() {
			return recording{}, false
		}
		return recording{name: filepath.Join(path, e.Name()), file: e.Name(), size: info.Size(), found: true}, true
	})
	if len(recordings) == 0 {
		return nil, fmt.Errorf("open folder %q: there is no recording in it: they are named *.jsonl or *.jsonl.gz", path)
	}
	return recordings, nil
}

func findSample(o options) (found, error) {
	files, err := fs.Sub(sampleFiles, "sample")
	if err != nil {
		return found{}, err
	}
	const file = "banking.jsonl"
	info, err := fs.Stat(files, file)
	if err != nil {
		return found{}, err
	}
	f := &folder{name: "sample", files: files}
	if err := f.loadFacts(o.facts); err != nil {
		return found{}, err
	}
	return found{sample: true, recordings: []recording{{folder: f, name: file, file: file, size: info.Size()}}}, nil
}

// factFiles is where the facts of a folder may be.
var factFiles = []string{"facts.json", "tools/agentdojo-operator-facts.json"}

// loadFacts reads the given file of facts, or, when none is given, the folder's own.
func (f *folder) loadFacts(path string) error {
	var err error
	if path != "" {
		f.facts, err = rules.LoadFacts(path)
		return err
	}
	for _, name := range factFiles {
		text, err := fs.ReadFile(f.files, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			f.facts, err = rules.ParseFacts(text)
		}
		if err != nil {
			return fmt.Errorf("load facts %q: %w", filepath.Join(f.name, name), err)
		}
		return nil
	}
	return fmt.Errorf("load facts: there is no facts.json in %q, and the policies stand on it: put it there, or name a file with -facts", f.name)
}
