// Package confirm is an example: a policy by which an assistant changes something only after the user has said yes, and
// what comes of trying it on recorded conversations. README.md tells of it.
package confirm
