// Package runctx carries a run's values between packages that do not import each other: the run's journal, the place
// where gates of hooks around the run wait, and whether hooks still filter a tool's output.
package runctx
