//go:build !unix

package cli

// onDrain does nothing: only Unix has a signal for it.
func onDrain(func()) (release func()) { return func() {} }
