package snippets

import (
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Block is a code block on a page.
type Block struct {
	File string // path relative to the root, with slashes
	Page int    // line at which the page begins; 1 for a Markdown file
	Line int    // line number of Text's first line
	Lang string // the language of a fenced block; otherwise ""
	Text string
}

// String returns the block's place and first line.
func (b Block) String() string {
	first, _, _ := strings.Cut(b.Text, "\n")
	return fmt.Sprintf("%s:%d: %s", b.File, b.Line, strings.TrimSpace(first))
}

// Find returns the code blocks in all Markdown files and doc comments below root, ordered by file and line. It skips
// tests, folders that the go command ignores, node_modules, and other modules.
func Find(root string) ([]Block, error) {
	var blocks []Block
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if path != root && isForeign(path) {
				return filepath.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		var found []Block
		switch {
		case filepath.Ext(path) == ".md":
			found, err = readMarkdown(path)
		case filepath.Ext(path) == ".go" && !strings.HasSuffix(path, "_test.go"):
			found, err = readComments(path)
		}
		for i := range found {
			found[i].File = filepath.ToSlash(rel)
		}
		blocks = append(blocks, found...)
		return err
	})
	return blocks, err
}

// isForeign reports whether the folder is outside this module's packages.
func isForeign(dir string) bool {
	name := filepath.Base(dir)
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil || name == "testdata" || name == "node_modules" || name[0] == '.' || name[0] == '_'
}

// readMarkdown returns a Markdown file's fenced blocks, and blocks that are indented by a tab or four spaces after an
// empty line.
func readMarkdown(path string) ([]Block, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var blocks []Block
	fence, isOpen, isEmpty := "", false, true // isOpen: the last block continues; isEmpty: the previous line is empty
	for i, line := range strings.Split(string(text), "\n") {
		trimmed := strings.TrimSpace(line)
		isIndented := strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t")
		switch {
		case fence != "" && strings.HasPrefix(trimmed, fence) && strings.Trim(trimmed, "`~") == "":
			fence, isOpen = "", false
		case fence != "" || isOpen && (isIndented || trimmed == ""):
			blocks[len(blocks)-1].Text += line + "\n"
		case strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~"):
			info := strings.TrimLeft(trimmed, trimmed[:1])
			fence = trimmed[:len(trimmed)-len(info)]
			lang, _, _ := strings.Cut(strings.TrimSpace(info), " ")
			lang = strings.ToLower(lang)
			if lang == "golang" {
				lang = "go"
			}
			blocks = append(blocks, Block{Page: 1, Line: i + 2, Lang: lang})
		case isIndented && isEmpty && trimmed != "":
			isOpen = true
			blocks = append(blocks, Block{Page: 1, Line: i + 1, Text: line + "\n"})
		default:
			isOpen = false
		}
		isEmpty = trimmed == ""
	}
	return blocks, nil
}

// readComments returns the code blocks in a Go file's doc comments.
func readComments(path string) ([]Block, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var blocks []Block
	for _, group := range docComments(file) {
		var lines []string // the group's lines without comment markers
		for _, c := range group.List {
			text := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(c.Text, "//"), "/*"), "*/")
			lines = append(lines, strings.Split(text, "\n")...)
		}
		page, at := fset.Position(group.Pos()).Line, 0
		for _, part := range new(comment.Parser).Parse(group.Text()).Content {
			code, ok := part.(*comment.Code)
			if !ok {
				continue
			}
			first, _, _ := strings.Cut(code.Text, "\n")
			at += max(0, slices.IndexFunc(lines[at:], func(line string) bool {
				return line != "" && (line[0] == ' ' || line[0] == '\t') && strings.TrimSpace(line) == strings.TrimSpace(first)
			}))
			blocks = append(blocks, Block{Page: page, Line: page + at, Text: code.Text})
			at += strings.Count(code.Text, "\n")
		}
	}
	return blocks, nil
}

// docComments returns the comments that document the package, a declaration, a field or a method, in file order.
func docComments(file *ast.File) []*ast.CommentGroup {
	var groups []*ast.CommentGroup
	ast.Inspect(file, func(n ast.Node) bool {
		var doc *ast.CommentGroup
		switch n := n.(type) {
		case *ast.File:
			doc = n.Doc
		case *ast.GenDecl:
			doc = n.Doc
		case *ast.FuncDecl:
			doc = n.Doc
		case *ast.TypeSpec:
			doc = n.Doc
		case *ast.ValueSpec:
			doc = n.Doc
		case *ast.Field:
			doc = n.Doc
		}
		if doc != nil {
			groups = append(groups, doc)
		}
		return true
	})
	return groups
}
