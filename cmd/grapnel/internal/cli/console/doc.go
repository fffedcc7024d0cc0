// Package console has what every command shares that reads flags and writes to a terminal: exit codes, signals, colours and texts.
package console
