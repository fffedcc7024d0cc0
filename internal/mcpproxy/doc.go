// Package mcpproxy puts a guard in front of any MCP server. It passes the messages of a client and a server on as they
// are, byte by byte, and touches only three things:
//
//   - A request tools/call is judged first. A denied call never reaches the server, and its answer is a result with
//     isError. The server gets the judged arguments, and the client the filtered result.
//   - A result of tools/list loses the tools that no person has accepted, and tools whose names imitate others: see Pins.
//   - A message that readers could understand in different ways is refused: one with a member twice, or with members
//     whose names differ only in case, a batch, an answer to no open request.
//
// A question about a call goes to the client, by elicitation, or with input requests since protocol 2026-07-28. A client
// that can do neither gets a denial.
//
// A session is the client's connection. Over HTTP without sessions it is one request, so that rules that count calls deny.
//
// # Concurrency
//
// Each connection has its goroutines, and each tool call another one. All of them have ended when Serve returns.
package mcpproxy
