// Package bash says what running a line of bash may do.
package bash
