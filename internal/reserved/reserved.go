// Package reserved knows the metadata keys that belong to the framework, and lets its
// packages, and no other code, make such keys.
package reserved

import "strings"

// Pass is what a package of this module shows to make a key of the framework, or to record a
// judgement. Code outside of the module can make a zero Pass, by inference, which is not
// valid; only Show makes a valid one.
type Pass struct{ valid bool }

// Show returns a valid Pass.
func Show() Pass { return Pass{valid: true} }

// Valid reports whether Show has made the Pass.
func (p Pass) Valid() bool { return p.valid }

// prefixes are what names of the framework begin with.
var prefixes = [...]string{"agent.", "hooks.", "continuation.", "kit.", "grapnel."}

// Holds reports whether a key of that name belongs to the framework.
func Holds(name string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// Advice says which names are free.
const Advice = "it belongs to the framework: use a name that does not begin with agent., hooks., continuation., kit. or grapnel."
