// Package durable keeps runs so that they survive: a kill, a restart, a question
// that nobody answers until next week.
package durable
