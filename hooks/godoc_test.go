package hooks_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/hooks"
)

// go doc lists all methods of a context at its type, also those that every context has.
func TestContextsAreDocumented(t *testing.T) {
	of := documentedTypes(t)
	for _, c := range []reflect.Type{
		reflect.TypeFor[hooks.InputContext](), reflect.TypeFor[hooks.ExecutionContext](), reflect.TypeFor[hooks.StepContext](),
		reflect.TypeFor[hooks.StepEndContext](), reflect.TypeFor[hooks.InferenceContext](), reflect.TypeFor[hooks.ReplyContext](),
		reflect.TypeFor[hooks.ToolContext](), reflect.TypeFor[hooks.ToolResultContext](), reflect.TypeFor[hooks.ToolFailureContext](),
		reflect.TypeFor[hooks.InterventionContext](), reflect.TypeFor[hooks.InterventionResolvedContext](),
		reflect.TypeFor[hooks.InterventionStoppedContext](), reflect.TypeFor[hooks.PreCompactContext](), reflect.TypeFor[hooks.PostCompactContext](),
		reflect.TypeFor[hooks.CompactFailedContext](), reflect.TypeFor[hooks.PreSubagentContext](), reflect.TypeFor[hooks.PostSubagentContext](),
		reflect.TypeFor[hooks.SubagentFailedContext](), reflect.TypeFor[hooks.StopContext](), reflect.TypeFor[hooks.FailureContext](),
		reflect.TypeFor[hooks.EndContext](), reflect.TypeFor[hooks.RunStartContext](), reflect.TypeFor[hooks.RunResultContext](),
		reflect.TypeFor[hooks.RunFailedContext](), reflect.TypeFor[hooks.RunEndContext](), reflect.TypeFor[hooks.PipelineContext](),
		reflect.TypeFor[hooks.PipelineEndContext](), reflect.TypeFor[hooks.ConversationContext](), reflect.TypeFor[hooks.ConversationEndContext](),
	} {
		listed := map[string]string{}
		require.Contains(t, of, c.Name())
		for _, method := range of[c.Name()].Methods {
			listed[method.Name] = method.Doc
		}
		for method := range c.Methods() {
			if method.IsExported() {
				assert.NotEmpty(t, listed[method.Name], "go doc hooks.%s.%s", c.Name(), method.Name)
			}
		}
		delete(of, c.Name())
	}
	for name := range of {
		assert.False(t, token.IsExported(name) && strings.HasSuffix(name, "Context") && name != "Context", "%s is not in the list of this test", name)
	}
}

// documentedTypes returns the exported types of the package as go doc shows them.
func documentedTypes(t *testing.T) map[string]*doc.Type {
	t.Helper()
	names, err := fs.Glob(os.DirFS("."), "*.go")
	require.NoError(t, err)
	files := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, name, nil, parser.ParseComments)
		require.NoError(t, err)
		parsed = append(parsed, file)
	}
	shown, err := doc.NewFromFiles(files, parsed, "github.com/grapnel-go/grapnel/hooks", doc.AllDecls) // the mode of go doc
	require.NoError(t, err)
	types := map[string]*doc.Type{}
	for _, one := range shown.Types {
		types[one.Name] = one
	}
	return types
}
