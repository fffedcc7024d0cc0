package snippets

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
)

// Names holds a module's exported names and tests.
type Names struct {
	declared map[string]bool     // "package.Name", and "Name"
	members  map[string]bool     // "Type.Member" of fields and methods, and "Member"
	types    map[string]bool     // "Type"
	embedded map[string][]string // by type, the names of its embedded types
	packages map[string]bool     // names of the module's packages
	foreign  map[string]bool     // names of imported packages outside the module
}

// ReadNames returns the exported names and the tests of all packages below root except main and internal packages. It
// parses files without checking types.
func ReadNames(root string) (*Names, error) {
	n := &Names{
		declared: map[string]bool{}, members: map[string]bool{}, types: map[string]bool{}, embedded: map[string][]string{},
		packages: map[string]bool{}, foreign: map[string]bool{},
	}
	module, err := modulePath(root)
	if err != nil {
		return nil, err
	}
	return n, filepath.WalkDir(root, func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if at != root && isForeign(at) {
				return filepath.SkipDir
			}
			return nil
		}
		switch {
		case strings.HasSuffix(at, "_test.go"):
			return n.addTests(at)
		case filepath.Ext(at) != ".go":
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), at, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		n.addImports(module, file)
		if file.Name.Name != "main" && !strings.Contains(filepath.ToSlash(at), "internal/") {
			n.addFile(file)
		}
		return nil
	})
}

var testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)\w+)\(`)

// addTests adds the names of a file's tests.
func (n *Names) addTests(file string) error {
	text, err := os.ReadFile(file)
	for _, found := range testFunc.FindAllSubmatch(text, -1) {
		n.declared[string(found[1])] = true
	}
	return err
}

// modulePath returns the module path in a folder's go.mod.
func modulePath(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return "", err
	}
	if found := moduleLine.FindSubmatch(text); found != nil {
		return string(found[1]), nil
	}
	return "", fmt.Errorf("%s: no module line", filepath.Join(dir, "go.mod"))
}

var (
	moduleLine = regexp.MustCompile(`(?m)^module (\S+)`)
	major      = regexp.MustCompile(`/v\d+$`)
)

func (n *Names) addImports(module string, file *ast.File) {
	for _, one := range file.Imports {
		if name := strings.Trim(one.Path.Value, `"`); name != module && !strings.HasPrefix(name, module+"/") {
			n.foreign[path.Base(major.ReplaceAllString(name, ""))] = true
		}
	}
}

func (n *Names) addFile(file *ast.File) {
	pkg := file.Name.Name
	n.packages[pkg] = true
	declare := func(name *ast.Ident) {
		if name.IsExported() {
			n.declared[pkg+"."+name.Name], n.declared[name.Name] = true, true
		}
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil {
				declare(decl.Name)
			} else {
				n.addMember(typeName(decl.Recv.List[0].Type), decl.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					declare(spec.Name)
					n.types[spec.Name.Name] = spec.Name.IsExported()
					n.addType(spec.Name.Name, spec.Type)
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						declare(name)
					}
				}
			}
		}
	}
}

// addType adds a type's fields or methods.
func (n *Names) addType(name string, form ast.Expr) {
	var fields *ast.FieldList
	switch form := form.(type) {
	case *ast.StructType:
		fields = form.Fields
	case *ast.InterfaceType:
		fields = form.Methods
	default:
		if other := typeName(form); other != "" { // an alias, or the same fields under another name
			n.embedded[name] = append(n.embedded[name], other)
		}
		return
	}
	for _, field := range fields.List {
		for _, member := range field.Names {
			n.addMember(name, member.Name)
			if inner, ok := field.Type.(*ast.StructType); ok {
				n.addType(member.Name, inner)
			}
		}
		if len(field.Names) == 0 {
			other := typeName(field.Type)
			n.addMember(name, other)
			n.embedded[name] = append(n.embedded[name], other)
		}
	}
}

func (n *Names) addMember(of, name string) { n.members[of+"."+name], n.members[name] = true, true }

// typeName returns a type's name without its package, pointer and parameters.
func typeName(form ast.Expr) string {
	switch form := form.(type) {
	case *ast.Ident:
		return form.Name
	case *ast.StarExpr:
		return typeName(form.X)
	case *ast.SelectorExpr:
		return form.Sel.Name
	case *ast.IndexExpr:
		return typeName(form.X)
	case *ast.IndexListExpr:
		return typeName(form.X)
	}
	return ""
}

// hasMember reports whether a type with the given name, in any package, has the field or method. It follows a few
// levels of embedding.
func (n *Names) hasMember(of, name string, depth int) bool {
	if n.members[of+"."+name] {
		return true
	}
	for _, other := range n.embedded[of] {
		if depth < 4 && n.hasMember(other, name, depth+1) {
			return true
		}
	}
	return false
}

var (
	quoted   = regexp.MustCompile(`"[^"]*"`)
	selector = regexp.MustCompile(`(^|[^\w./$-])([A-Za-z]\w*)((?:\.[A-Z]\w*)+)($|[^\w.-]|\.[^\w])`)
	chained  = regexp.MustCompile(`\)…?\.([A-Z]\w*)`)
	literal  = regexp.MustCompile(`\b([A-Z]\w*)\{([^{}]*)\}`)
	key      = regexp.MustCompile(`(?:^|,)\s*([A-Z]\w*)(?::|,|$)`)
	alone    = regexp.MustCompile(`^\*?([A-Z][a-z0-9]+[A-Z]\w*)(?:\(.*\)|\{.*\}|\[.*\])?$`)
)

// Missing returns the names in inline code that look like this module's names but do not exist. It looks at
// package.Name, Type.Member, variable.Member, keys of literals, and names of two words that stand alone.
func (n *Names) Missing(code string) []string {
	var missing []string
	code = quoted.ReplaceAllString(code, `""`)
	// A match consumes the character after it, which may begin the next match.
	for rest := code; ; {
		at := selector.FindStringSubmatchIndex(rest)
		if at == nil {
			break
		}
		first, names := rest[at[4]:at[5]], strings.Split(rest[at[6]+1:at[7]], ".")
		if lacks := n.missingIn(first, names); lacks != "" {
			missing = append(missing, lacks)
		}
		rest = rest[at[7]:]
	}
	for _, found := range chained.FindAllStringSubmatch(code, -1) {
		if !n.members[found[1]] {
			missing = append(missing, found[1])
		}
	}
	for _, found := range literal.FindAllStringSubmatch(code, -1) {
		for _, named := range key.FindAllStringSubmatch(found[2], -1) {
			if n.declared[found[1]] && !n.hasMember(found[1], named[1], 0) {
				missing = append(missing, found[1]+"."+named[1])
			}
		}
	}
	if found := alone.FindStringSubmatch(code); found != nil && !n.declared[found[1]] && !n.members[found[1]] {
		missing = append(missing, found[1])
	}
	return missing
}

// missingIn returns the first unknown name in a selector, or "".
func (n *Names) missingIn(first string, names []string) string {
	of, isType := first, n.types[first]
	switch {
	case n.packages[first] && n.declared[first+"."+names[0]]:
		of, isType, names = names[0], n.types[names[0]], names[1:]
	case n.foreign[first]:
		return ""
	case n.packages[first]:
		return first + "." + names[0]
	case isShout(first) || !unicode.IsUpper(rune(first[0])) && isShout(names[0]): // a placeholder
		return ""
	}
	for _, name := range names {
		if isType && !n.hasMember(of, name, 0) || !n.members[name] {
			return of + "." + name
		}
		of, isType = name, false // the type's name may differ
	}
	return ""
}

// isShout reports whether a name has no lowercase letter.
func isShout(name string) bool { return strings.ToUpper(name) == name && len(name) > 1 }
