//go:build !unix

package cli

// onDrain returns a func that does nothing: only Unix has a signal for it.
func onDrain(func()) (release func()) { return func() {} }
