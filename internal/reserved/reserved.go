// Package reserved defines the metadata keys that belong to the framework. Only packages of this module can create
// such keys.
package reserved

import "strings"

// Pass is an argument that permits a package of this module to create a framework key or to record a judgement. Code
// outside the module can create a zero Pass by type inference, but only InternalToken returns a valid one.
type Pass struct{ valid bool }

// InternalToken returns a valid Pass.
func InternalToken() Pass { return Pass{valid: true} }

// Valid reports whether InternalToken has made the Pass.
func (p Pass) Valid() bool { return p.valid }

// prefixes lists the prefixes of the framework's names.
var prefixes = [...]string{"agent.", "hooks.", "continuation.", "kit.", "grapnel."}

// Holds reports whether a key with the given name belongs to the framework.
func Holds(name string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// Advice says which names are allowed.
const Advice = "it belongs to the framework: use a name that does not begin with agent., hooks., continuation., kit. or grapnel."
