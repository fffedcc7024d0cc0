// Package files gives an agent tools that can access only the files below one directory: read_file, write_file,
// edit_file, list_files, glob and grep. A Tree has a method for each of these tools.
//
//	tree, err := files.Open(files.Config{Root: "/srv/project"})
//	if err != nil {
//		return err
//	}
//	defer tree.Close()
//	a, err := builder.New().WithDriver(driver).With(capability.UseTools(tree.Tools()...)).Build().Get()
//
// # Paths
//
// A path is relative to the root, with slashes. An absolute path that begins with the root is converted to a relative
// one. Paths are cleaned before anything is opened, so link/../a is always a, even if link is a symbolic link. In
// results, paths are relative and sorted. A name that is not UTF-8 or has control characters is shown quoted, and
// cannot be requested.
//
// # Confinement
//
// Everything is opened through an os.Root. Neither .. nor a symbolic link leads out of it, even if another process
// changes the tree between check and use. Absolute links are refused even if they lead back into the root. Only regular
// files and directories are opened. Pipes, devices, sockets and the kernel's own files (/proc, /sys) are refused
// without waiting for another process. Walks do not follow links.
//
// Two things cannot be detected: hard links, which are other names of the same file, and file systems mounted into the
// tree. Writing to a file with several hard links leaves its other names unchanged, because writing replaces the file
// with a new one.
//
// # Reading
//
// Sizes are limited, and the answer says what was omitted and how to get it. Binary files, which have a NUL byte in
// their first 8000 bytes, are not shown. Bytes that are not UTF-8 are shown as �. Lines that end in CRLF are shown
// without the CR.
//
// # Writing
//
// A file is written under a temporary name in its directory, synced and renamed. Readers see the old file or the new
// one, also after a crash. After an error no temporary file remains. (A killed process can leave a file named
// .grapnel-….tmp.) The file keeps its mode and, if the process may set it, its owner. A link is followed and stays a
// link. A Tree's writes run one after the other, so that parallel edits do not get lost. To detect changes by other
// processes, pass the hash that read_file returns to write_file and edit_file.
//
// An edit replaces text that occurs exactly once or, if requested, all occurrences. All other bytes stay unchanged. If
// the file has CRLF, the edit's line ends are CRLF as well.
//
// # Skipped and protected files
//
// Walks skip the names in Config.Skip, by default .git. The tools do not write into the names in Config.Protect, by
// default also .git. A file written there could make the next git command run other commands. The check resolves links.
// A process that changes a link at that moment can bypass the check, but cannot make a write leave the root. A
// .gitignore is not read. The search tools have a time limit, Config.SearchTimeout. Methods return when their context
// is done.
//
// # Failure
//
// A problem that a model can act on is an *Error. A tool returns it as an answer with Failed set, so that it is not
// retried. Methods return ctx's error when ctx is done.
//
// # Concurrency
//
// A Tree is safe for concurrent use. Close it after the last run that uses it.
package files
