// Package mcp makes tools of what Model Context Protocol servers offer: programs that are started and spoken to over
// their standard input and output, and services that are reached over streamable HTTP.
//
//	files, err := mcp.Connect(ctx, mcp.Server{
//		Name:    "files",
//		Command: []string{"mcp-server-filesystem", "/srv/project"},
//		Only:    []string{"read_*", "list_directory"},
//	})
//	if err != nil {
//		return err // says which server, what went wrong, what the server had to say
//	}
//	defer files.Close()
//
//	a, err := builder.New().
//		WithDriver(driver).
//		With(capability.UseTools(files.Tools()...), capability.UseHooks(noWipe)).
//		Build().Get()
//
// # Names
//
// A tool is called mcp__server__tool, so that a matcher such as hooks.ToolMatching("mcp__files__*") covers a server.
// What model services do not take in a name becomes _. A name that would be too long, or the same as another's, ends in
// eight hex digits of the server's own name for the tool: it depends neither on the order of the list nor on the day.
//
// # What is fixed, and what is looked at again
//
// The tools are those that the server listed at Connect. When it says that its list has changed, and after each
// reconnect, the list is read again before the next call: a tool that has gone, or takes other arguments than it did,
// is not called, and the model told so. New tools are for a new Connect. A server over HTTP says that its list has
// changed only in answers, or in the newest protocol: the stream for what it says unasked is not opened.
//
// # Arguments and results
//
// Arguments are checked against the server's schema before a call, and go to the server as the model wrote them, byte
// by byte. Where a schema has what we cannot read (regular expressions with look-around, references to other
// documents, unknown dialects), the model is told all of it, we check the rest, and the server checks the whole.
//
// Text, images, audio and embedded resources reach the model as what they are; links as text, which are not fetched
// unasked. A structured result is told as JSON where there is no text, which is to say the same; its numbers are 64-bit
// floats, as the SDK reads them. isError is a call that ran and has bad news. A result that breaks the schema that the
// server gave for it is told, and marked as failed.
//
// Each request carries the call's idempotency key in its _meta, under IdempotencyKey, and, where the call is part of a
// trace, its traceparent and tracestate.
//
// # Failure
//
// Whatever a server does is a failed call or an error of Connect, an *Error in both cases. A call returns as soon as
// its context is done, and the server is told that it was cancelled. Without a Timeout of the server's Policy, a call
// has two minutes; progress does not prolong it.
//
// A connection that has ended (the process died, closed its output, sent a message that is too long or nothing but
// noise; over HTTP, the session is not known any more) is made again for the next call: at once the first time, then
// after a pause that doubles up to a minute and is forgotten when a call succeeds; calls in the pause fail at once.
// What the server held in memory is lost. Calls that were under way fail with Error.Lost. They are not repeated, with
// one exception: a tool that says it is read-only or idempotent gets a second attempt, with the same idempotency key,
// unless a Policy says otherwise.
// A call that the server refused because it did not know the session was not run, and is made again.
//
// # Trust
//
// Names, descriptions, schemas, instructions, annotations, progress and results are the server's word. Hooks see its
// tools like any others, and Client.Annotations tells them what the server says; that a tool calls itself read-only
// protects no one. A started server has the rights of this process: it gets only the variables that Inherit and Env
// name, which keeps secrets from it and confines it in no other way. Header values, variables and the query of a URL
// are struck out of errors.
//
// # Concurrency
//
// Calls of one server run side by side on one connection. A Client serves any number of agents and runs; Close it when
// they are done. It ends the process group of a server that it started, and waits for that.
package mcp
