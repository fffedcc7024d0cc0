// Package lazy holds values that are made when they are first used, so that a program
// that does not need them starts without their cost.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp returns a function that compiles the pattern with its first call and returns the
// same expression from then on. The function panics where the pattern is wrong, as
// regexp.MustCompile does. It is safe for concurrent use.
func Regexp(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}
