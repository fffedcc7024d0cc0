// Package basedir contains a hook that restricts tool calls to a directory. Before the tool runs, it denies a call with
// a path that leads out of the directory. It does not depend on a particular tool and so guards all tools, including
// MCP servers' tools.
//
//	guard, err := basedir.Guard("/srv/project", basedir.Options{})
//	if err != nil {
//		return err
//	}
//	a, err := builder.New().WithDriver(driver).With(capability.UseTools(tools...), capability.UseHooks(guard)).Build().Get()
//
// # Paths
//
// The guard judges strings in a call's arguments by their member's name: path, file, dir, cwd, source, uri, and names
// that end in such a word, as file_path, targetDir, oldFilename and logfile do. Strings in a list are judged by the
// list's name. In an object called files or paths the member names are judged, too. In an object called file, the
// member called name is judged. If your tools' members have other names, such as output or location, list these names
// in Options.Fields, which replaces this rule.
//
// A path is denied if any way of reading it leads out of the directory. Tools may read it unchanged or cleaned, with
// links followed, as a file: URL, with percent signs decoded, with backslashes as slashes, or without surrounding white
// space or quotes. A path that does not exist yet is judged by its deepest existing directory. Relative paths start at
// the directory, so run the tools there, or set Options.Absolute.
//
// Paths that cannot be judged are denied: paths with control characters, in other users' homes, with a variable at the
// beginning, with too many links, or through directories that cannot be read.
//
// # Limits
//
// The guard checks arguments, not tool actions. It does not see paths in a shell command, in a script or in a pattern
// that the tool expands, nor paths in members that it does not know. It cannot tell that a hard link shares its content
// with a file outside. The files can also change between the check and the tool's access. For example, a link can
// replace a directory. Tools that must withstand this open files through an os.Root, as package toolexec/files does. A
// shell needs a sandbox.
//
// # Concurrency
//
// The hook has no state and can serve any number of runs at the same time.
package basedir
