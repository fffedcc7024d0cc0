// Package guard measures what a guard adds to a tool call in other frameworks, beside a middleware of the same framework
// that does nothing.
package guard
