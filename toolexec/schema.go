package toolexec

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// Schema is the JSON Schema of a tool's arguments. The model sees it, and arguments are checked against it. Create one
// with CompileSchema from text or with SchemaFor from a Go type. It is immutable and safe for concurrent use.
type Schema struct {
	text     string
	document map[string]any // the decoded text
	compiled *jsonschema.Schema
}

// schemaURL is the document's name for the schema library. It is never loaded from a network or a file.
const schemaURL = "arguments:///schema.json"

// CompileSchema compiles the JSON Schema of a tool's arguments. The draft is 2020-12, or the one in $schema (draft-07
// is the other common one). The schema must describe an object. References can only lead into the document itself or to
// the standard meta-schemas: no other document is loaded. Patterns are Go regular expressions, without look-around and
// back-references. Formats are checked only if the draft requires it (draft-07).
func CompileSchema(raw string) (*Schema, error) {
	s := &Schema{}
	if err := s.compile(raw); err != nil {
		return nil, fmt.Errorf("compiling schema: %w", err)
	}
	return s, nil
}

func (s *Schema) compile(raw string) error {
	var document any
	err := strictjson.Unmarshal(raw, &document)
	if err != nil {
		return err
	}
	object, ok := document.(map[string]any)
	if !ok {
		return fmt.Errorf("expected a schema object, got %s", describeValue(document))
	}
	s.document = object
	if s.text, err = strictjson.Compact(raw); err != nil {
		return err
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.UseLoader(noLoader{})
	compiler.UseRegexpEngine(compileRegexp)
	if err := compiler.AddResource(schemaURL, document); err != nil {
		return err
	}
	if s.compiled, err = compiler.Compile(schemaURL); err != nil {
		return explainCompile(document, err)
	}
	if types := s.compiled.Types; types != nil && !types.IsEmpty() && !mayBe(types, "object") {
		return fmt.Errorf("arguments must be an object, but the schema is for %s", orList(types.ToStrings()))
	}
	return nil
}

// String returns the schema's JSON text without white space. Members keep their original order.
func (s *Schema) String() string { return s.text }

// MarshalJSON returns the text of String, so a Schema is encoded as the schema itself.
func (s *Schema) MarshalJSON() ([]byte, error) { return []byte(s.text), nil }

// Validate checks argument text. Empty text means {}. The error is an *agent.ArgumentsError: it says that the text is
// malformed, or lists the violations. A number without a fraction is an integer in every notation, also 10.0. A member
// whose name the schema has in another case is a violation even if the schema allows unnamed members. Some tools treat
// both names as the same, but a rule sees two names.
func (s *Schema) Validate(args string) error {
	if args == "" {
		args = "{}"
	}
	if err := strictjson.CheckObject(args); err != nil {
		return malformedArguments(err)
	}
	var value any
	if err := strictjson.Unmarshal(args, &value); err != nil {
		return malformedArguments(err)
	}
	var problems []agent.ArgumentProblem
	if invalid, ok := errors.AsType[*jsonschema.ValidationError](s.compiled.Validate(value)); ok {
		problems = describeViolations(s.document, value, invalid)
	}
	for _, p := range inOrder(otherCase(s.compiled, value, nil)) {
		if len(problems) < agent.MaxArgumentProblems && !slices.ContainsFunc(problems, func(told agent.ArgumentProblem) bool { return told.Path == p.Path }) {
			problems = append(problems, p)
		}
	}
	if len(problems) > 0 {
		return &agent.ArgumentsError{Problems: inOrder(problems)}
	}
	return nil
}

func malformedArguments(err error) error {
	return &agent.ArgumentsError{Malformed: true, Problems: []agent.ArgumentProblem{problemOf(err)}}
}

// problemOf converts a strictjson error to a problem.
func problemOf(err error) agent.ArgumentProblem {
	if at, ok := errors.AsType[*strictjson.Error](err); ok {
		return agent.ArgumentProblem{Path: at.Pointer, Message: at.Message}
	}
	return agent.ArgumentProblem{Message: err.Error()}
}

type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("references to other documents are not supported (%s): put the schema under $defs", url)
}

// compileRegexp compiles a pattern. For a pattern that Go does not support, it adds a hint to the error.
func compileRegexp(pattern string) (jsonschema.Regexp, error) {
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w (patterns are Go regular expressions)", pattern, err)
	}
	return compiled, nil
}

// explainCompile describes errors in a schema like errors in arguments.
func explainCompile(document any, err error) error {
	wrong, ok := errors.AsType[*jsonschema.SchemaValidationError](err)
	if !ok {
		return err
	}
	invalid, ok := errors.AsType[*jsonschema.ValidationError](wrong.Err)
	if !ok {
		return err
	}
	var all []error
	for _, problem := range describeViolations(nil, document, invalid) {
		all = append(all, errors.New(problem.String()))
	}
	return errors.Join(all...)
}

var _ json.Marshaler = (*Schema)(nil)
