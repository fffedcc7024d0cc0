// Command crosscheck type-checks the module around it, tests included, for other systems:
//
//	go -C tools/crosscheck run . darwin/arm64 windows/amd64
//
// It compiles nothing, which "go vet" would do for each system: it reads the source of all dependencies, and skips the bodies of
// their functions.
package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"strings"

	"golang.org/x/sync/errgroup"
	"golang.org/x/tools/go/packages"
)

func main() {
	var group errgroup.Group
	for _, system := range os.Args[1:] {
		group.Go(func() error {
			if err := check(system); err != nil {
				return fmt.Errorf("on %s: %w", system, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		fmt.Fprintln(os.Stderr, "crosscheck:", err)
		os.Exit(1)
	}
}

// check type-checks the module for a system.
func check(system string) error {
	goos, goarch, _ := strings.Cut(system, "/")
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps | packages.NeedModule |
			packages.NeedTypesSizes,
		Dir:   "../..",
		Env:   append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0"),
		Tests: true,
	}, "./...")
	if err != nil {
		return err
	}
	var all []error
	files := token.NewFileSet()
	done := map[*packages.Package]*types.Package{}
	packages.Visit(loaded, nil, func(p *packages.Package) {
		for _, e := range p.Errors {
			all = append(all, e)
		}
		config := types.Config{
			Importer: importer(func(path string) (*types.Package, error) {
				if path == "unsafe" {
					return types.Unsafe, nil
				}
				return done[p.Imports[path]], nil
			}),
			Sizes:            p.TypesSizes,
			IgnoreFuncBodies: p.Module == nil || !p.Module.Main,
			Error:            func(err error) { all = append(all, err) },
		}
		if p.Module != nil && p.Module.GoVersion != "" {
			config.GoVersion = "go" + p.Module.GoVersion
		}
		var syntax []*ast.File
		for _, path := range p.CompiledGoFiles {
			file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				all = append(all, err)
				continue
			}
			syntax = append(syntax, file)
		}
		done[p], _ = config.Check(p.PkgPath, files, syntax, nil)
	})
	return errors.Join(all...)
}

// importer returns what a package imports.
type importer func(path string) (*types.Package, error)

// Import is [types.Importer].
func (i importer) Import(path string) (*types.Package, error) { return i(path) }
