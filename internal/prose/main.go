package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Stdout, ".", os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(1)
	}
}

// run lists the findings in the module at root, or only in the given packages. It fails if there are any.
func run(out io.Writer, root string, packages []string) error {
	found, err := checkModule(root)
	if err != nil {
		return err
	}
	if len(packages) == 0 {
		packages = slices.Sorted(maps.Keys(found))
	}
	total := 0
	for _, name := range packages {
		for _, f := range found[path.Clean(filepath.ToSlash(name))] {
			total++
			fmt.Fprintf(out, "%s:%d: %s: %s\n", f.At.Filename, f.At.Line, f.Rule, f.Text)
		}
	}
	if total > 0 {
		return fmt.Errorf("%d findings: the rules are in internal/prose/doc.go", total)
	}
	return nil
}

// findings holds the findings of each package by its folder, relative to the module root; "." is the root. Documents
// belong to the package in their folder.
type findings map[string][]finding

// checkModule reads all Go files and documents in the module at root. It skips hidden folders, folders named testdata
// or node_modules, and other modules.
func checkModule(root string) (findings, error) {
	found := findings{}
	err := filepath.WalkDir(root, func(dir string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !entry.IsDir():
			return nil
		case dir != root && (strings.HasPrefix(entry.Name(), ".") || slices.Contains([]string{"testdata", "node_modules"}, entry.Name())):
			return filepath.SkipDir
		}
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil && dir != root {
			return filepath.SkipDir
		}
		relative, err := filepath.Rel(root, dir)
		if err != nil {
			return err
		}
		inDir, err := checkFolder(dir)
		if len(inDir) > 0 {
			found[filepath.ToSlash(relative)] = inDir
		}
		return err
	})
	return found, err
}

// phrasesUnread lists the folders that are still to be checked for phrases.
var phrasesUnread = []string{
	"cmd", "coordinator", "durable",
}

// isBelow reports whether dir is the folder or one below it.
func isBelow(dir, folder string) bool {
	rest, ok := strings.CutPrefix(filepath.ToSlash(dir), folder)
	return ok && (rest == "" || rest[0] == '/')
}

// checkFolder checks the Go files and documents in one folder.
func checkFolder(dir string) ([]finding, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	var found []finding
	var shipped, all []*ast.File
	for _, entry := range entries {
		name := filepath.Join(dir, entry.Name())
		switch filepath.Ext(name) {
		case ".go":
			file, err := parser.ParseFile(fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			if file.Name.Name != "main" || filepath.Base(dir) != "prose" { // this package contains the words
				found = append(found, checkTexts(fset, file)...)
				all = append(all, file)
			}
			if !strings.HasSuffix(name, "_test.go") {
				shipped = append(shipped, file)
			}
		case ".md":
			if entry.Name() == "CHANGELOG.md" { // released entries do not change
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			found = append(found, checkWords(name, 1, string(text))...)
		}
	}
	found = append(found, checkFunctions(fset, shipped)...)
	if !slices.ContainsFunc(phrasesUnread, func(below string) bool { return isBelow(dir, below) }) {
		found = append(found, checkPhrases(fset, all)...)
	}
	slices.SortFunc(found, func(a, b finding) int {
		return cmp.Or(strings.Compare(a.At.Filename, b.At.Filename), cmp.Compare(a.At.Line, b.At.Line), strings.Compare(a.Rule, b.Rule))
	})
	return found, nil
}
