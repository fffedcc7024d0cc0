package main

import (
	"cmp"
	"flag"
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
	"strconv"
	"strings"
)

func main() {
	update := flag.Bool("update", false, "lower the allow-list to what was found")
	list := flag.String("allowed", "internal/prose/allowed.txt", "the allow-list")
	flag.Parse()
	if err := run(os.Stdout, ".", *list, *update, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(1)
	}
}

// run checks the module at root, or lists the findings of the named packages.
func run(out io.Writer, root, list string, update bool, packages []string) error {
	found, err := checkModule(root)
	if err != nil {
		return err
	}
	if len(packages) > 0 {
		return listFindings(out, found, packages)
	}
	allowed, err := readAllowed(list)
	if err != nil {
		return err
	}
	if update {
		return writeAllowed(list, lowerAllowed(allowed, found))
	}
	return compareWithAllowed(out, allowed, found)
}

// Findings are those of each package, by its folder below the root of the module; "." is
// the root. Documents count as part of the package in whose folder they are.
type findings map[string][]finding

// checkModule reads all Go files and documents of the module at root. Folders named
// testdata, node_modules and thirdparty, hidden folders and other modules are left out.
func checkModule(root string) (findings, error) {
	found := findings{}
	err := filepath.WalkDir(root, func(dir string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !entry.IsDir():
			return nil
		case dir != root && (strings.HasPrefix(entry.Name(), ".") || slices.Contains([]string{"testdata", "node_modules", "thirdparty"}, entry.Name())):
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

// checkFolder checks the Go files and documents of one folder.
func checkFolder(dir string) ([]finding, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	var found []finding
	var shipped []*ast.File
	for _, entry := range entries {
		name := filepath.Join(dir, entry.Name())
		switch filepath.Ext(name) {
		case ".go":
			file, err := parser.ParseFile(fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			found = append(found, checkTexts(fset, file)...)
			if !strings.HasSuffix(name, "_test.go") {
				shipped = append(shipped, file)
			}
		case ".md":
			if entry.Name() == "CHANGELOG.md" { // what was released stays as it was written
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
	slices.SortFunc(found, func(a, b finding) int {
		return cmp.Or(strings.Compare(a.At.Filename, b.At.Filename), cmp.Compare(a.At.Line, b.At.Line), strings.Compare(a.Rule, b.Rule))
	})
	return found, nil
}

// count returns the number of findings of a package for each rule.
func (f findings) count(pkg string) map[string]int {
	counts := map[string]int{}
	for _, one := range f[pkg] {
		counts[one.Rule]++
	}
	return counts
}

// listFindings prints the findings of the named packages.
func listFindings(out io.Writer, found findings, packages []string) error {
	total := 0
	for _, name := range packages {
		for _, f := range found[path.Clean(filepath.ToSlash(name))] {
			total++
			fmt.Fprintf(out, "%s:%d: %s: %s\n", f.At.Filename, f.At.Line, f.Rule, f.Text)
		}
	}
	_, err := fmt.Fprintf(out, "%d findings\n", total)
	return err
}

// Allowed is the number of findings that a package may have, by package and rule.
type allowed map[string]map[string]int

// readAllowed reads the allow-list: lines of a package, a rule and a number.
func readAllowed(file string) (allowed, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	list := allowed{}
	for i, line := range strings.Split(string(text), "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) != 3 || !slices.Contains(rules, fields[1]) {
			return nil, fmt.Errorf("%s:%d: want a package, a rule (%s) and a number", file, i+1, strings.Join(rules, ", "))
		}
		number, err := strconv.Atoi(fields[2])
		if err != nil || number < 0 {
			return nil, fmt.Errorf("%s:%d: %q is not a number of findings", file, i+1, fields[2])
		}
		if list[fields[0]] == nil {
			list[fields[0]] = map[string]int{}
		}
		list[fields[0]][fields[1]] = number
	}
	return list, nil
}

// lowerAllowed returns the list with every number at what was found, where that is less.
func lowerAllowed(list allowed, found findings) allowed {
	lowered := allowed{}
	for pkg, numbers := range list {
		counts := found.count(pkg)
		lowered[pkg] = map[string]int{}
		for rule, number := range numbers {
			lowered[pkg][rule] = min(number, counts[rule])
		}
	}
	return lowered
}

// writeAllowed writes the list, without zeros, in order.
func writeAllowed(file string, list allowed) error {
	var text strings.Builder
	text.WriteString("# How many findings of scripts/prose each package may have. The numbers may only shrink:\n# scripts/prose -update lowers them.\n")
	for _, pkg := range slices.Sorted(maps.Keys(list)) {
		for _, rule := range rules {
			if number := list[pkg][rule]; number > 0 {
				fmt.Fprintf(&text, "%s %s %d\n", pkg, rule, number)
			}
		}
	}
	return os.WriteFile(file, []byte(text.String()), 0o644)
}

// compareWithAllowed prints every package that differs from the list and returns an error
// if one does.
func compareWithAllowed(out io.Writer, list allowed, found findings) error {
	packages := slices.Sorted(maps.Keys(list))
	for pkg := range found {
		if list[pkg] == nil {
			packages = append(packages, pkg)
		}
	}
	slices.Sort(packages)
	more, fewer := 0, 0
	for _, pkg := range packages {
		counts := found.count(pkg)
		for _, rule := range rules {
			switch have, may := counts[rule], list[pkg][rule]; {
			case have > may:
				more++
				fmt.Fprintf(out, "%s: %s: %d findings, %d allowed: scripts/prose ./%s lists them\n", pkg, rule, have, may, pkg)
			case have < may:
				fewer++
				fmt.Fprintf(out, "%s: %s: %d findings, %d allowed: scripts/prose -update lowers the number\n", pkg, rule, have, may)
			}
		}
	}
	if more+fewer > 0 {
		return fmt.Errorf("%d numbers are too high and %d can be lowered in internal/prose/allowed.txt", more, fewer)
	}
	return nil
}
