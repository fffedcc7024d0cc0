// Package basedir is a hook that keeps tool calls inside of a directory: a call that has a path leading elsewhere is
// denied before its tool runs. It knows no tool, and so guards any: your own, and those of MCP servers.
//
//	guard, err := basedir.Guard("/srv/project", basedir.Options{})
//	if err != nil {
//		return err
//	}
//	a, err := builder.New().WithDriver(driver).With(capability.UseTools(tools...), capability.UseHooks(guard)).Build().Get()
//
// # What is judged
//
// The strings in a call's arguments whose member is called like a path: path, file, dir, cwd, source, uri, and names that
// end in such a word, as file_path, targetDir, oldFilename and logfile do. Those in a list go by the name of the list; the
// names in an object called files or paths are judged too, and so is the name in an object called file. Options.Fields
// names other members instead: say which, where your tools call a path something else, such as output or location.
//
// A path is denied if any way of reading it leads out of the directory: as it is and cleaned, with links followed, as a
// file: URL, with percent signs decoded, with backslashes for slashes, without the space or quotes around it. What does
// not exist yet is judged by the deepest part that does. Relative paths begin at the directory, so let the tools work
// there, or set Options.Absolute.
//
// What cannot be judged is denied: control characters, the homes of other users, a variable at the beginning, too many
// links, and directories that cannot be looked at.
//
// # What it cannot see
//
// It looks at arguments, not at what a tool makes of them. It does not see the paths in a shell command, in a script or
// in a pattern that the tool expands, nor paths under names that it does not know. A hard link is a file like any other:
// nothing tells that what is in it is in a file outside, too. And between its look and the
// tool's use the files may change: what is a directory now may be a link then. Tools that must hold against that open
// files through an os.Root, as package toolexec/files does; a shell needs a sandbox.
//
// # Concurrency
//
// The hook keeps nothing of a call and serves any number of runs at once.
package basedir
