// Package mcpcall answers tool calls of the Model Context Protocol in the session of a guard, on the JSON of the messages.
// A guarded server and the proxy share it. Answer judges a call, and its func next sends the call to the tool, with exactly
// the arguments that were judged. A result that no filter has changed is returned as it came, byte by byte. In a changed
// one, only the changed texts are other ones.
//
// # Concurrency
//
// All functions are safe for concurrent use. A shape is for one call.
package mcpcall
