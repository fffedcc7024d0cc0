// Package storage opens the store of a command: a file or database through a coordinator in this process, or a coordinator elsewhere. It is apart
// from package runs because pipelines, approvals and services open stores, too.
package storage
