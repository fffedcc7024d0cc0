// Package mcp provides tools from Model Context Protocol servers. A server is a program that the package starts and
// talks to over standard input and output, or a service over streamable HTTP.
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
// Characters that model services do not accept in a name become _. A name that would be too long, or the same as
// another tool's name, ends in eight hex digits. They come from a hash of the server's own name for the tool, so the
// name does not depend on the list's order.
//
// # Changes of the tool list
//
// A Client has the tools that the server listed at Connect. When the server reports that its list has changed, and
// after each reconnect, the client reads the list again before the next call. It does not call a tool that was removed,
// or whose arguments have changed, and tells the model so. New tools need a new Connect. A server over HTTP can report
// a change only in answers, or in the newest protocol, because the client does not open the stream for unsolicited
// messages.
//
// # Arguments and results
//
// Arguments are checked against the server's schema before a call. The server receives them as the model wrote them,
// byte by byte. A schema may have features that this package does not support: regular expressions with look-around,
// references to other documents, unknown dialects. Then the model sees the whole schema, this package checks the
// supported part, and the server checks everything.
//
// The model receives text, images, audio and embedded resources unchanged. It receives links as text; they are not
// fetched. A structured result is passed on as JSON only if there is no text, which by the protocol has the same
// content. Its numbers are 64-bit floats, because the SDK reads them as such. isError means that the call ran and has a
// negative result. A result that violates the server's output schema is passed on, and marked as failed.
//
// Each request carries the call's idempotency key in its _meta, under IdempotencyKey, and, if the call is part of a
// trace, its traceparent and tracestate.
//
// # Questions
//
// A server can ask a person for input, with a result that requires it (protocol 2026-07-28) or with elicitation/create
// during the call. Then the call ends with an *agent.InputError, the run waits, and the call is made again with the
// answer. Before protocol 2026-07-28, the server cannot continue where it asked. It repeats its earlier work, with the
// same idempotency key. Such a request does not say which call asks. If several calls are in progress, the request is
// cancelled. From then on, calls to this server are made one at a time.
//
// # Failure
//
// A server's failure is a failed call or an error from Connect, an *Error in both cases. A call returns as soon as its
// context is done, and the client tells the server about the cancellation. Without a Timeout in the server's Policy, a
// call has two minutes. Progress does not prolong it.
//
// A connection can end. The process dies, closes its output, or sends a message that is too long or too much unrelated
// data. Over HTTP, the server no longer knows the session. The next call then reconnects, the first time immediately.
// Later reconnects wait for a pause that doubles up to a minute and is reset when a call succeeds. Calls during the
// pause fail immediately. Data in the server's memory is lost. Calls in progress fail with Error.Lost. They are not
// repeated, with one exception. Unless a Policy says otherwise, a tool that declares itself read-only or idempotent
// gets a second attempt, with the same idempotency key. If the server refused a call because it did not know the
// session, the call did not run, and the package sends it again.
//
// # Trust
//
// Names, descriptions, schemas, instructions, annotations, progress and results come from the server and cannot be
// trusted. Hooks see its tools like any other tools, and can use Client.Annotations. A tool that declares itself
// read-only may still write. A started server has this process's rights. It gets only the variables in Inherit and Env,
// which keeps secrets from it but does not confine it in any other way. Header values, variables and a URL's query are
// removed from errors.
//
// # Concurrency
//
// Calls to one server run in parallel on one connection. A Client can serve any number of agents and runs. Close it
// when they are done. Close ends the process group of a server that Connect started, and waits for it.
package mcp
