package grapnel_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var textBlock = regexp.MustCompile("(?s)```text\n(.*?)```")

// readBlocks returns the lines of each block of text in a section of ARCHITECTURE.md.
func readBlocks(t *testing.T, section string) (blocks [][]string) {
	t.Helper()
	page, err := os.ReadFile("ARCHITECTURE.md")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(page), "\n## "+section+"\n")
	require.True(t, found, "ARCHITECTURE.md has no section %q", section)
	text, _, _ := strings.Cut(after, "\n## ")
	for _, m := range textBlock.FindAllStringSubmatch(text, -1) {
		blocks = append(blocks, strings.Split(strings.TrimSpace(m[1]), "\n"))
	}
	return blocks
}

// indentOf returns the number of levels by which a line is indented.
func indentOf(line string) int { return (len(line) - len(strings.TrimLeft(line, " "))) / 2 }

func TestArchitectureNamesEveryPackage(t *testing.T) {
	blocks := readBlocks(t, "Packages")
	require.Len(t, blocks, 1)
	layerAt, number := map[string]int{}, 0
	for _, line := range blocks[0] {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case indentOf(line) == 0:
			number++
		default:
			assert.NotContains(t, layerAt, words[0], "ARCHITECTURE.md lists a package twice")
			assert.Greater(t, len(words), 1, "package %q has no purpose in ARCHITECTURE.md", words[0])
			layerAt[words[0]] = number
		}
	}
	packages, exist := listPackages(t), map[string]bool{}
	for _, p := range ours(packages) {
		if p.rel() == "" || strings.HasPrefix(p.rel(), "examples/") {
			continue
		}
		exist[p.rel()] = true
		if !assert.NotZero(t, layerAt[p.rel()], "package %q is not in ARCHITECTURE.md: add a line with its purpose", p.rel()) {
			continue
		}
		for _, path := range p.Imports {
			if below := packages[path]; below.isOurs() {
				assert.LessOrEqual(t, layerAt[below.rel()], layerAt[p.rel()],
					"package %q imports %q, which is in a higher layer of ARCHITECTURE.md", p.rel(), below.rel())
			}
		}
	}
	for name := range layerAt {
		assert.True(t, exist[name], "ARCHITECTURE.md lists %q, which is no package", name)
	}
}

func TestArchitectureWalksAreTrue(t *testing.T) {
	walks := readBlocks(t, "Six walks")
	require.Len(t, walks, 6)
	files := map[string]map[string]*ast.FuncDecl{}
	for _, walk := range walks {
		assert.Greater(t, len(walk), 8, "lines in the walk from %s", walk[0])
		var above []*ast.FuncDecl // the last function at each level
		for _, line := range walk {
			place, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			path, name, _ := strings.Cut(place, ":")
			if files[path] == nil {
				files[path] = functionsIn(t, path)
			}
			fn, depth := files[path][name], indentOf(line)
			if !assert.NotNil(t, fn, "%s does not exist: correct the walk in ARCHITECTURE.md", place) {
				return
			}
			require.LessOrEqual(t, depth, len(above), "%s is indented by more than one level", place)
			if depth > 0 {
				caller := above[depth-1]
				assert.True(t, mentions(caller, fn.Name.Name), "%s does not call %s: correct the walk in ARCHITECTURE.md", caller.Name.Name, place)
			}
			above = append(above[:depth], fn)
		}
	}
}

// functionsIn returns the functions in a file by name, methods as Type.Method.
func functionsIn(t *testing.T, path string) map[string]*ast.FuncDecl {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	functions := map[string]*ast.FuncDecl{}
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		name := fn.Name.Name
		if fn.Recv != nil {
			name = receiverOf(fn) + "." + name
		}
		functions[name] = fn
	}
	return functions
}

// receiverOf returns the type name of a method's receiver.
func receiverOf(fn *ast.FuncDecl) (name string) {
	ast.Inspect(fn.Recv.List[0].Type, func(n ast.Node) bool {
		if ident, ok := n.(*ast.Ident); ok && name == "" {
			name = ident.Name
		}
		return name == ""
	})
	return name
}

// mentions reports whether the body of a function names another function.
func mentions(fn *ast.FuncDecl, name string) bool {
	found := false
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		ident, ok := n.(*ast.Ident)
		found = found || ok && ident.Name == name
		return !found
	})
	return found
}

func TestFalseCallsAreFound(t *testing.T) {
	functions := functionsIn(t, "architecture_test.go")
	assert.True(t, mentions(functions["functionsIn"], "receiverOf"))
	assert.False(t, mentions(functions["receiverOf"], "functionsIn"))
}
