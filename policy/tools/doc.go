// Package tools says what a tool does, so that a policy can speak of effects and roles instead of names: whatever a tool
// is called, a policy about money asks about the payee of a tool that pays.
//
// # Where a description comes from
//
// The sources in the order in which they count. What one leaves open, the next one answers:
//
//   - the table of the operator, the key "tools" of a policy file, which "grapnel hooks tools" writes;
//   - the tool's own declaration (agent.ToolSpec.Purpose), and the annotations of an MCP server. These are hints of another
//     party: an annotation makes a tool that seems to change something never harmless;
//   - a catalogue of well-known tools whose names say little;
//   - an inference from the tool's name, the first sentence of its description, and the names, descriptions, types and
//     formats of its arguments.
//
// The inference knows general English words of tools and no particular tool. It reads names in camelCase, snake_case and
// kebab-case, with a prefix of a server, with the verb first or last. A verb that changes something counts more than one
// that reads. Description.Certainty says how sure it is.
//
// # What it cannot see
//
// What a tool does besides what its description says; words in other languages than English; tools whose name and
// description are misleading. A tool without any hint has no effects, and an argument without any hint has the role
// Unknown: policies must treat both as dangerous.
//
// All functions are safe for concurrent use.
package tools
