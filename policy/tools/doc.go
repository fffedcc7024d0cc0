// Package tools describes tools, so that a policy can refer to effects and roles instead of names: whatever a tool
// is called, a policy on money checks the payee of a tool that pays.
//
// # Sources of a description
//
// Sources in order of precedence. Each source fills the gaps that earlier sources leave:
//
//   - the operator's table, the key "tools" in a policy file, which "grapnel hooks tools" writes;
//   - the tool's own declaration (agent.ToolSpec.Purpose), and an MCP server's annotations. These are another party's
//     hints: an annotation never makes a tool harmless that seems to change something;
//   - a catalogue of well-known tools whose names say little;
//   - an inference from the tool's name, the first sentence of its description, and the names, descriptions, types and
//     formats of its arguments.
//
// The inference knows general English words for tools and no particular tool. It reads names in camelCase, snake_case and
// kebab-case, with a server prefix, with the verb first or last. A verb that changes something takes precedence over a
// verb that reads. Description.Certainty says how sure it is.
//
// # Limits
//
// The package cannot see effects that the description does not mention, words in languages other than English, or that a
// name and description are misleading. A tool without any hint has no effects, and an argument without any hint has the
// role Unknown: policies must treat both as dangerous.
//
// All functions are safe for concurrent use.
package tools
