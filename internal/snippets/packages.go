package snippets

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Packages holds the packages that code blocks can import. The module's packages are read from source without
// function bodies, so that a change in one of them rebuilds nothing; others come from export data in the build cache.
type Packages struct {
	module string // path of the blocks' module
	fset   *token.FileSet
	byPath map[string]*listed
	byName map[string][]*listed
	export types.Importer // for packages outside the module
}

// listed is the part of go list's output for one package that the checker needs.
type listed struct {
	ImportPath string     `json:"ImportPath"`
	Name       string     `json:"Name"`
	Dir        string     `json:"Dir"`
	GoFiles    []string   `json:"GoFiles"`
	Imports    []string   `json:"Imports"`
	Standard   bool       `json:"Standard"`
	Export     string     `json:"Export"` // the file with the compiler's export data
	Module     fromModule `json:"Module"`

	checked *types.Package // the checked package, if it belongs to the module and was imported
}

type fromModule struct {
	Path     string `json:"Path"`
	Main     bool   `json:"Main"`
	Indirect bool   `json:"Indirect"`
}

// List returns the packages that match the patterns, with all their dependencies. The patterns can also name packages of
// modules that the module in dir requires. It builds dependencies that are not in the build cache.
func List(ctx context.Context, dir string, patterns ...string) (*Packages, error) {
	given, err := runList(ctx, dir, append([]string{"-json=ImportPath,Name,Dir,GoFiles,Imports,Module"}, patterns...))
	if err != nil {
		return nil, err
	}
	var ours []*listed
	isOurs, others := map[string]bool{}, map[string]bool{}
	for _, one := range given {
		if !one.Module.Main {
			others[one.ImportPath] = true
			continue
		}
		isOurs[one.ImportPath] = true
		ours = append(ours, one)
	}
	for _, one := range ours {
		for _, imported := range one.Imports {
			if !isOurs[imported] && imported != "unsafe" && imported != "C" {
				others[imported] = true
			}
		}
	}
	args := []string{"-export", "-deps", "-json=ImportPath,Name,Standard,Export,Module", "--"}
	theirs, err := runList(ctx, dir, append(args, slices.Sorted(maps.Keys(others))...))
	if err != nil {
		return nil, err
	}
	p := &Packages{fset: token.NewFileSet(), byPath: map[string]*listed{}, byName: map[string][]*listed{}}
	p.export = importer.ForCompiler(p.fset, "gc", p.openExport)
	for _, one := range slices.Concat(ours, theirs) {
		if one.Module.Main {
			p.module = one.Module.Path
		}
		p.byPath[one.ImportPath] = one
		p.byName[one.Name] = append(p.byName[one.Name], one)
	}
	return p, nil
}

// runList runs go list and returns its output.
func runList(ctx context.Context, dir string, args []string) ([]*listed, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list"}, args...)...) //nolint:gosec // the arguments are package paths
	cmd.Dir = dir
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("list packages: %s", exit.Stderr)
	}
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	var packages []*listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		one := new(listed)
		if err := dec.Decode(one); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("list packages: %w", err)
		}
		packages = append(packages, one)
	}
}

// Import returns the package with the import path.
func (p *Packages) Import(importPath string) (*types.Package, error) {
	one := p.byPath[importPath]
	switch {
	case one == nil || !one.Module.Main:
		return p.export.Import(importPath)
	case one.checked != nil:
		return one.checked, nil
	}
	var files []*ast.File
	for _, name := range one.GoFiles {
		file, err := parser.ParseFile(p.fset, filepath.Join(one.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	config := types.Config{Importer: p, IgnoreFuncBodies: true, Sizes: types.SizesFor("gc", "amd64")}
	checked, err := config.Check(importPath, p.fset, files, nil)
	if err != nil {
		return nil, err
	}
	one.checked = checked
	return checked, nil
}

// openExport returns a package's export data.
func (p *Packages) openExport(importPath string) (io.ReadCloser, error) {
	if one := p.byPath[importPath]; one != nil && one.Export != "" {
		return os.Open(one.Export)
	}
	return nil, fmt.Errorf("no package %q in the module and its dependencies", importPath)
}

// resolve returns the import path for a package name in a file's block, and "" for an unknown name. It returns an
// error if the name is ambiguous.
func (p *Packages) resolve(name, file string) (string, error) {
	var ours, standard, direct []string
	for _, one := range p.byName[name] {
		switch {
		case !canImport(path.Join(p.module, path.Dir(file)), one.ImportPath):
		case one.Module.Main:
			ours = append(ours, one.ImportPath)
		case one.Standard:
			standard = append(standard, one.ImportPath)
		case !one.Module.Indirect:
			direct = append(direct, one.ImportPath)
		}
	}
	for _, found := range [][]string{ours, standard, direct} {
		switch len(found) {
		case 0:
		case 1:
			return found[0], nil
		default:
			return "", fmt.Errorf("%s is ambiguous, it may be any of %s: show a whole file with its imports", name, strings.Join(found, ", "))
		}
	}
	return "", nil
}

// canImport reports whether the go command's rules for internal and vendor folders allow an import.
func canImport(from, importPath string) bool {
	if strings.HasPrefix(importPath, "vendor/") {
		return false
	}
	i := strings.LastIndex("/"+importPath+"/", "/internal/")
	if i < 0 {
		return true
	}
	parent := strings.TrimSuffix(importPath[:i], "/")
	return parent != "" && (from == parent || strings.HasPrefix(from, parent+"/"))
}
