// Package coalesce lets one call answer for many that wait for the same thing, such as a thousand idle workers of a
// process that all look for a new run at once.
package coalesce
