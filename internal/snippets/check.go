package snippets

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// Report is the result of Check.
type Report struct {
	Go     []Block // blocks that were checked
	Text   []Block // blocks that are not Go
	Errors []error // each with file, line and the compiler's message
}

// Check type-checks the Go blocks. The prelude contains Go declarations for names that snippets leave to the reader;
// every block can use them. Unused variables are not errors.
func (p *Packages) Check(prelude string, blocks []Block) Report {
	c := checker{packages: p, fset: p.fset}
	given := c.checkBlock(Block{File: "prelude.go", Line: 1, Lang: "go", Text: prelude}, nil)
	c.Go = nil // the prelude is not a snippet
	var seen []types.Object
	for i, b := range blocks {
		if i == 0 || b.File != blocks[i-1].File || b.Page != blocks[i-1].Page {
			seen = given
		}
		seen = c.checkBlock(b, seen)
	}
	return c.Report
}

// checker holds the data that the blocks on all pages share.
type checker struct {
	Report

	packages *Packages
	fset     *token.FileSet
}

// checkBlock type-checks one block, which can use the objects in seen. It returns the objects that the page's next
// block can use.
func (c *checker) checkBlock(b Block, seen []types.Object) []types.Object {
	file, kind, err := b.parse(c.fset)
	switch {
	case err != nil:
		c.Errors = append(c.Errors, err)
		return seen
	case kind == plainText:
		c.Text = append(c.Text, b)
		return seen
	}
	c.Go = append(c.Go, b)
	pkg := types.NewPackage(c.packages.module+"/snippet", file.Name.Name)
	if kind != wholeFile {
		c.declare(pkg, file, b, seen)
	}
	if kind == statements {
		giveUpReturns(file)
	}
	info := types.Info{Scopes: map[ast.Node]*types.Scope{}}
	config := types.Config{Importer: c.packages, Error: func(err error) {
		if e, ok := errors.AsType[types.Error](err); ok && !strings.HasPrefix(e.Msg, "declared and not used") {
			at := c.fset.Position(e.Pos)
			c.Errors = append(c.Errors, fmt.Errorf("%s:%d: %s", at.Filename, at.Line, strings.TrimSpace(e.Msg)))
		}
	}}
	_ = types.NewChecker(&config, c.fset, pkg, &info).Files([]*ast.File{file}) // config.Error has received all errors
	return append(slices.Clip(seen), newObjects(file, kind, pkg, &info)...)
}

// declare adds the objects that a block may use to the package scope: packages by their names, and earlier objects,
// which take precedence. It skips names that the block declares itself.
func (c *checker) declare(pkg *types.Package, file *ast.File, b Block, seen []types.Object) {
	names := map[string]types.Object{"_return": returnAnything(pkg)}
	ast.Inspect(file, func(n ast.Node) bool {
		selector, _ := n.(*ast.SelectorExpr)
		if selector == nil {
			return true
		}
		if x, ok := selector.X.(*ast.Ident); ok && names[x.Name] == nil {
			names[x.Name] = c.packageNamed(x, pkg, b)
		}
		return true
	})
	for _, o := range seen {
		names[o.Name()] = o
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil {
				delete(names, decl.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					delete(names, spec.Name.Name)
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						delete(names, name.Name)
					}
				}
			}
		}
	}
	for name, o := range names {
		if o != nil && name != "_" {
			pkg.Scope().Insert(o)
		}
	}
}

// packageNamed returns the package to which a name in the block refers, or nil.
func (c *checker) packageNamed(x *ast.Ident, pkg *types.Package, b Block) types.Object {
	importPath, err := c.packages.resolve(x.Name, b.File)
	var found *types.Package
	if err == nil && importPath != "" {
		found, err = c.packages.Import(importPath)
	}
	if err != nil {
		c.Errors = append(c.Errors, fmt.Errorf("%s:%d: %w", b.File, c.fset.Position(x.Pos()).Line, err))
	}
	if found == nil {
		return nil
	}
	return types.NewPkgName(token.NoPos, pkg, x.Name, found)
}

// returnAnything returns the function that replaces return in statements.
func returnAnything(pkg *types.Package) types.Object {
	arg := types.NewParam(token.NoPos, pkg, "", types.NewSlice(types.NewInterfaceType(nil, nil)))
	return types.NewFunc(token.NoPos, pkg, "_return", types.NewSignatureType(nil, nil, nil, types.NewTuple(arg), nil, true))
}

// newObjects returns the objects that a block declares for later blocks.
func newObjects(file *ast.File, kind form, pkg *types.Package, info *types.Info) []types.Object {
	var objects []types.Object
	scope := pkg.Scope()
	if kind == statements {
		scope = info.Scopes[aroundStatements(file).Type]
	}
	for _, name := range scope.Names() {
		if o := scope.Lookup(name); kind == statements || o.Pos().IsValid() && o.Pkg() == pkg {
			objects = append(objects, o)
		}
	}
	return objects
}
