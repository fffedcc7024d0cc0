package policies

import (
	"context"
	"fmt"
	"strings"
)

// Engine is a program that decides calls by rules.
type Engine struct {
	// Name is the name of the engine in tables.
	Name string
	// Text returns the hundred rules in the language of the engine.
	Text func() []byte
	// Load parses such a text and returns a Decider.
	Load func(ctx context.Context, text []byte) (Decider, error)
}

// Engines returns the engines to measure, Grapnel first.
func Engines() []Engine {
	return []Engine{
		{Name: "grapnel", Text: grapnelText, Load: loadGrapnel},
		{Name: "opa", Text: opaText, Load: loadOPA},
		{Name: "cedar", Text: cedarText, Load: loadCedar},
	}
}

// Call is a call by the model: a tool, and its arguments as the JSON text that the model wrote.
type Call struct{ Tool, Arguments string }

// Decider decides calls.
type Decider interface {
	// Decide returns the rule that denies a call, the first one if several do. It returns the empty string if the
	// call may run. Decide includes parsing the arguments.
	Decide(ctx context.Context, c Call) (rule string, err error)
}

// Reader is a Decider that can parse a call beforehand, so that the decision alone can be measured.
type Reader interface {
	// Read parses a call and returns a function that decides it.
	Read(c Call) (decide func(ctx context.Context) (rule string, err error), err error)
}

// The rules: ten for each of ten tools. Rule i is for the tool i/10, and denies a call
// whose n is i and whose path begins with /etc, or whose n is more than a thousand.
const (
	rules   = 100
	perTool = 10
	limit   = 1000
)

// write returns a text that consists of a beginning and the text of each rule for its tool.
func write(beginning string, rule func(id, tool string, i int) string) []byte {
	var b strings.Builder
	b.WriteString(beginning)
	for i := range rules {
		b.WriteString(rule(fmt.Sprintf("r%d", i), toolName(i/perTool), i))
	}
	return []byte(b.String())
}

func toolName(i int) string { return fmt.Sprintf("tool%d", i) }
