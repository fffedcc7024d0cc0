package evasion

import (
	"maps"
	"slices"
	"testing"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// Guard describes what hooks must stop and what they must let through.
type Guard struct {
	// Hooks are asked in order. Hooks at points other than PreToolUse are ignored.
	Hooks []hooks.Hook
	// Tool is the name of the called tool. Argument is the argument that the guard judges; if it is empty, only Calls
	// and AllowedCalls are tried.
	Tool, Argument string
	// With holds the other arguments of each call.
	With map[string]any
	// State is the conversation before the call. The zero value is a user message "hello".
	State agent.State

	// Allowed lists argument values with which the call must run.
	Allowed []string
	// Forbidden lists argument values with which the call must not run.
	Forbidden []string
	// Commands lists shell commands, as words separated by spaces. They must not run, however a line runs them.
	Commands []string
	// AllowedCalls and Calls list complete arguments as JSON. The call must run with each of AllowedCalls, and with
	// none of Calls.
	AllowedCalls, Calls []string
	// Harmless reports whether the call may run with a value that the hooks substituted for the forbidden one. Nil
	// means that no value is harmless.
	Harmless func(value string) bool
}

// Hold fails the test for each spelling with which a forbidden call runs, and for each allowed call that is stopped.
func (g Guard) Hold(t testing.TB) {
	t.Helper()
	for _, value := range g.Allowed {
		g.mustRun(t, g.arguments(g.Argument, value))
	}
	for _, arguments := range g.AllowedCalls {
		g.mustRun(t, arguments)
	}
	for _, arguments := range g.Calls {
		g.mustStop(t, "as it stands", arguments)
	}
	tried := slices.Concat(g.Forbidden, g.Commands)
	for _, value := range tried {
		g.tryTexts(t, value)
	}
	for _, command := range g.Commands {
		for how, line := range shellLines(command) {
			g.mustStop(t, how, g.arguments(g.Argument, line))
		}
	}
	if g.Argument != "" && len(tried) > 0 {
		for how, arguments := range g.wrongPlaces(tried[0]) {
			g.mustStop(t, how, arguments)
		}
	}
}

// tryTexts tries all JSON spellings of arguments with the value.
func (g Guard) tryTexts(t testing.TB, value string) {
	t.Helper()
	harmless := ""
	if len(g.Allowed) > 0 {
		harmless = g.Allowed[0]
	}
	for how, arguments := range g.texts(value, harmless) {
		g.mustStop(t, how, arguments)
	}
}

func (g Guard) mustRun(t testing.TB, arguments string) {
	t.Helper()
	fired, err := g.fire(t, arguments)
	if err != nil {
		t.Errorf("%s %s: %v", g.Tool, arguments, err)
		return
	}
	if !fired.Ran() {
		t.Errorf("%s %s must run but does not: %s", g.Tool, arguments, fired)
	}
}

func (g Guard) mustStop(t testing.TB, how, arguments string) {
	t.Helper()
	fired, err := g.fire(t, arguments)
	switch {
	case err != nil && strictjson.CheckObject(arguments) != nil: // agents reject such arguments before they call hooks or tools
	case err != nil:
		t.Errorf("%s, %s %s: %v", how, g.Tool, arguments, err)
	case fired.Ran() && !g.isHarmless(arguments, fired.Call):
		t.Errorf("%s, %s %s must not run but does: %s", how, g.Tool, fired.Call.Arguments, fired)
	}
}

// isHarmless reports whether the hooks have changed the arguments to a harmless value.
func (g Guard) isHarmless(arguments string, call agent.ToolCall) bool {
	value, ok := hooks.Call{ToolCall: call}.Text(g.Argument)
	return ok && call.Arguments != arguments && g.Harmless != nil && g.Harmless(value)
}

func (g Guard) fire(t testing.TB, arguments string) (hookstest.Fired, error) {
	t.Helper()
	list := slices.DeleteFunc(slices.Clone(g.Hooks), func(h hooks.Hook) bool {
		return !slices.Contains(h.Points(), hooks.PreToolUse)
	})
	return hookstest.ToolCall(g.Tool, arguments).WithState(g.State).Fire(t.Context(), hooks.NewSet(list...)).Get()
}

// arguments returns the JSON text of With and one more argument.
func (g Guard) arguments(name string, value any) string {
	members := maps.Clone(g.With)
	if members == nil {
		members = map[string]any{}
	}
	members[name] = value
	return marshalText(members)
}
