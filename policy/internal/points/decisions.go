package points

import (
	"reflect"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/hooks"
)

// Decisions are the decisions that a rule can have.
var Decisions = []string{
	"allow", "deny", "ask", "stop", "rewrite", "mock", "replace", "withhold", "redact", "approve", "reject", "add_context", "continue",
}

// Denies reports whether a rule can deny at the point.
func (p *Point) Denies() bool { return slices.Contains(p.Can, "deny") }

// EditsObject reports whether a rewrite at the point changes an object: arguments or parameters.
func (p *Point) EditsObject() bool { return p.Tool || p.Name == hooks.RunStart }

// Decides reports whether a rule can decide anything at the point.
func (p *Point) Decides() bool { return len(p.Can) > 0 }

// WhatCan describes the decisions at the point in words.
func (p *Point) WhatCan() string {
	if !p.Decides() {
		return "a rule cannot decide anything there"
	}
	return "there a rule can " + strings.Join(p.Can, ", ")
}

// lookUps finds a context's method for each decision: the first one that exists. MethodByName is called with constant
// names, because otherwise the linker keeps every exported method in the program.
var lookUps = map[string][]func(reflect.Type) (reflect.Method, bool){
	"allow":   {allowMethod},
	"deny":    {func(t reflect.Type) (reflect.Method, bool) { return t.MethodByName("Deny") }},
	"ask":     {func(t reflect.Type) (reflect.Method, bool) { return t.MethodByName("AskAbout") }},
	"stop":    {func(t reflect.Type) (reflect.Method, bool) { return t.MethodByName("Stop") }},
	"rewrite": {rewriteTextMethod, func(t reflect.Type) (reflect.Method, bool) { return t.MethodByName("Rewrite") }},
	"mock":    {func(t reflect.Type) (reflect.Method, bool) { return t.MethodByName("Mock") }},
	"replace": {
		func(t reflect.Type) (reflect.Method, bool) { return t.MethodByName("ReplaceText") },
		replaceMethod,
	},
	"withhold": {func(t reflect.Type) (reflect.Method, bool) { return t.MethodByName("Withhold") }},
	"redact": {
		func(t reflect.Type) (reflect.Method, bool) { return t.MethodByName("Filter") },
		replaceMethod,
		func(t reflect.Type) (reflect.Method, bool) { return t.MethodByName("RewriteMessages") },
		rewriteTextMethod,
	},
	"add_context": {allowMethod},
}

func allowMethod(t reflect.Type) (reflect.Method, bool)       { return t.MethodByName("Allow") }
func replaceMethod(t reflect.Type) (reflect.Method, bool)     { return t.MethodByName("Replace") }
func rewriteTextMethod(t reflect.Type) (reflect.Method, bool) { return t.MethodByName("RewriteText") }

// decisionsOf returns the decisions that a context supports, and the decisions that can have effects.
func decisionsOf(c hooks.Context) (can, adds []string) {
	possible := lo.Map(action.Decisions(c), func(d hooks.Decision, _ int) string { return string(d) })
	for _, d := range Decisions {
		takesEffects := false
		for _, lookUp := range lookUps[d] {
			if m, ok := lookUp(reflect.TypeOf(c)); ok {
				takesEffects = m.Type.IsVariadic()
				if d == "redact" || d == "add_context" && takesEffects {
					possible = append(possible, d)
				}
				break
			}
		}
		if slices.Contains(possible, d) {
			can = append(can, d)
			if takesEffects {
				adds = append(adds, d)
			}
		}
	}
	return can, adds
}
