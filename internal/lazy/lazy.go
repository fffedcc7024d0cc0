// Package lazy builds values on first use, so that programs that do not need them start faster.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp returns a function that compiles the pattern on its first call, and returns the same expression on later
// calls. The function panics if the pattern is invalid, as regexp.MustCompile does. It is safe for concurrent use.
func Regexp(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}
