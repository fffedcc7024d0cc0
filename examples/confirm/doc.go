// Package confirm is an example without a program. With its policy, an assistant changes something only after the user
// has said yes. The example tries it on recorded conversations. README.md explains it.
package confirm
