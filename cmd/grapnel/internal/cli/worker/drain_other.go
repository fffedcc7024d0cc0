//go:build !unix

package worker

// onDrain returns a func that does nothing: only Unix has a signal for it.
func onDrain(func()) (release func()) { return func() {} }
