// Package mcp provides the tools of Model Context Protocol servers. A server is a program that the package starts and
// talks to over its standard input and output, or a service over streamable HTTP.
//
//	files, err := mcp.Connect(ctx, mcp.Server{
//		Name:    "files",
//		Command: []string{"mcp-server-filesystem", "/srv/project"},
//		Only:    []string{"read_*", "list_directory"},
//	})
//	if err != nil {
//		return err // the server's name, what went wrong, and the server's last output
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
// Characters that model services do not accept in a name become _. A name that would be too long, or the same as the
// name of another tool, ends in eight hex digits of a hash of the server's own name for the tool, so it does not
// depend on the order of the list.
//
// # Changes of the tool list
//
// The tools are those that the server listed at Connect. When the server reports that its list has changed, and after
// each reconnect, the list is read again before the next call. A tool that was removed, or whose arguments have
// changed, is not called, and the model is told so. New tools need a new Connect. A server over HTTP can report a
// change only in answers, or in the newest protocol: the stream for unsolicited messages is not opened.
//
// # Arguments and results
//
// Arguments are checked against the server's schema before a call, and are sent to the server as the model wrote them,
// byte by byte. If a schema has features that this package does not support (regular expressions with look-around,
// references to other documents, unknown dialects), the model sees all of the schema, this package checks the
// supported part, and the server checks everything.
//
// The model receives text, images, audio and embedded resources unchanged. It receives links as text; they are not
// fetched. A structured result is passed on as JSON only if there is no text, which by the protocol has the same
// content; its numbers are 64-bit floats, because the SDK reads them as such. isError means that the call ran and has
// a negative result. A result that violates the server's output schema is passed on, and marked as failed.
//
// Each request carries the call's idempotency key in its _meta, under IdempotencyKey, and, if the call is part of a
// trace, its traceparent and tracestate.
//
// # Questions
//
// A server can ask a person for input, with a result that requires it (protocol 2026-07-28) or with elicitation/create
// during the call. Then the call ends with an *agent.InputError, the run waits, and the call is made again with the
// answer. Before protocol 2026-07-28 the server cannot continue where it asked: what it did before happens again, with
// the same idempotency key. Such a request does not say which call asks. While several calls are in progress it is
// cancelled, and from then on calls of this server are made one at a time.
//
// # Failure
//
// Every failure of a server is a failed call or an error of Connect, an *Error in both cases. A call returns as soon
// as its context is done, and the server is told that it was cancelled. Without a Timeout of the server's Policy, a
// call has two minutes; progress does not prolong it.
//
// A connection can end: the process dies, closes its output, sends a message that is too long or too much unrelated
// data; over HTTP, the server no longer knows the session. The next call then reconnects: immediately the first time,
// later after a pause that doubles up to a minute and is reset when a call succeeds; calls during the pause fail
// immediately. Data in the server's memory is lost. Calls in progress fail with Error.Lost. They are not repeated,
// with one exception: a tool that declares itself read-only or idempotent gets a second attempt, with the same
// idempotency key, unless a Policy says otherwise. If the server refused a call because it did not know the session,
// the call did not run, and the package sends it again.
//
// # Trust
//
// Names, descriptions, schemas, instructions, annotations, progress and results come from the server and cannot be
// trusted. Hooks see its tools like any other tools, and can use Client.Annotations; a tool that declares itself
// read-only may still write. A started server has the rights of this process: it gets only the variables in Inherit
// and Env, which keeps secrets from it but does not confine it in any other way. Header values, variables and the
// query of a URL are removed from errors.
//
// # Concurrency
//
// Calls of one server run in parallel on one connection. A Client can serve any number of agents and runs; Close it
// when they are done. Close ends the process group of a server that Connect started, and waits for it.
package mcp
