// Package evasion tests guards, which are hooks that keep tool calls from running. A guard that stops one spelling of
// a command but not the next protects nothing. Guard.Hold therefore asks the hooks about each command in many
// spellings.
//
//	evasion.Guard{
//		Hooks: []hooks.Hook{noWipe}, Tool: "bash", Argument: "command",
//		Allowed:  []string{"ls -l", "go test ./..."},
//		Commands: []string{"rm -rf build"},
//	}.Hold(t)
//
// Three things vary:
//
//   - the JSON text of the arguments: escapes, white space, other members, members given twice or in another case;
//   - the place of the argument: missing, null, a list, an object, nested, or under another name. The guard must stop
//     all of these calls, because it cannot know how the tool treats them;
//   - for Guard.Commands, the line that runs the command: quoting, variables, substitutions, the order of options,
//     paths, programs and shells that start it, pipes, lists, loops and functions.
//
// No command runs: the called tool does nothing.
package evasion
