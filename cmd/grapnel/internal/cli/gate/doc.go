// Package gate has the command that decides on the calls of other coding agents.
package gate
