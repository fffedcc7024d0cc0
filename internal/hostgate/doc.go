// Package hostgate translates between coding agents' hooks and this module's calls. Decode reads the event that a host such as
// Codex sends to a hook. Event.Output writes an answer so that the host obeys it.
//
//	stdin, err := io.ReadAll(os.Stdin)
//	if err != nil {
//		return err
//	}
//	answer := hostgate.Refusal(hostgate.Codex, stdin, "the event cannot be read")
//	if event, err := hostgate.Decode(hostgate.Codex, stdin, hostgate.Options{}); err == nil {
//		answer = event.Output(hostgate.Answer{Decision: hostgate.Deny, Reason: "nothing is deleted here"})
//	}
//	_, err = os.Stdout.Write(answer)
//
// # Tools
//
// Tools of hosts get this module's names: bash, read_file, write_file, edit_file, list_files, glob, grep, apply_patch,
// web_fetch, web_search, Task. Their arguments get our keys: command, path, content, old_text, new_text, pattern, url,
// query. A tool of an MCP server is mcp__server__tool. All other tools and keys keep the host's names.
//
// A call may hide another: apply_patch in a shell line, or input for a running shell. Event.Calls has both, or
// Event.Unclear says why the call must not run.
//
// # Answers
//
// Hosts open when an answer is not exactly what they expect. Output never relies on exit codes and writes one JSON
// object or nothing. An answer that a host cannot express becomes a denial, at PostToolUse the strictest that the host
// obeys. docs/gate.md lists what each host leaves open.
package hostgate
