// Package condition is the language in which policies say when they apply: typed expressions of CEL that are checked when
// they are loaded, bounded in what they may cost, and given values as values, never as text.
package condition
