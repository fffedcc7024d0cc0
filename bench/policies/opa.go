package policies

import (
	"context"
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
)

// opaText has two Rego rules for each rule, because that is how Rego expresses "or". They begin with the tool, so
// that OPA can index them by it.
func opaText() []byte {
	return write(fmt.Sprintf("package hundred\n\nlimit := %d\n", limit), func(id, tool string, i int) string {
		return fmt.Sprintf(`
deny contains %[1]q if {
	input.tool == %[2]q
	input.args.n == %[3]d
	startswith(input.args.path, "/etc")
}

deny contains %[1]q if {
	input.tool == %[2]q
	input.args.n > limit
}
`, id, tool, i)
	})
}

// opa decides with a prepared query.
type opa struct{ query rego.PreparedEvalQuery }

func loadOPA(ctx context.Context, text []byte) (Decider, error) {
	q, err := rego.New(rego.Query("data.hundred.deny"), rego.Module("hundred.rego", string(text))).PrepareForEval(ctx)
	if err != nil {
		return nil, err
	}
	return opa{q}, nil
}

func (o opa) Decide(ctx context.Context, c Call) (string, error) {
	input, err := o.input(c)
	if err != nil {
		return "", err
	}
	return o.judge(ctx, input)
}

func (o opa) Read(c Call) (func(context.Context) (string, error), error) {
	input, err := o.input(c)
	return func(ctx context.Context) (string, error) { return o.judge(ctx, input) }, err
}

func (opa) input(c Call) (ast.Value, error) {
	args, err := ast.ValueFromReader(strings.NewReader(c.Arguments))
	if err != nil {
		return nil, err
	}
	return ast.NewObject(ast.Item(ast.StringTerm("tool"), ast.StringTerm(c.Tool)), ast.Item(ast.StringTerm("args"), ast.NewTerm(args))), nil
}

func (o opa) judge(ctx context.Context, input ast.Value) (string, error) {
	results, err := o.query.Eval(ctx, rego.EvalParsedInput(input))
	if err != nil {
		return "", err
	}
	if len(results) != 1 {
		return "", fmt.Errorf("asking for the denials: %d results instead of one", len(results))
	}
	deniers, ok := results[0].Expressions[0].Value.([]any)
	if !ok {
		return "", fmt.Errorf("asking for the denials: a %T instead of a set", results[0].Expressions[0].Value)
	}
	if len(deniers) == 0 {
		return "", nil
	}
	return fmt.Sprint(deniers[0]), nil // a set is sorted
}
