package library_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/policy"
)

// Errors in sources are reported with their place.
func TestWrongSourcesInAFile(t *testing.T) {
	t.Parallel()
	const head = "policy: p\nhooks:\n  PreToolUse:\n    - {id: a, when: 'tainted(args.x)', decision: deny}\n"
	for sources, want := range map[string]string{
		"sources: {tools: [{trusted: [a]}]}":                 "source 1: tools are missing",
		"sources:\n  tools:\n    - {tools: [x], trust: [a]}": "p.yaml:7",
		"sources: {messages: {rag: friends}}":                `unknown level "friends": expected trusted, known or untrusted`,
		"sources: [a]":                                       "p.yaml:5",
	} {
		_, err := policy.Parse("p.yaml", []byte(head+sources+"\n"), policy.Options{})
		assert.ErrorContains(t, err, want, sources)
	}
}
