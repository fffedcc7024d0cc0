// Package agents builds agents from flags and files, for all commands that execute runs, and shows and asks people what these agents do.
package agents
