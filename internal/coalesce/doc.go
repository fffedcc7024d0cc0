// Package coalesce lets one call answer for many callers that wait for the same thing, such as a thousand idle
// workers that all look for a new run at once.
package coalesce
