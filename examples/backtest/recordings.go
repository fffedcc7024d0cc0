package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/grapnel-go/grapnel/examples/backtest/rules"
	"github.com/grapnel-go/grapnel/policy/backtest"
)

// sampleFiles is an invented recording, with its tools and facts.
//
//go:embed sample
var sampleFiles embed.FS

// factFiles lists the paths in a folder where the facts may be.
var factFiles = []string{"facts.json", "tools/agentdojo-operator-facts.json"}

// findRecordings returns the named recordings. If none are named, it returns the shared folder's, and if there are
// none, the sample. It also returns the facts for the policies, from the named file or from a file beside the first
// recording.
func findRecordings(paths []string, shared, factFile string) ([]backtest.Recording, rules.Facts, error) {
	if len(paths) == 0 {
		paths = []string{shared}
		if _, err := os.Stat(shared); errors.Is(err, fs.ErrNotExist) {
			return sampleRecordings(factFile)
		}
	}
	found, err := backtest.Find(paths...)
	if err != nil {
		return nil, rules.Facts{}, err
	}
	facts, err := factsOf(found[0].Files, filepath.Dir(found[0].Name), factFile)
	return found, facts, err
}

func sampleRecordings(factFile string) ([]backtest.Recording, rules.Facts, error) {
	files, err := fs.Sub(sampleFiles, "sample")
	if err != nil {
		return nil, rules.Facts{}, err
	}
	facts, err := factsOf(files, "sample", factFile)
	return []backtest.Recording{{Name: "sample/banking.jsonl", Files: files, Path: "banking.jsonl"}}, facts, err
}

func factsOf(files fs.FS, dir, named string) (rules.Facts, error) {
	if named != "" {
		return rules.LoadFacts(named)
	}
	for _, name := range factFiles {
		text, err := fs.ReadFile(files, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var facts rules.Facts
		if err == nil {
			facts, err = rules.ParseFacts(text)
		}
		if err != nil {
			return rules.Facts{}, fmt.Errorf("load facts %q: %w", filepath.Join(dir, name), err)
		}
		return facts, nil
	}
	return rules.Facts{}, fmt.Errorf("load facts: the policies need facts.json, which is not in %q: put it there, or name a file with -facts", dir)
}
