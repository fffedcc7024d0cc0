package snippets

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"regexp"
	"strings"
)

// form is the kind of a block.
type form int

const (
	plainText form = iota // not Go
	wholeFile
	declarations
	statements
)

// onlyGo matches Go syntax that shell, YAML, JSON and tables do not have.
var onlyGo = regexp.MustCompile(`(?m):=|\bfunc\b ?[(\w]|\{[ \t]*$|err != nil|^[ \t]*(return|defer|var|package) |\b[a-z]\w*\.[A-Z]\w*[({]`)

// parse returns the block as a Go file, and its form. It returns an error with file and line if the block must be Go
// but does not parse.
func (b Block) parse(fset *token.FileSet) (*ast.File, form, error) {
	if b.Lang != "" && b.Lang != "go" {
		return nil, plainText, nil
	}
	var errs []error
	// The //line comment makes all positions relative to the page.
	line := fmt.Sprintf("\n//line %s:%d\n", b.File, b.Line)
	for _, try := range []struct {
		form
		text string
	}{
		{statements, "package snippet; func _() {" + line + b.Text + "\n}"},
		{declarations, "package snippet" + line + b.Text},
		{wholeFile, line + b.Text},
	} {
		file, err := parser.ParseFile(fset, "", try.text, parser.SkipObjectResolution)
		switch {
		case err != nil:
			errs = append(errs, err)
		case try.form == statements && (len(file.Decls) > 1 || b.Lang == "" && !doesSomething(file)):
		default:
			return file, try.form, nil
		}
	}
	if b.Lang == "go" || onlyGo.MatchString(b.Text) {
		return nil, plainText, b.farthestError(errs)
	}
	return nil, plainText, nil
}

// doesSomething reports whether statements are more than names and operators, which other notations also have.
func doesSomething(file *ast.File) bool {
	found := false
	ast.Inspect(file, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.BlockStmt, *ast.ExprStmt, *ast.EmptyStmt, *ast.LabeledStmt:
		case *ast.CallExpr, *ast.CompositeLit, ast.Stmt:
			found = true
		}
		return !found
	})
	return found
}

// farthestError returns the first syntax error of the attempt that parsed most of the block. An error behind the
// block is reported at the block's last line.
func (b Block) farthestError(errs []error) error {
	var best *scanner.Error
	for _, err := range errs {
		var list scanner.ErrorList
		if errors.As(err, &list) && len(list) > 0 && (best == nil || list[0].Pos.Line > best.Pos.Line) {
			best = list[0]
		}
	}
	if best == nil {
		return errors.Join(errs...)
	}
	last := b.Line + strings.Count(strings.TrimRight(b.Text, "\n"), "\n")
	return fmt.Errorf("%s:%d: %s", b.File, min(best.Pos.Line, last), best.Msg)
}

// aroundStatements returns the function that wraps statements.
func aroundStatements(file *ast.File) *ast.FuncDecl {
	return file.Decls[0].(*ast.FuncDecl) //nolint:forcetypeassert // parse wrote it
}

// giveUpReturns turns returns from the wrapper function into calls that accept any arguments, because the wrapper's
// result types are unknown.
func giveUpReturns(file *ast.File) {
	replace := func(list []ast.Stmt) {
		for i, s := range list {
			if r, ok := s.(*ast.ReturnStmt); ok && len(r.Results) > 0 {
				call := &ast.CallExpr{Fun: &ast.Ident{Name: "_return", NamePos: r.Pos()}, Lparen: r.Pos(), Args: r.Results, Rparen: r.End()}
				list[i] = &ast.ExprStmt{X: call}
			}
		}
	}
	ast.Inspect(aroundStatements(file).Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.BlockStmt:
			replace(n.List)
		case *ast.CaseClause:
			replace(n.Body)
		case *ast.CommClause:
			replace(n.Body)
		}
		return true
	})
}
