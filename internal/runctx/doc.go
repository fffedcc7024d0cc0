// Package runctx carries values of a run between packages that do not import each other: the run's journal, the place
// where the gates of hooks around the run wait, and whether hooks still filter a tool's texts.
package runctx
