// Package confirm is an example without a program: a policy by which an assistant changes something only after the user
// has said yes, tried on recorded conversations. README.md explains it.
package confirm
