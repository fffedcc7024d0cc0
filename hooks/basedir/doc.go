// Package basedir holds a hook that keeps tool calls inside a directory: it denies a call with a path that leads elsewhere
// before the tool runs. It depends on no particular tool and so guards all of them: your own and those of MCP servers.
//
//	guard, err := basedir.Guard("/srv/project", basedir.Options{})
//	if err != nil {
//		return err
//	}
//	a, err := builder.New().WithDriver(driver).With(capability.UseTools(tools...), capability.UseHooks(guard)).Build().Get()
//
// # What is judged
//
// The guard judges the strings in a call's arguments whose member has the name of a path: path, file, dir, cwd,
// source, uri, and names that end in such a word, as file_path, targetDir, oldFilename and logfile do. Strings in a
// list are judged by the name of the list. In an object called files or paths the member names are judged, too, and
// in an object called file the member called name. If the members of your tools have other names, such as output or
// location, list these in Options.Fields, which replaces this rule.
//
// A path is denied if any way of reading it leads out of the directory: as it is and cleaned, with links followed, as a
// file: URL, with percent signs decoded, with backslashes for slashes, without the white space or quotes around it. A path
// that does not exist yet is judged by its deepest existing directory. Relative paths start at the directory, so run the
// tools there, or set Options.Absolute.
//
// Paths that cannot be judged are denied: those with control characters, in the homes of other users, with a variable at
// the beginning, with too many links, or through directories that cannot be read.
//
// # What it cannot see
//
// The guard checks arguments, not what a tool does with them. It does not see the paths in a shell command, in a script or
// in a pattern that the tool expands, nor paths in members that it does not know. It cannot tell that a hard link shares
// its content with a file outside. The files may also change between the check and the tool's access: a directory may have
// become a link. Tools that must withstand this open files through an os.Root, as package toolexec/files does; a shell
// needs a sandbox.
//
// # Concurrency
//
// The hook keeps no state and serves any number of runs at once.
package basedir
