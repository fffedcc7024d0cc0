package policies

import (
	"context"
	"fmt"
	"strings"
)

// Engine is a program that decides calls by rules.
type Engine struct {
	// Name is what tables call it.
	Name string
	// Text is the hundred rules in its language.
	Text func() []byte
	// Load reads such a text, and returns what is ready to decide.
	Load func(ctx context.Context, text []byte) (Decider, error)
}

// Engines returns those that are measured, ours first.
func Engines() []Engine {
	return []Engine{
		{Name: "grapnel", Text: grapnelText, Load: loadGrapnel},
		{Name: "opa", Text: opaText, Load: loadOPA},
		{Name: "cedar", Text: cedarText, Load: loadCedar},
	}
}

// Call is what a model asks for: a tool, and its arguments as the JSON text that the model wrote.
type Call struct{ Tool, Arguments string }

// Decider decides calls.
type Decider interface {
	// Decide says which rule denies a call, the first of them where several do; it is
	// empty where the call may run. Reading the arguments is part of it.
	Decide(ctx context.Context, c Call) (rule string, err error)
}

// Reader is a Decider that can be given what it understands instead of a text: what then
// is left is the judging alone.
type Reader interface {
	// Read reads a call, and returns what decides it.
	Read(c Call) (decide func(ctx context.Context) (rule string, err error), err error)
}

// The rules: ten for each of ten tools. Rule i is for the tool i/10, and denies a call
// whose n is i and whose path begins with /etc, or whose n is more than a thousand.
const (
	rules   = 100
	perTool = 10
	limit   = 1000
)

// write makes a text of a beginning and of what is said of each rule and its tool.
func write(beginning string, rule func(id, tool string, i int) string) []byte {
	var b strings.Builder
	b.WriteString(beginning)
	for i := range rules {
		b.WriteString(rule(fmt.Sprintf("r%d", i), toolName(i/perTool), i))
	}
	return []byte(b.String())
}

func toolName(i int) string { return fmt.Sprintf("tool%d", i) }
