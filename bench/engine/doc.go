// Package engine measures durable runs beside bare SQL that writes the same rows of the same tables, with the same indexes.
//
// All its code is in tests, because those start servers of PostgreSQL. A plain run of the tests is small: it shows that each
// figure can be measured, and that what was measured is right. The full run takes a quarter of an hour. It writes every
// measurement to results.txt and the table to the README of the benchmarks:
//
//	go test .                   # small, in seconds; prints the table with -v
//	make -C bench engine        # full
//
// The figures of the coordinator go over HTTP on this machine: programs that submit runs, runners in the form of
// docs/runner-protocol.md, and streams. Beside them is a server that takes the same requests and makes the same transactions,
// without tokens, checks, blueprints and hooks.
//
// # Rules
//
// What is compared alternates: a round measures both sides several times in turn, and a figure is the median of the
// ratios of the rounds. So the other load of the machine affects both sides alike. Times that stand alone are medians, or
// the slowest of a hundred where that is said.
//
// A figure that misses its goal fails no test: the goal is for a machine without other work.
package engine
