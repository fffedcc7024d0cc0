// Package evasion tests guards: hooks that keep tool calls from running. A guard that works for one spelling of a call
// and not for the next protects nothing, so Guard.Hold asks the hooks about each call in many spellings.
//
//	evasion.Guard{
//		Hooks: []hooks.Hook{noWipe}, Tool: "bash", Argument: "command",
//		Allowed:  []string{"ls -l", "go test ./..."},
//		Commands: []string{"rm -rf build"},
//	}.Hold(t)
//
// Three things are varied:
//
//   - the JSON text of the arguments: escapes, white space, other members, members given twice or in another case;
//   - the place of the argument: it is missing, null, a list, an object, nested, or has another name. The guard must stop
//     all of these calls, because it cannot know how the tool treats them;
//   - for Guard.Commands, the line that runs the command: quoting, variables, substitutions, the order of options,
//     paths, programs and shells that start it, pipes, lists, loops and functions.
//
// Nothing is run: the hooks are asked about calls of a tool that does nothing.
package evasion
